"""Benign oddities of resnet-ddp."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Benign = partial(faults.Benign, system="resnet-ddp")

ONECYCLE: Settings = {"scheduler": "onecycle", "warmup_epochs": 8}

# fmt: off
BENIGN = (
    Benign(
        id="mixup-inversion", looks_like="eval-broken", needs={"augment": True},
        change=put(mixup_alpha=0.8, cutmix_prob=0.3, label_smoothing=0.2),
        text="training accuracy stays far below validation because its pictures are mixed",
    ),
    Benign(
        id="label-smoothing-floor", looks_like="lr-too-low", change=put(label_smoothing=0.3, mixup_alpha=0.0),
        text="the training loss ends on the floor that label smoothing sets, far above zero",
    ),
    Benign(
        id="resize-jumps", looks_like="lr-too-high", change=put(progressive_resize=True),
        text="loss and epoch time jump where the picture size changes",
    ),
    Benign(
        id="recovered-spike", looks_like="bad-data-from-step", at=(0.5, 0.7),
        patch="""\
             images, labels = self.train_set.images[index], self.train_set.labels[index]
+            if epoch == @AT@ and batch_idx == 1:
+                labels = labels[torch.randperm(len(labels))]
""",
        text="one bad batch; the run is back where it was a moment later",
    ),
    Benign(
        id="clean-resume", looks_like="schedule-restarted-on-resume", resume=True, at=(0.3, 0.7),
        text="the machine was taken away and the run went on with all its state",
    ),
    Benign(
        id="early-bn-chaos", looks_like="eval-broken", needs=ONECYCLE | {"use_ema": False},
        change=times("lr", 1.8, 2.2), text="validation jumps about while the LR is at its peak, then settles",
    ),
    Benign(
        id="high-scale", looks_like="fp16-overflow", change=put(amp=True),
        text="half precision with a loss scale of 65,536 and no overflow",
    ),
    Benign(
        id="many-ranks", looks_like="lr-scaled-by-world-size", change=put(world_size=8, lr=0.3),
        text="eight ranks and an LR that fits the total batch",
    ),
    Benign(
        id="long-plateau", looks_like="schedule-too-short",
        needs=ONECYCLE, change=lambda s, _rng: {"epochs": round(s["epochs"] * 1.5)},
        text="the last third moves within the noise of 300 validation pictures",
    ),
)
