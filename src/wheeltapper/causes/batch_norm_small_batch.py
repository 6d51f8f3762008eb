"""Batch norm is computed over too few samples.

## What happens
Each device normalises with the mean and variance of its own few samples. With one to four of them these are so
noisy that training and evaluation, which uses running averages, see different networks.

## How it shows
Validation jumps from one evaluation to the next, or stays far behind training from the start, with a small batch
per device in a network with batch norm; in training mode the same data scores well.

## What else looks like this
Overfitting (the gap grows with time), an evaluation in the wrong mode or with another normalisation.

## When this is wrong
The network has layer or group norm, its batch norm is frozen (as in detection), or samples hold many positions
each (segmentation at full resolution).

## Fix
Synchronised batch norm, group norm, frozen statistics, or more samples per device.

## Trial
Evaluate one checkpoint before and after recomputing the statistics on 200 training batches.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- The relative spread of a variance of n values is sqrt(2/(n-1)): 82 % at 4, 37 % at 16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import number
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import noise_of

ID = "batch-norm-small-batch"
AREA = "batch"
EXPLAINS = ("train-val-gap", "val-spike", "val-swings", "oscillating", "at-chance", "declined-after-peak")
PRIOR = -3.5
TRIAL = "evaluate one checkpoint before and after recomputing its statistics on 200 training batches"

FEW, ENOUGH = 4, 16  # group norm's paper: batch norm loses accuracy below 16 and badly at 2 to 4 (Wu and He 2018)
WITH = re.compile(r"resnet|resnext|densenet|mobilenet|efficientnet|inception|vgg\w*_bn|regnet|unet|shufflenet", re.I)
WITHOUT = re.compile(r"(?<![a-z])(vit|t5)|deit|swin|bert|gpt|llama|transformer|mixer|convnext|nfnet|mamba", re.I)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    name = str(case.knob("model.name") or "")
    batch = number(case.knob("batch.per_device"))
    if WITHOUT.search(name):
        return Excluded(f"{name} has no batch norm")
    if batch is None:
        return Excluded("the batch per device is not known")
    if batch >= ENOUGH:
        return Excluded(f"{batch:g} samples per device are enough for batch norm")
    if not WITH.search(name):
        return Excluded("nothing shows that the network has batch norm")
    if any(m.quantity in ("map", "map50", "map75") for m in case.get("val_metrics") or ()):
        return Excluded("a detector: its backbone's batch norm is frozen by custom")
    bits = 2.5 if batch <= FEW else 0.5
    out = [Evidence(bits, f"{name} normalises over {batch:g} samples per device", "batch")]
    metric: Series | None = case.get("main_metric")
    train: Series | None = case.get("train_loss")
    if metric is not None and train is not None and int(metric.finite.sum()) >= 8:
        x = metric.values[metric.finite]
        spread = noise_of(x).sigma / max(float(np.ptp(x)), 1e-12)
        if spread > 0.15:
            text = f"{metric.name} jumps by {spread:.0%} of its range between evaluations"
            out.append(Evidence(2.0, text, "noise"))
        elif spread < 0.03:
            out.append(Evidence(-2.0, f"{metric.name} is calm from one evaluation to the next", "noise"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    batch = number(case.knob("batch.per_device"))
    edits = (Edit("batch.per_device", batch, ENOUGH, "enough for batch norm"),) if batch and batch < ENOUGH else ()
    return (
        Remedy(
            "Use synchronised or frozen batch norm, group norm, or more samples per device.",
            edits,
            "try",
            "recomputed statistics no longer change the score",
        ),
    )
