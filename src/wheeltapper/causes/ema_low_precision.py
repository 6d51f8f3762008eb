"""The average of the weights is kept in half precision and does not move.

## What happens
Each update adds (1 - decay) of the difference. In bf16 anything below 1/512 of the stored value is rounded away (in
fp16 1/4096), so with a decay of 0.9999 the average stays at its first copy for ever.

## How it shows
The averaged model scores like the untrained one, at any length, while the raw model learns; its tensors are bf16 or fp16.

## What else looks like this
A horizon that is too long (it does move, slowly), an average that is never updated, stale buffers.

## When this is wrong
The average is stored in half precision but kept in fp32 while training.

## Fix
Keep the average in fp32.

## Trial
Compare the averaged weights of two checkpoints: they must differ.

## References
- Executed with torch 2.13: with decay 0.9999, 20,000 steps from 1 to 2 leave bf16 and fp16 at 1.0; fp32
  reaches 1.8647.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Place, Remedy

ID = "ema-low-precision"
AREA = "averaging"
EXPLAINS = ("at-chance", "never-left-zero", "constant-metric", "ema-raw-gap", "below-baseline", "val-left-behind", "average-stands-still")
PRIOR = -3.0
TRIAL = "compare the averaged weights of two checkpoints: they must differ"

# Half of the last bit, relative to the stored value: the smallest share that can still be added.
LEAST = {"bf16": 1 / 512, "fp16": 1 / 4096}
EMA = re.compile(r"(^|[_.\-/])ema($|[_.\-/\d])|averaged?_model|shadow_params", re.IGNORECASE)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if told := proofs(case, "ema-low-precision"):
        return told
    decay = case.knob("ema.decay")
    if case.knobs is not None and not decay and not case.knob("ema.enabled"):
        return Excluded("no average of the weights is configured")
    kept = _kept_in(case)
    if kept is None:
        return Excluded("nothing shows in what precision the average is kept")
    dtype, text, places = kept
    if dtype not in LEAST:
        return Excluded("the average is kept in fp32")
    if not isinstance(decay, (int, float)) or not 0 < decay < 1:
        return [Evidence(2.0, text, "precision", places)]
    if 1 - decay > 2 * LEAST[dtype]:
        return Excluded(f"a decay of {decay:g} moves a {dtype} average")
    why = f"{text}: updates of {1 - decay:.2g} are below its resolution of {LEAST[dtype]:.2g}"
    return [Evidence(7.0, why, "proof", places)]


def _kept_in(case: Case) -> tuple[str, str, tuple[Place, ...]] | None:
    for tree in case.run.configs:
        for leaf in tree.leaves:
            name = leaf.dotted.lower()
            if "ema" in name and ("dtype" in name or "precision" in name):
                return _short(str(leaf.value)), f"{leaf.dotted} is {leaf.value}", (Place(leaf.file, leaf.line),)
    # What training goes on from tells; a copy for others may have been turned to any type.
    for checkpoint in sorted(case.run.checkpoints, key=lambda c: "optimizer" not in c.kinds):
        sizes: dict[str, int] = {}
        for tensor in checkpoint.tensors:
            if EMA.search(tensor.name) or checkpoint.kinds == ("ema",):
                kind = _short(tensor.dtype)
                sizes[kind] = sizes.get(kind, 0) + tensor.nbytes
        if sizes:
            most = max(sizes, key=lambda kind: sizes[kind])
            # Half precision on disk may only be how it was saved: an optimizer beside it says it is the state.
            if most == "fp32" or "optimizer" in checkpoint.kinds:
                return most, f"the average in {checkpoint.path.rsplit('/', 1)[-1]} is {most}", (Place(checkpoint.path),)
    return None


def _short(dtype: str) -> str:
    text = dtype.lower()
    if "bf16" in text or "bfloat16" in text:
        return "bf16"
    return "fp16" if "16" in text or "half" in text else "fp32"


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Keep the average in fp32.", (), "safe", "the averaged weights change from checkpoint to checkpoint"),
    )
