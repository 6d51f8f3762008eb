"""One run's settings as single numbers that can be compared with other people's, and the kind of run it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wheeltapper.settings.knob_table import KNOBS
from wheeltapper.settings.words import word_set, words_of

# Knobs whose number means the same in every program. Lengths in steps depend on the data and are kept as shares.
PLAIN = word_set("""optimizer.lr optimizer.lr_d optimizer.lr_g optimizer.momentum optimizer.eps optimizer.weight_decay
    schedule.gamma schedule.min_lr schedule.min_lr_ratio schedule.max_lr schedule.pct_start
    batch.per_device batch.global batch.accumulation run.epochs run.total_steps run.early_stop clip.norm clip.value
    ema.decay ema.every amp.init_scale amp.static_scale amp.growth_interval loss.label_smoothing augment.mixup
    augment.cutmix augment.dropout augment.drop_path augment.random_erasing model.classes model.lora_rank lora.alpha
    lora.dropout dpo.beta data.train_size seq_len loss.temperature loss.margin loss.kl_weight rl.gamma rl.gae_lambda
    rl.clip_range rl.entropy_coef rl.value_coef rl.rollout rl.envs rl.update_epochs rl.buffer_size rl.learning_starts
    rl.target_update rl.tau rl.epsilon_start rl.epsilon_end rl.train_freq rl.kl_coef gan.n_critic gan.gp_weight
    mask.rate diffusion.sigma_min diffusion.sigma_max diffusion.sigma_data diffusion.P_mean diffusion.P_std
    diffusion.steps diffusion.beta_start diffusion.beta_end contrast.negatives contrast.queue forecast.lookback
    forecast.horizon moe.experts moe.top_k moe.balance_weight distill.temperature distill.alpha loss.focal_gamma
    optimizer.layer_decay world_size vocab_size""")
POSITIVE = word_set("""optimizer.lr optimizer.lr_d optimizer.lr_g batch.per_device batch.global batch.accumulation run.epochs
    run.total_steps clip.norm clip.value model.classes data.train_size seq_len vocab_size world_size rl.target_update
    run.early_stop rl.rollout amp.static_scale diffusion.steps""")
# Derived numbers, with their words.
DERIVED = {
    "optimizer.beta1": "Adam's first decay rate",
    "optimizer.beta2": "Adam's second decay rate",
    "batch.effective": "samples per update: batch, accumulation and processes multiplied",
    "schedule.warmup_share": "warm-up as a share of the run",
    "schedule.warmup_steps": "warm-up in steps",
    "schedule.first_milestone": "first cut of the rate as a share of the run",
    "schedule.end_share": "length the schedule is laid out for, as a share of the run",
    "lora.alpha_over_rank": "scale of a LoRA adapter over its rank",
    "optimizer.d_over_g": "rate of the discriminator over that of the generator",
    "rl.epsilon_decay_share": "fall of the random actions as a share of the run",
    "model.image_size": "input resolution",
}
IDS = PLAIN | DERIVED.keys()
FAMILIES = {
    "lm": "lm gpt gpt2 llm llama causal mistral qwen gemma pythia opt-125m falcon phi bloom nanogpt causallm sft",
    "diffusion": "diffusion ddpm ddim edm unet2d sdxl ldm",
    "gan": "gan wgan dcgan stylegan cyclegan pix2pix discriminator",
    "vae": "vae vqvae betavae cvae elbo",
    "rl": "ppo dqn sac td3 ddpg a2c a3c trpo rainbow gym gymnasium mujoco atari rollout replay gae",
    "contrastive": "simclr moco byol contrastive infonce supcon simcse dino triplet barlow vicreg swav arcface openclip ntxent",
    "sr": "esrgan basicsr superresolution srresnet edsr swinir upscale sr psnr realesrgan denoising deblur restoration",
    "detection": "yolo yolov5 yolov8 detection detr retinanet coco rcnn bbox ssd anchors",
    "segmentation": "segmentation unet deeplab deeplabv3 cityscapes seg mask2former segformer nnunet",
    "speech": "tts asr speech wav2vec whisper vits hifi tacotron mel conformer speaker audio ctc",
    "forecast": "lookback horizon informer autoformer patchtst forecast etth lstm stock timeseries",
    "graph": "gcn gat gnn graph graphsage ogb molecule",
    "recommender": "recommender recbole sasrec ncf ctr dlrm bpr rec",
    "s2s": "seq2seq translation t5 bart nmt marian summarization mt5",
    "encoder": "bert roberta deberta distilbert electra mlm sentiment glue ner",
    "image": "resnet vit imagenet cifar cifar10 cifar100 mnist efficientnet classification convnext swin mobilenet timm",
    "tabular": "tabular tabnet mlp regression xgboost",
    "robotics": "robot lerobot robomimic manipulation",
}
_ALIASES = {
    "gpt": "lm", "llm": "lm", "language": "lm", "cls": "image", "classification": "image", "vision": "image",
    "edm": "diffusion", "con": "contrastive", "contrast": "contrastive", "tab": "tabular", "seg": "segmentation",
    "det": "detection", "asr": "speech", "tts": "speech", "rec": "recommender", "dseq": "diffusion",
    "seq2seq": "s2s", "translation": "s2s", "bert": "encoder", "ts": "forecast", "mlm": "encoder",
}  # fmt: skip
_MODES = {
    "adapter": "lora qlora peft dora adapter loraconfig",
    "fine-tuned": "finetune finetuning finetuned pretrained sft dpo",
}
_OPTIMIZER = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a run is compared with."""

    optimizer: str | None = None
    family: str | None = None
    mode: str | None = None
    batch: float | None = None


def optimizer_class(name: str | None) -> str | None:
    """`torch.optim.AdamW`, `adamw_torch_fused`, `paged_adamw_8bit` as one name.

    >>> optimizer_class("adamw_torch_fused"), optimizer_class("torch.optim.SGD"), optimizer_class("auto")
    ('adamw', 'sgd', None)
    """
    if not name:
        return None
    plain = _OPTIMIZER.sub("", name.rsplit(".", 1)[-1].lower())
    for known in (
        "adamw",
        "adafactor",
        "adamax",
        "adagrad",
        "adadelta",
        "nadam",
        "radam",
        "lamb",
        "lars",
        "lion",
        "sgd",
    ):
        if known in plain:
            return known
    for known in ("adam", "rmsprop", "muon", "sophia", "adan", "prodigy", "lbfgs"):
        if known in plain:
            return known
    return None


def family_name(name: str | None) -> str | None:
    """A family under the name it has here; None when it is not one of ours."""
    if not name:
        return None
    plain = name.lower().replace("_", "-")
    return plain if plain in FAMILIES else _ALIASES.get(plain)


def family_of(texts: Iterable[str]) -> str | None:
    """The family that most words of these texts (keys, names, path) point to."""
    votes: dict[str, int] = {}
    for text in texts:
        low = text.lower()
        words = set(re.findall(r"[a-z]+\d?|\d+", low)) | set(words_of(text))
        for family, telling in FAMILIES.items():
            votes[family] = votes.get(family, 0) + len(words & set(telling.split()))
    best = max(votes, key=lambda family: votes[family], default=None)
    return best if best is not None and votes[best] > 0 else None


def mode_of(texts: Iterable[str], knobs: Mapping[str, Any]) -> str | None:
    """adapter, fine-tuned, or None where nothing is said."""
    if any(id in knobs for id in ("model.lora_rank", "lora.alpha")):
        return "adapter"
    words = {word for text in texts for word in re.findall(r"[a-z]+", text.lower().replace("fine_tun", "finetun"))}
    for mode, telling in _MODES.items():
        if words & set(telling.split()):
            return mode
    return "fine-tuned" if "finetune.from" in knobs else None


def numbers_of(knobs: Mapping[str, Any]) -> dict[str, float]:
    """Every number that practice can place. `knobs` maps ids to KnobValues."""
    out: dict[str, float] = {}
    for id_ in PLAIN:
        found = knobs.get(id_)
        if found is not None and not found.default and (number := _number(found.value)) is not None:
            out[id_] = number
    for id_ in POSITIVE & out.keys():  # 0 and -1 stand for "not set", "all", "computed later"
        if out[id_] <= 0:
            del out[id_]
    name = knobs.get("optimizer.name")
    if name is not None and (optimizer_class(str(name.value)) or "").startswith(("adam", "radam", "nadam", "lion")):
        out.pop("optimizer.momentum", None)  # the momentum of something else: a teacher, a batch norm
    _pairs(knobs, out)
    _batch(out)
    _shares(knobs, out)
    return out


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) > 1e300:
        return None
    return float(value)


def _pairs(knobs: Mapping[str, Any], out: dict[str, float]) -> None:
    betas = knobs.get("optimizer.betas")
    if betas is not None and not betas.default and len(betas.value) == 2:
        for name, value in zip(("optimizer.beta1", "optimizer.beta2"), betas.value, strict=True):
            out[name] = float(value)
    if out.get("model.lora_rank") and "lora.alpha" in out:
        out["lora.alpha_over_rank"] = out["lora.alpha"] / out["model.lora_rank"]
    generator = out.get("optimizer.lr_g", out.get("optimizer.lr"))
    if generator and "optimizer.lr_d" in out:
        out["optimizer.d_over_g"] = out["optimizer.lr_d"] / generator
    size = knobs.get("model.image_size")
    if size is not None and not size.default and (number := _number(size.value)) is not None:
        out["model.image_size"] = number


def _batch(out: dict[str, float]) -> None:
    if "batch.global" in out:
        out["batch.effective"] = out["batch.global"]
    elif "batch.per_device" in out:
        out["batch.effective"] = (
            out["batch.per_device"]
            * max(out.get("batch.accumulation", 1.0), 1.0)
            * max(out.get("world_size", 1.0), 1.0)
        )


def _shares(knobs: Mapping[str, Any], out: dict[str, float]) -> None:
    length = {"steps": out.get("run.total_steps"), "epochs": out.get("run.epochs"), "fraction": 1.0}
    for id_, name in (
        ("schedule.warmup", "schedule.warmup_share"),
        ("schedule.total", "schedule.end_share"),
        ("schedule.t_max", "schedule.end_share"),
        ("rl.epsilon_decay", "rl.epsilon_decay_share"),
        ("schedule.milestones", "schedule.first_milestone"),
    ):
        found = knobs.get(id_)
        if found is None or found.default:
            continue
        value = found.value[0] if isinstance(found.value, list) and found.value else found.value
        whole = length.get(str(found.unit))
        if (number := _number(value)) is not None and number >= 0 and whole and whole > 0:
            out.setdefault(name, number / whole)
        if id_ == "schedule.warmup" and found.unit == "steps" and (number := _number(value)) is not None:
            out["schedule.warmup_steps"] = number


def meaning_of(id_: str) -> str:
    """The words for a number that practice places."""
    return DERIVED[id_] if id_ in DERIVED else KNOBS[id_].meaning
