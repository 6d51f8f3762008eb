"""Gradients that are not finite are replaced by numbers, so that a sick run looks alive.

## What happens
The loop applies nan_to_num to the gradients (EDM: infinity becomes 1e5; EDM2: everything becomes 0). A NaN then never
stops the run or shows in the loss scale: it goes on with arbitrary or empty updates.

## How it shows
In code only. In the record: training stops improving or drifts, with warnings of overflow or NaN in the log, and no
NaN in the curves.

## What else looks like this
Any plateau or drift. This is why such a run shows no NaN, rarely why it is sick.

## When this is wrong
No gradient was ever replaced; then the call does nothing.

## Fix
Log the number of replaced elements; stop when it stays above zero.

## Trial
Count the replaced elements over a hundred steps.

## References
- NVlabs/edm, training/training_loop.py (nan_to_num on the gradients).
- Karras et al. 2024, Analyzing and Improving the Training Dynamics of Diffusion Models (arXiv:2312.02696;
  NVlabs/edm2).
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Place, Remedy

ID = "grads-sanitised"
AREA = "precision"
EXPLAINS = ("plateau", "slow-rise", "diverged", "hidden-nan", "stuck-from-start")
PRIOR = -3.0
TRIAL = "count the replaced elements over a hundred steps"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    code = case.audited("nan-to-num-grads")
    if not code:
        return Excluded("the code is not known to replace gradients")
    if case.found("not-finite", severity="ill"):
        return Excluded("the NaN is in the curves: it was not hidden")
    out = [Evidence(1.0, code[0].summary, "code", code[0].places)]
    said = [e for e in case.run.events if e.kind in ("nan", "overflow")]
    if said:
        text = f"the log speaks of values that are not finite: {said[0].text.strip()[:80]}"
        out.append(Evidence(3.0, text, "messages", (Place(said[0].file, said[0].line),)))
    if case.found("hidden-nan"):
        out.append(Evidence(3.0, case.found("hidden-nan")[0].summary, "messages", case.found("hidden-nan")[0].places))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Count and log the replaced gradients, and stop when they do not end.",
            (),
            "safe",
            "the count is zero on nearly every step of a sound run",
        ),
    )
