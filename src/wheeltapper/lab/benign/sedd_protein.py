"""Benign oddities of sedd-protein."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put

Benign = partial(faults.Benign, system="sedd-protein")

# fmt: off
BENIGN = (
    Benign(
        id="curriculum-linear", looks_like="lr-too-high", change=put(curriculum=True, difficulty_ramp="linear"),
        text="the training loss rises for half of the run because the noise does (case 003)",
    ),
    Benign(
        id="curriculum-exponential", looks_like="lr-too-high",
        change=put(curriculum=True, difficulty_ramp="exponential"), text="the same, fast at first",
    ),
    Benign(
        id="noisy-loss", looks_like="lr-too-high", change=put(batch_size=10),
        text="the batch loss swings with the noise that was drawn",
    ),
    Benign(
        id="summed-loss", looks_like="lr-too-high",
        patch="""\
                 value, norm = self.train_step(batch)
+                value *= batch.shape[1]
""",
        text="the logged loss is summed over the sequence, as the original SEDD does: large numbers, nothing wrong",
    ),
    Benign(
        id="clean-resume", looks_like="schedule-restarted-on-resume", resume=True, at=(0.3, 0.7),
        text="the machine was taken away and the run went on with all its state",
    ),
    Benign(
        id="large-model", looks_like="overfitting", change=put(hidden_size=64, dropout=0.1),
        text="more parameters than residues in the data, and still no overfitting",
    ),
    Benign(
        id="ema-strong", looks_like="ema-horizon-too-long", change=put(ema=0.9999),
        text="a decay of 0.9999 with a ramp, which keeps the average young in a short run",
    ),
)
