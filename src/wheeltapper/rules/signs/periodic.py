"""The training loss moves in step with evaluations, checkpoints or another fixed interval.

## What it sees
A bump of the training loss that comes back at the same phase of an interval of the settings: between
evaluations or between checkpoints.

## Why it matters
Whatever happens at that interval reaches into training: a mode that is not switched back, averaged weights
that are not swapped back, a random state that is reset.

## How it decides
The suspect periods come from the settings and from the spacing of the evaluations in the log; only those of
five whole cycles with a value in each of four phases are tested. The residual about the level of each cycle,
by phase, against cycles shifted at random, p < 0.002 over the number of periods tried; at least 2 %
of the loss and half the noise of a value. A period that is a whole number of epochs is left to the epoch. A
note; a watch from 10 % of the loss on.

## When it is wrong
Two periods that are nearly multiples of each other: moving the interval decides (the bumps must move with
it).

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- The test shifts each cycle at random against the others: a permutation test within blocks.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.phases import phases_of

ID = "periodic"
LIVE = True
P, NOTE, WATCH = 0.002, 0.02, 0.10


def look(
    run: Run, train_loss: Series, knobs: Knobs | None = None, val_loss: Series | None = None
) -> Answer | list[Finding]:
    if train_loss.clock != "step" or train_loss.window == "running":
        return Unknown("the loss is not logged by step", ("a loss logged by step",))
    good = train_loss.finite
    at, values = train_loss.at[good], train_loss.values[good]
    if len(values) < 20:
        return Unknown("fewer than twenty training losses", ("a longer record",))
    level = max(abs(float(np.median(values))), 1e-300)
    suspects = _periods(run, knobs, val_loss)
    tried = []
    for period, what in suspects.items():
        found = phases_of(at, values, period, least=NOTE * level, bins=4, draws=1999)
        if found is not None:
            tried.append((period, what, found))
    if not tried:
        return Unknown("no interval of the settings spans five cycles of the log", ("a loss logged more often",))
    out = []
    for period, what, found in tried:
        share = found.amplitude / level
        p = found.p * len(tried)
        if p >= P or share < NOTE or found.amplitude < 0.5 * found.noise:
            continue
        text = f"{train_loss.name} moves by {share:.1%} of its level with {what} (every {period:g} steps, {found.cycles} cycles)"
        out.append(
            seen(
                ID,
                train_loss,
                text,
                severity="watch" if share >= WATCH else "note",
                grade="is-p",
                onset=0,
                p=min(1.0, p),
                share=share,
                period=period,
            )
        )
    return out[:2] or Clear(f"nothing repeats with {', '.join(what for _, what, _ in tried)}")


def _periods(run: Run, knobs: Knobs | None, val_loss: Series | None) -> dict[float, str]:
    found: dict[float, str] = {}
    for knob, what in (("eval.every", "the evaluations"), ("checkpoint.every", "the checkpoints")):
        value = knobs.value(knob) if knobs is not None else None
        if isinstance(value, (int, float)) and value > 1 and knobs is not None and knobs[knob].unit == "steps":
            found.setdefault(float(value), what)
    if val_loss is not None and val_loss.clock == "step" and len(val_loss) > 5:
        gaps = np.diff(val_loss.at)
        gap = float(np.median(gaps))
        if gap > 1 and float(np.mean(gaps == gap)) > 0.9:
            found.setdefault(gap, "the evaluations")
    per = run.fact("steps_per_epoch")
    if isinstance(per, (int, float)) and per > 1:
        found = {p: what for p, what in found.items() if abs(p / per - round(p / per)) > 0.02 or p < 0.5 * per}
    return found


_rng = np.random.default_rng(4)
_still = 1.0 + 0.02 * _rng.standard_normal(2000)
_HF = "max_steps: 2000\nlearning_rate: 0.001\nper_device_train_batch_size: 8\nlogging_steps: 1\neval_steps: 100\neval_strategy: steps\n"
CASES = {
    "finding": {"train/loss": (_still + 0.1 * (np.arange(2000) % 100 < 20)).tolist(), "config": _HF},
    "clear": {"train/loss": _still.tolist(), "config": _HF},
    "unknown": {"train/loss": [1.0, 0.9]},
}
