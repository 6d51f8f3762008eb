"""Terms of the loss pull against each other, and one of them loses.

## What happens
The weighted sum falls because the large or easy terms fall; a smaller one is given up. With constraints (boundary
conditions, regularised targets) the result breaks the constraint while the curve looks fine.

## How it shows
One term rises or stays while the total falls and flattens; the terms that are left make up nearly all of the total.

## What else looks like this
Terms that rise by design (KL, adversarial); a term at its own floor.

## When this is wrong
The term is at its floor and the task is met.

## Fix
Weigh the terms by their gradients, not their values; normalise them; train the lost one first.

## Trial
Fork with the lost term's weight at ten times: it must fall, and the others must show what that costs.

## References
- Yu et al. 2020, Gradient Surgery for Multi-Task Learning (arXiv:2001.06782).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "loss-terms-conflict"
AREA = "objective"
EXPLAINS = ("plateau", "part-rises")
PRIOR = -1.0
TRIAL = "fork with the weight of the term that does not fall at ten times"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    parts: tuple[Series, ...] | None = case.get("loss_parts")
    if parts is None or len(parts) < 2:
        return Excluded("the loss has one term, as far as it is logged")
    out = []
    rising = case.found("part-rises")
    if rising:
        out.append(Evidence(2.0, rising[0].summary, "rises", rising[0].places))
    stuck = [p for p in parts if _stuck(p)]
    total = sum(abs(float(np.median(p.values[p.finite][-20:]))) for p in parts if p.finite.any())
    held = sum(abs(float(np.median(p.values[p.finite][-20:]))) for p in stuck)
    if stuck and total > 0 and held > 0.8 * total:
        names = ", ".join(p.part or p.name for p in stuck[:3])
        out.append(
            Evidence(
                2.5, f"{held / total:.0%} of the loss that is left sits in terms that do not fall ({names})", "left"
            )
        )
    return out or [Evidence(-1.0, "every term of the loss falls", "left")]


def _stuck(part: Series) -> bool:
    """The second half of the record brought less than a tenth."""
    x = part.values[part.finite]
    if len(x) < 20:
        return False
    middle, end = float(np.median(x[len(x) // 4 : len(x) // 2])), float(np.median(x[-len(x) // 8 :]))
    return end > 0.9 * middle


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Log every term of the loss, and lower the weight of the one that the others fall against.",
            (),
            "try",
            "no term rises while the total falls",
        ),
    )
