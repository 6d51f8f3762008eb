"""The data got worse at some point: a bad shard, a changed mix, a broken file.

## What happens
From one point on the loader delivers other data: corrupt, of another kind, or in another order.

## How it shows
The loss jumps between two rows and stays at the new level, without a rise of the gradient norm before; the jump sits
at a shard, file or epoch boundary; an older checkpoint shows the same loss on the new data.

## What else looks like this
Divergence (grows), a resume that lost state, a curriculum stage, repeated data before the jump.

## When this is wrong
The gradient norm rose first, or the level drifts instead of jumping.

## Fix
Evaluate the checkpoint before the jump on the data after it, and the other way round.

## Trial
2 x 2: the checkpoints before and after on the data before and after. Hard for both means data.

## References
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Chowdhery et al. 2022, PaLM (arXiv:2204.02311): skipped batches, and spikes that need data and state
  together.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import scale_fell_first, through
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "bad-data-from-step"
AREA = "data"
EXPLAINS = ("spiked", "diverged", "slow-rise", "collapsed", "at-chance", "declined-after-peak", "above-start")
PRIOR = -2.0
ROWS = 4
FAR = 10.0  # times the loss of the first rows: data of another range costs that, too, but a whole network learns it
TRIAL = "2 x 2: the checkpoints before and after the jump, each on the data before and after"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    jumps = [f for f in case.found("spiked") if f.numbers.get("stays")]
    norm: Series | None = case.get("grad_norm")
    out = []
    train: Series | None = case.get("train_loss")
    onset = case.since(train.clock) if train is not None else None
    step = _step_change(train, onset) if train is not None and onset is not None else None
    if train is not None and step is not None:
        at, low, high = step
        text = f"the training loss goes from {low:.4g} to {high:.4g} at once, at {train.clock} {at:,.10g}, and stays on its new level"
        out.append(Evidence(3.0, text, "jump"))
        x = train.values[train.finite]
        start, end = float(np.median(x[:3])), float(np.median(x[-max(3, len(x) // 10) :]))
        if high > FAR * max(start, low) > 0 and end > 0.6 * high:
            text = f"{high:.4g} is far above where the record begins ({start:.4g}), and nothing of it is learned: the weights broke"
            out.append(Evidence(-3.0, text, "far"))
    elif jumps:
        out.append(Evidence(1.5, jumps[0].summary, "jump", jumps[0].places))
    elif through(train, onset) == "falls":
        out.append(Evidence(-3.0, "the training loss falls on through the onset, on the same data", "jump"))
    elif case.found("diverged", severity="ill"):
        out.append(Evidence(-1.0, "the loss grows rather than jumps", "jump"))
    if scale_fell_first(case):
        out.append(Evidence(-2.5, "the loss scale had collapsed before", "precision"))
    broke = case.since(norm.clock) if norm is not None else None
    if norm is not None and broke is not None:
        before = norm.values[(norm.at < broke) & norm.finite]
        if len(before) >= 10:
            rise = float(np.median(before[-3:]) / max(float(np.median(before[-30:])), 1e-30))
            if rise > 2:
                out.append(Evidence(-2.0, f"the gradient norm rose {rise:.2g} times before the loss did", "norm"))
            elif rise < 1.3:
                out.append(Evidence(1.0, "the gradient norm was calm up to the jump", "norm"))
    trivial = case.get("trivial_loss")
    if step is not None and trivial is not None and abs(step[2] / trivial.loss - 1) < 0.02 and case.found("at-chance"):
        text = f"the loss lands at {step[2]:.4g}, that of guessing, and held-out scores at chance: a network that was erased"
        out.append(Evidence(-2.0, text, "erased"))
    chance = case.found("at-chance", severity="ill")
    if chance and not chance[0].numbers.get("fell"):
        out.append(Evidence(-4.0, "the score had never left chance: before the jump, too, nothing was learned from the data", "before"))
    resumed = [(s.start, case.since(s.clock)) for s in case.run.segments if s.kind == "resume"]
    first = [s.start for s in case.run.segments if s.kind == "resume" and train is not None and s.clock == train.clock]
    if step is not None and any(abs(start - step[0]) < 1 for start in first):
        text = f"it is the first row of a resumed launch (at {step[0]:,.10g}): code, settings and weights may differ as well as data"
        out.append(Evidence(-3.0, text, "resume"))
    elif any(at is not None and abs(start - at) < 1 for start, at in resumed):
        out.append(Evidence(-1.5, "the run was resumed there", "resume"))
    return out


def _step_change(train: Series, onset: float) -> tuple[float, float, float] | None:
    """A step near the onset: calm before, calm after, and nearly all of the change between two rows.

    A loss that the optimizer loses grows over many rows and goes on moving; one that gets other data does neither.
    """
    good = train.finite
    x, at = train.values[good], train.at[good]
    centre = int(np.searchsorted(at, onset))
    best: tuple[float, int] | None = None
    # An onset is known to within an evaluation or two: seek a tenth of the record around it, eight rows at least.
    reach = max(2 * ROWS, len(x) // 10)
    for i in range(max(ROWS, centre - reach), min(len(x) - ROWS, centre + reach) + 1):
        before, after = x[i - ROWS : i], x[i : i + ROWS]
        sigma = max(float(np.std(np.diff(x[max(0, i - 4 * ROWS) : i]))) / np.sqrt(2), 1e-12)
        gain = float(np.median(after) - np.median(before)) / sigma
        if best is None or gain > best[0]:
            best = (gain, i)
    if best is None or best[0] < 4:
        return None
    i = best[1]
    low, high = float(np.median(x[i - ROWS : i])), float(np.median(x[i : i + ROWS]))
    rest = x[i:]
    settled = float(np.median(rest[-max(ROWS, len(rest) // 4) :]))
    # A network that gets other data may learn it in part, so the loss may come down again, but not to where it was.
    jump = float(np.diff(x[i - 1 : i + 3]).max())  # medians of four rows place the step to within a row or two
    # A loss that rises all the while has its steepest rows, too: before a step it does not.
    earlier = x[max(0, i - 3 * ROWS) : i - ROWS]
    rose = len(earlier) >= 2 and low - float(np.median(earlier)) > 0.3 * (high - low)
    sharp = not rose and jump > 0.4 * (high - low) and 0.1 * (high - low) < settled - low < 1.7 * (high - low)
    return (float(at[i]), low, high) if sharp else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Look at what the loader gives from the jump on, mend or leave out that data, and go on from a checkpoint before it.",
            (),
            "try",
            "the loss passes the onset on its old level",
        ),
    )
