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

from wheeltapper.finding import Remedy

ID = "dead-network"
AREA = "model"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "at-chance", "at-prior", "stuck-from-start", "constant-metric", "plateau", "collapsed")
SHOWS = {"gradient-growth": "low", "skill": "low", "identical-scores": "high"}
FORBIDS = {"memorised": "seen"}
PROVED_BY = ("zero-init", "zero-product", "bias-kills-units")
TRIAL = "pass ten thousand varied inputs through the last checkpoint: count units that are never above zero"
REMEDY = Remedy(
    "Start afresh with a warm-up; a dead layer does not come back.", (), "try", "the gradient norm stays above zero"
)
