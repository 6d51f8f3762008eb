"""Dropout leaves too little of the network to learn with.

## What happens
At a dropout of 0.8 every step sees a fifth of the units, scaled up fivefold. The signal that is left is mostly the
noise of which units were drawn; the expected network underfits.

## How it shows
The training loss stays high and noisy, and the held-out loss, computed without dropout, lies well below it.

## What else looks like this
A leak between the sets also puts the held-out loss below the training loss, but both are good then; label smoothing and
mixup raise the training loss by a constant.

## When this is wrong
The training set is learned by heart, or dropout is 0.5 or less in a wide network.

## Fix
Dropout 0.1 to 0.3; 0.5 at most, before the last layer.

## Trial
A short run without dropout: the training loss must fall much further in the same steps.

## References
- Srivastava et al. 2014, Dropout: A Simple Way to Prevent Neural Networks from Overfitting (JMLR 15).
- Liu et al. 2023, Dropout Reduces Underfitting (arXiv:2303.01500).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number

ID = "dropout-too-high"
AREA = "regularisation"
ABOUT = "learning"
EXPLAINS = ("barely-learned", "val-below-train", "too-slow", "plateau", "at-chance", "at-prior", "stuck-from-start")
SHOWS = {"dropout": "high"}
FORBIDS = {"dropout": "in", "memorised": "seen"}
TRIAL = "a short run without dropout: the training loss falls much further in the same steps"
USUAL = 0.1  # the middle of public configurations


def remedies(case: Case) -> tuple[Remedy, ...]:
    share = number(case.knob("augment.dropout"))
    edits = (Edit("augment.dropout", share, USUAL, "what most runs have"),) if share and share > USUAL else ()
    return (Remedy("Lower dropout to 0.1.", edits, "try", "training and held-out loss both fall further"),)
