"""The losses of a policy say nothing about its quality.

## What happens
The data changes with the policy: each update is measured on new episodes. The policy loss hovers around zero, and
the value loss grows with the returns it has to predict.

## How it shows
Policy or value loss does not fall, or rises, while the return improves.

## What else looks like this
A critic that diverges: then the return falls too.

## When this is wrong
The return falls.

## Fix
Nothing to mend. Judge by the return, over several seeds.

## Trial
The return of the last checkpoint over a hundred episodes against that of the first.

## References
- OpenAI Spinning Up, Intro to Policy Optimization ("the loss function means nothing").
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import fell

ID = "normal-policy-loss"
AREA = "reinforcement"
NORMAL = True


def expect(case: Case) -> str:
    if not case.get("task").reinforcement or case.found("collapsed", "declined-after-peak", severity="ill"):
        return ""
    flat = [
        s.name
        for s in case.run.series.values()
        if s.quantity in ("policy_loss", "value_loss") and (drop := fell(s)) is not None and drop < 0.1
    ]
    if not flat:
        return ""
    return f"{flat[0]} that does not fall is expected here: a policy makes its own data, so only the return counts"
