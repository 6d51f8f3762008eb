"""Lines of the table that only the code can tell: the schedule as it is stepped, the average, the precision, the workers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from wheeltapper.audit.model import Row
from wheeltapper.program.averages import averages_of
from wheeltapper.program.checks.lr_scaled_twice import WORLD
from wheeltapper.program.checks.workers_per_process import processes_of, workers_of
from wheeltapper.program.conditions import nodes_of, part_reachable
from wheeltapper.program.horizons import accumulation_of, batch_loop_of, outside_batches, steps_of
from wheeltapper.program.objects import BY_NAME
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code


def code_rows(code: Code, known: set[str]) -> Iterator[Row]:
    """What one training program adds to the table; `known` are the labels that the settings gave already."""
    yield from _optimizer(code, known)
    yield from _hand_schedule(code)
    yield from _schedule(code)
    if "average of weights" not in known:
        for average in averages_of(code):
            if average.horizon is not None:
                how = f"updated every {average.every:g} steps: a horizon of {average.horizon:,.0f}"
                yield Row("average of weights", f"decay {average.decay:g}", how, code.program.place(average.made))
    if "precision" not in known:
        yield from _precision(code)
    workers = workers_of(code)
    if workers is not None:
        world = next((w for launch in code.program.launches if (w := processes_of(code, launch)) is not None), None)
        how = f"per process, {workers[0] * world:g} over {world} processes" if world else "per process"
        yield Row("loader workers", f"{workers[0]:g}", how, code.program.place(workers[1]))


def batch_in_all(code: Code) -> ast.expr | None:
    """Where the code divides the batch by the number of processes: then the size given is the batch of all of them."""
    for node in nodes_of(code.program, ast.BinOp):
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.Div | ast.FloorDiv) or not WORLD.search(ast.unparse(node.right)):
            continue
        if "batch" in ast.unparse(node.left).lower():
            return node
    return None


def settle_batch(rows: list[Row], code: Code) -> list[Row]:
    """The line of the batch, where the name of the option leaves open what the code decides."""
    node = batch_in_all(code)
    if node is None:
        return rows
    how = f"in all: the code divides it over the processes ({code.program.place(node)})"
    return [
        replace(row, label="effective batch", how=how)
        if row.label == "batch"
        or (row.label == "effective batch" and "accumulat" not in row.how and " x " not in row.how)
        else row
        for row in rows
    ]


def _optimizer(code: Code, known: set[str]) -> Iterator[Row]:
    """The optimizer as the code makes it, where the settings do not name it."""
    made = [p for p in code.made("optimizer") if part_reachable(code, p.call)]
    if len(made) != 1 or made[0].made_by in BY_NAME.values():
        return
    call, name = made[0].call, made[0].made_by
    if "optimizer" not in known:
        yield Row("optimizer", name, "made in the code", code.program.place(call))
    for label, keyword in (("learning rate", "lr"), ("weight decay", "weight_decay")):
        node = argument(call, keyword, 1 if keyword == "lr" else None)
        value = code.values.number(node)
        if label not in known and value is not None and node is not None:
            yield Row(label, f"{value:g}", f"given to {name}", code.program.place(node))


def _hand_schedule(code: Code) -> Iterator[Row]:
    """A rate computed by a function of the program, and how often."""
    for rule in code.rules:
        events = [e for e in code.loop.of("rate") if e.loops and e.node in code.program.calls.get(rule.func.name, [])]
        if not events:
            continue
        stepped = {s.loops[-1] for s in code.loop.of("step", "scaler-step") if s.loops}
        once = all(outside_batches(code, e) and e.loops[-1] not in stepped for e in events)
        unit = "computed once per epoch" if once else "computed at every step"
        for label, node in (("warm-up", rule.warmup), ("over", rule.horizon)):
            if node is not None:
                number = code.values.number(node)
                unit += f"; {label} {ast.unparse(node)}" + (f" = {number:,.0f}" if number is not None else "")
        yield Row(
            "schedule in the code", f"{rule.kind} by {rule.func.name}()", unit, code.program.place(rule.func.node)
        )


def _schedule(code: Code) -> Iterator[Row]:
    for part in code.made("scheduler"):
        steps = steps_of(code, part)
        if not steps or not part_reachable(code, part.call):
            continue
        if all(outside_batches(code, e) for e in steps):
            unit = "stepped once per epoch"
        elif all(accumulation_of(code, e) is not None for e in steps):
            unit = "stepped once per optimizer update, under accumulation"
        elif all(batch_loop_of(code, e) is not None for e in steps):
            unit = "stepped at every batch"
        else:
            continue
        yield Row("schedule in the code", part.made_by, unit, code.program.place(part.call))
        if part.made_by == "OneCycleLR":
            yield from _one_cycle(code, part.call)


def _one_cycle(code: Code, call: ast.Call) -> Iterator[Row]:
    """Its first, highest and last rate: the last is the first over final_div_factor, not the peak over it (CASES §2.4)."""
    peak = code.values.number(argument(call, "max_lr", 1))
    first_div, last_div = argument(call, "div_factor"), argument(call, "final_div_factor")
    div = 25.0 if first_div is None else code.values.number(first_div)
    final = 1e4 if last_div is None else code.values.number(last_div)
    if peak and div and final:
        how = f"max_lr / {div:g}, max_lr, and the first over {final:g}; the optimizer's own lr is not used"
        yield Row(
            "learning rates", f"{peak / div:g}, {peak:g}, {peak / div / final:.3g}", how, code.program.place(call)
        )


def _precision(code: Code) -> Iterator[Row]:
    scalers = [p for p in code.made("GradScaler") if part_reachable(code, p.call)]
    on = [p for p in scalers if (e := argument(p.call, "enabled")) is None or code.values.value(e) is not False]
    if on:
        yield Row("precision", "mixed", "a GradScaler scales the loss", code.program.place(on[0].call))
