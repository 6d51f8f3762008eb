"""Faults of resnet-ddp (case 004)."""

from __future__ import annotations

from functools import partial
from random import Random

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Fault = partial(faults.Fault, system="resnet-ddp")

ONECYCLE: Settings = {"scheduler": "onecycle", "warmup_epochs": 8}
COSINE: Settings = {"scheduler": "cosine", "warmup_epochs": 3}


def peak_lr(settings: Settings) -> float:
    """A schedule that warms up does its harm on the way to its peak."""
    return float(settings["warmup_epochs"]) / 2


def short_cosine(settings: Settings, rng: Random) -> Settings:
    return {"t_max": round(settings["epochs"] * rng.uniform(0.35, 0.55))}


def half_cosine(settings: Settings) -> float:
    return float(settings["warmup_epochs"] + settings["t_max"])


# fmt: off
FAULTS = (
    Fault(
        id="lr-too-high", cause="lr-too-high", knob="lr", harm="quality", change=times("lr", 30, 100),
        needs={"gradient_clip": 0.0}, onset=peak_lr, text="LR 30 to 100 times too high",
    ),
    Fault(
        id="lr-x4", cause="lr-too-high", knob="lr", harm="quality", change=times("lr", 4, 4),
        onset=peak_lr, text="LR 4 times too high, as the documentation of case 004 recommended",
    ),
    Fault(
        id="lr-too-low", cause="lr-too-low", knob="lr", harm="quality", change=times("lr", 0.001, 0.01),
        text="LR 100 to 1000 times too low",
    ),
    Fault(
        seen="twin",
        id="lr-times-world-size", cause="lr-scaled-by-world-size", knob="lr", harm="quality",
        also=("lr-too-high",),
        needs={"world_size": 8, "gradient_clip": 0.0, "lr": 0.8}, good="args.lr", bad="args.lr * self.world_size",
        patch="""\
-        lr = args.lr
+        lr = args.lr * self.world_size
""",
        onset=peak_lr, text="the script multiplies an LR that is already for the total batch by the world size",
    ),
    Fault(
        id="warmup-longer-than-run", cause="warmup-longer-than-run", knob="warmup_epochs", harm="quality",
        needs=COSINE, change=lambda s, rng: {"warmup_epochs": s["epochs"] * rng.choice([10, 20, 40])},
        text="the warm-up is given in other units and the run ends inside it",
    ),
    Fault(
        id="cosine-rises-again", cause="schedule-too-short", knob="t_max", harm="quality",
        needs=COSINE, change=short_cosine, onset=half_cosine,
        text="T_max covers half of the run, so the LR climbs back up",
    ),
    Fault(
        seen="twin",  # many sound runs keep their rate: what that costs here only the twin shows
        id="no-schedule", cause="schedule-never-decays", knob="scheduler", harm="quality",
        needs=ONECYCLE, change=put(scheduler="none"), text="no schedule: the LR stays at its peak to the end",
    ),
    Fault(
        id="scheduler-never-stepped", cause="option-not-wired", knob="scheduler", harm="quality",
        also=("schedule-never-decays",),
        needs=ONECYCLE, good="scheduler.step()", bad="never called",
        patch="""\
-        if self.scheduler is not None and self.scaler.get_scale() >= scale:
-            self.scheduler.step()
""", text="the schedule is built and logged, and never stepped",
    ),
    Fault(
        id="scheduler-stepped-per-epoch", cause="schedule-unit-mismatch", knob="scheduler", harm="quality",
        also=("warmup-longer-than-run",),
        needs=ONECYCLE, good="stepped every update", bad="stepped every epoch",
        patch="""\
-        if self.scheduler is not None and self.scaler.get_scale() >= scale:
-            self.scheduler.step()
@@
             train_loss, train_acc = self.train_epoch(epoch)
+            if self.scheduler is not None:
+                self.scheduler.step()
""",
        text="OneCycle is planned in updates and stepped once an epoch, so it never leaves the foot",
    ),
    Fault(
        id="onecycle-pre-step", cause="onecycle-overrun", knob="scheduler", harm="crash",
        needs=ONECYCLE, good="no step before training", bad="scheduler.step() at the start",
        patch="""\
                 cycle_momentum=False,
             )
+            self.scheduler.step()
""",
        onset=lambda s: float(s["epochs"]), text="one step too many: OneCycleLR raises on the last batch",
    ),
    Fault(
        id="onecycle-momentum", cause="onecycle-overrides-momentum", knob="momentum", harm="nothing",
        seen="code",
        needs=ONECYCLE, good=0.9, bad="cycles 0.95 to 0.85",
        patch="""\
-                cycle_momentum=False,
""",
        text="OneCycleLR cycles the momentum and --momentum is ignored",
    ),
    Fault(
        id="resize-not-applied", cause="resize-not-applied", knob="progressive_resize", harm="nothing",
        seen="code", also=("option-not-wired",),
        needs={"progressive_resize": True}, good="size of the epoch", bad="size of epoch 0",
        patch="""\
-            self.loader_size = size
""",
        text="the loaders are built once, so the announced sizes never reach them",
    ),
    Fault(
        id="rank-seeds", cause="per-rank-seed", knob="seed", harm="nothing",
        seen="twin",
        needs={"world_size": 8}, good="one seed for all ranks", bad="seed + rank",
        patch="""\
-        generator = torch.Generator().manual_seed(self.args.seed * 1000 + epoch)
+        generator = torch.Generator().manual_seed(self.args.seed * 1000 + 31 * epoch + rank)
""",
        text="every rank shuffles with its own seed: an epoch shows two thirds of the pictures",
    ),
    Fault(
        id="ema-horizon", cause="ema-horizon-too-long", knob="ema_decay", harm="quality",
        needs={"use_ema": True, "ema_decay": 0.95, "ema_every": 1},
        change=lambda _s, rng: {"ema_decay": rng.choice([0.9995, 0.9999]), "ema_every": rng.choice([5, 10])},
        text="the average remembers the first weights for longer than the run lasts, and validation uses it",
    ),
    Fault(
        id="ema-without-buffers", cause="ema-buffers-stale", knob="use_buffers", harm="quality",
        seen="code",
        needs={"use_ema": True, "ema_decay": 0.95, "ema_every": 1},
        patch="""\
-            self.ema_model.update_parameters(self.net)
+            for average, live in zip(self.ema_model.parameters(), self.net.parameters()):
+                average.data.lerp_(live.data, 1 - args.ema_decay)
""",
        good="buffers averaged too", bad="parameters only",
        text="the average leaves the BatchNorm statistics as they were at the start",
    ),
    Fault(
        id="val-in-train-mode", cause="eval-in-train-mode", knob="model.eval()", harm="metric",
        seen="code",
        good="model.eval()", bad="missing", needs={"use_ema": False},
        patch="""\
-        model.eval()
""",
        text="validation runs with the statistics of its own batches, which hold one or two classes each",
    ),
    Fault(
        id="val-not-normalised", cause="eval-normalisation-mismatch", knob="normalise", harm="metric",
        seen="twin",
        good="normalise", bad="raw images", patch="""\
-                images = normalise(resize(self.val_set.images[start : start + 100], self.loader_size))
+                images = resize(self.val_set.images[start : start + 100], self.loader_size)
""",
        text="validation pictures are not normalised",
    ),
    Fault(
        id="val-label-map", cause="eval-broken", knob="val labels", harm="metric",
        seen="twin",
        good="same class order", bad="another class order",
        patch="""\
         self.micro_batch = args.batch_size // args.accumulation_steps
+        order = torch.randperm(args.num_classes)
+        self.val_set = type(self.val_set)(
+            self.val_set.images, order[self.val_set.labels], args.num_classes
+        )
""",
        text="the validation folder numbers the classes in another order",
    ),
    Fault(
        id="labels-shuffled", cause="labels-shuffled", knob="train labels", harm="quality",
        seen="twin", also=("labels-broken",),
        good="labels of the pictures", bad="labels of other pictures",
        patch="""\
         self.micro_batch = args.batch_size // args.accumulation_steps
+        self.train_set.labels[:] = self.train_set.labels[torch.randperm(len(self.train_set))]
""",
        text="labels no longer belong to their pictures",
    ),
    Fault(
        id="labels-broken", cause="labels-broken", knob="train labels", harm="quality",
        seen="twin", also=("labels-shuffled", "class-imbalance",),
        good="all labels read", bad="unread labels become class 0",
        patch="""\
         self.micro_batch = args.batch_size // args.accumulation_steps
+        self.train_set.labels[torch.rand(len(self.train_set)) < 0.7] = 0
""",
        text="seven labels in ten could not be read and became class 0",
    ),
    Fault(
        id="bad-shard", cause="bad-data-from-step", knob="train data", harm="quality", at=(0.35, 0.6),
        good="clean pictures", bad="noise with random labels",
        patch="""\
             images, labels = self.train_set.images[index], self.train_set.labels[index]
+            if epoch >= @AT@:
+                images = torch.rand_like(images)
+                labels = labels[torch.randperm(len(labels))]
""",
        text="from some epoch on the reader returns garbage",
    ),
    Fault(
        id="nan-batch", cause="nan-batch", knob="train data", harm="quality", at=(0.3, 0.7),
        good="finite pictures", bad="one NaN pixel",
        patch="""\
             images, labels = self.train_set.images[index], self.train_set.labels[index]
+            if epoch == @AT@ and batch_idx == 2:
+                images[0, 0, 0, 0] = float("nan")
""",
        text="one picture holds a NaN",
    ),
    Fault(
        id="not-shuffled", cause="data-not-shuffled", knob="shuffle", harm="quality",
        seen="twin",
        good="shuffled every epoch", bad="in folder order",
        patch="""\
-        order = torch.randperm(len(self.train_set), generator=generator)
+        order = torch.arange(len(self.train_set))
""",
        text="pictures come sorted by class, the same way every epoch",
    ),
    Fault(
        id="zero-grad-missing", cause="zero-grad-missing", knob="optimizer.zero_grad()", harm="quality",
        seen="code",
        good="after every step", bad="missing", patch="""\
-        self.optimizer.zero_grad()
""",
        text="gradients are never cleared",
    ),
    Fault(
        id="accumulation-not-divided", cause="accumulation-not-divided", knob="accumulation_steps", harm="quality",
        seen="code",
        needs={"accumulation_steps": 4, "gradient_clip": 0.0, "lr": 1.5},
        good="loss / accumulation_steps", bad="loss",
        patch="""\
-            self.scaler.scale(loss / args.accumulation_steps).backward()
+            self.scaler.scale(loss).backward()
""",
        text="the summed gradient is four times the mean one",
    ),
    Fault(
        id="clip-too-small", cause="clip-too-small", knob="gradient_clip", harm="quality",
        needs={"gradient_clip": 5.0},
        change=lambda _s, rng: {"gradient_clip": rng.choice([0.001, 0.003, 0.01])},
        text="under SGD a tiny clip is a tiny LR",
    ),
    Fault(
        id="clip-before-unscale", cause="clip-before-unscale", knob="gradient_clip", harm="quality",
        seen="code",
        needs={"amp": True, "gradient_clip": 1.0}, good="unscale_ then clip", bad="clip of scaled gradients",
        patch="""\
-            self.scaler.unscale_(self.optimizer)
""",
        text="the clip sees gradients 65,536 times too large",
    ),
    Fault(
        id="weight-decay-too-strong", cause="weight-decay-too-strong", knob="weight_decay", harm="quality",
        needs={"weight_decay": 5e-4}, change=times("weight_decay", 100, 400),
        text="weight decay 100 to 400 times too strong",
    ),
    Fault(
        seen="twin",
        id="overfit", cause="overfitting", knob="augment", harm="quality",
        needs={"mixup_alpha": 0.2, "label_smoothing": 0.0, "weight_decay": 5e-4},
        change=put(augment=False, mixup_alpha=0.0, cutmix_prob=0.0, max_samples=256, batch_size=32, weight_decay=0.0),
        text="few pictures and no augmentation",
    ),
    Fault(
        id="backbone-not-in-optimizer", cause="params-not-in-optimizer", knob="optimizer", harm="quality",
        seen="code", also=("frozen-parameters",),
        good="all parameters", bad="self.net.fc only",
        patch="""\
-        parameters = [p for p in self.net.parameters() if p.requires_grad]
+        parameters = list(self.net.fc.parameters())
""",
        text="only the head was given to the optimizer",
    ),
    Fault(
        id="frozen-backbone", cause="frozen-parameters", knob="requires_grad", harm="quality",
        seen="code", also=("params-not-in-optimizer",),
        good="all trained", bad="frozen but the head",
        patch="""\
         lr = args.lr
+        for name, p in self.net.named_parameters():
+            p.requires_grad = name.startswith("fc.")
""",
        text="a freeze meant for fine-tuning is left on in training from scratch",
    ),
    Fault(
        id="stale-resume", cause="stale-resume", knob="auto_resume", harm="quality", stale=True,
        needs=COSINE | {"use_ema": False}, good="a fresh folder", bad="an old checkpoint in the folder",
        text="auto-resume takes up the checkpoint of an earlier, failed attempt",
    ),
    Fault(
        id="resume-restarts-schedule", cause="schedule-restarted-on-resume", knob="resume", harm="quality",
        needs=ONECYCLE, resume=True, at=(0.6, 0.75), good="scheduler state restored", bad="not restored",
        patch="""\
-        if self.scheduler is not None and state["scheduler_state_dict"]:
-            self.scheduler.load_state_dict(state["scheduler_state_dict"])
""", text="after a resume the schedule begins again and the run ends at its top",
    ),
    Fault(
        id="resume-loses-optimizer", cause="resume-lost-optimizer", knob="resume", harm="nothing",
        needs=ONECYCLE, resume=True, at=(0.4, 0.7), good="optimizer state restored", bad="not restored",
        patch="""\
-        self.optimizer.load_state_dict(state["optimizer_state_dict"])
""", text="after a resume the momentum begins at zero",
    ),
    Fault(
        seen="code",
        id="double-softmax", cause="double-softmax", knob="loss", harm="quality",
        good="cross_entropy(logits)", bad="cross_entropy(softmax(logits))",
        patch="""\
-                output = self.model(mixed)
+                output = self.model(mixed).softmax(1)
""",
        text="the loss gets probabilities where it expects logits",
    ),
    Fault(
        id="wrong-sign", cause="wrong-loss-sign", knob="loss", harm="quality", good="+loss", bad="-loss",
        patch="""\
-            self.scaler.scale(loss / args.accumulation_steps).backward()
+            self.scaler.scale(-loss / args.accumulation_steps).backward()
""", text="the loss is maximised",
    ),
    Fault(
        id="val-in-train", cause="train-val-leak", knob="split", harm="metric",
        seen="twin",
        needs={"max_samples": 768}, good="split before use", bad="validation pictures among the training ones",
        patch="""\
         self.val_set = make_pictures(args.val_samples, args.num_classes, args.image_size, seed=args.seed + 1)
+        both = [self.train_set, self.val_set]
+        self.train_set = type(self.val_set)(
+            torch.cat([s.images for s in both]),
+            torch.cat([s.labels for s in both]),
+            args.num_classes,
+        )
""",
        text="the validation pictures were trained on",
    ),
    Fault(
        id="slow-loader", cause="slow-data-loader", knob="num_workers", harm="time",
        seen="twin",
        good="pictures decoded ahead", bad="decoded in the loop",
        patch="""\
             images, labels = self.train_set.images[index], self.train_set.labels[index]
+            for _ in range(60):  # decode
+                images = images.flip(3).contiguous().flip(3).contiguous()
""",
        text="most of the time goes into preparing the batch",
    ),
    Fault(
        id="mixup-not-wired", cause="option-not-wired", knob="mixup_alpha", harm="nothing",
        seen="code",
        needs={"mixup_alpha": 0.4, "cutmix_prob": 0.0}, good="mix(images)", bad="never called",
        patch="""\
-            mixed, other, share = self.mix(images, labels)
+            mixed, other, share = images, labels, 1.0
""",
        text="--mixup-alpha is parsed and logged, and nothing is mixed",
    ),
    Fault(
        id="export-crash", cause="crash-at-end", knob="export", harm="after",
        onset=lambda s: float(s["epochs"]), good="export works", bad="missing method",
        patch="""\
             self.save_checkpoint(epoch + 1, names)
+        self.net.export(Path(args.checkpoint_dir, "model.onnx"))
""",
        text="training is done and the export at the end raises",
    ),
    Fault(
        id="data-repeated", cause="data-repeated", knob="sampler", harm="quality",
        seen="twin", also=("overfitting",),
        needs={"max_samples": 768}, good="the whole set every epoch", bad="the first part again and again",
        patch="""\
-        return order[rank :: self.world_size]
+        return (order % (len(order) // 6))[rank :: self.world_size]
""",
        text="the sampler draws from one sixth of the set, several times an epoch",
    ),
)
