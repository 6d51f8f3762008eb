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

import re
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
    "barely-learned",
    "at-chance",
    "val-left-behind",
)
PRIOR = -2.5
TRIAL = "set the option to an absurd value for a few steps: if nothing changes, it is not wired"


# What a setting acts on, and the signs that its absence can bring about.
ACTS_ON = {
    ("clip",): ("diverged", "not-finite", "spiked", "grad-norm-growth", "slow-rise"),
    ("lr", "learning_rate", "sched", "warmup", "warm_up"): (
        "diverged", "not-finite", "spiked", "plateau", "lr-off-plan", "too-slow", "oscillating", "declined-after-peak",
        "barely-learned", "at-chance",
    ),
    ("accum",): ("diverged", "oscillating", "spiked", "plateau", "lr-off-plan"),
    ("ema", "average"): ("oscillating", "declined-after-peak", "val-left-behind"),
    ("momentum", "decay"): ("oscillating", "diverged", "declined-after-peak"),
    ("resume",): ("restart-jump",),
}  # fmt: skip


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = case.audited("option-never-used", "config-key-never-read", "scheduler-never-stepped", "resize-not-applied")
    if not found:
        return Excluded("no setting is known to be unwired")
    asked = [f for f in case.audited("option-never-used", "resize-not-applied") if "asked" in f.numbers and f.grade == "is"]
    if asked:
        return [Evidence(7.0, f.summary, "proof", f.places) for f in asked]
    ill = {f.id for f in case.findings if f.severity == "ill"}
    training = [
        f
        for f in found
        for words, signs in ACTS_ON.items()
        if ill & set(signs) and any(re.search(rf"(^|[^a-z]){word}", f.summary.lower()) for word in words)
    ]
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
