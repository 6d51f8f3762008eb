"""Settings against what is known of the data set, the model and the tokenizer that are named beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.facts import (
    CLASSES,
    PARTS,
    POSITIONS,
    RATES,
    TEMPLATES,
    architecture_of,
    plain,
    vocabulary_of,
)
from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet

_DATA = "dataset/data/task/benchmark/coco/root/set/dir"
_DETECTION = ("bbox", "rcnn", "detr", "retinanet", "fcos", "cocodataset", "rpn")
_FAMILY = (
    ("llama", r"llama|mistral|mixtral|vicuna|zephyr"), ("qwen", r"qwen"), ("gemma", r"gemma"), ("gpt2", r"gpt-?2|distilgpt2"), ("roberta", r"roberta|xlm-r"), ("bert", r"(?<!ro)(?<!de)bert(?!a)|electra"),
    ("t5", r"(?:^|[/_-])(?:m?t5|flan-t5)"), ("whisper", r"whisper"), ("neox", r"neox|pythia"), ("opt", r"(?:^|/)opt-\d"), ("bart", r"(?:^|/)bart-"), ("bloom", r"bloom"), ("falcon", r"falcon"), ("deberta", r"deberta"),
)  # fmt: skip


def family_of_name(text: str) -> str | None:
    low = text.lower()
    return next((name for name, pattern in _FAMILY if re.search(pattern, low)), None)


def datasets(sheet: Sheet) -> list[tuple[str, Setting]]:
    """Public data sets that the settings name."""
    out = []
    for s in sheet.settings:
        named = s.own & set(_DATA.split("/")) or (s.key in ("name", "dataset_file", "exp", "experiment") and not s.above & {"model", "network", "opt", "optimizer"})
        if not s.text or len(s.text) > 120 or not named or s.around & {"pipeline", "layout", "pretrained", "checkpoint", "init"}:
            continue
        pieces = {plain(s.text)} if "root" in s.key or s.text.startswith(("/", "./", "data/")) else {plain(piece) for piece in re.split(r"[/\\:]", s.text)} | {plain(s.text)}
        out += [(name, s) for name in CLASSES if name in pieces]
    return out


def class_counts(sheet: Sheet) -> Iterator[Doubt]:
    """A number of classes that the named data set does not have, that the listed names do not have, or that two places disagree on."""
    counts = [s for s in sheet.settings if _is_count(s)]
    known = datasets(sheet)
    for s in counts:
        number = int(s.number or 0)
        for name, where in known if not any(part.isdigit() for _, w in known for part in w.path) else ():
            if name == "coco" and (not sheet.says(*_DETECTION) or sheet.says("keypoint", "pose", "skeleton")):
                continue
            if len({n for n, _ in known}) == 1 and number not in CLASSES[name] and number > 0 and not _subset(sheet):
                yield Doubt("objective-mismatch", f"`{s.name}` is {number}, and {name} (`{where.name}`) has {CLASSES[name][0]} classes", (s, where))
                break
        yield from _against_names(sheet, s, number)
    for at, s in enumerate(counts):
        for other in counts[:at]:
            if s.number != other.number and s.key == other.key and not _separate(s, other):
                first, second = _odd_one(counts, s, other)
                yield Doubt("objective-mismatch", f"`{first.name}` is {first.number:g} and `{second.name}` is {second.number:g}: one data set has one number of classes", (first, second))


def _odd_one(counts: list[Setting], a: Setting, b: Setting) -> tuple[Setting, Setting]:
    """The one that fewer others agree with first."""
    votes = {id(s): sum(o.number == s.number for o in counts) for s in (a, b)}
    return (a, b) if votes[id(a)] <= votes[id(b)] else (b, a)


def _is_count(s: Setting) -> bool:
    if s.above & {"backbone", "teacher"}:
        return False
    named = s.key in ("num_classes", "nb_classes", "n_classes", "num_labels", "nc", "classes", "num_class", "number_of_classes", "n_class", "class_num", "num_outputs_cls", "n_labels")
    return named and s.number is not None and not isinstance(s.value, bool) and float(s.number).is_integer() and s.number > 0


def _subset(sheet: Sheet) -> bool:
    return sheet.says("subset", "few", "fewshot", "superclass", "binary", "reward", "coarse") or any(s.has("task type") and "REGRESSION" in s.text.upper() for s in sheet.settings)


def _separate(a: Setting, b: Setting) -> bool:
    """Two heads of several tasks, or of a detector's proposals, have their own classes."""
    heads = {"rpn", "aux_", "mask", "neck", "proposal", "task", "tasks", "semantic", "panoptic", "rpn_head", "heads", "teacher", "pretrained", "backbone"}
    data, parts = {"data", "dataset", "datasets", "datamodule"}, {"decode", "auxiliary"}
    told = bool((a.above | b.above) & data) or bool(a.above & parts and b.above & parts)
    return not told or bool((a.above | b.above) & heads) or a.leaf.file != b.leaf.file or any(part.isdigit() for part in (*a.path, *b.path))


def _against_names(sheet: Sheet, s: Setting, number: int) -> Iterator[Doubt]:
    """The names of the classes, as a list or as a table of ids."""
    tables: dict[tuple[str, ...], list[Setting]] = {}
    if any(part.isdigit() for part in s.path):
        return
    for other in sheet.settings:
        if other.key in ("names", "class_names", "classes", "labels", "label_names", "label_list", "categories") and isinstance(other.value, list) and all(isinstance(v, str) for v in other.value):
            tables[other.path] = [other] * len(other.value)
        if len(other.path) > 1 and other.path[-2].lower() in ("names", "labels", "class_names", "id2label", "label2id", "classes", "label_map", "categories") and (other.path[-1].isdigit() or other.number is not None):
            tables.setdefault(other.path[:-1], []).append(other)
    for listed in tables.values():
        near = listed[0].leaf.file == s.leaf.file and s.path[:-1] in (listed[0].path[:-1], listed[0].path[:-2])
        if near and len(listed) > 1 and number != len(listed) and number not in (len(listed) + 1,):
            yield Doubt("objective-mismatch", f"`{s.name}` is {number}, and {len(listed)} classes are named", (s, listed[0]))
        elif near and len(listed) > 1 and number == len(listed) + 1 and not sheet.says("detection", "rcnn", "segmentation", "background"):
            yield Doubt("objective-mismatch", f"`{s.name}` is {number}, and {len(listed)} classes are named", (s, listed[0]), "range")


def vocabularies(sheet: Sheet) -> Iterator[Doubt]:
    """Fewer embeddings than the tokenizer has pieces."""
    sizes = [s for s in sheet.settings if s.key in ("vocab_size", "n_vocab", "padded_vocab_size", "vocabulary_size", "num_tokens")]
    named = [s for s in sheet.settings if s.text and (s.own & {"tokenizer", "vocab", "sentencepiece", "spm", "bpe"} or s.key in ("vocab_file", "model_name_or_path", "pretrained_model_name_or_path")) and not s.own & {"type", "class"}]
    named += [s for s in sheet.settings if s.key == "dataset" and s.text == "openwebtext" and any(o.key == "block_size" for o in sheet.settings)]
    for s in sizes:
        for other in named:
            pieces = vocabulary_of(other.text)
            if pieces and s.number and 0 < s.number < pieces - 130:
                yield Doubt("target-misaligned", f"`{s.name}` is {s.number:g}, and {other.text} (`{other.name}`) has {pieces:,} pieces: ids lie outside the table", (s, other))
                break
    yield from _extra_pieces(sheet)


def learned_positions(sheet: Sheet) -> Iterator[Doubt]:
    """Sequences longer than the positions that a pretrained model has learned."""
    model = next((s for s in sheet.settings if s.key in ("model_name_or_path", "base_model", "pretrained_model_name_or_path", "model_name", "model", "tokenizer_name") and any(re.search(p, s.text) for p, _ in POSITIONS)), None)
    for s in sheet.settings:
        if model is None or s.key not in ("max_seq_length", "max_length", "block_size", "max_seq_len", "seq_length", "max_len", "sequence_len", "cutoff_len", "max_source_length") or not s.number:
            continue
        most = next(n for p, n in POSITIONS if re.search(p, model.text))
        if s.number > most:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}, and {model.text} has {most} positions", (s, model))


def _extra_pieces(sheet: Sheet) -> Iterator[Doubt]:
    """Span corruption marks its gaps with extra pieces."""
    extra = next((s for s in sheet.settings if s.key in ("extra_ids", "num_sentinels", "sentinel_tokens")), None)
    if extra is not None and extra.number == 0 and sheet.says("noise", "span", "corruption", "t5"):
        yield Doubt("target-misaligned", f"`{extra.name}` is 0: the gaps of the spans have no marks", (extra,))


def blank_index(sheet: Sheet) -> Iterator[Doubt]:
    """The blank of CTC is the first or the last output."""
    for s in sheet.settings:
        if "blank" not in s.own:
            continue
        outputs = next((o for o in sheet.settings if o.key in ("num_outputs", "output_dim", "n_outputs") and o.number and o.path[:-1] == s.path[:-1]), None)
        vocab = next((o for o in sheet.settings if o.has("vocab size") and o.number and o.path[:-1] == s.path[:-1]), None)
        if s.own & {"blank"} and s.own & {"id", "index", "idx"} and s.number is not None and (outputs or vocab):
            ends = {0.0, -1.0, float((outputs.number or 0) - 1) if outputs else -1.0, float(vocab.number or 0) if vocab else -1.0, float((vocab.number or 0) - 1) if vocab else -1.0}
            if float(s.number) not in ends:
                yield Doubt("target-misaligned", f"`{s.name}` is {s.number:g}: the blank is the first or the last output, here it is a piece of text", (s,))


def tokenizers(sheet: Sheet) -> Iterator[Doubt]:
    """A tokenizer of another family than the model."""
    models = [s for s in sheet.settings if s.text and s.has("model/base/student/teacher/pretrained/encoder", "tokenizer type output dir class reward file trainer") and family_of_name(s.text)]
    for s in sheet.settings:
        if not s.text or "tokenizer" not in s.own or s.own & {"type", "class"}:
            continue
        mine, near = family_of_name(s.text), sheet.nearest(s, models) or (models[0] if models else None)
        theirs = family_of_name(near.text) if near is not None else None
        if mine and theirs and mine != theirs and near is not None:
            yield Doubt("target-misaligned", f"`{s.name}` is {s.text} and `{near.name}` is {near.text}: the ids mean other pieces", (s, near))
    teacher = next((s for s in sheet.settings if s.own & {"teacher"} and s.own & {"name", "model", "path", "type"} and family_of_name(s.text)), None)
    for s in sheet.settings:
        if not s.own & {"teacher"} or not s.own & {"name", "model", "path", "type"}:
            continue
        mine = family_of_name(s.text)
        others = {family_of_name(o.text) for o in sheet.settings if o.own & {"student", "data", "token", "tokenizer"} and o.text} - {None}
        if mine and others and mine not in others and teacher is not None:
            yield Doubt("target-misaligned", f"`{s.name}` is {s.text}, and student and data are of {', '.join(sorted(map(str, others)))}: their vocabularies differ", (s,))


def chat_templates(sheet: Sheet) -> Iterator[Doubt]:
    """The chat markers of another model."""
    model = next((s for s in sheet.settings if s.has("model/base", "output dir tokenizer type reward ref") and family_of_name(s.text)), None)
    for s in sheet.settings:
        if model is not None and s.key in ("template", "chat_template", "conversation", "conv_template") and s.text.lower() in TEMPLATES:
            wanted = TEMPLATES[s.text.lower()]
            if wanted and not re.search(wanted, model.text.lower()):
                yield Doubt("target-misaligned", f"`{s.name}` is {s.text}, and the model is {model.text}: its chat has other markers", (s, model))


def adapter_targets(sheet: Sheet) -> Iterator[Doubt]:
    """Adapters for layers that the network does not have."""
    model = next((s for s in sheet.settings if s.has("model/base", "output dir tokenizer type reward ref") and architecture_of(s.text)), None)
    for s in sheet.settings:
        named = ((s.own & {"lora", "peft", "adapter"} or s.above & {"lora", "peft"}) and s.own & {"target", "targets", "modules"}) or s.key == "target_modules"
        values = s.value if isinstance(s.value, list) else re.split(r"[,\s]+", s.text) if s.text else []
        if model is None or not named or not values or not all(isinstance(v, str) for v in values) or {"all", "all-linear"} & set(values):
            continue
        known = PARTS[architecture_of(model.text) or "llama"].split()
        everyone = {part for parts in PARTS.values() for part in parts.split()}
        wrong = [v for v in values if v not in known and v in everyone]
        if wrong and not any(v in known for v in values):
            yield Doubt("params-not-in-optimizer", f"`{s.name}` names {', '.join(wrong[:3])}, which {model.text} does not have: nothing is adapted", (s, model))


def quantised(sheet: Sheet) -> Iterator[Doubt]:
    """All weights of a quantised model cannot be trained."""
    bits = next((s for s in sheet.settings if (s.key in ("quantization_bit", "quantize_bits") and s.number in (4, 8)) or (s.key in ("load_in_4bit", "load_in_8bit") and s.on)), None)
    kind = next((s for s in sheet.settings if s.key in ("finetuning_type", "tuning_type", "train_type", "adapter", "sft_type") and s.text.lower() in ("full", "none", "freeze")), None)
    if bits is not None and kind is not None:
        yield Doubt("frozen-parameters", f"`{kind.name}` is {kind.text}, and the weights are held in few bits (`{bits.name}`): they cannot be trained", (kind, bits))


def sample_rates(sheet: Sheet) -> Iterator[Doubt]:
    """Sound read at another rate than it was recorded at or than the features expect."""
    rates = [s for s in sheet.settings if s.own & {"sample", "sampling", "sr", "sampler"} and (s.own & {"rate", "sr"} or s.key == "sr") and s.number and s.number >= 1000]
    told = {word: s for s in sheet.settings if s.text and (s.own & {"model", "encoder", "pretrained", "data", "dataset", "files", "name"}) for word in re.findall(r"[a-z0-9]+", s.text.lower())}
    told |= {word: s for s in sheet.settings for word in re.findall(r"[a-z0-9]+", s.leaf.file.rsplit("/", 1)[-1].lower())}
    for s in rates:
        for word, rate in RATES.items():
            if word in told and s.number != rate and len(rates) == 1 and not sheet.says("resample", "mix") and (rate == 16000 or (s.number or 0) > rate or (s.number or 0) < 16000):
                yield Doubt("train-val-shift", f"`{s.name}` is {s.number:g}, and {word} is at {rate:,} Hz", (s,), "range")
                break
    for at, s in enumerate(rates):
        for other in rates[:at]:
            if s.number != other.number and not (s.own | other.own) & {"target", "orig", "original", "source", "resample", "new", "input", "output", "raw", "feats", "feat", "for"}:
                first, second = (s, other) if len(s.path) > len(other.path) else (other, s)
                yield Doubt("train-val-shift", f"`{first.name}` is {first.number:g} and `{second.name}` is {second.number:g}: one of them reads the sound too fast or too slow", (first, second))


def reward_head(sheet: Sheet) -> Iterator[Doubt]:
    """A reward is one number, from a head that classifies sequences."""
    if not (sheet.says("reward", "rewards") and any(s.own & {"reward", "rewards"} for s in sheet.settings)) or not any(s.key in ("center_rewards_coefficient", "task_type") for s in sheet.settings):
        return
    for s in sheet.settings:
        if s.key == "num_labels" and s.number not in (None, 1):
            yield Doubt("objective-mismatch", f"`{s.name}` is {s.number:g}: a reward of pairs is one number", (s,))
        if s.key == "task_type" and s.text and s.text.upper() != "SEQ_CLS":
            yield Doubt("objective-mismatch", f"`{s.name}` is {s.text}: a reward needs a head that classifies sequences (SEQ_CLS)", (s,))


CHECKS = (class_counts, vocabularies, learned_positions, blank_index, tokenizers, chat_templates, adapter_targets, quantised, sample_rates, reward_head)
