"""Gradient accumulation is declared, and the optimizer steps after every micro-batch.

What it sees
------------
An accumulation option that nothing acts on, in a program whose optimizer steps once for every backward
pass. Or a count by which the loss is divided, and that decides nothing.

Why it matters
--------------
The batch that trains the model is the micro-batch. Learning rate, noise and length of the run were chosen
for a batch that never existed.

How it decides
--------------
The option is followed as in option-never-used and acts on nothing; and the loop that holds the backward
pass holds an optimizer step with no condition that lets it through only every n-th time. The true batch is
the loader's, where its size is known. Divided only: every place that reads the count is a division, a message or
arithmetic on the length of the run; none is a condition, a remainder, a range or an argument of a call.

When it is wrong
----------------
If accumulation is done by other means under another name (a literal count, a framework's own setting); then
the option is still dead, but the batch is not the micro-batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program import vocabulary as words
from wheeltapper.program.conditions import every, nodes_of
from wheeltapper.program.loop import Event
from wheeltapper.program.options import Usage
from wheeltapper.program.program import argument, callee, dotted_name
from wheeltapper.program.reading import Code

ID = "accumulation-not-implemented"
CAUSE = "accumulation-not-done"
DECIDES = True
ARITHMETIC = {"int", "float", "max", "min", "round", "ceil", "floor"}


def check(code: Code) -> Iterator[Finding]:
    dead = dead_accumulation(code)
    step = step_every_time(code)
    if step is None:
        return
    if not dead:
        yield from _only_divided(code, step)
        return
    count = code.values.option(dead[0].option.name)
    if count == 1:
        return
    batch = loader_batch(code)
    numbers: dict[str, float] = {}
    told = "the optimizer steps after every micro-batch"
    if isinstance(count, int | float) and batch is not None:
        numbers = {"declared_batch": batch * count, "true_batch": batch, "accumulation": count}
        told += f": the batch is {batch:g}, not {batch:g} × {count:g} = {batch * count:g}"
    given = code.given.get(dead[0].option.name)
    yield code.finding(
        ID,
        f"{dead[0].option.flag} is declared, and {told}.",
        step.node,
        *(u.option.node for u in dead),
        *([given.place] if given else []),
        numbers=numbers,
    )


def _only_divided(code: Code, step: Event) -> Iterator[Finding]:
    """The loss is divided by a count of micro-batches, and each of them is a step of its own."""
    if code.by_framework or code.made("engine") or "deepspeed" in str(code.program.imported):
        return
    reads = [n for n in nodes_of(code.program, ast.Name, ast.Attribute, ast.Subscript) if _counts_batches(n)]
    divided = [n for n in reads if isinstance(n, ast.expr) and _divides_loss(code, n)]
    if not divided or any(_decides(code, n) for n in reads):
        return
    count = code.values.number(divided[0])
    if count == 1:
        return
    times = f"{count:g}" if count is not None else ast.unparse(divided[0])
    yield code.finding(
        ID,
        f"The loss is divided by {ast.unparse(divided[0])} and the optimizer steps after every micro-batch: nothing is accumulated, and "
        f"the gradient is 1/{times} of that of its batch.",
        step.node,
        divided[0],
        grade="is" if count is not None else "suspected",
        numbers={"accumulation": count} if count is not None else None,
    )


def _counts_batches(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
            return bool(words.ACCUMULATION.match(name))
        case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            return bool(words.ACCUMULATION.match(name))
    return False


def _divides_loss(code: Code, node: ast.expr) -> bool:
    up = code.program.parent(node)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div) and up.right is node:
        return "loss" in ast.unparse(up.left).lower()
    return isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Div) and "loss" in ast.unparse(up.target).lower()


def _decides(code: Code, node: ast.AST) -> bool:
    """Whether a read of the count reaches a condition, a remainder, a loop or a call that is no message."""
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.stmt):
        if isinstance(up, ast.Compare | ast.IfExp | ast.comprehension | ast.Slice | ast.BoolOp | ast.Lambda | ast.Dict):
            return True
        if (
            isinstance(up, ast.BinOp)
            and isinstance(up.op, ast.Mod)
            and not isinstance(up.left, ast.Constant | ast.JoinedStr)
        ):
            return True
        if isinstance(up, ast.JoinedStr):
            return False
        if isinstance(up, ast.Call) and callee(up) not in ARITHMETIC:
            return callee(up) not in ("backward", "scale") and callee(up) not in words.SHOWS | words.LOG_METHODS
        up = code.program.parent(up)
    if isinstance(up, ast.Assign):  # a name of its own: `every = accum * 2` is followed by no one here
        return not all(isinstance(t, ast.Name | ast.Attribute) and _known_place(t, up.value) for t in up.targets)
    return not isinstance(up, ast.Expr | ast.AugAssign | ast.AnnAssign)


def _known_place(target: ast.expr, value: ast.expr) -> bool:
    """The count kept under a name that counts too, the loss, or a length computed from it."""
    name = dotted_name(target).split(".")[-1]
    length = re.search(r"loss|total|num|n_|steps|iters|epoch|batch|length", name, re.I) and isinstance(value, ast.BinOp)
    return bool(words.ACCUMULATION.match(name) or "loss" in name or length)


def dead_accumulation(code: Code) -> list[Usage]:
    """Accumulation options that nothing acts on, provided no other accumulation option does."""
    named = [u for u in code.usages if words.ACCUMULATION.match(u.option.name) and u.option.kind != "dataclass"]
    named = named or [u for u in code.usages if words.ACCUMULATION.match(u.option.name)]
    return [] if any(u.acts for u in named) or code.by_framework else named


def step_every_time(code: Code) -> Event | None:
    """An optimizer step made in every turn of the loop around the backward pass."""
    for loop in code.loop.batch_loops:
        steps = [e for e in code.loop.inside(loop, "step", "scaler-step") if e.loops[-1] is loop]
        if steps and all(every(e, loop) is None for e in steps):
            return steps[0]
    return None


def loader_batch(code: Code) -> float | None:
    """The batch of the training loader: the only one known, or the one of a loader named so."""
    sizes = {}
    for part in code.made("loader"):
        size = code.values.number(argument(part.call, "batch_size", 1))
        if size is not None:
            sizes[part] = size
    train = {s for p, s in sizes.items() if any("train" in n for n in p.names)} or set(sizes.values())
    return train.pop() if len(train) == 1 else None
