"""What the loss would be if nothing had been learned, where the settings tell it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wheeltapper.config.knobs import Knobs
from wheeltapper.run.model import Series
from wheeltapper.signals import Absent, signal
from wheeltapper.signals.curves import Task


@dataclass(frozen=True, slots=True)
class Trivial:
    loss: float
    words: str


@signal
def trivial_loss(task: Task, knobs: Knobs, train_loss: Series, loss_parts: tuple[Series, ...] | None = None) -> Trivial:
    """ln C or ln V of a plain cross-entropy (OUT-14). A loss of several parts has no such level."""
    if task.diffusion or loss_parts is not None or train_loss.quantity not in ("loss", "nll"):
        raise Absent("the objective's trivial level is not known", ("the objective",))
    for knob, what in (("vocab_size", "tokens"), ("model.classes", "classes")):
        size = knobs.value(knob)
        if isinstance(size, (int, float)) and not isinstance(size, bool) and 2 <= size < 1e7:
            return Trivial(math.log(float(size)), f"ln {size:g}, for {size:g} {what}")
    raise Absent("neither the number of classes nor the vocabulary is known", ("the number of classes",))
