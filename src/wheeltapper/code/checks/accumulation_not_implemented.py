"""Gradient accumulation is declared, and the optimizer steps after every micro-batch.

What it sees
------------
An accumulation option that nothing acts on, in a program whose optimizer steps once for every backward
pass.

Why it matters
--------------
The batch that trains the model is the micro-batch. Learning rate, noise and length of the run were chosen
for a batch that never existed.

How it decides
--------------
The option is followed as in option-never-used and acts on nothing; and the loop that holds the backward
pass holds an optimizer step with no condition that lets it through only every n-th time. The true batch is
the loader's, where its size is known.

When it is wrong
----------------
If accumulation is done by other means under another name (a literal count, a framework's own setting); then
the option is still dead, but the batch is not the micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.code import vocabulary as words
from wheeltapper.code.conditions import every
from wheeltapper.code.loop import Event
from wheeltapper.code.options import Usage
from wheeltapper.code.program import argument
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "accumulation-not-implemented"


def check(code: Code) -> Iterator[Finding]:
    dead = dead_accumulation(code)
    step = step_every_time(code)
    if not dead or step is None:
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
