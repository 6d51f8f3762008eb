"""Causes that the training script proves: what it says must reach the ranking."""

from __future__ import annotations

import pytest
from made_runs import at_chance, declared, falling, flat, named, top, weigh

from wheeltapper.causes import Excluded
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.testing import make_run


def test_gradients_never_cleared() -> None:
    run = make_run({"train/loss": [0.3, *flat(199, 0.8, 0.01)]}, spacing=10)
    audit = [declared("zero-grad-missing", "the loop never clears the gradients (train.py:20)")]
    assert named(diagnose_run(run, audit=audit), "zero-grad-missing") > 0.5
    assert named(diagnose_run(run), "zero-grad-missing") < 0.1


def test_an_average_kept_in_half_precision_by_the_code() -> None:
    run = make_run(at_chance(10, 60), spacing=100, config="num_classes: 10\nema_decay: 0.999\n")
    audit = [declared("ema-low-precision", "the average is kept in bf16 (train.py:20)")]
    assert "ema-low-precision" in top(diagnose_run(run, audit=audit))
    assert isinstance(weigh("ema-low-precision", run), Excluded)


@pytest.mark.parametrize("proved", [True, False])
def test_stale_statistics_of_an_average_that_declines(proved: bool) -> None:
    score = [*(0.2 + 0.6 * i / 20 for i in range(20)), *(0.8 - 0.006 * i for i in range(20))]
    run = make_run({"train/loss": falling(40).tolist(), "val/accuracy": score}, clock="epoch")
    audit = [declared("ema-buffers-not-averaged", "only the parameters are averaged (train.py:20)")] if proved else []
    assert (named(diagnose_run(run, audit=audit), "ema-buffers-stale") > 0.4) is proved
