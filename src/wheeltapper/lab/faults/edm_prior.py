"""Faults of edm-prior (case 000)."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Fault = partial(faults.Fault, system="edm-prior")

COSINE: Settings = {"lr_scheduler": "cosine"}


def after_warmup(settings: Settings) -> float:
    return float(settings["warmup_steps"]) / 2


# fmt: off
FAULTS = (
    Fault(
        id="accumulation-not-done", cause="accumulation-not-done", knob="gradient_accumulation_steps", harm="quality",
        seen="code",
        needs={"gradient_accumulation_steps": 4, "batch_size": 2}, good="4 micro-batches a step", bad="1",
        patch="""\
-        for _ in range(args.gradient_accumulation_steps):
+        for _ in range(1):
@@
-            (loss / args.gradient_accumulation_steps).backward()
+            loss.backward()
""",
        text="accumulation is parsed and printed as part of the effective batch, and never done (case 000)",
    ),
    Fault(
        id="schedule-not-wired", cause="option-not-wired", knob="lr_scheduler", harm="quality",
        seen="code", also=("schedule-never-decays",),
        needs=COSINE | {"learning_rate": 0.02, "ema_decay": 0.8}, good="the schedule sets the LR", bad="constant LR",
        patch="""\
-        for group in self.optimizer.param_groups:
-            group["lr"] = self.learning_rate()
""",
        text="cosine and warm-up are in the config and nothing reads them: the LR is constant (case 000)",
    ),
    Fault(
        id="clip-not-wired", cause="option-not-wired", knob="gradient_clip_norm", harm="nothing",
        seen="code", also=("clip-never-read",),
        needs={"gradient_clip_norm": 1.0}, good="clips at 1.0", bad="never called",
        patch="""\
-        nn.utils.clip_grad_norm_(self.model.parameters(), args.gradient_clip_norm)
""",
        text="the clip norm is in the config and the loop never clips (case 000)",
    ),
    Fault(
        id="resume-ignored", cause="resume-ignored", knob="resume_checkpoint", harm="time",
        also=("option-not-wired",),
        resume=True, at=(0.6, 0.8), good="loaded", bad="never loaded",
        patch="""\
-        if args.resume_checkpoint:
-            self.load_checkpoint(args.resume_checkpoint)
""",
        text="--resume_checkpoint is parsed and ignored: the run begins again at step 0 (case 000)",
    ),
    Fault(
        id="precond-mismatch", cause="objective-mismatch", knob="preconditioner", harm="quality",
        seen="code",
        good="EDMPrecond and its own target", bad="VPPrecond trained on another target",
        patch="""\
-from wheeltapper.lab.systems.edm_prior.model import EDMPrecond, UNet
+from wheeltapper.lab.systems.edm_prior.model import UNet, VPPrecond
@@
-        self.model = EDMPrecond(net, SIGMA_DATA).to(self.device)
+        self.model = VPPrecond(net).to(self.device)
@@
-        error = ((denoised - clean) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) * clean[0, 0].numel())
-        return (weight * error).mean()
+        level = sigma.view(-1, 1, 1, 1)
+        target = (clean - noisy / (1 + level**2)) * (1 + level**2).sqrt() / level
+        error = ((denoised - target) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) * clean[0, 0].numel())
+        return error.mean()
""",
        text="the wrapper returns a denoised picture and the loss compares it with a v-target (case 000)",
    ),
    Fault(
        id="padding-not-masked", cause="dead-input-channels", knob="mask", harm="nothing",
        seen="twin",
        good="loss over the real channels", bad="loss over four channels, most of them zero",
        patch="""\
-        error = ((denoised - clean) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) * clean[0, 0].numel())
+        error = ((denoised - clean) ** 2).mean((1, 2, 3))
""",
        text="half of all loss elements are padded zeros (case 000)",
    ),
    Fault(
        id="domains-blank", cause="dead-input-channels", knob="tiles", harm="quality",
        seen="twin",
        good="tiles as they are", bad="all but the first channel zero",
        patch="""\
         tiles, masks, domains = (part[index] for part in self.train_set)
+        tiles = tiles * torch.tensor([0.0, 1.0, 1.0, 1.0], device=self.device)[:, None, None]
""",
        text="the first channel, the only one of two domains, arrives as zeros",
    ),
    Fault(
        id="sigma-data-wrong", cause="sigma-data-mismatch", knob="sigma_data", harm="quality",
        seen="twin",
        good="tiles with a spread of 0.5", bad="tiles in [0, 255]",
        patch="""\
-            full, mask = padded(make_tiles(domain, count, self.args.tile_size, seed))
+            full, mask = padded(127.5 + 100 * make_tiles(domain, count, self.args.tile_size, seed))
""",
        text="the tiles are in [0, 255] where the preconditioning expects a spread of 0.5",
    ),
    Fault(
        id="sigma-max-cut", cause="sigma-max-cut", knob="sigma", harm="quality",
        seen="twin",
        good="exp(N(-1.2, 1.2))", bad="at most 0.1",
        patch="""\
-            sigma = torch.exp(-1.2 + 1.2 * torch.randn(len(clean), device=self.device))
+            sigma = torch.exp(-1.2 + 1.2 * torch.randn(len(clean), device=self.device)).clamp_max(0.1)
""",
        text="training never sees the noise that the prior is used at",
    ),
    Fault(
        id="lr-too-high", cause="lr-too-high", knob="learning_rate", harm="quality",
        change=times("learning_rate", 8, 50), needs={"gradient_clip_norm": 100.0},
        onset=after_warmup, text="LR 8 to 50 times too high",
    ),
    Fault(
        seen="twin",  # 1e-5 to 1e-4 is many a run's right rate; the curve is that of harder data
        id="lr-too-low", cause="lr-too-low", knob="learning_rate", harm="quality",
        change=times("learning_rate", 0.001, 0.01), text="LR 100 to 1000 times too low",
    ),
    Fault(
        id="warmup-longer-than-run", cause="warmup-longer-than-run", knob="warmup_steps", harm="quality",
        change=lambda s, rng: {"warmup_steps": s["max_steps"] * rng.choice([40, 80])},
        text="a warm-up of 20,000 steps in a short run",
    ),
    Fault(
        id="ema-horizon", cause="ema-horizon-too-long", knob="ema_decay", harm="quality",
        seen="code",
        change=put(ema_decay=0.9999), good="decay fit for the run, with a ramp", bad="0.9999 without a ramp",
        patch="""\
-        decay = min(args.ema_decay, (1 + self.step) / (10 + self.step))
+        decay = args.ema_decay
""",
        text="the averaged weights are still the first ones when the run ends",
    ),
    Fault(
        id="val-sigma-units", cause="eval-broken", knob="validation sigma", harm="metric",
        seen="twin",
        good="sigma", bad="log sigma passed as sigma",
        patch="""\
-            denoised = self.ema_model(noisy, torch.full((len(clean),), 0.3, device=self.device), domain)
+            denoised = self.ema_model(noisy, torch.full((len(clean),), 300.0, device=self.device), domain)
""",
        text="validation tells the model a noise level in other units than training",
    ),
    Fault(
        id="val-not-normalised", cause="eval-normalisation-mismatch", knob="validation tiles", harm="metric",
        seen="twin",
        good="as in training", bad="shifted and scaled to [0, 1]",
        patch="""\
         clean, mask, domain = self.val_set
+        clean = 0.5 + clean / 3
""",
        text="validation tiles are in [0, 1], training tiles have zero mean",
    ),
    Fault(
        id="bad-shard", cause="bad-data-from-step", knob="train data", harm="quality", at=(0.4, 0.65),
        good="real tiles", bad="pure noise",
        patch="""\
         tiles, masks, domains = (part[index] for part in self.train_set)
+        if self.step >= @AT@:
+            tiles = 3 * torch.randn_like(tiles)
""",
        text="from some step on the files hold noise",
    ),
    Fault(
        id="nan-batch", cause="nan-batch", knob="train data", harm="quality", at=(0.3, 0.7),
        good="finite tiles", bad="one NaN pixel",
        patch="""\
         tiles, masks, domains = (part[index] for part in self.train_set)
+        if self.step == @AT@:
+            tiles[0, 0, 3, 3] = float("nan")
""",
        text="one tile holds a NaN and all weights are NaN from then on",
    ),
    Fault(
        seen="twin",
        id="overfit", cause="overfitting", knob="max_files_per_domain", harm="quality",
        change=put(max_files_per_domain=2, model_channels=24), text="two tiles a domain",
    ),
    Fault(
        id="zero-grad-missing", cause="zero-grad-missing", knob="optimizer.zero_grad()", harm="quality",
        seen="code",
        good="before every step", bad="missing",
        patch="""\
-        self.optimizer.zero_grad()
""",
        text="gradients are never cleared",
    ),
    Fault(
        id="wrong-sign", cause="wrong-loss-sign", knob="loss", harm="quality", good="+loss", bad="-loss",
        patch="""\
-            (loss / args.gradient_accumulation_steps).backward()
+            (-loss / args.gradient_accumulation_steps).backward()
""",
        text="the loss is maximised",
    ),
    Fault(
        id="frozen-network", cause="frozen-parameters", knob="requires_grad", harm="quality",
        seen="code", also=("params-not-in-optimizer",),
        good="all trained", bad="only the last layer",
        patch="""\
         self.ema_model = copy.deepcopy(self.model)
+        for name, parameter in self.model.named_parameters():
+            parameter.requires_grad = "last" in name
""",
        text="a freeze meant for fine-tuning is left on",
    ),
    Fault(
        id="data-repeated", cause="data-repeated", knob="sampler", harm="quality",
        seen="twin", also=("overfitting",),
        good="all tiles", bad="the first six again and again",
        patch="""\
-        index = torch.randint(len(self.train_set[0]), (self.args.batch_size,))
+        index = torch.randint(6, (self.args.batch_size,))
""",
        text="the sampler draws from the first six tiles only",
    ),
    Fault(
        id="export-crash", cause="crash-at-end", knob="export", harm="after",
        onset=lambda s: float(s["max_steps"]), good="the model card is written", bad="a folder that is not there",
        patch="""\
         logger.info(f"✅ Training completed at step {self.step:,}")
+        Path("reports/cards/prior.md").write_text(str(self.config), encoding="utf-8")
""",
        text="training is done and writing the model card raises",
    ),
    Fault(
        seen="twin",
        id="no-warmup", cause="no-warmup", knob="warmup_steps", harm="quality",
        needs={"learning_rate": 0.02, "warmup_steps": 60, "gradient_clip_norm": 100.0}, change=put(warmup_steps=0),
        text="a high LR from the first step on",
    ),
)
