"""The learning rate as it went: its shape, read from the log alone."""

from __future__ import annotations

from wheeltapper.run.model import Series
from wheeltapper.signals import signal
from wheeltapper.simulate.lr_shape import LrShape, shape_of_lr


@signal
def lr_shape(lr: Series) -> LrShape:
    good = lr.finite
    return shape_of_lr(lr.at[good], lr.values[good])
