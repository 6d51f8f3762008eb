"""What the counters of a log count: the steps of the run, the batches of an epoch, or rows under a name of their own.

One word, "step" or "it", counts through the run in one log and anew with every epoch in another; the rows themselves tell.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import numpy as np

from wheeltapper.reading._clocks import EPOCH, LEAST_COUNTED, ODD_EPOCH, ODD_STEP, STEP, plainly_counts
from wheeltapper.reading._rows import Field, Role, Table
from wheeltapper.reading.record import Floats, Ints

_PLACES = {"step", "micro_step", "sample", "token", "epoch", "second", "inner", "inner_sample"}


def through_the_run(tables: list[Table]) -> list[Table]:
    """The tables with each counter in the role that its numbers show."""
    tables = [_by_counter(_across_epochs(table)) for table in tables]
    return [_within_laps(_within_epochs(table, tables)) for table in tables]


def _within_epochs(table: Table, tables: list[Table]) -> Table:
    """The table with its steps as batches of an epoch, where they begin anew with every epoch that the row, or a line
    of its own between the rows ("Epoch: 0002"), tells."""
    step = table.column("step")
    if step is None or len(step) < 4 or table.column("inner") is not None:
        return table
    fields = tuple(replace(f, role="inner") if f.role == "step" else f for f in table.fields)
    columns = list(table.columns)
    if table.column("epoch") is None:
        told = _told_between(table, [t for t in tables if t.column("epoch") is not None])
        if told is None or "total_steps" in table.constants:
            return table
        fields, columns = (*fields, Field("epoch", 0, 0, role="epoch")), [*columns, array("d", told.tolist())]
    elif not _counts_batches(table):
        return table
    out = Table(fields, last=table.last, anchor=table.anchor)
    out.lines, out.columns, out.constants = table.lines, columns, table.constants
    return out


def _with(table: Table, fields: tuple[Field, ...]) -> Table:
    """The table with its fields in other roles."""
    out = Table(fields, last=table.last, anchor=table.anchor)
    out.lines, out.columns, out.constants = table.lines, table.columns, table.constants
    return out


def _across_epochs(table: Table) -> Table:
    """ "ep[2] it[150/3000]": a counter with a total that goes on where the next epoch begins counts the steps of the run."""
    epoch, inner = table.column("epoch"), table.column("inner")
    if epoch is None or inner is None or len(inner) < 4:
        return table
    turns = np.diff(epoch) == 1
    if turns.sum() < 2 or not bool(np.all(np.diff(inner) > 0)):
        return table
    out = _with(table, tuple(replace(f, role="step") if f.role == "inner" else f for f in table.fields))
    out.constants = {("total_steps" if key == "per_epoch" else key): value for key, value in table.constants.items()}
    return out


def _by_counter(table: Table) -> Table:
    """ "i=40 mse=0.05": the first number of every row counts under a name of its own, and nothing else tells the place."""
    if any(f.role in _PLACES for f in table.fields) or len(table.lines) < LEAST_COUNTED:
        return table
    first = next((i for i, f in enumerate(table.fields) if f.role == "value"), None)
    name = table.fields[first].name.lower() if first is not None else ""
    role: Role | None = "step" if name in (*STEP, *ODD_STEP) else "epoch" if name in (*EPOCH, *ODD_EPOCH) else None
    if first is None or role is None or not plainly_counts(np.frombuffer(table.columns[first], dtype=np.float64)):
        return table
    return _with(table, tuple(replace(f, role=role) if i == first else f for i, f in enumerate(table.fields)))


def _within_laps(table: Table) -> Table:
    """The table with its steps counted through, where they begin anew with every epoch and no line tells the epoch. A run
    that is launched again begins with the loss of its start; a new epoch with that of the end of the one before."""
    step = table.column("step")
    if step is None or len(step) < 6 or table.column("epoch") is not None or table.column("inner") is not None:
        return table
    begins = np.append(0, np.flatnonzero(np.diff(step) < 0) + 1)
    ends = np.append(begins[1:], len(step)) - 1
    if len(begins) < 3 or np.min(ends[:-1] - begins[:-1]) < 1 or not _goes_on(table, begins, ends):
        return table
    if len(np.unique(step[begins])) > 1 or np.ptp(step[ends[:-1]]) > 0.02 * float(step[ends[0]]) or step[ends[-1]] > step[ends[0]]:
        return table
    every = float(np.median(np.diff(step)[np.diff(step) > 0]))
    length = float(np.max(step[ends])) - float(step[0]) + every
    through = step + length * np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(step))))
    out = Table(table.fields, last=table.last, anchor=table.anchor)
    at = next(i for i, f in enumerate(table.fields) if f.role == "step")
    columns = list(table.columns)
    columns[at] = array("d", through.tolist())
    out.lines, out.columns, out.constants = table.lines, columns, table.constants
    return out


def _goes_on(table: Table, begins: Ints, ends: Ints) -> bool:
    """Do the losses at the start of a lap stand nearer to the end of the lap before than to the start of all?"""
    for spec, store in zip(table.fields, table.columns, strict=True):
        if spec.role == "value" and "loss" in spec.name.lower():
            x = np.frombuffer(store, dtype=np.float64)
            from_last, from_first = np.abs(x[begins[1:]] - x[ends[:-1]]), np.abs(x[begins[1:]] - x[0])
            return bool(np.nanmedian(from_last) < 0.5 * np.nanmedian(from_first))
    return False


def _told_between(table: Table, others: list[Table]) -> Floats | None:
    """The epoch of each row by the lines above it, if the next epoch is told wherever the step falls."""
    step, lines = table.column("step"), table.line_numbers()
    if not others or step is None:
        return None
    at = np.concatenate([t.line_numbers() for t in others])
    order = np.argsort(at, kind="stable")
    at, epoch = at[order], np.concatenate([np.asarray(t.column("epoch")) for t in others])[order]
    above = np.searchsorted(at, lines, side="right") - 1
    falls = np.flatnonzero(np.diff(step) < 0)
    if above[0] < 0 or len(falls) < 2:
        return None
    mine = epoch[above]
    return mine if float(np.mean(mine[falls + 1] == mine[falls] + 1)) > 0.9 else None


def _counts_batches(table: Table) -> bool:
    """ "Epoch 3, Step 25": a step that falls whenever the epoch rises counts the batches of the epoch."""
    epoch, step = table.column("epoch"), table.column("step")
    if epoch is None or step is None:
        return False
    turns = np.diff(epoch) == 1
    rises = np.diff(step)[np.diff(epoch) == 0]
    return bool(turns.sum() >= 2 and np.mean(np.diff(step)[turns] < 0) > 0.9 and np.all(rises > 0) and len(rises))
