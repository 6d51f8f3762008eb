"""The network is dead: no gradient flows, and every input gives the same output.

## What happens
Units that are zero on every input pass nothing on and get no gradient. One too large step or a bad start can
push a whole layer there, and nothing brings it back.

## How it shows
The gradient norm sinks to zero at a loss that is no floor; the score stays exactly constant.

## What else looks like this
A task that is solved (gradient and loss are both near zero), an infinitesimal learning rate (gradients stay
large), frozen weights.

## When this is wrong
The gradient norm is of its usual size: a dead network has none. Units that are zero on one batch are
sparse, not dead.

## Fix
A lower rate with warm-up from a fresh start; a smaller initialisation, an activation that leaks, normalisation.

## Trial
Pass ten thousand varied inputs through the last checkpoint and count units that are never above zero.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Stanford CS231n notes, neural-networks-3 (cs231n.github.io).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import ends
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "dead-network"
AREA = "model"
EXPLAINS = ("barely-learned", "at-chance", "at-prior", "stuck-from-start", "constant-metric", "plateau", "collapsed")
PRIOR = -4.0
TRIAL = "pass ten thousand varied inputs through the last checkpoint: count units that are never above zero"

GONE = 1e-6  # of the norm at the start: twenty halvings, far below what convergence of a noisy loss leaves


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    norm: Series | None = case.get("grad_norm")
    train: Series | None = case.get("train_loss")
    if norm is None:
        return []
    x = norm.values[norm.finite]
    if len(x) < 10:
        return []
    first = float(np.median(x[: max(3, len(x) // 10)]))
    last = float(np.median(x[-max(3, len(x) // 10) :]))
    if first <= 0:
        return []
    if last > GONE * first:
        return Excluded(f"the gradient norm is alive: {last:.3g} at the end, {first:.3g} at the start")
    levels = ends(train) if train is not None else None
    if levels is not None and abs(levels[1]) < 0.01 * abs(levels[0]):
        return Excluded("the loss is near zero as well: solved, not dead")
    out = [Evidence(6.0, f"the gradient norm sank from {first:.3g} to {last:.3g} while the loss is no floor", "norm",
                    (norm.place(len(norm) - 1),))]  # fmt: skip
    if case.found("constant-metric"):
        out.append(Evidence(1.0, case.found("constant-metric")[0].summary, "constant"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Start afresh with a warm-up; a dead layer does not come back.", (), "try",
               "the gradient norm stays above zero"),
    )  # fmt: skip
