"""The length of a run where its log counts one thing by batches and another by updates."""

from __future__ import annotations

from wheeltapper.audit.length import length_of
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.testing import make_run


def test_batches_of_an_epoch_and_updates_of_the_run_differ_by_the_accumulation() -> None:
    config = "epochs: 32\naccumulation_steps: 4\nbatch_size: 64\n"
    run = make_run({"train/loss": [2.0, 1.0]}, config=config, facts={"total_steps": 256, "steps_per_epoch": 32})
    length = length_of(read_knobs(run.configs), run.facts)
    assert length.total == 256
    assert length.updates(8, "epochs") == 64
