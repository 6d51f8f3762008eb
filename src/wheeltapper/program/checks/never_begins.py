"""Something is set to begin, or to happen, only after the end.

What it sees
------------
Learning that starts, targets that are updated, validation or epochs that begin after the last step of the run; or a
count of steps that is zero.

Why it matters
--------------
The agent never learns, no evaluation is ever made, no best model kept; a phase of the training does nothing.

How it decides
--------------
One table of pairs: an argument, and the length of the run in the same unit, both followed to numbers through
constants, options and configuration files. Calls of a callback that come once for each of several environments count
for all of them.

When it is wrong
----------------
Never, where both numbers are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "never-begins"
CAUSE: str | None = None
DECIDES = True

BEGINS = {"learning_starts": "learning starts", "target_update_interval": "the target network is first updated"}


@dataclass(frozen=True)
class Late:
    """An argument of one call against the length that the same call is told."""

    call: str
    argument: str
    total: str
    what: str


LATE = (
    Late("Trainer", "check_val_every_n_epoch", "max_epochs", "validation is first made"),
    Late("fit", "initial_epoch", "epochs", "this phase begins"),
    Late("TrainingArguments", "eval_steps", "max_steps", "the first evaluation comes"),
    Late("TrainingArguments", "warmup_steps", "max_steps", "the rate arrives at its peak"),
    Late("train", "warmup_epochs", "epochs", "the rate arrives at its peak"),
    Late("warmup_cosine_decay_schedule", "warmup_steps", "decay_steps", "the rate arrives at its peak"),
)


def check(code: Code) -> Iterator[Finding]:
    yield from _agents(code)
    for late in LATE:
        for call in code.story.calls:
            if call.op != "call" or not call.name.endswith(late.call):
                continue
            at, total = number(call.kwargs.get(late.argument)), number(call.kwargs.get(late.total))
            if at is not None and total is not None and total > 0 and (at > total or (at == total and late.call == "fit")):
                yield code.seen(ID, f"{late.argument} is {at:g} and {late.total} {total:g}: {late.what} only after the end.", call.kwargs[late.argument], call)
                return


def _agents(code: Code) -> Iterator[Finding]:
    for call in code.story.named("learn"):
        total = number(call.arg("total_timesteps", 1))
        maker = call.args[0] if call.args else None
        if total is None or maker is None or maker.op != "call":
            continue
        for name, what in BEGINS.items():
            at = number(maker.kwargs.get(name))
            if at is not None and at >= total:
                yield code.seen(ID, f"With {name} = {at:g}, {what} after the end: the run has {total:g} steps.", maker.kwargs[name], maker, call)
                return
        steps = maker.kwargs.get("gradient_steps")
        if steps is not None and number(steps) == 0:
            yield code.seen(ID, "gradient_steps is 0: nothing is ever learned.", steps, maker)
            return
        yield from _callbacks(code, call, maker, total)


def _callbacks(code: Code, learn: Val, maker: Val, total: float) -> Iterator[Finding]:
    """`eval_freq` counts calls, each of which is a step of all environments."""
    many = _environments(maker)
    for callback in made_of(learn.kwargs.get("callback") or learn.arg("callback", 2)):
        every = callback.kwargs.get("eval_freq") if callback.op == "call" else None
        worth = number(every)
        if every is not None and worth is not None and worth * many > total:
            yield code.seen(ID, f"An evaluation is made every {worth * many:g} steps and the run has {total:g}: none is made.", every, callback)
            return


def _environments(maker: Val) -> float:
    found = [n for v in made_of(maker.arg("env", 1)) if v.op == "call" and (n := number(v.kwargs.get("n_envs"))) is not None]
    return found[0] if found else 1.0

