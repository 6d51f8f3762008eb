"""The weights are kept in bf16 and are too coarse for the updates.

## What happens
bf16 has eight significant bits: an update smaller than 1/512 of a weight is surely rounded away. With Adam an update
is at most the rate, so at 1e-4 every weight above 0.05 is frozen, and at 1e-5 almost every weight is.

## How it shows
Weights are stored in bf16 without an fp32 copy, the rate is small, and training stops moving as the rate decays.

## What else looks like this
A rate that is too low, a large epsilon, frozen parameters. bf16 autocast is not this: its weights are fp32.

## When this is wrong
The optimizer keeps fp32 master weights, rounds stochastically (or with Kahan summation), or only an adapter is
trained whose weights are near zero.

## Fix
Weights in fp32 with bf16 autocast, or stochastic rounding.

## Trial
Count the weights whose stored value changes in one step: nearly all must.

## References
- bf16 has 8 significant bits: an update below .
- w.
- /512 is surely lost (executed with torch 2.13: 1 + 0.003 stays 1.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import number
from wheeltapper.finding import Evidence, Remedy

ID = "bf16-weights-frozen"
AREA = "precision"
EXPLAINS = ("stuck-from-start", "too-slow", "plateau", "at-chance", "at-prior", "worse-than-trivial")
PRIOR = -3.0
TRIAL = "count the weights whose stored value changes in one step"

PURE = re.compile(r"bf16-true|pure_bf16|bf16_full|full_bf16|bfloat16_full", re.IGNORECASE)
BF16 = re.compile(r"bf(loat)?16$", re.IGNORECASE)
# A usual weight is about 1/sqrt(fan-in): 0.03 for a width of 1024. It freezes for rates below 0.03/512.
TYPICAL = 0.03


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.found("diverged", "not-finite", "collapsed", severity="ill"):
        return Excluded("the run moved far and broke: frozen weights do not")
    if case.knob("model.lora_rank"):
        return Excluded("an adapter is trained; its weights are near zero and move")
    where = _stored_in_bf16(case)
    if not where:
        return Excluded("nothing shows that the weights themselves are kept in bf16")
    lr = case.get("lr")
    rate = float(np.nanmax(lr.values)) if lr is not None else number(case.knob("optimizer.lr"))
    if rate is None or rate <= 0:
        return [Evidence(1.0, where, "weights")]
    frozen = 512 * rate
    out = [Evidence(1.5, where, "weights")]
    if frozen < TYPICAL:
        out.append(
            Evidence(
                3.5, f"at a rate of {rate:.2g} an Adam update leaves every weight above {frozen:.2g} as it was", "size"
            )
        )
    elif frozen > 10 * TYPICAL:
        return Excluded(f"at a rate of {rate:.2g} only weights above {frozen:.2g} could freeze")
    return out


def _stored_in_bf16(case: Case) -> str:
    for checkpoint in case.run.checkpoints:
        sizes: dict[bool, int] = {True: 0, False: 0}
        for tensor in checkpoint.tensors:
            sizes[bool(BF16.search(tensor.dtype))] += tensor.nbytes
        if sizes[True] > 0 and sizes[False] < 0.1 * sizes[True]:
            return f"{checkpoint.path.rsplit('/', 1)[-1]} holds its weights in bf16, with no fp32 copy"
    for tree in case.run.configs:
        for leaf in tree.leaves:
            if PURE.search(str(leaf.value)) or (PURE.search(leaf.dotted) and leaf.value in (True, "true", 1)):
                return f"{leaf.dotted} = {leaf.value} keeps the weights themselves in bf16"
    return ""


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Keep the weights in fp32 and use bf16 autocast, or round stochastically.",
            (),
            "try",
            "nearly all weights change in one step",
        ),
    )
