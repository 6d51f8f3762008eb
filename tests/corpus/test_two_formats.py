"""One run in two formats gives equal series: the HF state file and the TensorBoard events of the same training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wheeltapper.run.gather import read_runs


def test_state_file_and_event_file_tell_the_same(shared_runs: Path) -> None:
    (state,) = read_runs(shared_runs / "hf-roberta-lora-agnews-healthy")
    (events,) = read_runs(shared_runs / "tb-roberta-lora-lr5e-5-healthy")
    for name in ("train/loss", "val/loss", "val/accuracy", "lr", "grad_norm"):
        a, b = state.series[name], events.series[name]
        assert (a.quantity, a.split, a.better, a.clock, a.unit) == (b.quantity, b.split, b.better, b.clock, b.unit)
        np.testing.assert_array_equal(a.at, b.at)
        np.testing.assert_allclose(a.values, b.values, rtol=1e-6)  # an event file holds float32
