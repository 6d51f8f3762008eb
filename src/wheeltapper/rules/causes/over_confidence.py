"""The model grows over-confident: the validation loss rises while its decisions stay as good.

## What happens
Once the training items are right, the cross entropy falls only by larger logits. On held-out items the few
wrong answers become very costly, though their number does not grow.

## How it shows
The validation loss turns and rises; accuracy holds or still improves.

## What else looks like this
Overfitting proper, where the decisions get worse as well; a divergence, where training rises too.

## When this is wrong
Accuracy falls with the loss: then the model itself is worse.

## Fix
Choose the checkpoint by the score that counts; one temperature fitted on held-out items mends the
probabilities; label smoothing in the next run.

## Trial
Fit a temperature on half of the validation set: the loss of the other half must fall below its old best.

## References
- Guo et al. 2017, On Calibration of Modern Neural Networks (arXiv:1706.04599).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "over-confidence"
AREA = "evaluation"
ABOUT = "learning"
EXPLAINS = ("declined-after-peak", "train-val-gap")
SHOWS = {"val-loss-lost": "high", "score-lost": "in", "loss-against-score": "low"}
FORBIDS = {"gap-at-guessing": "seen", "val-loss-lost": "in"}
TRIAL = "fit a temperature on half of the validation set: the loss of the other half must fall below its old best"


def remedies(case: Case) -> tuple[Remedy, ...]:
    smoothing = case.knob("loss.label_smoothing")
    edits = (Edit("loss.label_smoothing", smoothing, 0.1, "bounds the logits"),) if smoothing in (0, 0.0) else ()
    return (
        Remedy(
            "Choose the checkpoint by accuracy; fit a temperature, or smooth the labels next time.",
            edits,
            "try",
            "the validation loss no longer rises while accuracy holds",
        ),
    )
