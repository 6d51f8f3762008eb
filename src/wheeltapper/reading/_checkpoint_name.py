"""What a checkpoint's name says: step, epoch, a score, which part of the training state."""

from __future__ import annotations

import re
from pathlib import Path

_STEP = re.compile(
    r"(?:^|[^a-z])(?:global[-_]?steps?|steps?|iters?|iterations?|itr|it|updates?)[-_=]?(\d+)(?!\d*[kKmM.])", re.I
)
_STEP_AFTER = re.compile(r"(?:^|[^\dA-Za-z.])(\d+)([kK]?)[-_]?(?:steps?|iters?|iterations?|it)(?![a-z])", re.I)
_EPOCH = re.compile(r"(?:^|[^a-z])(?:epochs?|ep|e)[-_=]?(\d+)(?![\d.]*[a-z])", re.I)
_FAIRSEQ = re.compile(r"^checkpoint_(\d+)_(\d+)$")  # epoch, updates
_FAIRSEQ_EPOCH = re.compile(r"^checkpoint(\d+)$")
_CYCLEGAN = re.compile(r"^(\d+)_net_")  # epoch
# A bare number counts as a step only after a word that says the file is a checkpoint: `patch16_224` is no step.
_BARE = re.compile(
    r"^(?:(?:ckpt|checkpoint|model|weights?|snapshot|state|training_state|ema|net|generator|discriminator|[gd]"
    r"|net_?[a-z]{1,2}(?:_ema)?|unet|lora)[-_])?0*(\d+)(?:[-_]ema)?$",
    re.I,
)
_SHARD = re.compile(r"[-_]\d{5}-of-\d{5}$|rank_?\d+", re.I)
_PAIR = re.compile(r"([A-Za-z][\w/]*?)=(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)", re.I)
_SUFFIXES = (".safetensors", ".pth.tar", ".pt", ".pth", ".ckpt", ".bin", ".state", ".pkl", ".tar")
_EMA = re.compile(r"(?:^|[-_.])ema(?:$|[-_.\d])", re.I)
_PARTS = {
    "optimizer": re.compile(r"^optim|optim_states|optimizer", re.I),
    "scheduler": re.compile(r"^(lr_)?scheduler", re.I),
    "scaler": re.compile(r"^(grad_)?scaler", re.I),
    "rng": re.compile(r"^(rng_state|random_states)", re.I),
    "config": re.compile(r"^training_args$", re.I),
}


def stem_of(name: str) -> str:
    lowered = name.lower()
    for suffix in _SUFFIXES:
        if lowered.endswith(suffix):
            return name[: -len(suffix)]
    return name


def position(path: Path) -> tuple[float | None, float | None]:
    """Step and epoch from the name, or else from the folder (`checkpoint-1000/model.safetensors`).

    >>> position(Path("epoch=3-step=99.ckpt")), position(Path("net_g_ema_20000.safetensors"))
    ((99.0, 3.0), (20000.0, None))
    >>> position(Path("checkpoint-500/optimizer.pt")), position(Path("vit_base_patch16_224.pth"))
    ((500.0, None), (None, None))
    """
    step, epoch = _in_name(stem_of(path.name), path.name)
    if step is None and epoch is None:
        folder = path.parent.name
        if re.match(r"(checkpoint|ckpt|iter|global_?step|step|epoch)[-_]?\d+$", folder, re.I):
            return _in_name(folder, folder)
    return step, epoch


def _in_name(stem: str, name: str) -> tuple[float | None, float | None]:
    stem = _SHARD.sub("", stem)
    if found := _FAIRSEQ.match(stem):
        return float(found[2]), float(found[1])
    step = epoch = None
    if found := _STEP.search(stem):
        step = float(found[1])
    elif found := _STEP_AFTER.search(stem):
        step = float(found[1]) * (1000 if found[2] else 1)
    if found := _EPOCH.search(stem) or _CYCLEGAN.match(stem) or _FAIRSEQ_EPOCH.match(stem):
        epoch = float(found[1])
    if step is None and epoch is None and (found := _BARE.match(stem)):
        if name.lower().endswith(".pth.tar"):  # timm counts its checkpoints by epoch
            return None, float(found[1])
        step = float(found[1])
    return step, epoch


def score(path: Path) -> tuple[str, float] | None:
    """A metric written into the name, as Lightning does.

    >>> score(Path("epoch=3-val_loss=0.12.ckpt"))
    ('val_loss', 0.12)
    """
    for key, value in _PAIR.findall(stem_of(path.name)):
        key = key.strip("-_/")
        if key.lower() not in ("epoch", "step", "global_step", "iter", "v"):
            return key, float(value)
    return None


def kinds(path: Path) -> set[str]:
    """The parts of the training state that the name announces."""
    stem = stem_of(path.name)
    found = {kind for kind, pattern in _PARTS.items() if pattern.search(stem)}
    if _EMA.search(stem):
        found.add("ema")
    return found
