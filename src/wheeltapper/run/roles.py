"""Roles by structure and behaviour, for names that no table knows: the last resort, and marked as inferred.

- **A stem with two prefixes.** `train_ctc` beside `dev_ctc`, `tr_q` beside `va_q`: one objective, told of training and of
  held-out data. It is a loss where it is never negative and falls on the training data. A share that rises while a known
  loss falls is a score. What does neither stays unknown, for a diverging loss also rises.
- **Parts that add up.** `batch/a`, `batch/b` and `batch/sum`, or unknown columns beside a known loss: where the total is a
  sum of the others with fixed positive weights, row for row, all of them are losses.
- **A total.** A number called `total` on the rows of a training loss, of its size, is the whole of that loss.
- **The rate.** A number called `rate` that falls, but for one rise at the start.
- **The objective.** The one error (`mse`) that names no data, in a run whose held-out result is told by another one.
- **Clients and server.** `local loss` beside `global loss`: of the clients' own data, and of the model they share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wheeltapper.reading._split_words import BESIDE_RESULT, SPLITS
from wheeltapper.reading.record import Floats, Points
from wheeltapper.run.model import Split
from wheeltapper.run.names import Meaning, meaning_of, words_of

LEAST = 4  # values by which a direction is told
FALLS = 0.1  # of the level at the start that a loss loses at least
ORDERED = 0.5  # correlation of a value with its place in the run that is no chance
MOST_PARTS = 12
EXACT = 2e-3  # of the total: a log prints three to five digits
SIZES = 30.0  # the same objective on two splits, or a total and its main part, are of one size
TOTALS = {"total", "sum", "overall", "objective", "combined", "all"}
_COSTS = {"cost", "objective", "criterion"}
_ERRORS = {"mse", "rmse", "mae", "nll", "bits", "huber"}
_OF_TASKS = {"success", "return"}
_RATES = (["rate"], ["eta"], ["step", "size"])
_LOCAL = {"local", "client", "clients"}
_SHARED = {"glob", "global", "server", "central", "centralized", "centralised"}


def inferred(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """The meanings, with those that structure and behaviour tell in place of unknown ones."""
    found = _rate(points, _objective(points, _clients_and_server(points, found)))
    if not any(map(_unknown, found)):
        return found
    found = _one_stem(points, found)
    found = _sums(points, found)
    return _only_cost(points, _totals(points, found))


def _unknown(m: Meaning) -> bool:
    return m.quantity is None and m.better == "unknown"


def _loss(m: Meaning, split: Split, part: str | None, why: str) -> Meaning:
    return replace(m, quantity="loss", split=split, part=part, better="down", inferred=why)


# ------------------------------------------------------------------ one stem, two splits


def _one_stem(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    stems: dict[str, dict[Split | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, (p, m) in enumerate(zip(points, found, strict=True)):
        if _unknown(m):
            stem, split = _cut(p, m)
            stems[stem][split].append(i)
    out = list(found)
    for stem, by_split in stems.items():
        train, held = by_split.get("train", []), [*by_split.get("val", []), *by_split.get("test", [])]
        if not stem or not train or not held:
            continue
        role = _role([points[i] for i in train], [points[i] for i in held], points, found)
        for split, members in by_split.items():
            for i in members:
                out[i] = _as(role, out[i], split, stem, points[i], points[train[0]])
    return out


def _cut(p: Points, m: Meaning) -> tuple[str, Split | None]:
    """The name without its split, and the split."""
    words = words_of(p.name)
    plain = [word for word in words if word not in SPLITS]
    if m.split is None and len(plain) > 1 and plain[0] in BESIDE_RESULT and plain[0] != "v":
        return "_".join(plain[1:]), BESIDE_RESULT[plain[0]]
    return "_".join(plain), m.split


def _role(train: list[Points], held: list[Points], points: Sequence[Points], found: list[Meaning]) -> str:
    """ "loss", "score" or "": what a stem is, by its values on training data."""
    mine, other = max(train, key=lambda p: len(p.values)).values, max(held, key=lambda p: len(p.values)).values
    if not (_measures(mine) and _measures(other)) or not _of_one_size(mine, other):
        return ""
    way = _way(mine)
    losses = [_way(p.values) for p, m in zip(points, found, strict=True) if m.quantity == "loss" and len(p.values) >= LEAST]
    known = {(m.quantity == "loss", m.split) for m in found if m.better in ("up", "down")}
    if way < 0:  # a score may fall where the loss rises; where the loss is known, who knows what else falls
        return "" if any(w > 0 for w in losses) or {(True, "train"), (True, "val")} <= known else "loss"
    top = float(np.nanmax(np.concatenate([mine, other])))
    alone = not {(False, "val"), (False, "test")} & known
    return "score" if way > 0 and alone and top <= 100.0 and losses and all(w < 0 for w in losses) else ""


def _as(role: str, m: Meaning, split: Split | None, stem: str, p: Points, train: Points) -> Meaning:
    if split is None:  # "ctc" beside "train_ctc": of the batches
        if role != "loss" or not _of_one_size(p.values, train.values) or not _measures(p.values):
            return m
        return replace(_loss(m, "train", stem, f"{stem} is told of training and held-out data, and falls"), window="batch")
    if role == "loss":
        return _loss(m, split, stem, f"{stem} is told of training and held-out data, and falls in training")
    if role == "score":
        why = f"{stem} is told of training and held-out data, and rises as the loss falls"
        return replace(m, quantity="score", split=split, part=stem, better="up", inferred=why)
    return replace(m, split=split)


def _measures(values: Floats) -> bool:
    """Never negative, and no counter: whole numbers count something."""
    sound = values[np.isfinite(values)]
    return len(sound) >= LEAST and float(sound.min()) >= 0 and bool(np.any(sound % 1)) and float(np.ptp(sound)) > 0


def _of_one_size(a: Floats, b: Floats) -> bool:
    x, y = (float(np.median(v[np.isfinite(v)])) if np.isfinite(v).any() else 0.0 for v in (a, b))
    return x > 0 and y > 0 and 1 / SIZES < x / y < SIZES


def _way(values: Floats) -> int:
    """-1 where a series falls, 1 where it rises, 0 where neither is clear."""
    x = values[np.isfinite(values)]
    if len(x) < LEAST or float(np.ptp(x)) == 0:
        return 0
    few = max(1, len(x) // 5)
    start, end = float(np.median(x[:few])), float(np.median(x[-few:]))
    order = float(np.corrcoef(np.argsort(np.argsort(x)), np.arange(len(x)))[0, 1])
    if abs(end - start) < FALLS * max(abs(start), abs(end)) or abs(order) < ORDERED:
        return 0
    return -1 if end < start and order < 0 else 1 if end > start and order > 0 else 0


# ------------------------------------------------------------------ totals and their parts


def _sums(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    rows: dict[tuple[str, str, int, float, str | None], list[int]] = defaultdict(list)
    for i, (p, m) in enumerate(zip(points, found, strict=True)):
        if len(p.values) and (_unknown(m) or _whole_loss(m)) and np.all(np.isfinite(p.values)):
            head = p.name.rpartition("/")[0]
            rows[(p.file, head, len(p.at), float(p.at[-1]), m.split if m.split != "train" else None)].append(i)
    out = list(found)
    for members in rows.values():
        totals = [i for i in members if _whole_loss(found[i]) or words_of(points[i].name)[-1] in TOTALS]
        parts = [i for i in members if _unknown(found[i]) and i not in totals and _measures(points[i].values)]
        if len(totals) != 1 or not 2 <= len(parts) <= MOST_PARTS:
            continue
        parts = _needed(points, totals[0], parts)
        if len(parts) > 1:
            for i in (*totals, *parts):
                part = None if i in totals else "_".join(words_of(points[i].name.rpartition("/")[2]))
                if _unknown(found[i]):
                    out[i] = _loss(found[i], found[i].split or "train", part, "a total is the sum of its parts, row for row")
    return out


def _whole_loss(m: Meaning) -> bool:
    return m.quantity == "loss" and m.part is None


def _needed(points: Sequence[Points], total: int, parts: list[int]) -> list[int]:
    """The parts without which the total would not add up; none where it does not with all of them. A rate that hardly moves
    fits into any sum."""
    if not _adds_up(points, total, parts):
        return []
    for i in parts:
        fewer = [j for j in parts if j != i]
        if len(fewer) > 1 and _adds_up(points, total, fewer):
            return _needed(points, total, fewer)
    return parts


def _adds_up(points: Sequence[Points], total: int, parts: list[int]) -> bool:
    goal = points[total].values
    columns = np.stack([points[i].values for i in parts], axis=1)
    if len(goal) < 3 * (len(parts) + 1) or float(np.ptp(goal)) == 0:
        return False
    size = EXACT * float(np.mean(np.abs(goal)))
    if float(np.max(np.abs(columns.sum(axis=1) - goal))) <= size:
        return True
    weights, _, rank, _ = np.linalg.lstsq(columns, goal, rcond=None)
    left = float(np.max(np.abs(columns @ weights - goal)))
    return bool(rank == len(parts) and np.all(weights > 0) and left <= size)


def _totals(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    out = list(found)
    for i, (p, m) in enumerate(zip(points, found, strict=True)):
        if not _unknown(m) or m.split not in (None, "train") or not set(words_of(p.name)) <= TOTALS or not _measures(p.values):
            continue
        losses = [(q, n) for q, n in zip(points, found, strict=True) if n.quantity == "loss" and n.split == "train" and q.file == p.file]
        beside = [q.values for q, n in losses if n.part and np.array_equal(q.lines, p.lines)]
        if all(n.part for _, n in losses) and any(_of_one_size(values, p.values) for values in beside):
            out[i] = _loss(m, "train", None, "it is called a total and stands on the rows of a training loss")
    return out


def _only_cost(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """A `cost` may be one of time; where nothing else is minimised and it falls, it is the loss."""
    if any(m.better == "down" for m in found):
        return found
    open_ = [i for i, m in enumerate(found) if _unknown(m) and words_of(points[i].name)[-1] in _COSTS and _measures(points[i].values)]
    if len(open_) != 1 or _way(points[open_[0]].values) >= 0:
        return found
    out = list(found)
    out[open_[0]] = _loss(found[open_[0]], found[open_[0]].split or "train", None, "it falls, and nothing else is minimised")
    return out


def _objective(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """The one error that says of no data, in a run without a training loss that tells its held-out result otherwise."""
    if any(m.split == "train" and m.better == "down" for m in found):
        return found
    open_ = [i for i, m in enumerate(found) if m.quantity in _ERRORS and m.split is None and len(points[i].values) >= LEAST]
    told = {m.quantity for m in found if m.better in ("up", "down") and (m.split in ("val", "test") or m.quantity in _OF_TASKS)}
    if len(open_) != 1 or not told - {found[open_[0]].quantity}:
        return found
    out = list(found)
    out[open_[0]] = replace(found[open_[0]], split="train", inferred="it names no data, and another result is the held-out one")
    return out


def _rate(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    """A number called just `rate` that only falls, but for one rise at the start, as learning rates do and other rates do not."""
    if any(m.quantity == "lr" for m in found):
        return found
    open_ = [i for i, m in enumerate(found) if _unknown(m) and words_of(points[i].name) in _RATES and _is_planned(points[i].values)]
    if len(open_) != 1:
        return found
    out = list(found)
    known = meaning_of("lr", None, None)
    out[open_[0]] = replace(known, inferred="it is called a rate and moves as learning rates do")
    return out


def _is_planned(values: Floats) -> bool:
    x = values[np.isfinite(values)]
    if len(x) < LEAST or float(x.min()) < 0 or not 0 < float(x.max()) < 1:
        return False
    peak = int(np.argmax(x))
    return bool(np.all(np.diff(x[: peak + 1]) >= 0) and np.all(np.diff(x[peak:]) <= 0)) and float(x[-1]) < float(x[peak])


# ------------------------------------------------------------------ federated training


def _clients_and_server(points: Sequence[Points], found: list[Meaning]) -> list[Meaning]:
    sides: dict[str, dict[Split, set[str | None]]] = defaultdict(lambda: defaultdict(set))
    for p, m in zip(points, found, strict=True):
        where = _whose(set(words_of(p.name)))
        if where and m.better in ("up", "down"):
            sides[p.file][where].add(m.quantity)
    out = list(found)
    for i, (p, m) in enumerate(zip(points, found, strict=True)):
        words = words_of(p.name)
        split = _whose(set(words))
        if split and m.better in ("up", "down") and sides[p.file]["train"] & sides[p.file]["val"]:
            plain = meaning_of("_".join(w for w in words if w not in _LOCAL | _SHARED) or p.name, split, p.unit)
            out[i] = replace(plain, inferred="what clients measure is of training, what the server measures is held out")
    return out


def _whose(words: set[str]) -> Split | None:
    return "train" if words & _LOCAL else "val" if words & _SHARED else None
