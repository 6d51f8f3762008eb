"""The average of the weights does not follow the weights.

## What it sees
Elements of the averaged (EMA) weights that have the same bits in an early and a late checkpoint, while the weights
themselves lie far to one side of them in both.

## Why it matters
The average is what people evaluate and deploy. One that is never updated, or kept in half precision where an update of 1 - decay is rounded away,
holds old weights: the score stays near where it was then, and nothing else in the log shows it.

## How it decides
An average with decay d moves by 1 - d^n of its distance to the weights in n updates. Looked at are the elements whose weight lies, at both
times, on the same side of the average and so far from it that this move is at least two units of the last digit (of the type the
average has). A working average has moved nearly all of them. A twentieth of them (and a hundred at least) with the same bits: ill.
An average in half precision is judged only where it is the state of
training: an optimizer lies beside it, and the weights are stored with more digits. Without a decay in the settings 0.9999 is taken; an average that starts later than the last checkpoint is not judged.

## When it is wrong
An average in fp32 that is rounded on its way into a training state whose weights are not. Whatever is written between the two
checkpoints and then put back.

## References
- PyTorch, torch/optim/swa_utils.py; lucidrains/ema-pytorch.
- IEEE 754 half precision (11 significant bits); bfloat16 (8 significant bits).
- huggingface/diffusers, examples: the average is kept in fp32 for this reason.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place, Unknown
from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.weights import Weight, Weights

ID = "average-stands-still"
LIVE = False
DIGITS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}  # of the fraction, in bits
LONGEST = 0.9999  # of the decays that people use
FEWEST = 100
SHARE = 0.05  # a working average has at most 0.3 % (596 lab runs, LOG.md); one in bf16 at decay 0.999 10 to 30 %


def look(run: Run, weights: Weights, knobs: Knobs | None = None) -> Answer:
    averaged = weights.of("ema")
    if not averaged:
        return Unknown("no checkpoint holds an average of the weights beside the weights", ("two checkpoints with both",))
    updates = _updates(run, weights, knobs)
    if updates is None:
        return Unknown("the number of updates between the checkpoints is not known", ("steps per epoch",))
    if updates <= 0:
        return Clear("the average starts after the last checkpoint")
    decay = _number(knobs, "ema.decay")
    reach = 1 - (decay if decay is not None and 0 < decay < 1 else LONGEST) ** updates
    raw = {(w.name, w.last.shape): w for w in weights.of("raw")}
    pairs = [(w, own) for w in averaged if (own := raw.get((w.name, w.last.shape))) is not None and _telling(w, own)]
    if not pairs:
        return Unknown("the average lies there as a copy in half precision only", ("the state that training goes on from",))
    counts = [_stuck(ema, own, 2 / reach) for ema, own in pairs]
    due, stuck = (sum(c[i] for c in counts) for i in (0, 1))
    if due < FEWEST:
        return Unknown(f"only {due} elements of the average had to move between {weights.span}")
    if stuck < max(SHARE * due, FEWEST):
        return Clear(f"{due - stuck} of {due} elements of the average that had to move did")
    dtype = max({w.last.dtype for w in averaged}, key=lambda kind: sum(w.size for w in averaged if w.last.dtype == kind))
    text = (
        f"{stuck / due:.0%} of the elements of the average ({dtype}) that had to move between {weights.span} have the same bits, "
        f"while their weights lie at least {2 / reach:.2g} digits away"
    )
    return Finding(
        ID, text, severity="ill", grade="is", numbers={"share": stuck / due, "elements": float(due)},
        places=tuple(Place(c.path) for c in weights.files),
    )  # fmt: skip


def _telling(ema: Weight, own: Weight) -> bool:
    """In half precision a copy of a sound average may repeat where the weights only swing about it. What is kept so for training
    shows by the optimizer beside it and by weights that are stored with more digits."""
    return DIGITS[ema.last.dtype] >= 23 or (ema.resumable and DIGITS[own.last.dtype] > DIGITS[ema.last.dtype])


def _stuck(ema: Weight, own: Weight, digits: float) -> tuple[int, int]:
    """How many elements had to move by two digits at least, and how many of them did not move at all."""
    with np.errstate(all="ignore"):  # zeros, and weights that are not finite: those are never due
        at_first, at_last = own.first.values() - ema.first.values(), own.last.values() - ema.first.values()
        exponent = np.floor(np.log2(np.abs(ema.first.values())))
        digit = np.exp2(np.maximum(exponent, -60) - DIGITS[ema.last.dtype])
        due = (np.sign(at_first) == np.sign(at_last)) & (np.minimum(np.abs(at_first), np.abs(at_last)) > digits * digit)
    return int(due.sum()), int((due & (ema.first.bits == ema.last.bits)).sum())


def _updates(run: Run, weights: Weights, knobs: Knobs | None) -> float | None:
    """The updates of the average between the two checkpoints, at least."""
    per = run.fact("steps_per_epoch") if weights.clock == "epoch" else 1.0
    if not isinstance(per, (int, float)):
        return None
    since = max(weights.since * per, _number(knobs, "ema.start") or 0.0)
    every = max(_number(knobs, "ema.every") or 1.0, 1.0) * max(_number(knobs, "batch.accumulation") or 1.0, 1.0)
    return (weights.until * per - since) / every


def _number(knobs: Knobs | None, name: str) -> float | None:
    value = knobs[name].value if knobs is not None and name in knobs else None
    return float(value) if isinstance(value, (int, float)) else None


_DRAW = np.random.default_rng(0)
_FIRST, _LAST = _DRAW.standard_normal((2, 64, 64))
_LAST = _FIRST + 0.05 * _LAST
_OWN = {
    "net_g_100.safetensors": ({"w": 1.3 * _FIRST},),
    "net_g_900.safetensors": ({"w": 1.3 * _LAST},),
}
CASES = {
    "finding": {
        "config": "ema_decay: 0.999\n",
        "checkpoints": _OWN | {f"net_g_ema_{step}.safetensors": ({"w": _FIRST},) for step in (100, 900)},
        "expect": "ill",
    },
    "a copy in half precision": {
        "config": "ema_decay: 0.999\n",
        "checkpoints": _OWN | {f"net_g_ema_{step}.safetensors": ({"w": _FIRST}, "BF16") for step in (100, 900)},
        "expect": "unknown",
    },
    "clear": {
        "config": "ema_decay: 0.999\n",
        "checkpoints": _OWN
        | {"net_g_ema_100.safetensors": ({"w": _FIRST},), "net_g_ema_900.safetensors": ({"w": 1.16 * _LAST},)},
    },
    "unknown": {"checkpoints": _OWN},
}
