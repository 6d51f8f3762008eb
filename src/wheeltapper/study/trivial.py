"""What the loss would be if nothing had been learned, where the settings tell it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.baselines import initial_loss, sedd_untrained_loss
from wheeltapper.study import Absent, derived
from wheeltapper.study.curves import Task


@dataclass(frozen=True, slots=True)
class Trivial:
    loss: float
    words: str


@derived
def trivial_loss(task: Task, knobs: Knobs, train_loss: Series, loss_parts: tuple[Series, ...] | None = None) -> Trivial:
    """ln C or ln V of a plain cross-entropy (OUT-14). A loss of several parts has no such level."""
    if task.diffusion:
        return _of_diffusion(knobs, train_loss)
    if loss_parts is not None or train_loss.quantity not in ("loss", "nll"):
        raise Absent("the objective's trivial level is not known", ("the objective",))
    for knob, what in (("vocab_size", "tokens"), ("model.classes", "classes")):
        size = knobs.value(knob)
        if isinstance(size, (int, float)) and not isinstance(size, bool) and 2 <= size < 1e7:
            return Trivial(math.log(float(size)), f"ln {size:g}, for {size:g} {what}")
    raise Absent("neither the number of classes nor the vocabulary is known", ("the number of classes",))


UNIT = 0.25  # a first loss this near the closed form shows that the log counts in its unit


def _of_diffusion(knobs: Knobs, train_loss: Series) -> Trivial:
    """Closed forms of an untrained network, where the first losses show that the log counts in their unit."""
    x = train_loss.values[train_loss.finite]
    tokens, noise, top = (knobs.value(knob) for knob in ("vocab_size", "diffusion.noise", "diffusion.sigma_max"))
    if isinstance(tokens, (int, float)) and not isinstance(tokens, bool) and tokens >= 2:
        end = float(top) if noise == "geometric" and isinstance(top, (int, float)) else 7.0  # log-linear: 1 - e^-7
        known = Trivial(sedd_untrained_loss(int(tokens), end), f"score entropy over {tokens:g} tokens")
    elif isinstance(knobs.value("diffusion.sigma_data"), (int, float)):
        known = Trivial(initial_loss("edm"), "EDM's weights make an output of zero cost 1")
    else:
        raise Absent("the objective's trivial level is not known", ("the objective",))
    if len(x) < 5 or abs(float(np.median(x[: max(3, len(x) // 50)])) / known.loss - 1) > UNIT:
        raise Absent("the first losses are not those of an untrained network", ("the unit of the loss",))
    return known
