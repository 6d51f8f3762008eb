"""A setting is declared and shown, and reaches nothing that acts.

## What happens
It is parsed, logged, written into the config dump, and no code reads it: warm-up, schedule, clipping, resume.

## How it shows
The run behaves as if it were not set; changing it changes nothing.

## What else looks like this
A setting that acts through a path the audit cannot follow (then it is not reported).

## When this is wrong
The option is used dynamically (getattr, exec, a plugin).

## Fix
Wire it, or delete it.

## Trial
Set it to an absurd value: nothing changes.

## References
- annahayoon/DomainAdaptive_PoissonDiffusion, the script of training_issues_analysis.md: five options
  parsed and never used.
- PyTorch, torch/nn/utils/clip_grad.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "option-not-wired"
AREA = "loop"
EXPLAINS = (
    "diverged",
    "not-finite",
    "spiked",
    "declined-after-peak",
    "plateau",
    "lr-off-plan",
    "too-slow",
    "oscillating",
    "slow-rise",
    "grad-norm-growth",
)
PRIOR = -2.5
TRIAL = "set the option to an absurd value for a few steps: if nothing changes, it is not wired"


ACTS_ON_TRAINING = ("lr", "sched", "warmup", "clip", "accum", "resume", "ema", "momentum", "decay", "amp", "precision")


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = case.audited("option-never-used", "config-key-never-read", "scheduler-never-stepped")
    if not found:
        return Excluded("no setting is known to be unwired")
    training = [f for f in found if any(word in f.summary.lower() for word in ACTS_ON_TRAINING)]
    if not training:
        return [
            Evidence(
                -1.0,
                f"{len(found)} settings are unwired, none of them acts on the optimisation",
                "code",
                found[0].places,
            )
        ]
    return [
        Evidence(
            3.0,
            f"{len(training)} settings of the optimisation are declared and never used: {training[0].summary}",
            "code",
            training[0].places,
        )
    ]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Wire the settings that the script only prints, or delete them.",
            (),
            "safe",
            "the effective schedule matches the declared one",
        ),
    )
