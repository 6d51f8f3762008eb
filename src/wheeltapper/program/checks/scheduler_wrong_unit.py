"""A schedule counts one unit and is stepped in another.

What it sees
------------
A scheduler laid out in batches and stepped once per epoch; laid out in epochs and stepped at every batch; laid
out in batches and stepped once per optimizer update under accumulation, or the reverse.

Why it matters
--------------
The learning rate goes through a fraction of its schedule, or is used up in the first epoch. A warm-up counted
in other steps may outlast the run.

How it decides
--------------
The length given to the scheduler is taken apart into factors: with len(loader) it counts batches, with an
epoch count alone it counts epochs. The place of `scheduler.step()` among the loops says what it is stepped by.
Under accumulation: the length is len(loader) × epochs undivided, or the very number that ends the loop on a
counter that grows with every micro-batch, while the step lies under the accumulation's condition. In
Lightning: a length in steps without `"interval": "step"`. A rate computed by hand from a counter: the counter it is given is the
variable of the loop over epochs and its length is named for steps, or it grows with every batch and the length is named
for epochs. Only such provable pairs are reported.

When it is wrong
----------------
If a variable named like epochs holds steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of, part_reachable
from wheeltapper.program.hand_schedules import Rule
from wheeltapper.program.horizons import (
    EPOCHS,
    STEPS,
    Horizon,
    accumulation_of,
    batch_loop_of,
    horizon_of,
    outside_batches,
    step_is_plain,
    steps_of,
)
from wheeltapper.program.loop import Event
from wheeltapper.program.play.value import number
from wheeltapper.program.program import argument, dotted_name
from wheeltapper.program.reading import Code

ID = "scheduler-wrong-unit"
CAUSE = "schedule-unit-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    yield from _by_hand(code)
    for part in code.made("scheduler"):
        horizon = horizon_of(code, part)
        if horizon is None or not part_reachable(code, part.call):
            continue
        if code.by_framework:
            yield from _lightning(code, horizon)
            continue
        steps = steps_of(code, part)
        if steps:
            yield from _units(code, horizon, steps)


def _units(code: Code, horizon: Horizon, steps: list[Event]) -> Iterator[Finding]:
    name, length = horizon.part.made_by, ast.unparse(horizon.node)
    if horizon.counts_batches and all(outside_batches(code, e) for e in steps):
        yield code.finding(
            ID,
            f"{name} is laid out for {length} steps, counted in batches, and stepped once per epoch: the run ends near the "
            "start of the schedule.",
            steps[0].node,
            horizon.node,
        )
    elif (
        horizon.counts_epochs
        and argument(horizon.part.call, "steps_per_epoch", 4) is None
        and all(step_is_plain(code, e, horizon) and len(e.loops) > 1 for e in steps)
    ):
        yield code.finding(
            ID, f"{name} is laid out for {length} epochs and stepped at every batch.", steps[0].node, horizon.node
        )
    else:
        yield from _accumulation(code, horizon, steps)


def _accumulation(code: Code, horizon: Horizon, steps: list[Event]) -> Iterator[Finding]:
    counts = [accumulation_of(code, e) for e in steps]
    if all(c is not None for c in counts) and counts[0] is not None:
        number = code.values.number(counts[0])
        if number == 1:
            return
        undivided = horizon.counts_batches and not any(n < 0 for n in horizon.factors.values())
        limit = _micro_step_limit(code, horizon, steps[0])
        if undivided or limit is not None:
            times = f"{number:g}" if number is not None else ast.unparse(counts[0])
            yield code.finding(
                ID,
                f"{horizon.part.made_by} is laid out for {ast.unparse(horizon.node)}, counted in micro-batches, and stepped once "
                f"per optimizer update, every {times} micro-batches: the run covers 1/{times} of the schedule, and every "
                f"length given to it (warm-up too) lasts {times} times longer.",
                steps[0].node,
                horizon.node,
                *([limit] if limit is not None else []),
                numbers={"accumulation": number} if number is not None else None,
            )
        return
    divisors = {f for f, n in horizon.factors.items() if n < 0}
    if (
        horizon.counts_batches
        and divisors
        and all(c is None and step_is_plain(code, e, horizon) for c, e in zip(counts, steps, strict=True))
    ):
        updates = [e for e in code.loop.of("step", "scaler-step") if accumulation_of(code, e) is not None]
        count = accumulation_of(code, updates[0]) if updates else None
        if count is not None and set(code.values.factors(count)) & divisors and code.values.number(count) != 1:
            yield code.finding(
                ID,
                f"{horizon.part.made_by} is laid out for {ast.unparse(horizon.node)} optimizer updates and stepped at every "
                "micro-batch: the schedule is over before the run is.",
                steps[0].node,
                horizon.node,
            )


def _micro_step_limit(code: Code, horizon: Horizon, step: Event) -> ast.AST | None:
    """A test that ends training on a counter of micro-batches at the very length of the schedule."""
    loop = batch_loop_of(code, step)
    if loop is None or sum(horizon.factors.values()) != 1:
        return None
    counters = _micro_counters(code, loop)
    for test in nodes_of(code.program, ast.Compare):
        assert isinstance(test, ast.Compare)
        sides = [test.left, *test.comparators]
        if len(sides) != 2 or not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            continue
        for side, other in (sides, reversed(sides)):
            name = _last(side)
            if name in counters and code.values.factors(other) == horizon.factors and _ends_loop(code, test):
                return test
    return None


def _micro_counters(code: Code, loop: ast.AST) -> set[str]:
    """Names that grow by one in every turn of the batch loop, whatever the accumulation does."""
    names: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_one(node.value):
            guards = []
            up: ast.AST | None = node
            while up is not None and up is not loop:
                up = code.program.parent(up)
                if isinstance(up, ast.If):
                    guards.append(up)
            if not guards:
                names.add(_last(node.target))
    return names - {""}


def _ends_loop(code: Code, test: ast.Compare) -> bool:
    up = code.program.parent(test)
    while isinstance(up, ast.BoolOp):
        up = code.program.parent(up)
    if isinstance(up, ast.While):
        return True
    return isinstance(up, ast.If) and any(isinstance(n, ast.Break | ast.Return) for s in up.body for n in ast.walk(s))


def _lightning(code: Code, horizon: Horizon) -> Iterator[Finding]:
    func = code.program.func_of[horizon.part.call]
    if func is None or func.name != "configure_optimizers":
        return
    text = ast.unparse(func.node)
    if horizon.part.made_by != "OneCycleLR" and (
        horizon.counts_epochs or code.values.number(horizon.node) in _epochs(code)
    ):
        stepped = [
            d
            for d in code.story.dicts
            if "interval" in d.fields and d.fields["interval"].data == "step" and "scheduler" in d.fields
        ]
        if stepped:
            told = f"{horizon.part.made_by} is laid out for {ast.unparse(horizon.node)} epochs and Lightning steps it at every batch."
            yield code.finding(ID, told, stepped[0].node or horizon.node, horizon.node)
            return
    counted = horizon.counts_batches or any("estimated_stepping_batches" in f for f in horizon.factors)
    if (
        counted
        and not _in_steps(text)
        and "manual" not in text
        and "lr_scheduler_step" not in code.program.functions
    ):
        said = [n for n in ast.walk(func.node) if isinstance(n, ast.Constant) and n.value == "interval"]
        yield code.finding(
            ID,
            f"{horizon.part.made_by} is laid out for {ast.unparse(horizon.node)} steps, and Lightning steps it once per epoch "
            'because "interval" is not "step".',
            *said[:1],
            horizon.part.call,
            horizon.node,
        )


def _in_steps(text: str) -> bool:
    """Whether "interval" is said, and not to be the epoch."""
    return "interval" in text and re.search(r"interval['\"]?\s*[:=]\s*['\"]epoch", text) is None


def _epochs(code: Code) -> set[float | None]:
    """The number of epochs that a Lightning trainer was told."""
    told = [number(c.kwargs.get("max_epochs")) for c in code.story.named("Trainer")]
    return {t for t in told if t is not None}


def _by_hand(code: Code) -> Iterator[Finding]:
    """A rate that is a function of a counter, given a counter of another unit than its length."""
    for rule in code.rules:
        if rule.horizon is None:
            continue
        words = {_last(n) for n in ast.walk(rule.horizon) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)}
        words |= set(code.values.factors(rule.horizon))
        in_steps, in_epochs = any(STEPS.search(w) for w in words), any(EPOCHS.search(w) for w in words)
        for event in code.loop.of("rate"):
            if event.node not in code.program.calls.get(rule.func.name, []) or in_steps == in_epochs:
                continue
            given = _given(rule, event.node)
            told = None
            if in_steps and given is not None and _is_epoch(given, event):
                told = f"counts steps ({ast.unparse(rule.horizon)}) and is given the epoch"
            elif in_epochs and given is not None and _grows_with_batches(code, given):
                told = f"counts epochs ({ast.unparse(rule.horizon)}) and is given a count of batches"
            if told is not None:
                yield code.finding(
                    ID, f"The learning rate of {rule.func.name}() {told}.", event.node, rule.horizon
                )  # fmt: skip
                return


def _given(rule: Rule, call: ast.Call) -> ast.expr | None:
    params = rule.func.params
    return argument(call, rule.counter, params.index(rule.counter)) if rule.counter in params else None


def _is_epoch(node: ast.expr, event: Event) -> bool:
    """The variable of the outermost loop, named for epochs, over a range, with a loop over batches inside."""
    if not isinstance(node, ast.Name) or not event.loops or not EPOCHS.search(node.id):
        return False
    outer = event.loops[0]
    if not isinstance(outer, ast.For) or not isinstance(outer.target, ast.Name) or outer.target.id != node.id:
        return False
    return len(event.loops) > 1 or any(isinstance(n, ast.For | ast.While) for s in outer.body for n in ast.walk(s))


def _grows_with_batches(code: Code, node: ast.expr) -> bool:
    """A bare name that grows by one in every turn of a batch loop inside a loop over epochs."""
    name = _last(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    if not name or EPOCHS.search(name):
        return False
    nested = [b.loops[-1] for b in code.loop.backwards if len(b.loops) > 1]
    return any(name in _micro_counters(code, loop) for loop in nested)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted_name(node).split(".")[-1]
