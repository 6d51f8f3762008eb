"""The answer is among the inputs.

What it sees
------------
A target that the network is given as input: a window that reaches into what is to be predicted, a table whose target
column was never dropped, the target itself.

Why it matters
--------------
The network learns to copy. The loss falls to almost nothing in training and validation, and the model is useless
where the answer is not known.

How it decides
--------------
Input and target of the loss are traced back to the data. Windows of the same series: the end of the input lies behind
the start of the target. Columns: the table is used whole, or the list of features names the target; or the target itself is
written or joined into it. The same value on
both sides of a loss for numbers, without noise in between, counts for a sequence of steps only.

When it is wrong
----------------
If the overlap is what is asked for, as in reconstruction; losses on the very same window are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import difference, window
from wheeltapper.program.play.lineage import STATISTICS, lineage, pairs_of
from wheeltapper.program.play.story import NUMBER_LOSSES
from wheeltapper.program.play.value import CARRIES, Val, made_of, number, plain, text_of
from wheeltapper.program.reading import Code

ID = "target-in-input"
CAUSE: str | None = "target-leak"
DECIDES = True

JOINS = {"cat", "concat", "concatenate", "hstack", "column_stack", "c_"}


def check(code: Code) -> Iterator[Finding]:
    for loss, given, target in pairs_of(code.story):
        windows = _windows(given, target) if loss.name in NUMBER_LOSSES | {"fit"} else None
        windows = windows or (_place(given, target) if loss.name in NUMBER_LOSSES else None)
        found = windows or _columns(given, target) or _written(given, target)
        if found is not None:
            yield code.seen(ID, *found)
            return


def _windows(given: Val, target: Val) -> tuple[str, Val, Val] | None:
    """`series[i : i + n]` against `series[j : j + m]`: does the input reach beyond the start of the target?"""
    for x in lineage(given):
        a = window(x)
        if a is None:
            continue
        for y in lineage(target):
            b = window(y)
            if b is None or a[0] is not b[0] or a[2] is None or b[1] is None:
                continue
            if difference(a[1], b[1]) == 0 and difference(a[2], b[2]) == 0:
                return None  # reconstruction
            reach = difference(a[2], b[1])
            if reach is not None and reach > 0:
                return f"The input window reaches {reach:g} steps into what is to be predicted.", x, y
            return None
    return None


def _place(given: Val, target: Val) -> tuple[str, Val, Val] | None:
    """`series[i : i + n]` against `series[j]`: does the window hold the place that is to be predicted?"""
    for x in lineage(given):
        a = window(x)
        if a is None or a[2] is None:
            continue
        for y in lineage(target):
            index = y.args[1] if y.op == "item" and len(y.args) > 1 else None
            if index is None or index.op not in ("bin", "index") or plain(y.args[0]) is not a[0]:
                continue
            before_end, after_start = difference(a[2], index), difference(index, a[1])
            if before_end is not None and before_end > 0 and (after_start is None or after_start >= 0):
                return "The input window holds the very value that is to be predicted.", y, x
            return None
    return None


def _columns(given: Val, target: Val) -> tuple[str, Val, Val] | None:
    """A table and one of its columns."""
    columns = [v for v in lineage(target) if v.op in ("item", "attr") and _column(v) is not None]
    if not columns:
        return None
    column = columns[-1]
    table, name = column.args[0], _column(column)
    way = lineage(given)
    for one in way:
        if one is table:
            return (
                f"The inputs are the whole table, with the column to be predicted ({name}) in it.",
                way[max(0, way.index(one) - 1)],
                column,
            )
        if one.op == "item" and len(one.args) > 1 and one.args[0] is not table and one.args[1].op in ("comp", "list"):
            return None  # chosen columns of some rows of it
        if one.op == "item" and one.args[0] is table:
            listed = one.args[1]
            names = [text_of(i) for i in listed.items] if listed.items else []
            if name in names:
                return f"The list of features names the column to be predicted ({name}).", one, column
            if isinstance(name, int) and _range_holds(listed, name):
                return "The columns of the input hold the one to be predicted.", one, column
            return None
        if one.op == "call" and one.name in ("drop", "pop", "select_dtypes", "filter", "loc", "iloc"):
            dropped = {text_of(v) for a in (*one.args[1:], *one.kwargs.values()) for v in made_of(a)}
            if (
                one.name == "drop"
                and name not in dropped
                and one.args
                and one.args[0] is table
                and None not in {d for d in dropped if d is None and len(dropped) == 1}
            ):
                return f"The column to be predicted ({name}) is not among those that are dropped.", one, column
            return None
    return None


def _written(given: Val, target: Val) -> tuple[str, Val, Val] | None:
    """The target itself put among the columns of the input: `x[:, -1] = y`, `cat([x, y])`."""
    mine = {id(v) for v in _same_numbers(target) if v.op not in ("const", "free", "param")}
    for one in lineage(given):
        if one.op == "call" and one.name == "setitem" and len(one.args) > 2:
            put = [one.args[2]]
        elif one.op == "call" and one.name in JOINS and one.args:
            put = (one.args[0].items or [])[1:]
        else:
            continue
        if any(id(v) in mine for p in put for v in _same_numbers(p)):
            return "What is to be predicted is put among the columns of the input.", one, target
    return None


def _same_numbers(value: Val) -> list[Val]:
    """A value and what it was made of, as long as each number can be told from the other: rows picked, scaled, carried."""
    out = []
    for one in lineage(value):
        out.append(one)
        rows = one.op == "item" and not (one.args[1].op == "tuple" or isinstance(one.data, str))
        scaled = (
            one.op == "bin" and one.name in ("Add", "Sub", "Mult", "Div") and any(_is_plain_number(a) for a in one.args)
        )
        carried = one.op in ("batch", "split") or (one.op == "call" and one.name in CARRIES)
        if not (rows or scaled or carried):
            break
    return out


def _is_plain_number(value: Val) -> bool:
    return number(value) is not None or (value.op == "call" and value.name in STATISTICS)


def _column(value: Val) -> str | int | None:
    if value.op == "attr":
        return None
    index = value.args[1] if len(value.args) > 1 else None
    if index is None or not _is_table(value.args[0]):
        return None
    if (text := text_of(index)) is not None:
        return text
    if index.op == "tuple" and index.items and len(index.items) == 2 and index.items[0].op == "slice":
        place = number(index.items[1])
        return int(place) if place is not None else None
    return None


def _is_table(value: Val) -> bool:
    return any(
        v.op == "call"
        and v.name
        in (
            "read_csv",
            "read_parquet",
            "DataFrame",
            "load",
            "loadtxt",
            "genfromtxt",
            "read_excel",
            "dropna",
            "read_feather",
        )
        for v in lineage(plain(value))
    )


def _range_holds(index: Val, place: int) -> bool:
    if index.op != "tuple" or not index.items or len(index.items) != 2 or index.items[1].op != "slice":
        return False
    first, end = (None if (a.op == "const" and a.data is None) else number(a) for a in index.items[1].args[:2])
    if place < 0:
        return end is None
    return (first or 0) <= place and (end is None or (end > place))
