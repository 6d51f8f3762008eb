"""Which series a run is judged by: its training loss, its validation loss and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from wheeltapper.run.model import Run, Series, repeated
from wheeltapper.study import Absent, derived

# Metrics people choose checkpoints by, most telling first; the rest of a run's metrics support them.
PRIMARY = (
    "accuracy", "map", "map50", "iou", "dice", "psnr", "bleu", "rouge", "f1", "auc", "mcc", "correlation", "wer",
    "cer", "fid", "ssim", "lpips", "return", "success", "error", "rmse", "mae", "mse", "perplexity", "bits", "nll",
    "top5", "map75", "recall", "precision", "kid", "inception_score", "meteor", "cider", "niqe", "dists", "mape",
    "score", "similarity",
)  # fmt: skip
SHARES = ("accuracy", "iou", "dice", "map", "error")
NO_SCORE = {"loss", "part"}  # losses are curves of their own
# Scores that move with a threshold or repeat another: they support a claim, they do not carry one.
SUPPORTING = {"precision", "recall", "top5", "top5_error", "map75"}
# Scores that an adversarial loss trades away by design, and how many dB of them at most: perfect looks cost a factor of
# two in the squared error (Blau and Michaeli 2018, The Perception-Distortion Tradeoff, theorem 2); twice that is asked for.
DISTORTION = {"psnr", "ssim", "mse", "rmse", "mae"}
TRADED_DB = 6.0
PERCEPTUAL = {"lpips", "dists", "fid", "kid", "niqe"}
# Losses of adversarial and policy-gradient training need not fall (NORM-03, NORM-04).
STATED = re.compile(r"(?i)(^|[^a-z])(val|valid|validation|test|eval|evaluation|dev)(?=$|[^a-z])")
COMMON = 0.8  # of the rows must hold all parts of a loss
BATCHES = 20
FEWEST = 3  # values: fewer are a word of a sentence, no curve
OWN_RULES = {"gan_d", "gan_g", "gan_real", "gan_fake", "policy_loss", "value_loss", "entropy", "kl"}


@dataclass(frozen=True, slots=True)
class Task:
    """What kind of training this is, as far as the record shows it; decides which rules apply."""

    adversarial: bool
    reinforcement: bool
    diffusion: bool


@derived
def task(run: Run) -> Task:
    quantities = {s.quantity for s in run.series.values() if int(s.finite.sum()) >= FEWEST}
    raws = {s.raw.lower() for s in run.series.values()}
    settings = " ".join(leaf.dotted.lower() for tree in run.configs for leaf in tree.leaves)
    diffusion = {"loss_q0", "loss_q3"} <= raws or any(
        word in settings
        for word in ("sigma_max", "sigma_data", "noise_schedule", "diffusion", "p_mean", "num_timesteps")
    )
    return Task(
        adversarial=bool({"gan_d", "gan_g"} <= quantities or {"gan_real", "gan_fake"} <= quantities),
        reinforcement=bool({"return", "policy_loss", "value_loss"} & quantities),
        diffusion=diffusion,
    )


@derived
def train_loss(run: Run, task: Task) -> Series:
    """The whole training loss; else the sum of its components where they stand on the same rows."""
    if task.adversarial:
        raise Absent("adversarial training has no loss that must fall", ("a quality metric such as FID",))
    if task.reinforcement:
        raise Absent("the loss of a policy says nothing about its quality", ("episode return",))
    found = _whole_loss(run, "train")
    if found is None:
        raise Absent("no training loss is logged", ("train/loss",))
    return found


@derived
def val_loss(run: Run) -> Series:
    found = _whole_loss(run, "val") or _whole_loss(run, "test")
    if found is None:
        raise Absent("no validation loss is logged", ("val/loss",))
    return found


def _whole_loss(run: Run, split: str) -> Series | None:
    whole = [s for s in run.series.values() if s.quantity == "loss" and s.split == split and not s.part and len(s) >= 2]
    if whole:
        # An evaluation is told by its mean; Lightning logs its batches beside it ("val_loss_step", "val_loss_epoch").
        means = [s for s in whole if split == "train" or s.window != "batch"] or whole
        return max(means, key=lambda s: (s.window != "running", int(s.finite.sum()) > 2, not _crowded(s), len(s)))
    for quantity in ("nll", "bits", "perplexity", "mse", "rmse", "mae"):
        other = [s for s in run.series.values() if s.quantity == quantity and s.split == split and not s.part]
        if other:
            return max(other, key=len)
    return _sum_of_parts([s for s in run.series.values() if s.quantity == "loss" and s.split == split and s.part])


def _crowded(series: Series) -> bool:
    """A name that stands twice on one line ("train : [loss = 1.2], test : [loss = 1.3]") is no single story. A progress bar
    writes all its rows over one line, each at a position of its own: that is one."""
    again = repeated(series.lines, series.at)
    return bool(len(again)) and series.rank is None and float(np.mean(again)) > 0.1


def _sum_of_parts(parts: list[Series]) -> Series | None:
    """Frameworks that log only components (YOLO) train on their sum; weights are already inside."""
    if len(parts) < 2:
        return max(parts, key=len) if parts else None
    lead = max(parts, key=len)
    if lead.clock == "row":  # lists of numbers in files of their own need not be of one training
        parts = [s for s in parts if s.files == lead.files]
        if len(parts) < 2:
            return None
    same = [s for s in parts if s.clock == lead.clock and len(s) == len(lead) and np.array_equal(s.at, lead.at)]
    if len(same) == 1:
        return _sum_at_common(lead, [s for s in parts if s.clock == lead.clock and len(s) >= COMMON * len(lead)])
    total = np.sum([s.values for s in same], axis=0)
    return replace(lead, name=f"{lead.split}/loss (sum of {len(same)} parts)", part=None, values=total)


def _sum_at_common(lead: Series, parts: list[Series]) -> Series:
    """Parts that miss a row here and there are summed where all of them stand: one part alone is not the loss."""
    common = lead.at
    for part in parts:
        common = np.intersect1d(common, part.at)
    if len(parts) < 2 or len(common) < COMMON * len(lead):
        return replace(lead, name=f"{lead.split}/loss (sum of 1 parts)", part=None)
    total = np.zeros(len(common))
    for part in parts:
        total += part.values[np.unique(part.at, return_index=True)[1]][np.isin(np.unique(part.at), common)]
    rows = np.unique(lead.at, return_index=True)[1][np.isin(np.unique(lead.at), common)]
    return replace(
        lead,
        name=f"{lead.split}/loss (sum of {len(parts)} parts)",
        part=None,
        at=common,
        values=total,
        lines=lead.lines[rows],
        file_of=lead.file_of[rows],
        clocks={clock: track[rows] for clock, track in lead.clocks.items()},
    )


@derived
def loss_parts(run: Run) -> tuple[Series, ...]:
    parts = tuple(
        s for s in run.series.values() if s.quantity == "loss" and s.part and s.split == "train" and len(s) >= 3
    )
    if not parts:
        raise Absent("no components of the training loss are logged", ("the parts of the loss",))
    return parts


@derived
def val_metrics(run: Run) -> tuple[Series, ...]:
    """Quality metrics with a known direction, most telling first: what users judge the model by."""
    rank = {quantity: i for i, quantity in enumerate(PRIMARY)}
    scores = [s for s in run.series.values() if s.quantity and s.quantity not in NO_SCORE and s.better in ("up", "down") and len(s) >= 2]
    found = [s for s in scores if s.split in ("val", "test") or s.quantity in ("return", "success")]
    # "psnr" beside "val_psnr" is that of training.
    told = {s.quantity for s in found if STATED.search(s.raw)}
    found = [s for s in found if s.quantity not in told or STATED.search(s.raw) or s.window == "eval"]
    bare = [s for s in scores if s.split is None and s.quantity in rank]
    found = found or [s for s in bare if s.quantity in SHARES and _held_out(run, s)]
    if not found and not any(s.quantity == "loss" and s.split in ("val", "test") for s in run.series.values()):
        found = [s for s in bare if s.quantity in (*SHARES, "f1", "auc", "psnr")]  # all there is
    if not found:
        raise Absent("no validation metric is logged", ("a metric on held-out data",))
    means = {(s.quantity, s.split, s.part) for s in found if s.window != "batch"}
    # A few batches of a first evaluation are no evaluations.
    few = {s.name for s in found if s.window == "batch" and s.split != "train" and int(s.finite.sum()) < BATCHES}
    found = [s for s in found if s.window != "batch" or not (s.name in few or (s.quantity, s.split, s.part) in means)]
    if not found:
        raise Absent("no validation metric is logged but on single batches", ("a metric on held-out data",))
    last = len(rank)
    return tuple(sorted(found, key=lambda s: (rank.get(s.quantity or "", last) + (last if s.part else 0), -len(s), s.name)))


def _held_out(run: Run, series: Series) -> bool:
    """fastai's table: train_loss, valid_loss, accuracy. A score beside both losses is of the held-out set; beside Keras's
    bare "loss" it is of the training set."""
    whole = [s for s in run.series.values() if s.quantity == "loss" and not s.part]
    named = [s for s in whole if s.split == "train" and "train" in s.raw.lower()]
    tables = [s for s in whole if s.split == "val" and any(_same_rows(s, other) for other in named)]
    return series.window == "eval" or any(_same_rows(series, table) for table in tables)


def _same_rows(a: Series, b: Series) -> bool:
    return a.clock == b.clock and len(a) == len(b) and bool(np.array_equal(a.lines, b.lines)) and a.files == b.files


def speaks(fallen: Iterable[tuple[Series, float]], scores: Iterable[Series], task: Task | None = None) -> bool:
    """Whether the scores that fell, each with how far, speak for the model: one of the whole does; a score that is logged
    by data set or by class only does where it fell on all of them."""
    fallen, scores = list(fallen), [s for s in scores if s.quantity not in SUPPORTING]
    down = {s.name for s, _ in fallen}
    # Training for looks: an opponent is there, or a score of looks holds while those of distortion fall.
    looks = (task is not None and task.adversarial) or any(s.quantity in PERCEPTUAL and s.name not in down for s in scores)
    traded = DISTORTION if looks else ()
    names = {
        s.name for s, drop in fallen if s.quantity not in traded or (s.quantity == "psnr" and drop > TRADED_DB)
    }
    for quantity in {s.quantity for s in scores}:
        alike = [s for s in scores if s.quantity == quantity]
        whole = [s for s in alike if not s.part]
        if any(s.name in names for s in whole) or (not whole and all(s.name in names for s in alike)):
            return True
    return False


def worth_acting(series: Series, level: float) -> float:
    """The least change that anybody would act on: two points of a share (or a tenth of a small one), 3 % of another score."""
    if series.unit in ("%", "fraction"):
        return min(0.02 * (100.0 if series.unit == "%" else 1.0), 0.1 * abs(level))
    return 0.03 * abs(level)


@derived
def main_metric(val_metrics: tuple[Series, ...]) -> Series:
    return val_metrics[0]


@derived
def train_accuracy(run: Run) -> Series:
    found = [s for s in run.series.values() if s.quantity == "accuracy" and s.split in ("train", None) and len(s) >= 2]
    if not found:
        raise Absent("no training accuracy is logged", ("train/accuracy",))
    return max(found, key=lambda s: (s.split == "train", not s.part, len(s)))


@derived
def grad_norm(run: Run) -> Series:
    found = [s for s in run.series.values() if s.quantity == "grad_norm" and int(s.finite.sum()) >= 3]
    if not found:
        raise Absent("the gradient norm is not logged", ("grad_norm before clipping",))
    chosen = max(found, key=lambda s: (not s.part, len(s)))
    if not np.any(chosen.values[chosen.finite] != 0):
        raise Absent("the gradient norm is printed as 0 throughout: a placeholder, not a measurement", ("grad_norm",))
    return chosen


@derived
def loss_scale(run: Run) -> Series:
    found = [s for s in run.series.values() if s.quantity == "loss_scale" and int(s.finite.sum()) >= 2]
    if not found:
        raise Absent("the loss scale is not logged", ("loss scale",))
    chosen = max(found, key=lambda s: (not s.part, len(s)))
    if np.all(chosen.values[chosen.finite] <= 0):
        raise Absent("the loss scale is printed as -1 or 0: a placeholder, no scaler is at work", ("loss scale",))
    return chosen


@derived
def lr(run: Run) -> Series:
    found = [s for s in run.series.values() if s.quantity == "lr" and int(s.finite.sum()) >= 2]
    if not found:
        raise Absent("the learning rate is not logged", ("lr",))
    return max(found, key=lambda s: (not s.part, len(s)))


@derived
def judged(run: Run) -> tuple[Series, ...]:
    """Every series in which trouble of the training itself would show."""
    skip = {"duration", "throughput", "memory", "lr", "momentum", "weight_decay", "total_flos", "clip_threshold"}
    found = tuple(s for s in run.series.values() if s.quantity and s.quantity not in skip)
    if not found:
        raise Absent("no loss, metric or gradient norm is logged", ("train/loss",))
    return found
