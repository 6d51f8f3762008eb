"""The temperature flattens the softmax until nothing tells the choices apart.

## What happens
Similarities of normalised vectors lie between −1 and 1. Divided by a temperature of 5 they differ by 0.4 at most: the
softmax is nearly uniform whatever the network does, and so is its gradient.

## How it shows
The loss stays close to the logarithm of the number of choices and falls by a few percent at most, while the ranking of
the choices may still improve.

## What else looks like this
A learning rate that is too low, and a collapsed encoder; both keep the loss at the same logarithm at any temperature.

## When this is wrong
The scores are not bounded (plain logits), or the temperature belongs to distillation, where 2 to 5 is usual.

## Fix
A temperature of 0.05 to 0.2 for normalised vectors, or one that is learned.

## Trial
Compute the lowest loss that perfect vectors could reach at this temperature: it lies close to where the run stands.

## References
- Chen, Kornblith, Norouzi and Hinton 2020, SimCLR (arXiv:2002.05709), table 5.
- Wang and Liu 2021, Understanding the Behaviour of Contrastive Loss (arXiv:2012.09740).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import number

ID = "temperature-too-high"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "at-chance", "at-prior", "too-slow", "plateau", "stuck-from-start", "loss-moves-too-little",
)  # fmt: skip
SHOWS = {"temperature": "high", "train-gain": "low"}
FORBIDS = {"temperature": "in"}
PROVED_BY = ("temperature-extreme",)
TRIAL = "a short run at a tenth of the temperature: the loss leaves the logarithm of the number of choices"
USUAL = 0.1  # SimCLR; MoCo and CLIP have 0.07


def remedies(case: Case) -> tuple[Remedy, ...]:
    now = number(case.knob("loss.temperature"))
    edits = (Edit("loss.temperature", now, USUAL, "what normalised vectors need"),) if now and now > USUAL else ()
    return (Remedy("Lower the temperature to 0.1.", edits, "try", "the loss falls far below its first value"),)
