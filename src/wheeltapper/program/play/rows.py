"""Which rows of which data a value holds: all of them, a slice, or those for which a comparison holds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from wheeltapper.program.play.elements import SUBSETS
from wheeltapper.program.play.lineage import bounds, is_part, key, lineage
from wheeltapper.program.play.story import RANDOM
from wheeltapper.program.play.value import Val, made_of, number, plain

FINDS = {"flatnonzero", "nonzero", "where", "argwhere"}
COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
}  # fmt: skip
A_FOLD = 3.0  # stands for the number of a fold that a loop counts


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of `base` that were picked. `test`: (what is compared, how, with what)."""

    base: Any
    at: Val
    cut: tuple[float, float] | None = None
    test: tuple[Any, str, Any, float | None] | None = None


def rows_of(value: Val) -> list[Rows]:
    """From the network back to the data: every pick of rows on the way, and every array that stood whole before any pick.
    Ends where rows are picked in a way that is not known."""
    out: list[Rows] = []
    picked = False
    way = lineage(value)
    records = [i for i, v in enumerate(way) if v.op in ("batch", "elem", "comp", "gen") or (v.op == "item" and _is_record(v.args[1]))]
    if any(_is_limited(v.args[1]) for v in way if v.op == "item" and len(v.args) > 1 and _is_record(v.args[1])):
        return []
    for place, one in enumerate(way):
        if one.op == "batch":
            found = _of_subset(one)
        elif place <= max(records, default=-1):
            continue  # done to one record
        else:
            found = _pick(one)
        if found == "unknown":
            return out if picked else []
        if isinstance(found, Rows):
            out.append(found)
            picked = True
        elif not picked and one.op in ("call", "item", "attr", "elem") and one.args:
            out.append(Rows(key(one), one))
    return out


def _of_subset(batch: Val) -> Rows | str | None:
    """A loader of `Subset(dataset, rows)`."""
    dataset = batch.data.arg("dataset", 0) if isinstance(batch.data, Val) else None
    if dataset is None or dataset.op != "call" or dataset.name != "Subset" or len(dataset.args) < 2:
        return None
    return _of_index(dataset, dataset.args[1])


def _pick(value: Val) -> Rows | str | None:
    if value.op == "split" or (value.op == "call" and value.name in ("random_split", "train_test_split")):
        return "unknown"
    if value.op == "call" and value.name in SUBSETS and len(value.args) > 1:
        return _of_index(value, value.args[1])
    if value.op != "item" or len(value.args) < 2 or isinstance(value.data, str):
        return None
    index = value.args[1]
    if index.op == "slice":
        cut = bounds(value) if is_part(value) else None
        return Rows(key(plain(value.args[0])), value, cut=cut) if cut is not None else None
    if index.op in ("tuple", "const") or number(index) is not None or _is_record(index):
        return None
    return _of_index(value, index)


def _is_record(index: Val) -> bool:
    """A place that changes from record to record, and so comes to all of them."""
    index = plain(index)
    if index.op == "slice":
        return any(v.op == "index" for a in index.args for v in made_of(a, deep=False))
    while index.args and (index.op in ("item", "batch", "elem", "bin") or (index.op == "call" and index.name in ("item", "int"))):
        index = plain(index.args[0])
    return index.op in ("index", "elem") or (index.op == "call" and (index.name in RANDOM or index.name in ("range", "arange")))


def _is_limited(index: Val) -> bool:
    """Places that are drawn or counted up to a number other than a length: only the first rows, it may be."""
    counts = [v for v in made_of(index, deep=False, stop=_is_count) if _is_count(v)]
    return any(not any(_is_length(x) for a in c.args for x in made_of(a, deep=False)) for c in counts)


def _is_count(value: Val) -> bool:
    return value.op == "call" and bool(value.args) and value.name in ("range", "arange", "randperm", "randint", "permutation", "integers", "randrange")


def _is_length(value: Val) -> bool:
    return (value.op == "call" and value.name in ("len", "size")) or (value.op == "attr" and value.name == "shape")


def _of_index(value: Val, index: Val) -> Rows | str:
    index = plain(index)
    if index.op == "item" and index.args and index.args[0].op == "call" and index.args[0].name in FINDS:
        index = index.args[0]
    if index.op == "call" and index.name in FINDS and len(index.args) == 1:
        index = index.args[0]
    if index.op == "cmp" and len(index.args) == 2 and index.name in COMPARES:
        right = index.args[1]
        return Rows(key(plain(value.args[0])), value, test=(key(index.args[0]), index.name, key(right), _worth(right)))
    if index.op == "item" and index.args[1].op == "slice" and is_part(index) and (cut := bounds(index)) is not None:
        return Rows((key(plain(value.args[0])), key(plain(index.args[0]))), value, cut=cut)
    if index.op == "call" and index.name in ("randperm", "permutation", "tolist"):
        return Rows((key(plain(value.args[0])), key(index)), value)
    return "unknown"


def _worth(value: Val) -> float | None:
    known = number(value)
    return known if known is not None else A_FOLD if plain(value).op == "index" else None


def shared(train: Rows, held: Rows) -> bool:
    """Whether rows that are held out are certainly among those trained on."""
    if train.base != held.base or (train.cut is None and train.test is None and held.cut is None and held.test is None):
        return False
    if train.cut is not None and held.cut is not None:
        common = min(train.cut[1], held.cut[1]) - max(train.cut[0], held.cut[0])
        return common > 0.01 * min(train.cut[1] - train.cut[0], held.cut[1] - held.cut[0])
    if train.test is not None and held.test is not None:
        return _meet(train.test, held.test)
    return train.cut is None and train.test is None


def _meet(a: tuple[Any, str, Any, float | None], b: tuple[Any, str, Any, float | None]) -> bool:
    """Whether two comparisons of the same quantity can hold at once."""
    if a[0] != b[0]:
        return False
    one, other = a[3], b[3]
    if one is None or other is None:
        if a[2] != b[2]:
            return False
        one = other = 0.0
    places = [x + d for x in (one, other) for d in (-1.0, 0.0, 1.0)]
    return any(COMPARES[a[1]](p, one) and COMPARES[b[1]](p, other) for p in places)


def pairs(train: list[Val], held: list[Val]) -> Iterator[tuple[Rows, Rows]]:
    for one in train:
        mine = rows_of(one)
        for other in held:
            for a in mine:
                for b in rows_of(other):
                    if shared(a, b):
                        yield a, b
