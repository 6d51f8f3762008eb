"""A warning before the loss blows up: the gradient norm becomes erratic while the loss no longer improves.

A training that is pushed past what it can bear does not first show it in single large norms, nor in the level of the
norm (both come late, LOG.md): the norm begins to scatter from step to step, several times as far as it did, hundreds of
steps before the loss runs away. The scatter is judged in blocks of steps against the run itself at its best loss, so
that whatever the norm does while the loss still falls is no sign of trouble. A rate that was put up again, to no more
than the run has borne before (a restart), explains a scatter; one beyond all it has borne does not.

It is a warning and no alarm: LOG.md has how often it was right, and the text of the warning says so.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.guard.record import StepRecord

BLOCK = 32  # steps; the mean deviation of 32 is known to about 13 %
SMOOTH = 8  # blocks whose median loss must be the lowest so far for them to be the reference
LAST = 4  # blocks that are judged, of which three must have the scatter
HISTORY = 64  # blocks before the reference from which the noise of the scatter is taken
START = 16  # blocks before anything is said: a start is no state to compare with
# A batch of a ninth scatters three times as far, and batches are seldom made smaller than that in a run. With 2 instead of 3,
# 11 of 1,025 healthy trainings were warned of instead of 2, and the GPTs that broke no more than 30 steps sooner (LOG.md).
FACTOR = 3.0
# Of the scatter's own noise; 4 standard errors are one look in 30,000, and a run has one look in 32 steps.
SIGMAS = 4.0
# Below this share of the loss at the start the task is solved. A loss near zero varies by factors, its gradients with it, and
# a ripple there costs nothing (recurrent nets at 1e-4 that mend in some dozens of steps; LOG.md).
SOLVED = 0.01
BORNE = 1.05  # rates closer than this are the same


# LOG.md, 2026-11-16: what such warnings were worth on trainings that no number here was chosen on.
MEASURED = (
    "In our measurements 7 of 10 GPTs that had this warning broke or ended clearly worse; those that broke did so 275 to 497 "
    "steps later. Of 1,984 healthy trainings none had it."
)


def known(early: bool | str) -> bool | str:
    """Guard's `early`, if it is one of the words.

    >>> known("act")
    'act'
    """
    if early not in (True, False, "act"):
        raise InputError(f"early={early!r} is not known", do='Use True, False or "act".')
    return early


@dataclass(frozen=True, slots=True)
class Warned:
    text: str
    onset: int  # the first step of the blocks that were judged
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    level: float  # median log norm
    scatter: float  # log of the mean deviation from it
    loss: float  # median
    rate: float  # the highest


@dataclass(frozen=True, slots=True)
class Best:
    """The stretch of the lowest loss so far."""

    block: int
    step: int
    loss: float
    level: float
    scatter: float
    noise: float
    rate: float
    borne: float  # the highest rate until then


class Early:
    """Fed every step; says something once for each best loss."""

    def __init__(self) -> None:
        self._logs: list[float] = []
        self._losses: list[float] = []
        self._rate = 0.0
        self._borne = 0.0
        self._blocks: deque[Block] = deque(maxlen=HISTORY)
        self._count = 0
        self.best: Best | None = None
        self.told = False

    def step(self, r: StepRecord, solved: float) -> Warned | None:
        """A warning, at the end of a block. `solved`: the loss below which there is nothing to warn of."""
        if not (r.grad_norm > 0 and math.isfinite(r.grad_norm) and math.isfinite(r.loss)) or r.skipped:
            return None
        self._logs.append(math.log(r.grad_norm))
        self._losses.append(r.loss)
        self._rate = max(self._rate, *r.lr) if r.lr else self._rate
        return self._close(r.step, solved) if len(self._logs) == BLOCK else None

    def _close(self, step: int, solved: float) -> Warned | None:
        logs = np.array(self._logs)
        level = float(np.median(logs))
        scatter = math.log(max(float(np.mean(np.abs(logs - level))), 1e-9))
        block = Block(level, scatter, float(np.median(self._losses)), self._rate)
        self._logs, self._losses, self._rate = [], [], 0.0
        return self._add(block, step, solved)

    def _add(self, block: Block, step: int, solved: float) -> Warned | None:
        self._blocks.append(block)
        self._count += 1
        if self._count < SMOOTH:
            return None
        near = list(self._blocks)[-SMOOTH:]
        loss = float(np.median([b.loss for b in near]))
        if self.best is None or loss < self.best.loss:
            self._note_best(loss, near, step)
            return None
        if self._count < START or self.told or loss < solved:
            return None
        return self._judge(near[-LAST:], loss, step)

    def _note_best(self, loss: float, near: list[Block], step: int) -> None:
        past = np.array([b.scatter for b in self._blocks])
        noise = 1.4826 * float(np.median(np.abs(past - np.median(past))))
        rate = max(b.rate for b in near)
        self._borne = max(self._borne, *(b.rate for b in self._blocks))
        scatter = float(np.median([b.scatter for b in near]))
        level = float(np.median([b.level for b in near]))
        self.best = Best(self._count, step, loss, level, scatter, noise, rate, self._borne)
        self.told = False

    def _judge(self, last: list[Block], loss: float, step: int) -> Warned | None:
        best = self.best
        if best is None or self._count - best.block < LAST:
            return None
        rate = max(b.rate for b in last)
        if BORNE * best.rate < rate <= BORNE * best.borne:
            return None
        lowest = sorted(b.scatter for b in last)[1]
        grown = lowest - best.scatter
        if grown <= max(math.log(FACTOR), SIGMAS * best.noise * math.sqrt(1 / LAST + 1 / SMOOTH)):
            return None
        self.told = True
        times = math.exp(grown)
        text = (
            f"Early warning: the gradient norm scatters {times:.2g} times as far from step to step as at the best loss "
            f"(step {best.step}), and the loss has not improved since. Keep a checkpoint now and look at the learning rate. {MEASURED}"
        )
        facts = {
            "times": times,
            "best_step": best.step,
            "best_loss": best.loss,
            "loss": loss,
            "level_times": math.exp(float(np.median([b.level for b in last])) - best.level),
            "lr": rate,
            "lr_at_best": best.rate,
        }
        return Warned(text, step - LAST * BLOCK + 1, facts)
