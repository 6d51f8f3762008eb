"""A large part of the time goes into evaluation.

## What happens
A whole validation set every few dozen steps costs more than the training between. Nothing is wrong with the model; the
run takes several times as long as it has to.

## How it shows
Many evaluations for few steps, a pace that is low from the start, and scores that hardly differ from one evaluation to
the next.

## What else looks like this
A slow loader or a slow device: they slow the steps themselves.

## When this is wrong
Evaluations are cheap (a few batches), or the run is watched on purpose.

## Fix
Evaluate ten to fifty times in a run, or on a fixed part of the set.

## Trial
Time one evaluation and the steps between two: their ratio is what the run loses.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook (google-research/tuning_playbook):
  choosing how often to evaluate.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import like, number

ID = "eval-too-often"
AREA = "system"
ABOUT = "efficiency"
EXPLAINS = ("periodic",)
SHOWS = {"pace-change": "in", "val-jumps": "in", "throughput-fall": "clear"}
FORBIDS = {"throughput-fall": "seen"}
TRIAL = "time one evaluation and the steps between two"
RARER = 10


def remedies(case: Case) -> tuple[Remedy, ...]:
    every = case.knob("eval.every")
    now = number(every)
    edits = (Edit("eval.every", every, like(every, RARER * now), "a tenth of the evaluations"),) if now else ()
    return (Remedy("Evaluate a tenth as often.", edits, "safe", "the run takes less time and the curves stay"),)
