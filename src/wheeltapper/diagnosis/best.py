"""Which checkpoint to keep: the best moment by a valid metric, and the file on disk nearest to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wheeltapper.diagnosis.model import BestCheckpoint, MetricVerdict
from wheeltapper.run.model import Checkpoint, Run, Series
from wheeltapper.signals import Signals
from wheeltapper.signals.statistics import badness, noise_of
from wheeltapper.sources.record import Floats


def best_checkpoint(signals: Signals, validity: Sequence[MetricVerdict]) -> BestCheckpoint | None:
    """None where no valid score on held-out data has a direction."""
    invalid = {v.series for v in validity if v.valid == "no"}
    candidates = [*(signals.maybe("val_metrics") or ()), signals.maybe("val_loss")]
    score = next((s for s in candidates if s is not None and s.name not in invalid and int(s.finite.sum()) >= 2), None)
    if score is None:
        return None
    good = np.flatnonzero(score.finite)
    bad = badness(score.values[good], score.better)
    span = _episodes(score, len(good))
    if span > 1:  # one lucky episode is no level
        bad = _running_mean(bad, span)
    spot = int(np.argmin(bad))
    top = int(good[spot])
    sigma = noise_of(bad).sigma
    equal = int(np.sum(bad <= bad.min() + 2 * sigma))
    file, why = _on_disk(signals.run, score, top, bad, good, sigma)
    value = float(badness(bad, score.better)[spot])
    words = f"best {score.name}" if span == 1 else f"best mean {score.name} over {span} rows"
    if equal > 1:
        words += f"; {equal} evaluations are as good within noise, so the later ones are no worse a choice"
    return BestCheckpoint(
        path=file.path if file is not None else None,
        step=float(score.at[top]),
        metric=score.name,
        value=value,
        why=f"{words}; {why}" if why else words,
        exists=bool(file is not None and file.exists),
    )


def _episodes(score: Series, n: int) -> int:
    """Rows to average: one, unless each row is a single episode; the mean of a hundred is what RL reports."""
    return max(1, min(100, n // 5)) if score.quantity in ("return", "success") and score.window == "batch" else 1


def _running_mean(x: Floats, span: int) -> Floats:
    """The mean of the last `span` values at each place; before that many, no place counts."""
    total = np.concatenate([[0.0], np.cumsum(x)])
    out = np.full(len(x), np.inf)
    out[span - 1 :] = (total[span:] - total[:-span]) / span
    return out


def _on_disk(
    run: Run, score: Series, top: int, bad: np.ndarray[tuple[int], np.dtype[np.float64]],
    good: np.ndarray[tuple[int], np.dtype[np.int64]], sigma: float,
) -> tuple[Checkpoint | None, str]:  # fmt: skip
    """The checkpoint nearest to the best evaluation: one at it, else one at an evaluation as good."""
    files = [c for c in run.checkpoints if c.exists and (c.step is not None or c.epoch is not None)]
    said = [c for c in run.checkpoints if not c.exists and (c.step is not None or c.epoch is not None)]
    if not files:
        if said:
            return None, "the log says that checkpoints were written, but none lies here"
        return None, "no checkpoint lies here"
    order = np.argsort(bad, kind="stable")
    for spot in order:
        if bad[spot] > bad.min() + 2 * sigma:
            break
        found = _at(files, score, int(good[spot]))
        if found is not None:
            return found, "" if int(good[spot]) == top else "the file is of an evaluation that is as good within noise"
    nearest = min(files, key=lambda c: abs((_position(c, score) or np.inf) - score.at[top]))
    return nearest, "no file was saved at the best evaluation; this is the nearest that exists"


def _position(checkpoint: Checkpoint, score: Series) -> float | None:
    return checkpoint.epoch if score.clock == "epoch" else checkpoint.step


def _at(files: Sequence[Checkpoint], score: Series, index: int) -> Checkpoint | None:
    for clock, value in (("step", "step"), ("epoch", "epoch")):
        track = score.on(clock)  # type: ignore[arg-type]
        if track is None:
            continue
        for checkpoint in files:
            position = getattr(checkpoint, value)
            if position is not None and abs(position - track[index]) < 0.5:
                return checkpoint
    return None
