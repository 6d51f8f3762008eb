"""The schedule is laid out for another length than the run has.

What it sees
------------
A schedule of the rate that decays to its end over a number of steps which is a fraction, or a multiple, of the steps
that the run makes.

Why it matters
--------------
The rate is at its end when most of the run is still to come, or the run ends near the peak.

How it decides
--------------
The length of the schedule and the steps of the run are written as products of numbers and lengths (`epochs *
len(data) // batch`). Where the same lengths cancel, their ratio is a number; it must lie near one. The run is that of
the loop the schedule is stepped in, of the arguments of a trainer, or of `fit(epochs=...)`; a step only where
gradients are synchronised counts once for all accumulated batches.

When it is wrong
----------------
A schedule that is meant to be over early, with a constant rate afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lengths import Product, product, run_of_loops, steps_per_epoch
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, choices, made_of, number
from wheeltapper.program.reading import Code

ID = "schedule-is-not-the-run"
CAUSE: str | None = "schedule-too-short"
DECIDES = True

# The argument that is the whole length, by name and place, counted in steps of the schedule.
LENGTHS = {
    "get_linear_schedule_with_warmup": ("num_training_steps", 2), "get_cosine_schedule_with_warmup": ("num_training_steps", 2),
    "get_polynomial_decay_schedule_with_warmup": ("num_training_steps", 2), "warmup_cosine_decay_schedule": ("decay_steps", 3),
    "cosine_decay_schedule": ("decay_steps", 1), "linear_onecycle_schedule": ("transition_steps", 0), "cosine_onecycle_schedule": ("transition_steps", 0),
    "CosineDecay": ("decay_steps", 1), "PolynomialDecay": ("decay_steps", 1), "OneCycleLR": ("total_steps", 2),
    "CosineAnnealingLR": ("T_max", 1),
}  # fmt: skip
SHORT, LONG = 0.6, 1.7


def CAUSE_OF(finding: Finding) -> str:  # noqa: N802
    """Over too early, or never over."""
    return "schedule-too-short" if finding.numbers.get("share", 0.0) < 1 else "schedule-never-decays"


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if call.op != "call" or call.name not in LENGTHS or call.origin.startswith("?"):
            continue
        length = call.arg(*LENGTHS[call.name])
        risen = product(call.arg("num_warmup_steps", 1)).over(product(length)) if call.name.startswith("get_") and length is not None else None
        if risen is not None and risen >= 1:
            yield code.seen(ID, f"The warm-up lasts {risen:.3g} times the whole schedule: the rate never reaches its peak.", call)
            return
        if length is None:
            continue
        found = _ratio(story, call, length)
        short, long = (SHORT / 3, float("inf")) if call.name == "CosineAnnealingLR" else (SHORT, LONG)
        if found is not None and not short <= found <= long:
            told = "is over after {:.0%} of the run" if found < 1 else "is laid out for {:.1f} times the run"
            yield code.seen(ID, f"{call.name} {told.format(found)}.", length, call, numbers={"share": found})
            return


def _ratio(story: Story, schedule: Val, length: Val) -> float | None:
    mine = product(length)
    for run in _runs(story, schedule):
        ratio = mine.over(run)
        if ratio is not None:
            return ratio
    return _in_epochs(story, schedule, length)


def _runs(story: Story, schedule: Val) -> Iterator[Product]:
    for trainer in story.calls:
        given = trainer.kwargs.get("optimizers")
        if given is not None and any(v is schedule for v in made_of(given)):
            args = trainer.kwargs.get("args")
            if args is not None and (steps := args.kwargs.get("max_steps")) is not None:
                yield product(steps)
    around = [c for c in story.named("SequentialLR") if schedule.name == "CosineAnnealingLR" and any(v is schedule for v in made_of(*c.args[1:2]))]
    for step in story.named("step"):
        trains = schedule.name != "CosineAnnealingLR" or any(b.loops and b.loops[0] in step.loops for b, _ in story.backwards)
        if step.loops and trains and step.args and any(c is schedule or c in around for c in choices(step.args[0])):
            yield run_of_loops(story, step)
            return
    if schedule.origin.startswith("optax"):
        for backward, _ in story.backwards:
            yield run_of_loops(story, backward)
            return
    if "keras" in schedule.origin:
        for fit in story.named("fit"):
            yield product(fit.kwargs.get("epochs")).times(steps_per_epoch(fit))


def _in_epochs(story: Story, schedule: Val, length: Val) -> float | None:
    """A schedule that is stepped at every batch, with no more steps than the run has epochs."""
    steps, epochs = number(length), [e for f in story.named("fit") if (e := number(f.kwargs.get("epochs"))) is not None]
    if "keras" in schedule.origin and steps is not None and epochs and 1 < steps <= max(epochs):
        return min(0.5, steps / max(epochs) / 100)
    return None
