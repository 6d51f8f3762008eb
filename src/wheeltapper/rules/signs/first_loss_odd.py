"""The very first loss is not that of an untrained model.

## What it sees
A first training loss, from the first few updates, far above or below the logarithm of the number of classes
or tokens.

## Why it matters
An untrained classifier knows nothing, so its loss is ln C. Far above: the logits are large at the start, or
the loss is summed instead of averaged. Far below: pretrained weights, masked labels, a wrong division, or a
leak.

## How it decides
Arithmetic. Random logits of standard deviation s add s²/2 to ln C, so a first loss above ln C + 4.5
means s of 3 or more, beyond any usual initialisation. Below half of ln C, at the second update at most,
nothing can have been learned yet. Only where the settings tell C, the loss has no other parts, the record
begins at the start and no pretrained weights are named. Always a note: it says where to look. A ratio to ln C
that equals the accumulation or the world size is named.

## When it is wrong
Pretrained weights that the settings do not mention; a prior far from uniform with its bias set; distillation.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- Stanford CS231n notes, neural-networks-3 (cs231n.github.io).
- NVlabs/edm, training/loss.py.
- louaaron/Score-Entropy-Discrete-Diffusion, losses.py, graph_lib.py and noise_lib.py.
"""

from __future__ import annotations

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.baselines import logit_std_of
from wheeltapper.study.trivial import Trivial

ID = "first-loss-odd"
LIVE = True
UPDATES, EARLIEST, LOGITS = 10, 2, 3.0


def look(run: Run, train_loss: Series, trivial_loss: Trivial, knobs: Knobs) -> Answer:
    if knobs.value("finetune.from") or knobs.value("resume.from") or any(s.kind == "resume" for s in run.segments[:1]):
        return Unknown("the run does not start from scratch", ("a run from scratch",))
    if train_loss.clock not in ("step", "micro_step") or train_loss.at[0] > UPDATES or not train_loss.finite[0]:
        return Unknown("the loss of the first updates is not logged", ("the loss before the first update",))
    first, level = float(train_loss.values[0]), trivial_loss.loss
    high = first > level + LOGITS**2 / 2
    low = first < 0.5 * level and train_loss.at[0] <= EARLIEST
    if not (high or low):
        return Clear(f"the first loss is {first:.4g}; an untrained model has {level:.4g} ({trivial_loss.words})")
    text = f"the first loss, at {where(train_loss, 0)}, is {first:.4g}; an untrained model has {level:.4g} ({trivial_loss.words})"
    ratio = first / level
    names = {"accumulation": knobs.value("batch.accumulation"), "world size": knobs.value("world_size")}
    same = [
        name
        for name, k in names.items()
        if isinstance(k, (int, float)) and k > 1 and (abs(ratio / k - 1) < 0.05 or abs(ratio * k - 1) < 0.05)
    ]
    if same:
        text += f": {ratio:.3g} times, which is the {same[0]}"
    elif high:
        text += f"; logits with a standard deviation of {logit_std_of(first, round(2.718281828**level)) or 0:.2g} would explain it"
    return seen(ID, train_loss, text, severity="note", grade="suspected", onset=0, first=first, trivial=level)


_C = "num_classes: 10\nlr: 0.1\nepochs: 5\n"
CASES = {
    "finding": {"train/loss": [23.0, 12.0, 5.0, 2.5, 2.2, 2.0], "config": _C},
    "clear": {"train/loss": [2.41, 2.3, 2.2, 2.0, 1.9, 1.8], "config": _C},
    "below": {"train/loss": [0.575, 0.57, 0.56, 0.5], "config": _C + "accumulation_steps: 4\n", "expect": "note"},
    "unknown": {"train/loss": [2.3, 2.2]},
}
