"""The policy collapsed: it lost what it had learned and did not find it again.

## What happens
One update too large, or a critic that drifted, moves the policy out of the region where its data was
useful; new data is bad, and the next updates make it worse.

## How it shows
The episode return falls from its best level back to its start and stays; or it never rises, and the policy's entropy
or its updates are zero: it no longer tries anything.

## What else looks like this
A harder stage of the environment, an exploration schedule, a few unlucky episodes.

## When this is wrong
Returns wander; only a lasting fall of most of the gain counts.

## Fix
Keep the checkpoint of the best stretch; smaller updates (learning rate, clip range), larger batches, a
limit on the divergence between old and new policy.

## Trial
Fork before the fall with half the learning rate, five seeds of each: the control must fall again.

## References
- OpenAI Spinning Up, Intro to Policy Optimization ("the loss function means nothing").
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "policy-collapse"
AREA = "reinforcement"
EXPLAINS = ("collapsed", "return-never-rose")
PRIOR = -1.0
GONE = 0.01  # of the entropy at the start: of two actions one is then taken 999 times in a thousand
TRIAL = "fork before the fall with half the learning rate, five seeds each: the control must fall again"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    task = case.get("task")
    returns = [f for f in case.found("collapsed") if (f.series or "").startswith(("return", "success"))]
    stuck = case.found("return-never-rose", severity="ill")
    if task is not None and task.reinforcement and stuck and (still := _settled(case)):
        return [Evidence(4.0, still, "policy", stuck[0].places)]
    if task is None or not task.reinforcement or not returns:
        return Excluded("no episode return collapsed")
    return [Evidence(4.0, returns[0].summary, "return", returns[0].places)]


def _settled(case: Case) -> str:
    """A policy that has stopped exploring: its entropy is gone, or its loss and its moves are exactly zero."""
    for series in case.run.series.values():
        x = series.values[series.finite]
        if series.quantity not in ("entropy", "policy_loss", "kl") or len(x) < 10:
            continue
        late, began = np.abs(x[-max(5, len(x) // 5) :]), float(np.abs(x[:3]).max())
        if began == 0.0:
            continue  # never computed
        end = float(np.median(late))
        if end == 0.0 or (series.quantity == "entropy" and end < GONE * began):
            return f"{series.raw} is {end:.2g} at the end: the policy no longer tries anything"
    return ""


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Keep the checkpoint of the best stretch; halve the learning rate or the clip range.",
            (),
            "try",
            "the return does not fall after its best stretch",
        ),
    )
