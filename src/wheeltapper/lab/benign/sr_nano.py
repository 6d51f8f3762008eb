"""Benign oddities of sr-nano."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put
from wheeltapper.lab.systems import Settings

Benign = partial(faults.Benign, system="sr-nano")

FP16: Settings = {"use_amp": True, "amp_bf16": False}

# fmt: off
BENIGN = (
    Benign(
        id="high-scale", looks_like="fp16-overflow", needs=FP16,
        patch="""\
-        self.scaler_g = scaler_for(self.device.type, enabled=self.scaled)
+        self.scaler_g = scaler_for(self.device.type, enabled=self.scaled, growth_interval=80)
""",
        text="the loss scale doubles again and again up to millions: no overflow, all is well",
    ),
    Benign(
        id="bf16-scale-one", looks_like="loss-scale-collapse", change=put(use_amp=True, amp_bf16=True),
        text="with bf16 the scaler is off and scale_g is 1",
    ),
    Benign(
        id="cosine-and-ema", looks_like="ema-horizon-too-long", change=put(scheduler="CosineAnnealingLR"),
        text="a cosine schedule with averaged weights, which case 002 called incompatible",
    ),
    Benign(
        id="warm-restarts", looks_like="schedule-too-short",
        change=put(scheduler="CosineAnnealingWarmRestarts"), text="the LR jumps back up four times by design",
    ),
    Benign(
        id="late-plateau", looks_like="lr-too-low",
        change=lambda s, _rng: {"total_iter": s["total_iter"] * 2, "T_max": s["total_iter"] * 2},
        text="the last half gains almost nothing",
    ),
    Benign(
        id="recovered-spike", looks_like="bad-data-from-step", at=(0.4, 0.7),
        patch="""\
-    epoch = 0
+    epoch = step = 0
@@
             lq = degrade(gt, opt.scale)
+            step += 1
+            if step == @AT@:
+                lq = torch.rand_like(lq)
""",
        text="one broken batch; the run is back where it was a moment later",
    ),
    Benign(
        id="clean-resume", looks_like="schedule-restarted-on-resume", resume=True, at=(0.3, 0.7),
        text="the machine was taken away and the run went on with all its state",
    ),
    Benign(
        id="gan-balance", looks_like="discriminator-wins", change=put(gan_weight=0.002, lr_d=2e-5),
        text="generator and discriminator hold each other; neither loss falls",
    ),
    Benign(
        id="noisy-batches", looks_like="lr-too-high", change=put(batch=2), text="two crops a batch: a very noisy loss",
    ),
)
