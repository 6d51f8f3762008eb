"""One setting lies far outside what people run, and the result is poor.

## What happens
Among thousands of public runs of this kind hardly any has a value like it: a slip of a power of ten, a unit that was
taken for another, an experiment that was left in.

## How it shows
One setting carries seven bits of surprise and more, and the run learned little or broke.

## What else looks like this
Every cause that names that setting explains more: a rate that is too high, a decay that is too strong.

## When this is wrong
The run did well: rare settings have their reasons. Small experiments and unusual data have settings of their own.

## Fix
Set it to the middle of practice.

## Trial
A short run with that one setting at the middle of practice, same seed.

## References
- The quantiles of public configurations that ship with this package (`wheeltapper practice`).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import like
from wheeltapper.settings.knobs import KNOBS
from wheeltapper.settings.practice import place_in_practice, spread_of
from wheeltapper.settings.practice.features import Kind, numbers_of

ID = "setting-beyond-practice"
AREA = "settings"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "diverged", "at-chance", "too-slow", "plateau", "collapsed", "not-finite", "stuck-from-start",
    "declined-after-peak", "at-prior",
)  # fmt: skip
SHOWS = {"beyond-practice": "high", "beyond-range": "high"}
TRIAL = "a short run with that one setting at the middle of practice, same seed"
MIDDLE = 0.5


def remedies(case: Case) -> tuple[Remedy, ...]:
    edits = () if case.knobs is None else _to_the_middle(case)
    text = f"Set {edits[0].knob} to {edits[0].new:g}." if edits else "Set the rare setting to the middle of practice."
    return (Remedy(text, edits, "try", "the run does better from its first evaluations on"),)


def _to_the_middle(case: Case) -> tuple[Edit, ...]:
    """The rarest setting, to what half of the public runs with this optimizer do not exceed."""
    name = case.knob("optimizer.name")
    optimizer = name if isinstance(name, str) else None
    ranks = [
        (rank.bits, knob, value)
        for knob, value in numbers_of(case.knobs or {}).items()
        if knob in KNOBS and (rank := place_in_practice(knob, value, optimizer=optimizer)) is not None
    ]
    if not ranks:
        return ()
    _, knob, value = max(ranks)
    spread = spread_of(knob, Kind(optimizer))
    middle = value if spread is None else like(case.knob(knob), spread.quantile(MIDDLE))
    return () if middle == value else (Edit(knob, case.knob(knob), middle, "the middle of practice"),)
