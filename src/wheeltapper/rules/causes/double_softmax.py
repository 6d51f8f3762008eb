"""Softmax is applied twice: the loss cannot fall below a floor.

## What happens
The network ends in a softmax and the loss applies another. Probabilities lie between 0 and 1, so the cross-entropy of
C classes cannot fall below ln(1 + (C - 1)/e).

## How it shows
The training loss flattens exactly at that floor while accuracy rises; the total gain is under one nat.

## What else looks like this
Label smoothing and mixup have floors of their own; a plateau elsewhere is something else.

## When this is wrong
The loss is below the floor.

## Fix
Feed logits to the loss.

## Trial
Sum the outputs before the loss over the classes: 1 everywhere is the proof.

## References
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
- Cross-entropy of probabilities cannot fall below ln(1 + (C-1)/e): 1.461 for 10 classes, 5.910 for 1000.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "double-softmax"
AREA = "loop"
ABOUT = "learning"
EXPLAINS = ("plateau", "stuck-from-start", "at-chance", "at-prior", "too-slow", "loss-moves-too-little")
SHOWS = {"loss-moves-too-little": "seen", "loss-against-score": "low"}
FORBIDS = {"loss-against-score": "high", "memorised": "seen"}
PROVED_BY = ("double-softmax",)
TRIAL = "sum the outputs before the loss over the classes: 1 everywhere is the proof"
REMEDY = Remedy("Feed logits to the loss.", (), "safe", "the loss falls below the floor")
