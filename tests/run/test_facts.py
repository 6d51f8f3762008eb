"""What the clocks of a run prove together."""

from __future__ import annotations

import numpy as np
import pytest

from wheeltapper.run.facts import whole_epochs


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("per_epoch", [7, 296, 1251])
def test_steps_per_epoch_from_whole_epochs(per_epoch: int, base: int) -> None:
    steps = np.arange(1, 40 * per_epoch, max(1, per_epoch // 9), dtype=np.float64)
    epochs = np.floor((steps - 1) / per_epoch) + base
    assert whole_epochs(epochs, steps) in (None, per_epoch)


def test_few_lines_pin_it_down() -> None:
    steps = np.array([1.0, 250, 500, 750, 1000, 1500, 1750, 2000, 3000, 3250, 4500, 4750, 5000])
    assert whole_epochs(np.ceil(steps / 296), steps) == 296


def test_fractions_and_too_few_epochs_say_nothing() -> None:
    steps = np.array([100.0, 200.0, 300.0])
    assert whole_epochs(steps / 150, steps) is None
    assert whole_epochs(np.array([0.0, 1.0, 1.0]), steps) is None
