"""The posterior collapsed: the latent code carries nothing.

## What happens
A strong decoder explains the data without the code, and the KL term pays for setting the code to the prior. Once
it is there, no gradient brings it back.

## How it shows
The KL term sinks to zero and stays, while the reconstruction stays at the level of a model without input.

## What else looks like this
KL warm-up (the weight is still small, KL is large), a term that is logged with too few digits, a KL between old
and new policy (reinforcement), which is small by design.

## When this is wrong
KL is well above zero, or the reconstruction goes on improving.

## Fix
Raise the weight of KL slowly from zero, free bits, a weaker decoder.

## Trial
Decode codes of other items: an unchanged reconstruction loss decides.

## References
- Bowman et al. 2016, Generating Sentences from a Continuous Space (arXiv:1511.06349).
- Kingma et al. 2016, Improving Variational Inference with Inverse Autoregressive Flow (arXiv:1606.04934),
  free bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "kl-collapse"
AREA = "objective"
EXPLAINS = ("plateau", "loss-exactly-zero", "constant-metric")
PRIOR = -2.0
TRIAL = "decode codes of other items: an unchanged reconstruction loss decides"

GONE = 1e-3  # nats in all: less than a thousandth of a nat tells an item from no other
SUNK = 0.01  # of its highest level


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    task = case.get("task")
    if task is not None and task.reinforcement:
        return Excluded("the KL of a policy update is small by design")
    terms = [s for s in case.run.series.values() if _is_kl(s) and int(s.finite.sum()) >= 10]
    if not terms:
        return Excluded("no KL term is logged")
    kl = max(terms, key=len)
    x = kl.values[kl.finite]
    top, last = float(np.max(x)), float(np.median(x[-max(3, len(x) // 10) :]))
    if last > max(GONE, SUNK * top):
        return Excluded(f"{kl.name} ends at {last:.3g}: the code is used")
    out = [Evidence(4.0, f"{kl.name} sank from {top:.3g} to {last:.3g}", "kl", (kl.place(len(kl) - 1),))]
    others = [s for s in case.get("loss_parts") or () if re.search(r"rec|nll|ce|mse|bce|pix", s.part or "")]
    if others:
        y = others[0].values[others[0].finite]
        half, end = float(np.median(y[len(y) // 3 : len(y) // 2 + 1])), float(np.median(y[-max(1, len(y) // 10) :]))
        if end < 0.9 * half:
            out.append(Evidence(-3.0, f"{others[0].name} still improves", "reconstruction"))
        else:
            out.append(Evidence(1.0, f"{others[0].name} makes no progress", "reconstruction"))
    return out


def _is_kl(series: Series) -> bool:
    if series.split not in ("train", None):
        return False
    named = re.search(r"(^|_)(kl|kld|kl_div)(_|$)", series.part or "")
    return series.quantity == "kl" or (series.quantity == "loss" and bool(named))


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Start afresh with a weight of KL that rises from zero, or with free bits.", (), "try",
               "KL stays above zero"),
    )  # fmt: skip
