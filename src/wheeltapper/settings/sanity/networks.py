"""Parts of a network that must fit each other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet

WIDTHS = ("d_model", "hidden_size", "n_embd", "embed_dim", "hidden_dim", "model_dim", "dim", "emb_dim", "embedding_dim", "width", "n_embed", "enc_hid_size", "d_embed", "attention_dim", "encoder_embed_dim", "hidden_channels")
HEADS = ("n_head", "n_heads", "num_heads", "num_attention_heads", "heads", "nhead", "nheads", "attention_heads", "n_attention_heads", "encoder_attention_heads")
KV = ("n_kv_heads", "num_key_value_heads", "num_kv_heads", "n_kv_head", "kv_heads", "num_query_groups")
_OWN_DIM = ("head_dim", "d_kv", "kv_channels", "dim_head", "attention_head_size", "head_size")
_LENGTH = re.compile(r"^(?:max_)?(?:seq(?:uence)?_?len(?:gth)?|max_seq(?:uence)?_?len(?:gth)?|block_size|max_length|context_length|n_ctx)$")
_POSITIONS = re.compile(r"^(?:max_position_embeddings|n_positions|max_positions|num_positions|max_position|position_table_size)$")
BATCH_NORM = re.compile(r"(?i)^(?:bn|batch|batchnorm(?:\dd)?|batch_?norm(?:\dd)?)$")


def _whole(s: Setting) -> int | None:
    number = s.number
    return int(number) if number is not None and not isinstance(s.value, bool) and float(number).is_integer() else None


def heads(sheet: Sheet) -> Iterator[Doubt]:
    """Heads of attention share the width evenly."""
    for s in sheet.settings:
        count = _whole(s)
        if not count or count <= 0 or s.key not in (*HEADS, *KV):
            continue
        beside = [o for o in sheet.settings if o.path[:-1] == s.path[:-1] and o.leaf.file == s.leaf.file]
        if s.key in HEADS and not any(o.key in _OWN_DIM for o in sheet.settings) and not sheet.mentions(r"(?i)mamba|rwkv|\bt5"):
            width = next((o for key in WIDTHS for o in beside if o.key == key and _whole(o)), None)
            if width is not None and (_whole(width) or 0) % count:
                yield Doubt("setting-beyond-practice", f"a width of {_whole(width)} (`{width.name}`) cannot be shared by {count} heads (`{s.name}`)", (s, width))
        if s.key in KV:
            many = next((o for o in beside if o.key in HEADS and _whole(o)), None)
            if many is not None and (_whole(many) or 0) % count:
                yield Doubt("setting-beyond-practice", f"{_whole(many)} heads (`{many.name}`) cannot share {count} keys and values (`{s.name}`)", (s, many))


def positions(sheet: Sheet) -> Iterator[Doubt]:
    """Sequences longer than the table of positions."""
    tables = [s for s in sheet.settings if _POSITIONS.match(s.key) and _whole(s)]
    for s in sheet.settings:
        length = _whole(s)
        if not length or not _LENGTH.match(s.key) or s.above & {"valid", "generation"}:
            continue
        table = sheet.nearest(s, tables)
        if table is not None and (_whole(table) or 0) < length and (_whole(table) or 0) > 0:
            yield Doubt("setting-beyond-practice", f"sequences of {length} (`{s.name}`) do not fit the {_whole(table)} positions (`{table.name}`)", (table, s))


def prompts(sheet: Sheet) -> Iterator[Doubt]:
    """A prompt that may take the whole context leaves no room for the answer."""
    whole = next((s for s in sheet.settings if s.key in ("max_length", "max_seq_length", "cutoff_len", "max_len") and _whole(s)), None)
    for s in sheet.settings:
        if s.key in ("max_prompt_length", "max_prompt_len", "prompt_length") and whole is not None and s.leaf.file == whole.leaf.file and ((_whole(s) or 0) >= (_whole(whole) or 0) > 0):
            yield Doubt("all-labels-masked", f"a prompt of {s.number:g} (`{s.name}`) fills the {whole.number:g} of the context (`{whole.name}`)", (s, whole))


def experts(sheet: Sheet) -> Iterator[Doubt]:
    """More experts chosen than there are."""
    total = next((s for s in sheet.settings if re.fullmatch(r"(?:num|n)_(?:local_|routed_|moe_)?experts|experts|moe_num_experts", s.key) and _whole(s)), None)
    for s in sheet.settings:
        chosen = s.key in ("top_k", "topk", "moe_top_k", "num_experts_per_tok", "router_topk", "experts_per_token", "moe_router_topk") and "moe" in sheet.themes
        if total is not None and chosen and not s.above & {"generation", "sampling", "valid"} and (_whole(s) or 0) > (_whole(total) or 0):
            yield Doubt("setting-beyond-practice", f"{_whole(s)} experts are chosen (`{s.name}`) of {_whole(total)} (`{total.name}`)", (s, total))


def patches(sheet: Sheet) -> Iterator[Doubt]:
    """Pictures that are cut into one patch, or not evenly; crops larger than the picture."""
    sizes = [s for s in sheet.settings if s.key in ("image_size", "img_size", "input_size", "imgsz", "crop_size", "train_crop", "size", "global_crop_size", "resolution", "local_crop_size") and (_whole(s) or s.numbers)]
    for s in sheet.settings:
        patch = _whole(s) if s.key in ("patch_size", "patch", "vit_patch_size") else _patch_in_name(s)
        if not patch or patch < 2:
            continue
        for size in sizes if s.text else [o for o in sizes if o.path[:-1] == s.path[:-1]]:
            pixels = size.numbers[0] if size.numbers else float(_whole(size) or 0)
            if (size.leaf.file == s.leaf.file and 0 < pixels < 2 * patch and pixels > 0 and size.key != "size") or (size.key == "size" and size.path[:-1] == s.path[:-1] and pixels < 2 * patch):
                first = (size, s) if s.text or "local" in size.own or pixels < 64 else (s, size)
                yield Doubt("setting-beyond-practice", f"a picture of {pixels:g} (`{size.name}`) is one patch of {patch} (`{s.name}`)", first)


def _patch_in_name(s: Setting) -> int | None:
    found = re.search(r"patch(\d+)", s.text) if s.own & {"model", "arch", "backbone"} else None
    return int(found[1]) if found else None


def crops(sheet: Sheet) -> Iterator[Doubt]:
    """A crop larger than the picture that it is taken from."""
    for crop in sheet.settings:
        if not crop.own & {"crop"} or not _whole(crop) or crop.own & {"n", "number", "local", "border"}:
            continue
        for size in sheet.settings:
            wanted = {crop.key.replace("crop", word) for word in ("resize", "load", "image", "scale")}
            if size.key in wanted and size.path[:-1] == crop.path[:-1] and _whole(size) and (_whole(size) or 0) < (_whole(crop) or 0) and size.key != crop.key:
                yield Doubt("setting-beyond-practice", f"a crop of {_whole(crop)} (`{crop.name}`) from pictures of {_whole(size)} (`{size.name}`)", (size, crop))


def depths(sheet: Sheet) -> Iterator[Doubt]:
    """A patch that cannot be halved as often as the network has stages; fan-outs for another number of layers."""
    stages = next((s for s in sheet.settings if s.key in ("stages", "num_stages", "n_stages", "num_pool", "depth") and _whole(s)), None)
    for s in sheet.settings:
        if s.key in ("patch_size", "roi_size", "crop_size") and len(s.numbers) >= 2 and stages is not None and sheet.mentions(r"(?i)unet"):
            halvings = (_whole(stages) or 1) - 1
            if min(s.numbers) < 2**halvings and 2 <= halvings <= 8:
                yield Doubt("setting-beyond-practice", f"a patch of {min(s.numbers):g} (`{s.name}`) cannot be halved {halvings} times (`{stages.name}`)", (s, stages))
        if s.own & {"fanout", "fanouts", "neighbors", "neighbours"} and len(s.numbers) > 1:
            layers = next((o for o in sheet.settings if o.key in ("layers", "num_layers", "n_layers") and _whole(o)), None)
            if layers is not None and _whole(layers) != len(s.numbers):
                first = (layers, s) if (_whole(layers) or 0) > 8 else (s, layers)
                yield Doubt("setting-beyond-practice", f"{len(s.numbers)} fan-outs (`{s.name}`) for {_whole(layers)} layers (`{layers.name}`)", first)
    graph = sheet.says("gcn", "gat", "sage", "gin", "gnn", "graphsage")
    for s in sheet.settings:
        if graph and s.key in ("layers", "num_layers", "n_layers", "num_gnn_layers") and (_whole(s) or 0) > 30 and not sheet.says("residual", "deep", "gcnii", "deepergcn"):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {_whole(s)}: so many rounds of messages make all nodes alike", (s,), "range")


def norms(sheet: Sheet) -> Iterator[Doubt]:
    """Batch norm over one or two samples."""
    for s in sheet.settings:
        named = (s.own & {"norm", "normalization", "normalisation"} or (s.above & {"norm", "norm_cfg"} and s.key == "type")) and BATCH_NORM.match(s.text)
        if not named or any(o.key == "norm_eval" and o.on and o.path[: len(s.path) - 2] == s.path[: len(s.path) - 2] for o in sheet.settings):
            continue
        batches = [o for o in sheet.settings if o.knob == "batch.per_device" or o.key in ("batch_size", "samples_per_gpu", "batch")]
        small = [o for o in batches if 0 < (o.number or 0) <= 2 and not o.around & {"val", "valid", "test", "eval", "validation", "testing"} and not re.search(r"val|test", ".".join(o.path))]
        if small and not s.around & {"discriminator", "neck", "voxel", "pts", "img", "middle"}:
            text = f"`{s.name}` is {s.text} with batches of {small[0].number:g} (`{small[0].name}`): the statistics of so few samples are noise"
            yield Doubt("batch-norm-small-batch", text, (s, small[0]), "range")
            return


def forecasts(sheet: Sheet) -> Iterator[Doubt]:
    """The windows and columns of a forecast."""
    if "forecast" not in sheet.themes and not any(s.key == "pred_len" for s in sheet.settings):
        return
    by_key = {s.key: s for s in sheet.settings}
    past, ahead, label = by_key.get("seq_len") or by_key.get("lookback") or by_key.get("context_length") or by_key.get("input_chunk_length"), by_key.get("pred_len") or by_key.get("horizon") or by_key.get("prediction_length") or by_key.get("output_chunk_length"), by_key.get("label_len")
    if past is not None and label is not None and (label.number or 0) > (past.number or 0) > 0:
        yield Doubt("target-misaligned", f"the decoder starts with {label.number:g} steps (`{label.name}`) of an input of {past.number:g} (`{past.name}`)", (label, past))
    if past is not None and ahead is not None and past.number and ahead.number and ahead.number >= 2 and past.number < max(2.0, ahead.number / 12):
        yield Doubt("setting-beyond-practice", f"{past.number:g} steps of history (`{past.name}`) for {ahead.number:g} ahead (`{ahead.name}`)", (past, ahead))
    features, out, into = by_key.get("features"), by_key.get("c_out"), by_key.get("enc_in")
    if features is not None and out is not None and into is not None and features.text == "M" and out.number != into.number:
        yield Doubt("objective-mismatch", f"all {into.number:g} series are to be forecast (`{features.name}` M), and `{out.name}` is {out.number:g}", (out, into))
    data, freq = by_key.get("data"), by_key.get("freq")
    if data is not None and freq is not None:
        wanted = "h" if re.match(r"(?i)etth|electricity|ecl|traffic", data.text) else "t" if re.match(r"(?i)ettm", data.text) else ""
        if wanted and freq.text and not freq.text.lower().endswith(wanted) and not (wanted == "t" and freq.text.lower().endswith("min")):
            yield Doubt("target-misaligned", f"`{freq.name}` is {freq.text}, and {data.text} is {'hourly' if wanted == 'h' else 'by minutes'}", (freq, data), "range")


def image_sizes(sheet: Sheet) -> Iterator[Doubt]:
    """Two parts of one network for pictures of different size."""
    sizes = [s for s in sheet.settings if s.key in ("image_size", "img_size") and _whole(s) and not re.search(r"val|test|eval|infer|teacher|local|fine", ".".join(s.path).lower())]
    for at, s in enumerate(sizes):
        for other in sizes[:at]:
            if s.leaf.file == other.leaf.file and s.number != other.number and sheet.themes & {"gan"}:
                odd = s if (s.above & {"discriminator", "generator", "d"}) else other
                yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g} and `{other.name}` is {other.number:g}: the parts do not fit", (odd, other if odd is s else s))
    for s in sheet.settings:
        pixels = min(map(float, re.findall(r"\d+", s.text)), default=0) if s.text and s.key == "resolution" else float(s.number or 0)
        if s.key in ("resolution", "image_size", "img_size") and 0 < pixels < 256 and sheet.says("stable", "sdxl") and sheet.says("diffusion", "sdxl"):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.value}: the latent of Stable Diffusion would be {pixels / 8:g} a side", (s,), "range")


def channels(sheet: Sheet) -> Iterator[Doubt]:
    """Parts that see the same picture with another number of channels."""
    wide = [s for s in sheet.settings if s.key in ("in_channels", "num_in_ch", "input_nc", "in_chans", "image_channels", "channels") and _whole(s) and not any(p.isdigit() for p in s.path)]
    for s in sheet.settings:
        if re.fullmatch(r"disc_in_channels|d_in_channels|discriminator_in_channels", s.key) and _whole(s):
            other = next((o for o in wide if o.key in ("in_channels", "input_nc", "image_channels")), None)
            if other is not None and _whole(other) != _whole(s) and (_whole(other) or 0) <= 4:
                yield Doubt("setting-beyond-practice", f"`{s.name}` is {_whole(s)} and `{other.name}` is {_whole(other)}: both see the same pictures", (s, other))
        if s.has("latent channels", "n") and sheet.mentions(r"DiT|SiT|stable-diffusion|sd-vae") and _whole(s) in (1, 2, 3):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {_whole(s)}: the usual autoencoders have 4 or 16 latent channels", (s,), "range")


def scales(sheet: Sheet) -> Iterator[Doubt]:
    """Super-resolution: one factor in the data, the network and the names of the folders."""
    factor = next((s for s in sheet.settings if s.key in ("scale", "sr_scale", "upscale_factor", "scale_factor") and len(s.path) == 1 and (_whole(s) or 0) in (2, 3, 4, 8)), None)
    if factor is None:
        return
    for s in sheet.settings:
        if s.key in ("upscale", "scale", "upscale_factor") and s is not factor and s.above & {"network", "net", "model", "g"} and _whole(s) and s.number != factor.number:
            yield Doubt("objective-mismatch", f"the network enlarges by {s.number:g} (`{s.name}`), the data are for {factor.number:g} (`{factor.name}`)", (s, factor))
        told = re.findall(r"(?i)(?<![a-z0-9])(?:x|lrbicx)([2348])(?![0-9])", s.text) if s.own & {"lq", "lr", "dataroot"} else []
        if told and all(float(t) != factor.number for t in told):
            yield Doubt("objective-mismatch", f"`{s.name}` is {s.text}, and the factor is {factor.number:g} (`{factor.name}`)", (s, factor))
        if s.key in ("gt_size", "hr_size") and _whole(s) and (s.number or 0) < 8 * (factor.number or 1):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: the low-resolution patch would be {(s.number or 0) / (factor.number or 1):g}", (s, factor))


def sampling(sheet: Sheet) -> Iterator[Doubt]:
    """A sampler that differs from what was trained."""
    steps = [s for s in sheet.settings if _whole(s) and (s.above & {"diffusion"} or s.own & {"diffusion", "train"}) and s.own & {"timestep", "timesteps", "steps", "step"} and not s.around & {"sampling", "sample", "sampler", "ddim", "inference", "warmup", "lr", "total", "max", "save", "log"}]
    for s in sheet.settings:
        if steps and s.own & {"timestep", "timesteps", "steps", "step"} and s.around & {"sampling", "sample", "sampler", "ddim", "inference"} and not s.own & {"every", "interval", "max"} and _whole(s) and ((_whole(s) or 0) > (_whole(steps[0]) or math.inf)):
            yield Doubt("sigma-mismatch", f"{_whole(s)} steps are sampled (`{s.name}`) of {_whole(steps[0])} (`{steps[0].name}`)", (s, steps[0]))
    kinds = [s for s in sheet.settings if s.key in ("predict", "prediction_type", "parameterization", "prediction", "pred_type", "objective", "predict_type", "mean_type") and s.text]
    for at, s in enumerate(kinds):
        for other in kinds[:at]:
            if s.text != other.text and s.key == other.key and sheet.themes & {"diffusion"}:
                yield Doubt("objective-mismatch", f"`{other.name}` is {other.text} and `{s.name}` is {s.text}: it is sampled as something else than it is trained for", (s, other))


def _product(numbers: list[float]) -> float:
    return math.prod(numbers)


CHECKS = (heads, positions, prompts, experts, patches, crops, depths, norms, forecasts, image_sizes, channels, scales, sampling)
