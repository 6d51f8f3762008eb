"""What the names of one run mean beside each other.

A name alone may leave it open: "acc" beside "val_acc" is of the training data, beside "train_loss" and "val_loss" it is of
the validation; "v_loss" is the loss of a value function where an agent is trained, else of the validation; the one loss of
a run is its loss, whatever its kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wheeltapper.reading.record import Points
from wheeltapper.run.model import Split
from wheeltapper.run.names import Meaning, meaning_of
from wheeltapper.run.roles import inferred

_BARE: dict[str, Split | None] = {
    "train": "train", "training": "train", "learn": "train", "valid": "val", "val": "val", "validation": "val",
    "test": "test", "eval": "val", "dev": "val", "total": None, "fit": "train", "heldout": "val", "holdout": "val", "held-out": "val",
}  # fmt: skip
_OF_AGENTS = {"return", "policy_loss", "entropy", "episode_length", "explained_variance", "clip_fraction", "q_value"}
_VALUE_LOSS = re.compile(r"(?i)(^|[/_ ])v[_ ]?loss$")
_SHORT_LOSS = re.compile(r"(?i)^([tv])[_ ]?loss$")
_OF_TASKS = {"f1", "precision", "recall", "accuracy", "auc"}
_ADVERSARIES = {"D": "loss_d", "G": "loss_g"}
_OTHERS = {"ema", "min", "max", "std", "l2_reg", "reg"}  # a part that is never the whole
# Scores that are told of training batches and of held-out data alike.
_EITHER = {"accuracy", "top5", "error", "top5_error", "perplexity", "mse", "rmse", "mae", "mape", "nll", "bits"}


def meanings_of(points: Sequence[Points]) -> list[Meaning]:
    """The meaning of each of the points of a run, in the company of the others."""
    found = [meaning_of(p.name, p.split, p.unit) for p in points]
    found = _of_files(points, found)
    found = _of_adversaries(points, _plain_scores(points, _of_agents(points, found)))
    found = _bare_splits(points, found)
    found = _whose_scores(points, inferred(points, found))
    return _only_parts(points, found)


def _of_files(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """ "rec" is the recall only where a precision is logged, else a reconstruction; a file called by its losses need not say
    it again ("train", "valid" in losses.csv, the terms of a loss_log.txt)."""
    precise = any(m.quantity == "precision" for m in found)
    out = []
    for p, meaning in zip(points, found, strict=True):
        if meaning.quantity == "recall" and not precise and re.search(r"(^|[^a-z])rec$", p.name.lower()):
            meaning = meaning_of(f"{p.name}_loss", p.split, p.unit)
        stem = p.file.replace("\\", "/").rsplit("/", 1)[-1].lower().split(".")[0]
        unsaid = meaning.quantity is None and meaning.better == "unknown" and "loss" in re.split(r"[^a-z]+|es\b", stem)
        if unsaid and (stem == "loss_log" or p.name.lower() in _BARE):
            meaning = meaning_of(f"{p.name}_loss", p.split, p.unit)
        out.append(meaning)
    return out


def _of_agents(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """ "v_loss": of a value function or of the validation. "vloss" and "tloss" where both stand: of the two splits."""
    agent = any(m.quantity in _OF_AGENTS for m in found)
    short = {hit[1].lower() for p in points if (hit := _SHORT_LOSS.match(p.name))}
    out = []
    for p, meaning in zip(points, found, strict=True):
        if agent and _VALUE_LOSS.search(p.name):
            meaning = meaning_of("value_loss", p.split, p.unit)
        elif short == {"t", "v"} and (hit := _SHORT_LOSS.match(p.name)):
            meaning = meaning_of("loss", "train" if hit[1].lower() == "t" else "val", p.unit)
        out.append(meaning)
    return out


def _plain_scores(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """ "SCORE" is the score of an episode where an agent is trained, and beside an F1 or an accuracy that of the task."""
    supervised = {p.file for p, m in zip(points, found, strict=True) if m.quantity in _OF_TASKS}
    agents = any(m.quantity in _OF_AGENTS and p.name.lower() != "score" for p, m in zip(points, found, strict=True))
    out = []
    for p, meaning in zip(points, found, strict=True):
        if meaning.quantity == "return" and p.name.lower() == "score" and p.file in supervised and not agents:
            meaning = Meaning("score", "val", None, p.unit or "share", "up", meaning.window)
        out.append(meaning)
    return out


def _of_adversaries(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """ "D 1.620 G 0.710", "adv/D" beside "adv/G": the losses of a discriminator and a generator, where both stand."""
    generated = any(m.quantity == "gan_g" for m in found) and not any(m.quantity in _OF_AGENTS for m in found)
    heads: dict[tuple[str, str], set[str]] = defaultdict(set)
    for p in points:
        head, _, last = p.name.rpartition("/")
        if last in _ADVERSARIES:
            heads[(p.file, head)].add(last)
    out = []
    for p, meaning in zip(points, found, strict=True):
        head, _, last = p.name.rpartition("/")
        if len(heads.get((p.file, head), ())) == 2 and last in _ADVERSARIES:
            meaning = meaning_of(_ADVERSARIES[last], p.split, p.unit)
        elif meaning.quantity == "value_loss" and "critic" in p.name.lower() and generated:  # of a WGAN
            meaning = meaning_of("loss_d", p.split, p.unit)
        out.append(meaning)
    return out


def _bare_splits(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """ "learn: 0.69  test: 0.70" (CatBoost), a column `valid` beside `loss`: a name that says only of which data the number
    is. Beside a loss, or where the numbers fall, it is a loss; a share that rises is a score."""
    bare = [i for i, p in enumerate(points) if found[i].quantity is None and _BARE.get(p.name.strip().lower())]
    if not bare:
        return found
    out = list(found)
    for i in bare:
        mates = [m for p, m in zip(points, found, strict=True) if p.file == points[i].file]
        split = _BARE[points[i].name.strip().lower()]
        named = any(m.quantity == "loss" and m.part is None and m.split != split for m in mates)
        # "loss: 1.47, val_loss: 1.31, Train: 0.42, Val: 0.41": where the loss is told by its name, these are scores.
        splits = {_BARE[points[j].name.strip().lower()] for j in bare if points[j].file == points[i].file}
        if any(m.quantity == "loss" and m.part is None and m.split in splits for m in mates):
            if _is_share(points[i]):
                out[i] = replace(meaning_of("accuracy", split, points[i].unit), quantity="score", split=split)
            continue
        several = len({points[j].name.lower() for j in bare if points[j].file == points[i].file}) > 1
        if not named and not several:
            continue
        loss = named or not _rises(points[i])
        out[i] = meaning_of("loss" if loss else "score", split, points[i].unit)
        if not loss:
            out[i] = replace(out[i], quantity="score", split=split)
    return out


def _is_share(p: Points) -> bool:
    x = p.values[np.isfinite(p.values)]
    return len(x) > 0 and float(x.min()) >= 0 and float(x.max()) <= 1.0


def _rises(p: Points) -> bool:
    x = p.values[np.isfinite(p.values)]
    return len(x) > 1 and float(np.max(np.abs(x))) <= 1.0 and float(x[-1]) > float(x[0])


def _whose_scores(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """Of which data a score is that does not say so, by its fellows in the file."""
    told: dict[str, set[tuple[str, str]]] = defaultdict(set)  # by file: quantities with the split that is told
    for p, m in zip(points, found, strict=True):
        if m.quantity and m.split and (p.split or _says_split(p.name)):
            told[p.file].add((m.quantity, m.split))
    out = []
    for p, m in zip(points, found, strict=True):
        if m.split is None and m.quantity in _EITHER and told[p.file]:
            m = replace(m, split=_split_by(m.quantity, told[p.file]))
        out.append(m)
    return out


def _split_by(quantity: str, told: set[tuple[str, str]]) -> Split | None:
    train, held = (quantity, "train") in told, (quantity, "val") in told or (quantity, "test") in told
    if held and not train:
        return "train"
    if train and not held:
        return "val"
    both = {("loss", "train"), ("loss", "val")} <= told
    return "val" if both and not train and not held else None


def _says_split(name: str) -> bool:
    return _unsplit(name) != name


def _unsplit(name: str) -> str:
    return re.sub(
        r"(?i)(?<![a-z])(train(?:ing)?|trn?|learn|val(?:id(?:ation)?)?|va|vl|eval|dev|test|te)(?![a-z])", "", name
    ).strip("/_ -")


def _only_parts(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """The one loss of a split is its loss, be it called mlm_loss or logloss; so with the one accuracy, of a kNN say."""
    kinds: dict[tuple[str, Split | None], set[str | None]] = defaultdict(set)
    for p, m in zip(points, found, strict=True):
        if m.quantity and m.better in ("up", "down"):
            kinds[(m.quantity, m.split)].add(m.part or p.about)
    out = []
    for p, m in zip(points, found, strict=True):
        alone = m.quantity and m.part and not p.about and m.part not in _OTHERS
        if alone and kinds[(m.quantity or "", m.split)] == {m.part} and _is_like_the_other(m, kinds):
            m = replace(m, part=None)
        out.append(m)
    return out


def _is_like_the_other(m: Meaning, kinds: dict[tuple[str, Split | None], set[str | None]]) -> bool:
    """What is told of training is only the counterpart of what is told of held-out data if both are of one kind: the share
    of pairs that a contrastive loss gets right says nothing about a kNN."""
    held = kinds.get((m.quantity or "", "val"), set()) | kinds.get((m.quantity or "", "test"), set())
    return m.split in ("val", "test") or not held or held == {m.part}
