"""Which checkpoint to keep: the best moment by a valid metric, and the file on disk nearest to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.judge.model import BestCheckpoint, MetricVerdict
from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Checkpoint, Run, Series
from wheeltapper.run.onsets import from_start, position
from wheeltapper.study import Study
from wheeltapper.study.statistics import badness, noise_of

# Signs by which a score says nothing about the model, or the model nothing about the data.
WORTHLESS = (
    "at-chance",
    "at-prior",
    "never-left-zero",
    "below-baseline",
    "worse-than-trivial",
    "constant-metric",
    "impossible-value",
)
# Signs that nothing was learned, where they are there from the first value on.
IDLE = ("plateau", "barely-learned", "stuck-from-start", "too-slow")
# Signs of a score that leaves its level for good: what comes after their onset is no noise about it.
LEAVES = ("diverged", "declined-after-peak", "collapsed", "at-chance", "val-swings")
SPREAD = 3.0  # sigmas: a gain of less may be none
FEWEST = 5  # evaluations: a level and its noise need that many


def best_checkpoint(
    study: Study, validity: Sequence[MetricVerdict], findings: Sequence[Finding] = ()
) -> BestCheckpoint | None:
    """None where no valid score on held-out data has a direction."""
    invalid = {v.series for v in validity if v.valid == "no"}
    candidates = [*(study.maybe("val_metrics") or ()), study.maybe("val_loss")]
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
    noise = _noise_while_sound(score, bad, good, spot, findings)
    sigma = noise or 0.0
    equal = int(np.sum(bad <= bad.min() + 2 * sigma))
    file, why = _on_disk(study.run, score, top, bad, good, sigma)
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
        nothing=_nothing(study.run, score, value, float(score.at[top]), sigma, findings),
        noise=noise,
        equal=equal,
    )


def _noise_while_sound(
    score: Series, bad: Floats, good: np.ndarray[tuple[int], np.dtype[np.int64]], spot: int, findings: Sequence[Finding]
) -> float | None:
    """Sigma of the evaluations up to where the score left its level: a loss that explodes has no noise to speak of."""
    onsets = [f.onset for f in findings if f.id in LEAVES and f.series == score.name and f.onset is not None]
    until = min(onsets, default=np.inf)
    sound = (score.at[good] < until) | (score.at[good] <= score.at[good[spot]])
    return noise_of(bad[sound]).sigma if int(sound.sum()) >= FEWEST else None


def worthless(findings: Sequence[Finding], metric: str, at: float | None) -> Finding | None:
    """The finding by which a score, at its best, says nothing about the model."""
    for f in findings:
        if (
            f.severity == "ill"
            and f.id in WORTHLESS
            and f.series == metric
            and (at is None or f.onset is None or f.onset <= at)
        ):
            return f
    return None


def _nothing(run: Run, score: Series, value: float, at: float, sigma: float, findings: Sequence[Finding]) -> str:
    """Why the best value is nothing to save: the score says nothing, or nothing was learned since the first one."""
    found = worthless(findings, score.name, at)
    if found is not None:
        return f"the best {score.name} is worth nothing: {found.summary}"
    if not any(f.severity == "ill" and f.id in IDLE and from_start(run, f) for f in findings):
        return ""
    values = score.values[score.finite]
    gain = value - float(values[0]) if score.better == "up" else float(values[0]) - value
    if len(values) < FEWEST or gain > SPREAD * sigma:
        return ""
    return (
        f"the best {score.name}, {value:.4g}, is no better than the first, {values[0]:.4g}, within noise: "
        "nothing was learned that could be kept"
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
    files = [c for c in run.checkpoints if c.exists]
    if not files:
        said = "the log says that checkpoints were written, but none lies here"
        return None, said if run.checkpoints else "no checkpoint lies here"
    order = np.argsort(bad, kind="stable")
    for spot in order:
        if bad[spot] > bad.min() + 2 * sigma:
            break
        found = _at(files, score, int(good[spot]))
        if found is not None:
            return found, "" if int(good[spot]) == top else "the file is of an evaluation that is as good within noise"
    placed = [(abs(at - score.at[top]), c) for c in files if (at := position(c, score.clock, run)) is not None]
    if not placed:
        return None, "checkpoints lie here, and where in the run they were saved is not known"
    nearest = min(placed, key=lambda one: one[0])[1]
    return nearest, "no file was saved at the best evaluation; this is the nearest that exists"


def _at(files: Sequence[Checkpoint], score: Series, index: int) -> Checkpoint | None:
    """The file that was saved at this evaluation, by steps where both tell them, else by epochs."""
    steps, epochs = score.on("step"), score.on("epoch")
    for checkpoint in files:
        if steps is not None and checkpoint.step is not None and abs(checkpoint.step - steps[index]) < 0.5:
            return checkpoint
    for checkpoint in files:
        if epochs is not None and checkpoint.epoch is not None and abs(checkpoint.epoch - epochs[index]) < 0.5:
            return checkpoint
    return None
