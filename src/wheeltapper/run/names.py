"""What a logged name means, its unit, and which way is better: the matcher over the table in quantities.toml.

A name is cut into a split (train, val, test) and a rest; the rest is looked up whole, then by pattern.
What the table does not know stays unknown: `better` is then "unknown", and rules that need a direction
answer Unknown. Directions are never guessed from a substring such as "loss" inside another word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from wheeltapper.reading._split_words import BESIDE_RESULT, SPLITS, joined
from wheeltapper.reading.record import Window
from wheeltapper.run.model import Better, Split


@dataclass(frozen=True, slots=True)
class Quantity:
    name: str
    better: Better
    unit: str | None
    aliases: tuple[str, ...]  # whole names, lower case, words joined by "_"
    home: Split | None = None  # the split meant when a log names none
    low: float | None = None  # the range; of a share as a fraction
    high: float | None = None
    of: str | None = None  # the quantity that this is a kind of


@dataclass(frozen=True, slots=True)
class Meaning:
    quantity: str | None
    split: Split | None
    part: str | None
    unit: str | None
    better: Better
    window: Window | None = None
    inferred: str = field(default="", repr=False)  # why, where structure and behaviour told it and no name


def _read() -> Iterator[Quantity]:
    """The entries of quantities.toml."""
    with (files("wheeltapper.run") / "quantities.toml").open("rb") as file:
        told = tomllib.load(file)
    for name, entry in told.items():
        yield Quantity(
            name,
            entry["better"],
            entry.get("unit"),
            (name, *entry.get("words", "").split()),
            entry.get("split"),
            entry.get("low"),
            entry.get("high"),
            entry.get("of"),
        )


QUANTITIES: tuple[Quantity, ...] = tuple(_read())

_BY_ALIAS: dict[str, Quantity] = {alias: q for q in QUANTITIES for alias in q.aliases}

# The best so far, or by how much it is better, is not the score.
_RECORD = {"best", "highest", "lowest", "improved", "improvement", "record"}
_MEANS = {"mean", "avg", "average"}
# Counters and constants that logs repeat on every row: positions or settings, not measurements.
_NOT_MEASURES = re.compile(
    r"^(n_?param\w*|num_tokens|tokens|samples|consumed_\w+|global_batch_size|batch_size|num_zeros|iters?|iteration\w*|"
    r"epochs?|(iter|epoch)_?(\d+|num|number|count|idx|index|id|no|total|left|step|steps)|"
    r"global_step|step|steps|labels|img_size|instances|targets|size|num_updates|progress_\w+|total_timesteps|"
    r"n_updates|(time_)?iterations|bs|best\w*|is_best|patience|min_delta|gs|upd|round|n_(train|val|valid|test)|(num_)?(clients|trees))$"
)
_HEADS = {
    "metrics",
    "metric",
    "losses",
    "performance",
    "charts",
    "rollout",
    "stats",
    "scalar",
    "scalars",
    "scales",
    "norms",
}
# ultralytics spells some components of the loss without the word: "train/box_om", "val/dfl".
_BARE_LOSS = re.compile(r"^(box|cls|dfl|obj|seg|pose|kobj|l1|l2)(_(om|oo))?$")
# A weight of a loss is not that loss: "dynamic_weight_l_g_ssim" is a setting that changes.
_SETTING_WORDS = {"weight", "weights", "lambda", "coef", "coeff", "factor", "threshold", "target"}
# Objectives that logs call by their own name.
_LOSS_NAMES = re.compile(
    r"^((sparse_|binary_|softmax_|rcnn_|rpn_)*cross_?entropy|smooth_?l1|(rcnn_|rpn_)smooth_?l1|bce|ce|xent|focal|hinge|huber|"
    r"ctc|rnn_?t|nce|nt_?xent|crossent|"
    r"log_?loss|kl_?div_?loss|giou|diou|ciou|triplet|info_?nce|contrastive|elbo|recon(struction)?)(_\w{1,12})?$|"
    r"^((cycle|idt|identity)(_[ab])?|[gz]_l1)$"  # CycleGAN, pix2pix, BicycleGAN
)
_OWN_LOSS = re.compile(r"(?:bce|ce|xent|nce|ctc|hinge|huber|focal|cross_?entropy)$")
# A part of the model or of a box before the name of its loss: "CenterRegL1", "WHL1", "HeatmapFocal" (GluonCV's CenterNet).
_LOSS_TAIL = re.compile(r"(?:[a-z]|^WH|^XY)(?:Smooth)?L[12]$|[a-z](?:Focal|CrossEntropy|Huber|Hinge|BCE)$")
_ACCURACY_TAIL = re.compile(r"^[A-Z]+Acc$")  # "RCNNAcc": of one head, on training batches
# Detectron2 counts these on the batches it trains on: "fast_rcnn/cls_accuracy", "mask_rcnn/accuracy".
_OF_TRAINING = re.compile(r"(fast_rcnn|mask_rcnn|keypoint_rcnn|roi_head|rpn)/")
# The words by which an agent's score is told: "average reward score", "mean_score", "Episode Score".
_OF_EPISODES = {
    *("score", "episode", "episodes", "ep", "reward", "rewards", "game", "agent", "train", "eval", "test"),
    *("avg", "average", "mean", "max", "min", "total", "final", "last", "current", "running", "moving", "top", "high", "100"),
}
_OF_DISCRIMINATOR = {"d", "dis", "disc", "discriminator", "real", "fake", "critic"}
_COMPARES = {"skill", "vs", "versus", "ratio", "improvement", "reduction"}
_NO_SPLIT = {"lr", "momentum", "weight_decay", "loss_scale", "clip_threshold", "grad_norm", "weight_norm"}
_WINDOWS: dict[str, Window] = {"step": "batch", "epoch": "epoch", "avg": "running", "running": "running"}
# "Training Phase Loss", "Test set loss", "loss in train": words that only join the others.
_LINKS = {"phase", "set", "in", "on"}
# "epoch_loss", "Iter acc": the word before the name says what the number is a mean of.
_BEFORE: dict[str, Window] = {"epoch": "epoch", "iter": "batch", "iteration": "batch", "batch": "batch", "step": "batch"}


@lru_cache(maxsize=4096)
def meaning_of(raw: str, split: str | None = None, unit: str | None = None) -> Meaning:
    """What a logged name means. `split` and `unit` are what the format itself states, if it does.

    >>> meaning_of("eval_loss")
    Meaning(quantity='loss', split='val', part=None, unit=None, better='down', window=None)
    >>> meaning_of("train/loss_rpn_cls").part, meaning_of("metrics/mAP50-95(B)").quantity
    ('rpn_cls', 'map')
    >>> meaning_of("CenterRegL1").part, meaning_of("fancy_index").better
    ('center_regl1', 'unknown')
    """
    words = words_of(raw)
    found: Split | None = "train" if _OF_TRAINING.match(raw) else SPLITS.get(split or "")
    rest: list[str] = []
    cut = False  # only the first word that names a split is one; "test_coco_eval_bbox" keeps its "eval"
    for word in words:
        if word in SPLITS and not cut and len(words) > 1:
            cut = True
            found = found or SPLITS[word]
        else:
            rest.append(word)
    window: Window | None = None
    if len(rest) > 1 and rest[-1] in _WINDOWS and rest[-2] not in {"per", "global"}:
        window = _WINDOWS[rest.pop()]
    while len(rest) > 1 and rest[0] in _HEADS:
        rest = rest[1:]
    if (len(rest) > 1 and "phase" in rest) or (cut and not _LINKS.isdisjoint(rest)):
        rest = [word for word in rest if word not in _LINKS] or rest
    if len(rest) > 1 and rest[0] == "avg" and "_".join(rest) not in _BY_ALIAS:
        rest = rest[1:]
    if len(rest) > 1 and rest[0] in _BEFORE and "_".join(rest) not in _BY_ALIAS and _is_result(rest[1:]):
        window = window or _BEFORE[rest[0]]
        rest = rest[1:]
    if rest[:2] == ["mini", "batch"] and len(rest) > 2 and _is_result(rest[2:]):  # MATLAB
        rest, found, window = rest[2:], found or "train", window or "batch"
    rest, found = _short_split(rest, found)
    rest = _without_mean(rest)
    if _is_record(rest):
        return Meaning(None, found, None, unit, "neither", window)
    if unit == "%" and len(words) == 1 and words[0] in SPLITS:  # "Train: 41.43% | Val: 40.47%"
        return Meaning("accuracy", SPLITS[words[0]], None, unit, "up", window)
    if rest == ["score"] and found in ("val", "test"):  # of a competition, not of an episode
        return Meaning("score", found, None, unit or "share", "up", window)
    if raw in {"P", "R"}:  # YOLO's table; the "r" of a monitor is a return
        return Meaning("precision" if raw == "P" else "recall", found or "val", None, unit or "share", "up", window)
    if raw == "Cost":  # Marian; a "cost" may be one of time
        return Meaning("loss", found or "train", None, unit, "down", window)
    if short := re.fullmatch(r"L_?(tr|trn|train|va|val|te|test)", raw):  # "Ltr=0.52 Lva=0.61"
        return Meaning("loss", {**BESIDE_RESULT, **SPLITS}[short[1]], None, unit, "down", window)
    if raw in {"trl", "tel"}:  # llm.c: training loss, test loss
        return Meaning("loss", "train" if raw == "trl" else "val", None, unit, "down", window)
    if split and (domain := re.fullmatch(r"([DG])\[(\d+)\]", raw)):  # ComboGAN: of each of its domains
        return Meaning("gan_d" if domain[1] == "D" else "gan_g", found, domain[2], unit, "neither", window)
    if raw == "L1":  # EDSR prints the loss by its kind: "[1600/16000] [L1: 5.9633]"
        return Meaning("loss", found or "train", "l1", unit, "down", window)
    known = _look_up(rest, found, unit, window)
    if known.quantity == "accuracy" and _OF_DISCRIMINATOR & set(rest):  # how well it tells real from made: no score of the run
        return Meaning(None, found, None, unit, "neither", window)
    if known.quantity == "dists" and not re.search(r"(^|[/. ])dists$", raw, re.IGNORECASE):
        return Meaning(None, found, None, unit, "unknown", window)  # "bond_dists": lengths, not the perceptual score
    if known.quantity is None and known.better == "unknown" and _LOSS_TAIL.search(raw):
        return Meaning("loss", found or "train", "_".join(rest), unit, "down", window)
    if known.quantity is None and known.better == "unknown" and _ACCURACY_TAIL.match(raw):
        return Meaning("accuracy", found or "train", "_".join(rest).removesuffix("acc"), unit or "share", "up", window)
    return known


def _short_split(words: list[str], split: Split | None) -> tuple[list[str], Split | None]:
    """ "va_acc", "loss_tr": a short word for a split beside the name of a loss or a score."""
    if split is None and len(words) > 1 and "_".join(words) not in _BY_ALIAS:
        if words[0] in BESIDE_RESULT and _ends_as_result(words[1:]):
            return words[1:], BESIDE_RESULT[words[0]]
        if words[-1] in BESIDE_RESULT and words[-1] != "v" and _ends_as_result(words[:-1]):
            return words[:-1], BESIDE_RESULT[words[-1]]
    if split and len(words) > 1 and words[0].isdigit() and _is_result(words[1:]):  # LightGBM's "valid_1's auc"
        return words[1:], split
    return words, split


def _without_mean(words: list[str]) -> list[str]:
    """ "reward/mean" is the reward."""
    if len(words) > 1 and "_".join(words) not in _BY_ALIAS:
        if words[-1] in _MEANS and _is_result(words[:-1]):
            return words[:-1]
        if words[0] in _MEANS and _is_result(words[1:]):
            return words[1:]
    return words


def _is_record(words: list[str]) -> bool:
    if _RECORD & set(words) and not {"of", "n"} <= set(words):
        return True
    known = _BY_ALIAS.get("_".join(words[1:]))
    bound = words[0] in {"max", "min"} and known is not None and known.name != "return"
    return bound and known is not None and known.better in ("up", "down")


def _is_result(words: list[str]) -> bool:
    """A loss or a score by its whole name: "loss", "acc", "val_loss" without its split."""
    known = _BY_ALIAS.get("_".join(words))
    return known.better in ("up", "down") if known else words[-1] == "loss" or _OWN_LOSS.match("_".join(words)) is not None


def _ends_as_result(words: list[str]) -> bool:
    """A loss or a score, or one with a word before it: "acc", "bal_acc"."""
    return _is_result(words) or (len(words) > 1 and len(words[-1]) > 1 and _is_result(words[-1:]))


def _look_up(words: list[str], split: Split | None, unit: str | None, window: Window | None) -> Meaning:
    key = "_".join(words)
    if _NOT_MEASURES.match(key):
        return Meaning(None, split, None, unit, "neither", window)
    known = _BY_ALIAS.get(key)
    if known is None and len(words) > 2 and words[0] == "loss" and words[-1] == "loss":  # "loss/dis_loss"
        known = _BY_ALIAS.get("_".join(words[1:]))
    if known is not None:
        where = None if known.name in _NO_SPLIT else split or known.home
        part = known.name if known.of else None
        return Meaning(known.of or known.name, where, part, unit or known.unit, known.better, window)
    if re.search(r"(^|_)(per_(s|sec|second)|(tok|tokens|steps|samples|images|imgs|it|seq)_(s|sec))$", key):
        return Meaning("throughput", None, None if len(words) < 4 else key, unit, "neither", window)
    if _SETTING_WORDS & set(words) or (words[0] == "w" and len(words) > 1):  # "w_ssim"
        return Meaning(None, split, None, unit, "neither", window)
    if "loss_scale" in key:  # "setting loss scale to: 0.5"
        return Meaning("loss_scale", None, None, unit, "neither", window)
    if {"dis", "disc", "discriminator"} & set(words) and {"real", "fake"} & set(words):  # "loss/dis_vid_fake"
        return Meaning("gan_real" if "real" in words else "gan_fake", split or "train", key, unit, "neither", window)
    if _COMPARES & set(words):  # "MAE_skill_vs_persistence", "loss_ratio": how two stand to each other, not one of them
        return Meaning(None, split, None, unit, "unknown", window)
    # "loss" as a word of its own, or as the head or tail of one: a component of the loss.
    for i, word in enumerate(words):
        if word in {"loss", "losses"} or (word.endswith("loss") and word not in {"ploss", "closs"}):
            stem = word.removesuffix("loss").removesuffix("losses") if word != "losses" else ""
            part = "_".join(w for w in [*words[:i], stem, *words[i + 1 :]] if w)
            return Meaning("loss", split or "train", part or None, unit, "down", window)
        if word in {"ploss", "closs"}:
            return Meaning("loss", split or "train", key, unit, "down", window)
    if len(words) > 1 and words[0] == "l" and len(words[1]) > 1 and not words[1].isdigit():  # "l_ssim": 1 - SSIM
        term = _BY_ALIAS.get("_".join(words[1:]))
        if term is not None and term.better == "neither":
            return Meaning(term.name, split or term.home, None, unit, "neither", window)
        return Meaning("loss", split or "train", "_".join(words[1:]), unit, "down", window)
    if len(words) > 2 and words[0] == "l" and words[1] in {"g", "d"}:  # traiNNer: l_g_l1, l_g_ssim
        return Meaning("loss", split or "train", "_".join(words[2:]), unit, "down", window)
    if _LOSS_NAMES.match(key):
        return Meaning("loss", split or "train", key, unit, "down", window)
    # A known quantity with a data set, class or box name around it: "metrics/CC0_Val/psnr", "map_bbox".
    for size in (3, 2, 1):
        for start in (len(words) - size, 0):
            chunk = "_".join(words[start : start + size]) if start >= 0 else ""
            known = _BY_ALIAS.get(chunk)
            if chunk in {"generator", "discriminator"} and len(words) > size:
                continue  # "batch-generator" is a timer of Megatron's
            if chunk == "map" and start > 0 and any(word in {"iou", "dice", "acc", "mae", "mse"} for word in words):
                continue  # "iou_shrink_map": the score of a map, not the mean of average precisions
            if chunk == "l2" and len(words) > size:
                continue  # "range_l2": of the second layer
            if chunk == "return" and {"code", "status", "value"} & set(words):
                continue  # of a program
            if chunk == "score" and not _OF_EPISODES.issuperset(words):
                continue  # "sample_q_score": of something else than an episode, and who knows which way
            if known is not None and len(chunk) > 1 and chunk != "is" and len(words) > size:  # "loss is" is no score
                part = "_".join(words[:start] + words[start + size :])
                part = "_".join(x for x in (known.name if known.of else "", part) if x)
                return Meaning(known.of or known.name, split or known.home, part, unit or known.unit, known.better, window)
    if split and _BARE_LOSS.match(key):
        return Meaning("loss", split, key, unit, "down", window)
    if re.fullmatch(r"(x_)?lr_?\d*(_?pg_?\d+)?", key) or (words and words[0] == "lr" and len(words) <= 3):
        return Meaning("lr", None, key if key[-1:] not in {"r", "0"} else None, unit, "neither", window)
    if "norm" in words and ("grad" in words or "gradient" in words):
        return Meaning("grad_norm", split, key, unit, "neither", window)
    if (whole := _uncut(key)) is not None:
        return _look_up(whole.split("_"), split, unit, window)
    return Meaning(None, split, None, unit, "unknown", window)


CUT = 8  # letters: a shorter beginning is one of many names


def _uncut(key: str) -> str | None:
    """The name that a narrow column cut off ("learning_rat"), if all that begin so mean the same."""
    if len(key) < CUT:
        return None
    begun = [alias for alias in _BY_ALIAS if alias.startswith(key) and alias[len(key) : len(key) + 1] not in ("", "_")]
    same = {_BY_ALIAS[alias].name for alias in begun}
    return begun[0] if len(same) == 1 else None


def words_of(raw: str) -> list[str]:
    """The words of a logged name, in lower case."""
    text = joined(raw.strip()).replace("mAP", "_map").replace("mIoU", "miou").replace("pixAcc", "pixacc").replace("%", "")
    text = re.sub(r"([a-z0-9])([A-Z][a-z])", r"\1_\2", text)
    text = re.sub(r"\((?:B|M|P|O)\)$", "", text)  # ultralytics: box, mask, pose
    words = [w for w in re.split(r"[^0-9A-Za-z]+", text.lower().replace("'s ", " ")) if w]  # "valid_0's auc"
    return words or [raw.strip().lower()]


def canonical(meaning: Meaning, raw: str, about: str | None) -> str:
    """The name a series goes by: split/quantity, then what sets it apart."""
    if meaning.quantity is None:
        return raw
    head = f"{meaning.split}/{meaning.quantity}" if meaning.split else meaning.quantity
    extra = "_".join(x for x in (about, meaning.part) if x)
    return f"{head}.{extra}" if extra else head
