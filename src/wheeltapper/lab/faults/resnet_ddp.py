"""Faults and benign oddities of resnet-ddp (case 004)."""

from __future__ import annotations

from functools import partial
from random import Random

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Fault = partial(faults.Fault, system="resnet-ddp")
Benign = partial(faults.Benign, system="resnet-ddp")

ONECYCLE: Settings = {"scheduler": "onecycle", "warmup_epochs": 8}
COSINE: Settings = {"scheduler": "cosine", "warmup_epochs": 3}
# The pieces of the script that faults change; each occurs once.
SCALED_LR = "        lr = args.lr\n"
STEP_SCHEDULER = """        if self.scheduler is not None and self.scaler.get_scale() >= scale:
            self.scheduler.step()
"""
LOAD_OPTIMIZER = '        self.optimizer.load_state_dict(state["optimizer_state_dict"])\n'
LOAD_SCHEDULER = """        if self.scheduler is not None and state["scheduler_state_dict"]:
            self.scheduler.load_state_dict(state["scheduler_state_dict"])
"""
SHARD = "        return order[rank :: self.world_size]\n"
TAKE = "            images, labels = self.train_set.images[index], self.train_set.labels[index]\n"
EVAL_IMAGES = "normalise(self.val_set.images[start : start + 100])"
LABELS = "        self.micro_batch = args.batch_size // args.accumulation_steps\n"
EPOCH = "            train_loss, train_acc = self.train_epoch(epoch)\n"
PARAMETERS = "        parameters = [p for p in self.net.parameters() if p.requires_grad]\n"


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
        id="lr-times-world-size", cause="lr-scaled-by-world-size", knob="lr", harm="quality",
        needs={"world_size": 8, "gradient_clip": 0.0, "lr": 0.8}, good="args.lr", bad="args.lr * self.world_size",
        patch=((SCALED_LR, "        lr = args.lr * self.world_size\n"),),
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
        id="no-schedule", cause="schedule-never-decays", knob="scheduler", harm="quality",
        needs=ONECYCLE, change=put(scheduler="none"), text="no schedule: the LR stays at its peak to the end",
    ),
    Fault(
        id="scheduler-never-stepped", cause="option-not-wired", knob="scheduler", harm="quality",
        needs=ONECYCLE, good="scheduler.step()", bad="never called",
        patch=((STEP_SCHEDULER, ""),), text="the schedule is built and logged, and never stepped",
    ),
    Fault(
        id="scheduler-stepped-per-epoch", cause="schedule-unit-mismatch", knob="scheduler", harm="quality",
        needs=ONECYCLE, good="stepped every update", bad="stepped every epoch",
        patch=(
            (STEP_SCHEDULER, ""),
            (EPOCH, EPOCH + "            if self.scheduler is not None:\n                self.scheduler.step()\n"),
        ),
        text="OneCycle is planned in updates and stepped once an epoch, so it never leaves the foot",
    ),
    Fault(
        id="onecycle-pre-step", cause="onecycle-overrun", knob="scheduler", harm="crash",
        needs=ONECYCLE, good="no step before training", bad="scheduler.step() at the start",
        patch=(
            ('            self.log("OneCycleLR scheduler:")\n',
             '            self.scheduler.step()\n            self.log("OneCycleLR scheduler:")\n'),
        ),
        onset=lambda s: float(s["epochs"]), text="one step too many: OneCycleLR raises on the last batch",
    ),
    Fault(
        id="onecycle-momentum", cause="onecycle-overrides-momentum", knob="momentum", harm="nothing",
        needs=ONECYCLE, good=0.9, bad="cycles 0.95 to 0.85",
        patch=(("                cycle_momentum=False,\n", ""),),
        text="OneCycleLR cycles the momentum and --momentum is ignored",
    ),
    Fault(
        id="resize-not-applied", cause="resize-not-applied", knob="progressive_resize", harm="nothing",
        needs={"progressive_resize": True}, good="size of the epoch", bad="size of epoch 0",
        patch=(("        size = self.image_size(epoch)\n        for batch_idx in",
                "        size = self.image_size(0)\n        for batch_idx in"),),
        text="the loader is built once, so the announced sizes never reach it",
    ),
    Fault(
        id="rank-seeds", cause="per-rank-seed", knob="seed", harm="nothing",
        needs={"world_size": 8}, good="one seed for all ranks", bad="seed + rank",
        patch=(("self.args.seed * 1000 + epoch)\n        order",
                "self.args.seed * 1000 + 31 * epoch + rank)\n        order"),),
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
        needs={"use_ema": True, "ema_decay": 0.95, "ema_every": 1},
        patch=(("            self.ema_model.update_parameters(self.net)\n",
                "            for average, live in zip(self.ema_model.parameters(), self.net.parameters()):\n"
                "                average.data.lerp_(live.data, 1 - args.ema_decay)\n"),),
        good="buffers averaged too", bad="parameters only",
        text="the average leaves the BatchNorm statistics as they were at the start",
    ),
    Fault(
        id="val-in-train-mode", cause="eval-in-train-mode", knob="model.eval()", harm="metric",
        good="model.eval()", bad="missing", needs={"use_ema": False},
        patch=(("        model.eval()\n        loss_sum, correct = 0.0, 0.0\n",
                "        loss_sum, correct = 0.0, 0.0\n"),),
        text="validation runs with the statistics of its own batches, which hold one or two classes each",
    ),
    Fault(
        id="val-not-normalised", cause="eval-normalisation-mismatch", knob="normalise", harm="metric",
        good="normalise", bad="raw images", patch=((EVAL_IMAGES, "self.val_set.images[start : start + 100]"),),
        text="validation pictures are not normalised",
    ),
    Fault(
        id="val-label-map", cause="eval-broken", knob="val labels", harm="metric",
        good="same class order", bad="another class order",
        patch=((LABELS, LABELS + "        order = torch.randperm(args.num_classes)\n"
                "        self.val_set = type(self.val_set)(\n"
                "            self.val_set.images, order[self.val_set.labels], args.num_classes\n        )\n"),),
        text="the validation folder numbers the classes in another order",
    ),
    Fault(
        id="labels-shuffled", cause="labels-shuffled", knob="train labels", harm="quality",
        good="labels of the pictures", bad="labels of other pictures",
        patch=((LABELS, LABELS + "        self.train_set.labels[:] = self.train_set.labels["
                "torch.randperm(len(self.train_set))]\n"),),
        text="labels no longer belong to their pictures",
    ),
    Fault(
        id="labels-broken", cause="labels-broken", knob="train labels", harm="quality",
        good="all labels read", bad="unread labels become class 0",
        patch=((LABELS, LABELS + "        self.train_set.labels[torch.rand(len(self.train_set)) < 0.7] = 0\n"),),
        text="seven labels in ten could not be read and became class 0",
    ),
    Fault(
        id="bad-shard", cause="bad-data-from-step", knob="train data", harm="quality", at=(0.35, 0.6),
        good="clean pictures", bad="noise with random labels",
        patch=((TAKE, TAKE + "            if epoch >= @AT@:\n                images = torch.rand_like(images)\n"
                "                labels = labels[torch.randperm(len(labels))]\n"),),
        text="from some epoch on the reader returns garbage",
    ),
    Fault(
        id="nan-batch", cause="nan-batch", knob="train data", harm="quality", at=(0.3, 0.7),
        good="finite pictures", bad="one NaN pixel",
        patch=((TAKE, TAKE + '            if epoch == @AT@ and batch_idx == 2:\n'
                '                images[0, 0, 0, 0] = float("nan")\n'),),
        text="one picture holds a NaN",
    ),
    Fault(
        id="not-shuffled", cause="data-not-shuffled", knob="shuffle", harm="quality",
        good="shuffled every epoch", bad="in folder order",
        patch=(("        order = torch.randperm(len(self.train_set), generator=generator)\n",
                "        order = torch.arange(len(self.train_set))\n"),),
        text="pictures come sorted by class, the same way every epoch",
    ),
    Fault(
        id="zero-grad-missing", cause="zero-grad-missing", knob="optimizer.zero_grad()", harm="quality",
        good="after every step", bad="missing", patch=(("        self.optimizer.zero_grad()\n", ""),),
        text="gradients are never cleared",
    ),
    Fault(
        id="accumulation-not-divided", cause="accumulation-not-divided", knob="accumulation_steps", harm="quality",
        needs={"accumulation_steps": 4, "gradient_clip": 0.0, "lr": 1.5},
        good="loss / accumulation_steps", bad="loss",
        patch=(("self.scaler.scale(loss / args.accumulation_steps)", "self.scaler.scale(loss)"),),
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
        needs={"amp": True, "gradient_clip": 1.0}, good="unscale_ then clip", bad="clip of scaled gradients",
        patch=(("            self.scaler.unscale_(self.optimizer)\n", ""),),
        text="the clip sees gradients 65,536 times too large",
    ),
    Fault(
        id="weight-decay-too-strong", cause="weight-decay-too-strong", knob="weight_decay", harm="quality",
        needs={"weight_decay": 5e-4}, change=times("weight_decay", 100, 400),
        text="weight decay 100 to 400 times too strong",
    ),
    Fault(
        id="overfit", cause="overfitting", knob="augment", harm="quality",
        needs={"mixup_alpha": 0.2, "label_smoothing": 0.0, "weight_decay": 5e-4},
        change=put(augment=False, mixup_alpha=0.0, cutmix_prob=0.0, max_samples=256, batch_size=32, weight_decay=0.0),
        text="few pictures and no augmentation",
    ),
    Fault(
        id="backbone-not-in-optimizer", cause="params-not-in-optimizer", knob="optimizer", harm="quality",
        good="all parameters", bad="self.net.fc only",
        patch=((PARAMETERS, "        parameters = list(self.net.fc.parameters())\n"),),
        text="only the head was given to the optimizer",
    ),
    Fault(
        id="frozen-backbone", cause="frozen-parameters", knob="requires_grad", harm="quality",
        good="all trained", bad="frozen but the head",
        patch=((PARAMETERS, '        for name, p in self.net.named_parameters():\n'
                '            p.requires_grad = name.startswith("fc.")\n' + PARAMETERS),),
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
        patch=((LOAD_SCHEDULER, ""),), text="after a resume the schedule begins again and the run ends at its top",
    ),
    Fault(
        id="resume-loses-optimizer", cause="resume-lost-optimizer", knob="resume", harm="nothing",
        needs=ONECYCLE, resume=True, at=(0.4, 0.7), good="optimizer state restored", bad="not restored",
        patch=((LOAD_OPTIMIZER, ""),), text="after a resume the momentum begins at zero",
    ),
    Fault(
        id="double-softmax", cause="double-softmax", knob="loss", harm="quality",
        good="cross_entropy(logits)", bad="cross_entropy(softmax(logits))",
        patch=(("                output = self.model(mixed)\n",
                "                output = self.model(mixed).softmax(1)\n"),),
        text="the loss gets probabilities where it expects logits",
    ),
    Fault(
        id="wrong-sign", cause="wrong-loss-sign", knob="loss", harm="quality", good="+loss", bad="-loss",
        patch=(("self.scaler.scale(loss / args", "self.scaler.scale(-loss / args"),), text="the loss is maximised",
    ),
    Fault(
        id="val-in-train", cause="train-val-leak", knob="split", harm="metric",
        needs={"max_samples": 768}, good="split before use", bad="validation pictures among the training ones",
        patch=((LABELS, "        both = [self.train_set, self.val_set]\n"
                "        self.train_set = type(self.val_set)(\n"
                "            torch.cat([s.images for s in both]),\n"
                "            torch.cat([s.labels for s in both]),\n            args.num_classes,\n        )\n" + LABELS),),
        text="the validation pictures were trained on",
    ),
    Fault(
        id="slow-loader", cause="slow-data-loader", knob="num_workers", harm="time",
        good="pictures decoded ahead", bad="decoded in the loop",
        patch=((TAKE, TAKE + "            for _ in range(60):  # decode\n"
                "                images = images.flip(3).contiguous().flip(3).contiguous()\n"),),
        text="most of the time goes into preparing the batch",
    ),
    Fault(
        id="mixup-not-wired", cause="option-not-wired", knob="mixup_alpha", harm="nothing",
        needs={"mixup_alpha": 0.4, "cutmix_prob": 0.0}, good="mix(images)", bad="never called",
        patch=(("            mixed, other, share = self.mix(images, labels)\n",
                "            mixed, other, share = images, labels, 1.0\n"),),
        text="--mixup-alpha is parsed and logged, and nothing is mixed",
    ),
    Fault(
        id="export-crash", cause="crash-at-end", knob="export", harm="crash",
        onset=lambda s: float(s["epochs"]), good="export works", bad="missing method",
        patch=(('        self.log(f"Training completed.',
                '        self.net.export(Path(args.checkpoint_dir, "model.onnx"))\n'
                '        self.log(f"Training completed.'),),
        text="training is done and the export at the end raises",
    ),
    Fault(
        id="data-repeated", cause="data-repeated", knob="sampler", harm="quality",
        needs={"max_samples": 768}, good="the whole set every epoch", bad="the first part again and again",
        patch=((SHARD, "        return (order % (len(order) // 6))[rank :: self.world_size]\n"),),
        text="the sampler draws from one sixth of the set, several times an epoch",
    ),
)

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
        patch=((TAKE, TAKE + "            if epoch == @AT@ and batch_idx == 1:\n"
                "                labels = labels[torch.randperm(len(labels))]\n"),),
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
