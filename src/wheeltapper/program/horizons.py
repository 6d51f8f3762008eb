"""How long a scheduler is laid out for, in which unit, and how often the loop steps it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

from wheeltapper.program.conditions import conditional, every, inner_guards, is_accumulation, reachable
from wheeltapper.program.hand_schedules import function_of, rule_of
from wheeltapper.program.loop import Event
from wheeltapper.program.objects import Part
from wheeltapper.program.program import Func, argument, dotted_name
from wheeltapper.program.reading import Code

# The parameter that says how long the schedule is, and its position.
LENGTHS: dict[str, tuple[tuple[str, int | None], ...]] = {
    "CosineAnnealingLR": (("T_max", 1),),
    "OneCycleLR": (("total_steps", 2),),
    "LinearLR": (("total_iters", 3),),
    "PolynomialLR": (("total_iters", 1),),
    "get_cosine_schedule_with_warmup": (("num_training_steps", 2),),
    "get_linear_schedule_with_warmup": (("num_training_steps", 2),),
    "get_polynomial_decay_schedule_with_warmup": (("num_training_steps", 2),),
    "get_cosine_with_hard_restarts_schedule_with_warmup": (("num_training_steps", 2),),
    "get_scheduler": (("num_training_steps", 3),),
    "WarmupCosineLR": (("max_steps", None), ("total_steps", None), ("num_training_steps", None), ("max_iters", None)),
    "LinearWarmupCosineAnnealingLR": (("max_epochs", 2),),
}
EPOCHS = re.compile(r"epoch", re.I)
STEPS = re.compile(r"step|iter|len\(", re.I)


@dataclass(frozen=True)
class Horizon:
    part: Part
    node: ast.expr  # the length as written
    factors: Counter[str]

    @property
    def counts_batches(self) -> bool:
        """The length holds len(loader): it counts batches."""
        return any(f.startswith("len(") and n > 0 for f, n in self.factors.items())

    @property
    def counts_epochs(self) -> bool:
        up = [f for f, n in self.factors.items() if n > 0]
        words = set(self.factors)
        if isinstance(self.node, ast.Name | ast.Attribute) and all(f[:1].isdecimal() for f in words):
            up = [dotted_name(self.node).split(".")[-1]]  # the number behind a name says no unit, the name does
            words = set(up)
        if isinstance(self.node, ast.Name | ast.Attribute) and STEPS.search(dotted_name(self.node).split(".")[-1]):
            return False  # called steps by the program, whatever they are computed from
        if any(not re.fullmatch(r"[\w.]+", f) for f in words):
            return False  # a factor that could not be taken apart may be the batches of an epoch
        return bool(up) and any(EPOCHS.search(f) for f in up) and not any(STEPS.search(f) for f in words)


def horizon_of(code: Code, part: Part) -> Horizon | None:
    if part.made_by == "OneCycleLR":
        epochs, per_epoch = argument(part.call, "epochs", 3), argument(part.call, "steps_per_epoch", 4)
        if argument(part.call, "total_steps", 2) is None and epochs is not None and per_epoch is not None:
            return Horizon(part, per_epoch, code.values.factors(epochs) + code.values.factors(per_epoch))
    if part.made_by == "LambdaLR":
        func = function_of(code.program, part.call)
        rule = rule_of(func) if func is not None else None
        if rule is None and func is not None:
            return _handed_on(code, part, func)
        if rule is None or rule.horizon is None:
            return None
        return Horizon(part, rule.horizon, code.values.factors(rule.horizon))
    for name, position in LENGTHS.get(part.made_by, ()):
        node = argument(part.call, name, position)
        if node is not None:
            return Horizon(part, node, code.values.factors(node))
    return None


def _handed_on(code: Code, part: Part, func: Func) -> Horizon | None:
    """`lambda it: poly(it, total)`: the length that a function of the program is given beside the counter."""
    call = func.node.body if isinstance(func.node, ast.Lambda) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or len(func.params) != 1:
        return None
    targets = code.program.functions.get(call.func.id, [])
    rule = rule_of(targets[0]) if len(targets) == 1 else None
    if rule is None or not isinstance(rule.horizon, ast.Name) or rule.horizon.id not in targets[0].params:
        return None
    node = argument(call, rule.horizon.id, targets[0].params.index(rule.horizon.id))
    counter = (
        argument(call, rule.counter, targets[0].params.index(rule.counter))
        if rule.counter in targets[0].params
        else None
    )
    same = isinstance(counter, ast.Name) and counter.id == func.params[0]
    return Horizon(part, node, code.values.factors(node)) if node is not None and same else None


def steps_of(code: Code, part: Part) -> list[Event]:
    """The plain steps of a scheduler inside loops; steps given an epoch or a metric are not counted."""
    return [
        e
        for e in code.loop.of("schedule")
        if e.name in part.names and e.loops and not e.node.args and not e.node.keywords and reachable(code, e)
    ]


def batch_loop_of(code: Code, event: Event) -> ast.AST | None:
    """The batch loop an event is made in every turn of, if it lies in one."""
    return next((loop for loop in code.loop.batch_loops if loop in event.loops), None)


def outside_batches(code: Code, event: Event) -> bool:
    """An event in a loop around a batch loop, but not in the batch loop: once per epoch."""
    if any(e.loops == event.loops for e in code.loop.of("step", "scaler-step")):
        return False  # beside the optimizer: once per update, of which each sums up micro-batches
    loops = [b.loops for b in code.loop.backwards]
    return batch_loop_of(code, event) is None and any(
        len(inner) > len(event.loops) and inner[: len(event.loops)] == event.loops for inner in loops
    )


def accumulation_of(code: Code, event: Event) -> ast.expr | None:
    """The accumulation count whose condition an event lies under."""
    loop = batch_loop_of(code, event)
    if loop is None:
        return None
    count = every(event, loop)
    return count if count is not None and is_accumulation(code, count) else None


def step_is_plain(code: Code, event: Event, horizon: Horizon) -> bool:
    """Stepped in every turn of the batch loop. A guard `step < total` that allows all of them is no guard."""
    loop = batch_loop_of(code, event)
    if loop is None:
        return False
    if not conditional(event, loop):
        return True
    for guard in inner_guards(event, loop):
        test = guard.node.test
        below = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt | ast.LtE)
        if not below or code.values.factors(test.comparators[0]) != horizon.factors:  # type: ignore[attr-defined]
            return False
    return True


def loops_match(code: Code, event: Event, horizon: Horizon) -> bool:
    """Whether the loops around an event run exactly epochs × len(loader) turns, as the schedule is laid out."""
    loop = batch_loop_of(code, event)
    if loop is None or len(event.loops) != 2 or event.loops[-1] is not loop:
        return False
    outer, inner = event.loops
    if not isinstance(outer, ast.For) or not isinstance(inner, ast.For):
        return False
    loader = _iterated(code, inner.iter)
    epochs = _range_stop(outer.iter)
    if loader is None or epochs is None:
        return False
    return horizon.factors == code.values.factors(epochs) + Counter({f"len({loader})": 1})


def _range_stop(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Call) and dotted_name(node.func).split(".")[-1] in ("range", "trange"):
        return node.args[0] if len(node.args) == 1 else node.args[1] if len(node.args) > 1 else None
    if isinstance(node, ast.Call) and dotted_name(node.func).split(".")[-1] == "tqdm" and node.args:
        return _range_stop(node.args[0])
    return None


def _iterated(code: Code, node: ast.expr) -> str | None:
    """The loader a loop runs over, through enumerate, tqdm and a variable that holds a progress bar."""
    for _ in range(6):
        if isinstance(node, ast.Call):
            if not node.args or dotted_name(node.func).split(".")[-1] not in (
                "enumerate",
                "tqdm",
                "iter",
                "track",
                "log_every",
            ):
                return None
            node = node.args[0]
            continue
        if isinstance(node, ast.IfExp):
            node = node.orelse
            continue
        rest = code.program.rest_of(node)
        values = code.program.writes.get(rest, []) if rest is not None else []
        if isinstance(node, ast.Name) and len(values) == 1 and rest not in code.program.opaque:
            value = values[0]
            if isinstance(value, ast.Call | ast.IfExp | ast.Name | ast.Attribute) and not _is_loader(code, value):
                node = value
                continue
        return rest[-1] if rest is not None else None
    return None


def _is_loader(code: Code, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(p.call is node for p in code.made("loader"))
