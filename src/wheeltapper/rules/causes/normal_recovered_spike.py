"""A spike of the loss that recovers is normal.

## What happens
A hard batch or a step that was too long lifts the loss for a few rows; the optimizer finds its way back.

## How it shows
The loss leaves its band and returns to it.

## What else looks like this
A spike that stays, or spikes that come ever more often.

## When this is wrong
The level after the spike is higher than before.

## Fix
Nothing to mend.

## Trial
None needed.

## References
- BigScience 176B chronicles (bigscience-workshop/bigscience, train/tr11-176B-ml).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- Cohen et al. 2021, Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability
  (arXiv:2103.00065).
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case

ID = "normal-recovered-spike"
AREA = "learning rate"
NORMAL = True


def expect(case: Case) -> str:
    if any(f.severity == "ill" for f in case.findings):
        return ""  # it may have been the first of what made the run ill
    spikes = [f for f in case.found("spiked", severity="note") if f.end is not None and not f.numbers.get("stays", 1.0)]
    return f"{spikes[0].summary}: sound runs have such spikes too" if spikes else ""
