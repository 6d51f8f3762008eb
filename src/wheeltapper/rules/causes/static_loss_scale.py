"""A fixed loss scale is used in half precision.

## What happens
A fixed scale cannot react: too high, and gradients overflow without a step being skipped; too low, and small gradients
vanish. A dynamic scaler searches the largest scale that works.

## How it shows
The logged loss scale is the same small number on every line while training is in fp16 and unstable.

## What else looks like this
A disabled scaler reports exactly 1 (bf16, fp32); a dynamic one that found its level changes now and then.

## When this is wrong
The run is in bf16 or fp32.

## Fix
Use dynamic loss scaling, or bf16.

## Trial
The first hundred steps with dynamic scaling: they must be stable where the fixed scale was not.

## References
- PyTorch, torch/amp/grad_scaler.py.
- bigscience-workshop/bigscience, experiments/gpt2-meg-ds-3d: one job, stable with a dynamic scale and
  diverged with a fixed one.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "static-loss-scale"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = ("diverged", "not-finite", "spiked", "slow-rise", "stuck-from-start")
SHOWS = {"loss-scale-fall": "in", "skill": "low"}
FORBIDS = {"loss-scale-fall": "high", "scale-collapse": "seen"}
TRIAL = "the first hundred steps with dynamic loss scaling, same data and seed"
REMEDY = Remedy(
    "Use dynamic loss scaling, or bf16.", (), "try", "the loss scale moves, and the loss falls from the first steps"
)
