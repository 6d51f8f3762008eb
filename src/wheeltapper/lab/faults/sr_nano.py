"""Faults of sr-nano (cases 001 and 002)."""

from __future__ import annotations

from functools import partial
from random import Random

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Fault = partial(faults.Fault, system="sr-nano")

COSINE: Settings = {"scheduler": "CosineAnnealingLR"}
FP16: Settings = {"use_amp": True, "amp_bf16": False}


def short_cosine(settings: Settings, rng: Random) -> Settings:
    return {"T_max": round(settings["total_iter"] * rng.uniform(0.35, 0.55))}


def after_warmup(settings: Settings) -> float:
    return float(settings["warmup_iter"]) / 2


# fmt: off
FAULTS = (
    Fault(
        id="val-64px", cause="eval-resized-images", knob="validation size", harm="metric",
        seen="twin",
        good="whole pictures", bad="shrunk without antialias before the network",
        patch="""\
-            sr = torch.cat([model.test(net, part.to(model.device)).cpu() for part in val_lq.split(8)])
-            results = {"psnr": psnr(sr, val_gt), "ssim": ssim(sr, val_gt)}
+            small = F.interpolate(val_lq, scale_factor=0.5, mode="bicubic")
+            val_small = F.interpolate(val_gt, scale_factor=0.5, mode="bicubic")
+            sr = torch.cat([model.test(net, part.to(model.device)).cpu() for part in small.split(8)])
+            results = {"psnr": psnr(sr, val_small), "ssim": ssim(sr, val_small)}
""",
        text="validation shrinks the pictures to a few pixels first, as SRModel.test() did in case 001",
    ),
    Fault(
        id="unknown-key", cause="unknown-config-key", knob="train.grad_clip_max_norm", harm="crash",
        change=put(unknown_key="grad_clip_max_norm"), good="no such key", bad="grad_clip_max_norm: 1.0",
        text="the options file holds a key that this version does not know, and is refused",
    ),
    Fault(
        id="float-as-text", cause="config-value-not-a-number", knob="train.scheduler.eta_min", harm="crash",
        needs=COSINE, change=put(eta_as_text=True), good="1.0e-6", bad="1e-6 (a string in YAML 1.1)",
        text="eta_min: 1e-6 is read as text and the schedule cannot compute with it",
    ),
    Fault(
        id="lr-too-high", cause="lr-too-high", knob="lr", harm="quality", change=times("lr", 10, 60),
        onset=after_warmup, text="LR 10 to 60 times too high",
    ),
    Fault(
        seen="twin",
        id="lr-too-low", cause="lr-too-low", knob="lr", harm="quality", change=times("lr", 0.002, 0.02),
        text="LR 50 to 500 times too low",
    ),
    Fault(
        seen="twin",
        id="no-warmup", cause="no-warmup", knob="warmup_iter", harm="quality",
        needs={"lr": 0.06, "warmup_iter": 80, "grad_clip": False}, change=put(warmup_iter=-1),
        text="a high LR from the first step on",
    ),
    Fault(
        id="warmup-longer-than-run", cause="warmup-longer-than-run", knob="warmup_iter", harm="quality",
        change=lambda s, rng: {"warmup_iter": s["total_iter"] * rng.choice([20, 40, 80])},
        text="the warm-up of a long run in a short one",
    ),
    Fault(
        id="milestones-never-reached", cause="milestones-never-reached", knob="milestones", harm="nothing",
        needs={"scheduler": "MultiStepLR"}, change=put(milestones=[20000, 30000]),
        text="the milestones lie behind the end of the run",
    ),
    Fault(
        id="cosine-rises-again", cause="schedule-too-short", knob="T_max", harm="quality",
        needs=COSINE | {"lr": 0.05, "ema_decay": 0.5}, change=short_cosine, onset=lambda s: float(s["T_max"]),
        text="T_max covers half of the run, so the LR climbs back up",
    ),
    Fault(
        id="ema-horizon", cause="ema-horizon-too-long", knob="ema_decay", harm="quality",
        change=lambda _s, rng: {"ema_decay": rng.choice([0.9995, 0.9999]), "ema_power": 10},
        text="an average without a ramp that remembers the first weights for longer than the run lasts",
    ),
    Fault(
        id="ema-bf16", cause="ema-low-precision", knob="ema precision", harm="quality",
        seen="code",
        needs={"ema_decay": 0.999, "ema_power": 0.9}, good="float32", bad="bfloat16",
        patch="""\
     model = SRModel(opt, log)
+    model.ema.weights = {name: value.bfloat16() for name, value in model.ema.weights.items()}
""",
        text="the averaged weights are kept in bf16, where a small update is rounded away",
    ),
    Fault(
        seen="code",  # frameworks that clip rightly may log such norms too
        id="clip-before-unscale", cause="clip-before-unscale", knob="grad_clip", harm="quality",
        needs=FP16 | {"grad_clip": True, "optimizer": "SGD", "lr": 0.3}, good="unscale_ then clip",
        bad="clip of scaled gradients",
        patch="""\
-        self.scaler_g.unscale_(self.optimizer_g)
@@
         norm = torch.nn.utils.clip_grad_norm_(self.net_g.parameters(), limit)
+        self.scaler_g.unscale_(self.optimizer_g)
""",
        text="the clip sees gradients 65,536 times too large",
    ),
    Fault(
        id="scale-collapse", cause="loss-scale-collapse", knob="ssimloss", harm="quality",
        also=("fp16-overflow",),
        needs=FP16 | {"ssim_weight": 0.05},
        good="no square root at zero", bad="square root of a variance that half precision makes zero",
        patch="""\
-            losses["l_g_ssim"] = self.weights["ssim"] * (1 - ssim_map(output, gt).mean())
+            mean, square = F.avg_pool2d(output.half(), 7, 3), F.avg_pool2d(output.half() ** 2, 7, 3)
+            contrast = (square - mean**2).abs().sqrt().float().mean()
+            losses["l_g_ssim"] = self.weights["ssim"] * (1 - ssim_map(output, gt).mean() - 0.1 * contrast)
""",
        text="a square root at zero gives an infinite gradient in every step: each is skipped, the scale halves on",
    ),
    Fault(
        id="fp16-overflow", cause="fp16-overflow", knob="attention scale", harm="crash",
        also=("attention-logit-growth",),
        needs=FP16, good="logits divided by the root of the head's width", bad="logits multiplied by 4,000",
        patch="""\
     model = SRModel(opt, log)
+    for block in model.net_g.body:
+        block.attention.scale = 4.0e3
""",
        crash_onset=True,
        text="attention logits grow with training until they pass 65,504, the end of half precision",
    ),
    Fault(
        id="pairs-mismatched", cause="labels-shuffled", knob="data pairs", harm="quality",
        seen="twin", also=("labels-broken",),
        good="each input with its own target", bad="targets of other pictures",
        patch="""\
             lq = degrade(gt, opt.scale)
+            gt = gt.roll(1, 0)
""",
        text="low- and high-resolution pictures are paired wrongly",
    ),
    Fault(
        id="pairs-shifted", cause="labels-broken", knob="data pairs", harm="quality",
        seen="twin", also=("labels-shuffled",),
        good="aligned", bad="shifted by two pixels",
        patch="""\
             lq = degrade(gt, opt.scale)
+            gt = gt.roll((2, 2), (2, 3))
""",
        text="the targets are shifted against the inputs by two pixels",
    ),
    Fault(
        id="bad-shard", cause="bad-data-from-step", knob="train data", harm="quality", at=(0.35, 0.6),
        good="clean pictures", bad="broken low-resolution pictures",
        patch="""\
-    epoch = 0
+    epoch = step = 0
@@
             lq = degrade(gt, opt.scale)
+            step += 1
+            if step > @AT@:
+                lq = torch.rand_like(lq)
""",
        text="from some step on the low-resolution files are broken",
    ),
    Fault(
        id="nan-batch", cause="nan-batch", knob="train data", harm="crash", at=(0.3, 0.7),
        good="finite pictures", bad="one NaN pixel",
        patch="""\
-    epoch = 0
+    epoch = step = 0
@@
             lq = degrade(gt, opt.scale)
+            step += 1
+            if step == @AT@:
+                lq[0, 0, 0, 0] = float("nan")
""",
        text="one picture holds a NaN",
    ),
    Fault(
        seen="code",
        id="zero-grad-missing", cause="zero-grad-missing", knob="optimizer.zero_grad()", harm="quality",
        needs={"use_amp": False}, good="after every step", bad="missing",
        patch="""\
-        self.optimizer_g.zero_grad()
""",
        text="gradients are never cleared (under a loss scale the old ones would be too small to matter)",
    ),
    Fault(
        id="accumulation-not-done", cause="accumulation-not-done", knob="accum_iter", harm="nothing",
        seen="twin",
        needs={"accum_iter": 4, "batch": 2}, good="4 micro-batches an update", bad="1",
        patch="""\
-        group = [next(batches) for _ in range(data.accum_iter)]
+        group = [next(batches)]
""",
        text="accum_iter is read and printed, and every update sees one micro-batch",
    ),
    Fault(
        seen="code",
        id="psnr-range", cause="metric-invalid", knob="psnr", harm="metric",
        also=("metric-numerically-broken", "eval-broken",),
        good="values in [0, 1]", bad="a peak of 255 for values in [0, 1]",
        patch="""\
-            results = {"psnr": psnr(sr, val_gt), "ssim": ssim(sr, val_gt)}
+            results = {"psnr": psnr(sr, val_gt) + 48.1308, "ssim": ssim(sr, val_gt)}
""",
        text="PSNR is computed with a peak of 255 for values in [0, 1]: 48 dB too high",
    ),
    Fault(
        id="val-wrong-pairs", cause="eval-broken", knob="validation pairs", harm="metric",
        seen="code",
        good="each output with its own target", bad="listed in another order",
        patch="""\
             sr = torch.cat([model.test(net, part.to(model.device)).cpu() for part in val_lq.split(8)])
+            sr = sr.roll(1, 0)
""",
        text="validation compares each picture with another one's target",
    ),
    Fault(
        id="val-range", cause="eval-normalisation-mismatch", knob="validation input", harm="metric",
        seen="twin",
        good="[0, 1]", bad="[-1, 1]",
        patch="""\
-            sr = torch.cat([model.test(net, part.to(model.device)).cpu() for part in val_lq.split(8)])
+            sr = torch.cat([model.test(net, 2 * part.to(model.device) - 1).cpu() for part in val_lq.split(8)])
""",
        text="validation gives the network pictures in another range than training",
    ),
    Fault(
        id="memory-leak", cause="memory-leak", knob="history", harm="memory",
        good="loss.item()", bad="the loss with its graph is kept",
        patch="""\
         self.count = 0
+        self.kept: list[Any] = []
@@
         self.count += 1
+        self.kept.append((total, output, gt))
""",
        text="every step keeps its whole graph alive",
    ),
    Fault(
        id="slow-loader", cause="slow-data-loader", knob="num_worker_per_gpu", harm="time",
        seen="twin",
        good="prepared ahead", bad="prepared in the loop",
        patch="""\
             lq = degrade(gt, opt.scale)
+            for _ in range(150):  # decode
+                lq, gt = lq.flip(3).contiguous().flip(3), gt.flip(3).contiguous().flip(3)
""",
        text="most of the time goes into preparing the batch",
    ),
    Fault(
        id="export-crash", cause="crash-at-end", knob="export", harm="after",
        onset=lambda s: float(s["total_iter"]), good="export works", bad="missing module",
        patch="""\
     log("Save the latest model.")
+    torch.onnx.export_all(model.net_g, folder / "model.onnx")
""",
        text="training is done and the export at the end raises",
    ),
    Fault(
        seen="code",
        id="body-not-in-optimizer", cause="params-not-in-optimizer", knob="optim_g", harm="quality",
        also=("frozen-parameters",),
        good="all parameters", bad="only the base and the gate",
        patch="""\
-            if parameter.requires_grad:
+            if parameter.requires_grad and name.startswith(("gate", "base")):
""",
        text="a filter meant for something else keeps most parameters out of the optimizer",
    ),
    Fault(
        id="resume-restarts-schedule", cause="schedule-restarted-on-resume", knob="resume", harm="quality",
        needs=COSINE | {"lr": 0.05, "ema_decay": 0.5}, resume=True, at=(0.6, 0.75),
        good="scheduler state restored", bad="not restored",
        patch="""\
-    model.scheduler.load_state_dict(state["schedulers"][0])
+    for group in model.optimizer_g.param_groups:
+        group["lr"] = group["initial_lr"]
""",
        text="after a resume the schedule begins again",
    ),
    Fault(
        id="resume-loses-optimizer", cause="resume-lost-optimizer", knob="resume", harm="nothing",
        resume=True, at=(0.4, 0.7), good="optimizer state restored", bad="not restored",
        patch="""\
-    model.optimizer_g.load_state_dict(state["optimizers"][0])
+    for group, old in zip(model.optimizer_g.param_groups, state["optimizers"][0]["param_groups"]):
+        group["lr"] = old["lr"]
""",
        text="after a resume Adam begins with empty moments",
    ),
    Fault(
        id="clip-not-wired", cause="option-not-wired", knob="grad_clip", harm="nothing",
        seen="code", also=("clip-never-read",),
        needs={"grad_clip": True}, good="clips at 1.0", bad="never read",
        patch="""\
-        limit = 1.0 if train.grad_clip else float("inf")
+        limit = float("inf")
""",
        text="grad_clip is announced in the log and never used",
    ),
    Fault(
        seen="twin",
        id="overfit", cause="overfitting", knob="images", harm="quality", needs={"blocks": 2, "ema_decay": 0.9},
        change=put(images=2, batch=2, train_image_size=32, lr=0.02), text="two small training pictures",
    ),
    Fault(
        id="weight-decay-too-strong", cause="weight-decay-too-strong", knob="weight_decay", harm="quality",
        change=lambda _s, rng: {"weight_decay": rng.choice([20.0, 50.0, 100.0])}, text="weight decay far too strong",
    ),
    Fault(
        id="discriminator-wins", cause="discriminator-wins", knob="discriminator input", harm="quality",
        needs={"gan_weight": 0.05, "lr_d": 1e-5}, change=put(lr_d=0.002),
        good="real and made pictures in one range", bad="real ones in [0, 255], made ones in [0, 1]",
        patch="""\
-        out_real, out_fake = self.net_d(real), self.net_d(made)
+        out_real, out_fake = self.net_d(255 * real), self.net_d(made)
""",
        text="the discriminator tells real from made by their range alone, and its loss goes to zero",
    ),
    Fault(
        id="wrong-sign", cause="wrong-loss-sign", knob="loss", harm="quality", good="1 - ssim", bad="ssim",
        seen="twin",
        needs={"ssim_weight": 0.05}, patch="""\
-            losses["l_g_ssim"] = self.weights["ssim"] * (1 - ssim_map(output, gt).mean())
+            losses["l_g_ssim"] = self.weights["ssim"] * (1 + 30 * ssim_map(output, gt).mean())
""",
        text="the similarity is minimised",
    ),
)
