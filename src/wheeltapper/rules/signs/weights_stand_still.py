"""Weights are the same in the first and in the last checkpoint.

## What it sees
Parameters whose numbers have the same bits in an early and a late checkpoint of the run, and that still have the law by
which they were drawn at first.

## Why it matters
A layer that training never touches is a random layer: the rest has to learn around it. The loss falls all the same, only
less, and no curve shows why. Parameters outside the optimizer, `requires_grad=False` left over from another stage, a
branch that the loss does not reach, or a saved copy that is not the trained model do this.

## How it decides
The first elements (4,096 at most) of each parameter are compared, bit by bit: a step of any size changes some of them. Parameters frozen on
purpose are pretrained ones: those do not count. Counted are matrices that still follow the law of their initialisation (uniform within
1/sqrt(fan in) and its kin, normal with the usual deviations; second and fourth moment within five standard errors).
All parameters the same: ill, or a watch where a score moves between the two checkpoints all the same: then the saved weights are
not those that were trained, or part of them lies elsewhere. Where the rate is zero meanwhile, that is all there is to say. Untouched random matrices that hold a tenth of all parameters: ill; fewer: a watch, for unused heads
and random features are kept on purpose. Statistics of batch norm are no parameters.

## When it is wrong
A random network that is part of the method (random network distillation, reservoirs, lottery tickets); two checkpoints that are
copies of one; a stage that trains another part.

## References
- PyTorch, torch/nn/modules/linear.py and conv.py (`reset_parameters`), torch/nn/init.py.
- Glorot and Bengio 2010; He et al. 2015 (arXiv:1502.01852).
- Burda et al. 2018, Exploration by Random Network Distillation (arXiv:1810.12894).
- discuss.pytorch.org threads on parameters that are not registered or not handed to the optimizer.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place, Severity
from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Run, Series
from wheeltapper.study.learned import Learned
from wheeltapper.study.weights import Weight, Weights, fresh

ID = "weights-stand-still"
LIVE = False
SHARE = 0.1  # of all parameters; below it lie the heads and random features that people keep unused


def look(run: Run, weights: Weights, learned: Learned, lr: Series | None = None) -> Answer:
    parameters = weights.of("raw")
    still = [w for w in parameters if w.same == 1.0]
    if not parameters or not still:
        return Clear(f"all {len(parameters)} parameters moved between {weights.span}")
    everything = sum(w.size for w in parameters)
    if len(still) == len(parameters) > 1:
        text = f"not one of {len(parameters)} parameters moved between {weights.span}"
        if lr is not None and lr.clock == weights.clock and not np.any(_between(lr, weights) > 0):
            return Clear(f"{text}: the rate is zero between them")
        series = run.series.get(learned.series or "")
        if series is not None and _moves(_between(series, weights)):
            text += f", though {series.name} moves meanwhile: what was saved is not what was trained"
            return _told(weights, text, "watch", still, 1.0)
        return _told(weights, text, "ill", still, 1.0)
    random = [w for w in still if fresh(w)]
    part = sum(w.size for w in random) / everything
    if not random:
        return Clear(f"{len(still)} of {len(parameters)} parameters are held between {weights.span}, none of them as it was drawn at random")
    text = (
        f"{len(random)} matrices ({part:.1%} of all parameters: {_names(random)}) are as they were drawn at random: "
        f"the same bits at {weights.clock} {weights.since:,.10g} and {weights.until:,.10g}"
    )
    return _told(weights, text, "ill" if part >= SHARE else "watch", random, part)


def _between(series: Series, weights: Weights) -> Floats:
    at = series.on("epoch" if weights.clock == "epoch" else "step")
    return series.values[series.finite & (at > weights.since) & (at <= weights.until)] if at is not None else series.values[:0]


def _moves(x: Floats) -> bool:
    """A score of weights that stand still repeats, but for noise: its halves do not differ by a fiftieth."""
    return len(x) >= 4 and abs(float(np.median(x[: len(x) // 2]) - np.median(x[len(x) // 2 :]))) > 0.02 * abs(float(np.median(x)))


def _names(found: list[Weight]) -> str:
    return ", ".join(w.name for w in found[:2]) + (", ..." if len(found) > 2 else "")


def _told(weights: Weights, text: str, severity: Severity, found: list[Weight], part: float) -> Finding:
    return Finding(
        ID, text, severity=severity, grade="is", numbers={"share": part, "tensors": float(len(found))},
        places=tuple(Place(c.path) for c in weights.files),
    )  # fmt: skip


_DRAW = np.random.default_rng(0)
_BODY = _DRAW.uniform(-0.125, 0.125, (64, 64))
_HEAD = _DRAW.uniform(-0.125, 0.125, (10, 64))
_FEATURES = np.sign(_BODY) * np.abs(_BODY) ** 3 * 40  # as training leaves them: heavy tails
CASES = {
    "finding": {
        "checkpoints": {
            "net_100.safetensors": ({"body.weight": _BODY, "head.weight": _HEAD},),
            "net_900.safetensors": ({"body.weight": _BODY, "head.weight": 1.5 * _HEAD},),
        },
        "expect": "ill",
    },
    "nothing moved": {
        "checkpoints": {
            f"net_{step}.safetensors": ({"body.weight": _FEATURES, "head.weight": 2 * _HEAD},) for step in (100, 900)
        },
        "expect": "ill",
    },
    "copies of one file": {
        "train/loss": [2.0, 1.9, 1.6, 1.3, 1.1, 1.0, 0.9, 0.8],
        "checkpoints": {f"net_{step}.safetensors": ({"body.weight": _FEATURES, "head.weight": _HEAD},) for step in (1, 7)},
        "expect": "watch",
    },
    "a rate of zero": {
        "train/loss": [2.0, 1.5, 1.2, *([1.1] * 7)],
        "lr": [0.1, 0.05, *([0.0] * 8)],
        "checkpoints": {f"net_{step}.safetensors": ({"body.weight": _FEATURES, "head.weight": _HEAD},) for step in (2, 9)},
        "expect": "clear",
    },
    "an unused head": {
        "checkpoints": {
            f"net_{step}.safetensors": ({"body.weight": _FEATURES * step, "aux.weight": _HEAD[:6]},)
            for step in (100, 900)
        },
        "expect": "watch",
    },
    "pretrained and frozen": {
        "checkpoints": {
            f"net_{step}.safetensors": ({"body.weight": _FEATURES, "head.weight": _HEAD * step},) for step in (100, 900)
        },
        "expect": "clear",
    },
    "clear": {
        "checkpoints": {
            f"net_{step}.safetensors": ({"body.weight": _BODY * step, "head.weight": _HEAD * step},)
            for step in (100, 900)
        },
    },
    "unknown": {"checkpoints": {"net_100.safetensors": ({"body.weight": _BODY},)}},
}
