"""Label smoothing takes most of the label away.

## What happens
With a smoothing of 0.6 over ten classes the right one keeps 0.46 of the target. The loss has a floor of its own, and
the logits are held so close together that confidence means nothing.

## How it shows
Accuracy rises as usual while the training loss stops at the entropy of the smoothed target; probabilities of the
predicted class stay near one half.

## What else looks like this
A softmax that is applied twice gives a floor, too, at another height.

## When this is wrong
Smoothing is 0.1 or so: its floor is expected.

## Fix
Smoothing of 0.1, or none.

## Trial
Compute the entropy of the smoothed target: the training loss stands a little above it.

## References
- Szegedy et al. 2016, Rethinking the Inception Architecture (arXiv:1512.00567).
- Müller, Kornblith and Hinton 2019, When Does Label Smoothing Help? (arXiv:1906.02629).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number

ID = "label-smoothing-too-strong"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("loss-moves-too-little", "plateau", "barely-learned", "too-slow", "val-below-train")
SHOWS = {"loss-against-score": "low", "loss-moves-too-little": "seen", "beyond-practice": "high"}
FORBIDS = {"memorised": "seen", "loss-against-score": "high"}
TRIAL = "compute the entropy of the smoothed target: the training loss stands a little above it"
USUAL = 0.1


def remedies(case: Case) -> tuple[Remedy, ...]:
    now = number(case.knob("loss.label_smoothing"))
    edits = (Edit("loss.label_smoothing", now, USUAL, "the usual strength"),) if now and now > USUAL else ()
    return (Remedy("Smooth the labels by 0.1 at most.", edits, "try", "the training loss falls below its old floor"),)
