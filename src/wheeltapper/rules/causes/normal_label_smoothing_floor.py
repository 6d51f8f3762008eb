"""A loss that stops well above zero is expected with label smoothing.

## What happens
The target itself has an entropy: with ε = 0.1 and 1000 classes no model gets below 1.015 nats.

## How it shows
The training loss flattens a little above that floor while accuracy is high.

## What else looks like this
Underfitting; a softmax applied twice (another fixed floor).

## When this is wrong
The loss stops far above the floor.

## Fix
Nothing to mend. Subtract the floor before judging the level.

## Trial
None needed: the floor is arithmetic.

## References
- Szegedy et al. 2016, Rethinking the Inception Architecture (arXiv:1512.00567).
- The entropy of the smoothed target.
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import ends
from wheeltapper.run.model import Series
from wheeltapper.simulate.baselines import label_smoothing_floor

ID = "normal-label-smoothing-floor"
AREA = "objective"
NORMAL = True


def expect(case: Case) -> str:
    smoothing, classes = case.knob("loss.label_smoothing"), case.knob("model.classes")
    train: Series | None = case.get("train_loss")
    if not isinstance(smoothing, (int, float)) or not isinstance(classes, (int, float)) or train is None:
        return ""
    if not 0 < smoothing < 1 or classes < 2 or train.quantity != "loss":
        return ""
    levels = ends(train)
    floor = label_smoothing_floor(int(classes), float(smoothing))
    # Most of what is left must be floor, else the floor explains little.
    if levels is None or not floor <= levels[1] < 2 * floor:
        return ""
    return (
        f"a training loss of {levels[1]:.3g} is expected not to reach zero: label smoothing {smoothing:g} over "
        f"{classes:g} classes sets a floor of {floor:.3g}"
    )
