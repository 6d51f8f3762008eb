"""The training loss has been creeping up for a long time.

## What it sees
A training loss that rose slowly but surely over the later part of the record, without diverging.

## Why it matters
The playbook calls a rising training loss the mark of a pipeline fault: but first harder data, a new loss
term, a rising learning rate or a growing penalty must be excluded.

## How it decides
Block medians from the best stretch to the end: at least 20 blocks and a tenth of the record (five correlation
times at the largest correlation the blocks show), a positive slope at p < 1e-3 with the autocorrelation taken
out, a rise from the best level that is significant at 1e-3 after picking the best, and at
least 3 % of the loss. Less is no news: on the healthy records of the corpus the training loss loses up to 4.4
% of its gain (LOG.md). What "diverged" reports is left to it. A watch; suspected where the loss is not
comparable over time or the learning rate rose meanwhile.

## When it is wrong
Curricula, growing resolution, annealed terms and warm restarts raise the loss by design.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Our simulation: a slope test at 5 % fires on 32 % of trendless series with autocorrelation 0.6, on 9 %
  after the correction by n(1-r)/(1+r).
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.rules.signs.diverged import LEAST, LOST
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians, fall_from_best, slope_p

ID = "slow-rise"
LIVE = True
BLOCKS, RISE, P = 20, 0.03, 1e-3


def look(train_loss: Series, shifting: str = "", lr: Series | None = None) -> Answer:
    good = np.flatnonzero(train_loss.finite)
    if len(good) < 2 * BLOCKS:
        return Unknown(f"fewer than {2 * BLOCKS} finite training losses", ("a longer record",))
    spots, levels = block_medians(train_loss.values[good], 200)
    fall = fall_from_best(levels)
    if fall is None:
        return Unknown("too few training losses", ("a longer record",))
    start = fall.best_index
    tail = levels[start:]
    level = max(abs(fall.best), abs(fall.last))
    if len(tail) < max(BLOCKS, len(levels) // 10) or fall.drop < RISE * level:
        return Clear(f"the loss ends {fall.drop / max(level, 1e-300):.1%} above its best level")
    slope, p = slope_p(spots[start:], tail)
    above_start = fall.last > fall.first + 3 * fall.sigma and fall.last > 1.05 * abs(fall.first)
    if slope <= 0 or p >= P or fall.p >= P:
        return Clear(f"the loss does not rise beyond its noise (p = {max(p, fall.p):.2g})")
    if fall.drop >= LEAST * level and (fall.share >= LOST or above_start):
        return Clear("the loss rises for good: see diverged")
    index = int(good[round(float(spots[start]))])
    rising = _rate_rose(lr, train_loss, index)
    text = f"{train_loss.name} creeps up from {fall.best:.4g} to {fall.last:.4g} since {where(train_loss, index)}, {len(tail) / len(levels):.0%} of the record"
    text += f" ({shifting})" if shifting else "; the learning rate rose meanwhile" if rising else ""
    return seen(
        ID, train_loss, text, severity="watch", grade="suspected" if shifting or rising else "is-p", onset=index,
        p=max(p, fall.p), best=fall.best, last=fall.last, share=min(fall.share, 99.0),
    )  # fmt: skip


def _rate_rose(lr: Series | None, loss: Series, index: int) -> bool:
    at = None if lr is None else lr.on(loss.clock)
    if lr is None or at is None:
        return False
    later = lr.values[(at >= loss.at[index]) & lr.finite]
    return len(later) >= 2 and bool(later[-1] > 1.1 * later[0])


_down = [3.0 * 0.97**i + 1.0 + 0.004 * ((i * 7) % 5) for i in range(150)]
CASES = {
    "finding": {"train/loss": [*_down, *[1.03 + 0.002 * i + 0.004 * ((i * 7) % 5) for i in range(150)]]},
    "clear": {"train/loss": [*_down, *[1.03 + 0.004 * ((i * 7) % 5) for i in range(150)]]},
    "diverges": {"train/loss": [*_down, *[1.03 + 0.02 * i for i in range(150)]], "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
