"""Benign oddities of edm-prior."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put

Benign = partial(faults.Benign, system="edm-prior")

# fmt: off
BENIGN = (
    Benign(
        id="noisy-loss", looks_like="lr-too-high", change=put(batch_size=5),
        text="losses of single batches of five swing by factors because sigma does (case 000)",
    ),
    Benign(
        id="unweighted-loss", looks_like="lr-too-high",
        patch="""\
-        return (weight * error).mean()
+        self.plain = error.mean().item()
+        return (weight * error).mean()
@@
-                logger.info(f"Step {self.step:,}: Loss = {loss:.6f}")
+                logger.info(f"Step {self.step:,}: Loss = {self.plain:.6f}")
""",
        text="the printed loss is the plain error, which grows with the noise that was drawn: it swings a hundredfold",
    ),
    Benign(
        id="constant-lr", looks_like="schedule-never-decays", change=put(lr_scheduler="constant"),
        text="a constant LR, by choice, with averaged weights",
    ),
    Benign(
        id="clean-resume", looks_like="schedule-restarted-on-resume", resume=True, at=(0.3, 0.7),
        text="the machine was taken away and the run went on with all its state",
    ),
    Benign(
        id="ema-strong", looks_like="ema-horizon-too-long", change=put(ema_decay=0.9999),
        text="a decay of 0.9999 with a ramp, which keeps the average young in a short run",
    ),
    Benign(
        id="long-plateau", looks_like="lr-too-low", change=lambda s, _rng: {"max_steps": s["max_steps"] * 2},
        text="the last half gains a tenth of a decibel",
    ),
    Benign(
        id="recovered-spike", looks_like="bad-data-from-step", at=(0.4, 0.7),
        patch="""\
         tiles, masks, domains = (part[index] for part in self.train_set)
+        if self.step == @AT@:
+            tiles = 8 * tiles
""",
        text="one batch on another scale; the run is back where it was a moment later",
    ),
)
