"""A validation score got worse after its best, by more than noise and selection explain.

## What it sees
A validation loss or metric whose end lies below its best.

## Why it matters
The last checkpoint is not the one to keep, and training on makes it worse.

## How it decides
"Two sigma below the best" is the median state of a healthy plateau, and patience rules fire on every flat
curve, so the fall is tested against a flat series of the same length, noise and autocorrelation, corrected
for having picked the best (p < 1e-3, divided by the number of series looked at). Where single evaluations scatter
too widely for that, the last tenth, fifth or third of them is held against the best stretch of the same length, with a
noise that counts slow wandering as noise; it must end nearly at its worst since. Size matters too: at least
5 % of what had been gained, and at least two points of a share or 3 % of another score (a run that starts
from pretrained weights gains little, and loses half of it by chance). From 15 % of the gain it makes the
run ill, and so does a validation loss 10 % above its best while the training loss fell by another third; when the other validation scores hold a decent level (a share above 30 %) a rising loss stays a
watch, because a loss that rises while accuracy holds is over-confidence, not a worse model. Fewer than six
evaluations hardly show their own noise, so only a fall of 45 % of the gain counts there, or a loss that rises at every
evaluation by half while the training loss halves; and a score of a
part (one class, one data set), or one that moves with a threshold (precision, recall), counts only
beside a score of the whole, or where there is none and all parts fell. A loss that turned before a score of the whole
made most of its gain does not tell. Adversarial training trades up to 6 dB of distortion for looks (perfect looks cost a
factor of two in the squared error: Blau and Michaeli 2018).

## When it is wrong
The validation set changed; the metric is evaluated on a different difficulty; the learning rate is still
high and a cool-down would bring part of it back.

## References
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Guo et al. 2017, On Calibration of Modern Neural Networks (arXiv:1706.04599).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen, share, where
from wheeltapper.run.model import Series
from wheeltapper.study.curves import SUPPORTING, Task, speaks, worth_acting
from wheeltapper.study.learned import ends_at_best
from wheeltapper.study.statistics import Fall, badness, fall_from_best, sustained_fall

ID = "declined-after-peak"
LIVE = False
P = 1e-3
NOTABLE, ILL = 0.05, 0.15  # shares of the gain; LOG.md 2026-11-16: no healthy record loses 5 %
DECENT = 0.30
RISES = 5
FEW = 6  # evaluations: below, the noise itself is hardly known, and only a large fall counts
FURTHER = 2 / 3  # what is left of the training loss at the best evaluation
MOST = 0.5  # of the gain of a score that is too small to act on
OF_VALUE = 0.10  # where nothing was gained since the first value, a tenth of the best value


def look(
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
    shifting: str = "",
    train_loss: Series | None = None,
    task: Task | None = None,
) -> Answer | list[Finding]:
    scores = [*([val_loss] if val_loss is not None else []), *val_metrics]
    scores = [s for s in scores if s.quantity not in ("return", "success")]  # judged by their own rules
    if not scores:
        return Unknown("no validation loss or metric is logged", ("a score on held-out data",))
    falls = [(s, f) for s in scores if (f := fall_from_best(badness(s.values, s.better))) is not None]
    if not falls:
        return Unknown("fewer than four evaluations", ("more evaluations",))
    falls = [(s, f if f.p < P / len(falls) else _shared(s, f, P / len(falls), train_loss)) for s, f in falls]
    runaway = {s.name for s, _ in falls if _runs_away(s, train_loss)}
    fallen = [
        (s, f)
        for s, f in falls
        if s.name in runaway or (f.p < P / len(falls) and (_size(s, f) >= NOTABLE or _overfits(s, f, train_loss)))
    ]
    if not fallen:
        return Clear("no validation score fell below its best by more than noise and selection explain")
    # A fall that noise and the choice of the best give more often than not is none.
    held = [s for s, f in falls if s.quantity != "loss" and (_size(s, f) < NOTABLE or f.p > 0.5) and f.gain > 3 * f.sigma]
    # One that clearly lost most of what it had gained has not held, however little that is.
    held = [s for s, f in falls if s in held and not (f.p < P and f.share > MOST)]
    out = []
    told = speaks([(s, f.drop) for s, f in fallen], [s for s, _ in falls], task)
    for series, fall in fallen:
        only_loss = series.quantity == "loss" and bool(held)
        spared = only_loss and any(_decent(s) for s in held)
        spared = spared or (series.quantity == "loss" and any(_rose_after(s, f, series, fall) for s, f in falls))
        spared = spared or (series in val_metrics[1:] and _at_their_best(val_metrics[0], val_loss))
        ill = (_size(series, fall) >= ILL or _overfits(series, fall, train_loss)) and not spared
        ill = ill and (int(series.finite.sum()) >= FEW or _size(series, fall) >= 3 * ILL)
        ill = ill or (series.name in runaway and not held)
        ill = ill and told
        out.append(_finding(series, fall, ill and not shifting, held if only_loss else []))
    return sorted(out, key=lambda f: (f.severity != "ill", f.p or 0))


def _at_their_best(main: Series, val_loss: Series | None) -> bool:
    """The score that tells most and the validation loss both end at their best: a lesser score that fell is of its own kind
    (the class error of DETR's matched boxes, while its average precision still rises)."""
    return not main.part and ends_at_best(main) and val_loss is not None and ends_at_best(val_loss)


def _shared(series: Series, fall: Fall, limit: float, train: Series | None) -> Fall:
    """The fall that many neighbouring evaluations share, where the last few alone do not prove one."""
    beside = train is not None and train.clock == "row" and len(train) == len(series) and train.files == series.files
    if series.clock == "row" and not beside:  # rows without a clock need not be evaluations in the order of the training
        return fall
    found = sustained_fall(badness(series.values, series.better))
    return found if found is not None and found.p < limit else fall


def _overfits(series: Series, fall: Fall, train: Series | None) -> bool:
    """A validation loss a tenth above its best, while the training loss of the same kind fell by another third: what is
    learned since the best does not carry over, however large the first gain was."""
    if train is None or series.better != "down" or series.quantity != train.quantity or fall.drop < OF_VALUE * fall.best:
        return False
    at = train.on(series.clock)
    good = train.finite & np.isfinite(at) if at is not None else None
    if at is None or good is None or fall.best <= 0 or int(series.finite.sum()) < 2 * FEW:
        return False
    later = train.values[good & (at >= series.at[fall.best_index])]
    part = max(1, len(later) // 10)
    return len(later) >= FEW and 0 < float(np.median(later[-part:])) < FURTHER * float(np.median(later[:part]))


def _runs_away(series: Series, train: Series | None) -> bool:
    """Too few evaluations for their noise, yet the validation loss rises at each of them, to one and a half times the
    first and more, while the training loss halves: five rises in a row by chance are one in 120."""
    x = series.values[series.finite]
    if train is None or series.better != "down" or series.quantity != train.quantity or not RISES <= len(x) < 2 * FEW:
        return False
    y = train.values[train.finite]
    return bool(
        len(y) >= RISES and x[0] > 0 and np.all(np.diff(x) > 0) and x[-1] > 1.5 * x[0] and 0 < y[-1] < 0.5 * y[0]
    )


def _rose_after(score: Series, own: Fall, loss: Series, fall: Fall) -> bool:
    """Most of what a score gained it gained after the loss had turned, and it kept most of that: the loss does not tell."""
    at = score.on(loss.clock)
    if score.quantity == "loss" or score.better is None or at is None or own.gain <= 5 * own.sigma or own.share > 0.3:
        return False
    x = badness(score.values, score.better)
    before = x[score.finite & np.isfinite(at) & (at <= loss.at[fall.best_index])]
    return bool(len(before)) and float(before.min()) - own.best > 0.5 * own.gain and score.quantity not in SUPPORTING and not score.part


def _decent(series: Series) -> bool:
    """A score that is worth keeping: a share above 30 %; of other scores nothing is known, so they count."""
    if series.unit not in ("%", "fraction") or series.better != "up":
        return True
    return float(np.nanmax(series.values)) > DECENT * (100.0 if series.unit == "%" else 1.0)


def _size(series: Series, fall: Fall) -> float:
    """The fall as a share of the gain; where the first value was already the best, a tenth of the value (of
    the scale, for a share) counts as much as ILL of the gain."""
    if fall.drop < worth_acting(series, fall.best):
        return 0.0
    if fall.gain > 3 * fall.sigma:
        return fall.share
    return fall.drop / _scale(series, fall) / OF_VALUE * ILL


def _scale(series: Series, fall: Fall) -> float:
    if series.unit in ("%", "fraction"):
        return (
            max(abs(fall.best), 50.0 if series.unit == "%" else 0.5)
            if series.better == "down"
            else abs(fall.best) or 1.0
        )
    return max(abs(fall.best), abs(fall.first), 1e-300)


def _finding(series: Series, fall: Fall, ill: bool, held: list[Series]) -> Finding:
    sign = -1.0 if series.better == "up" else 1.0
    best, last = sign * fall.best + 0.0, sign * fall.last + 0.0
    text = f"{series.name} was best ({best:.4g}) around {where(series, fall.best_index)} and ends at {last:.4g}, " + (
        f"{share(fall.share)} of the gain lost"
        if fall.gain > 3 * fall.sigma
        else "which it was not before"
        if max(abs(fall.best), abs(fall.first)) < 1e-9 * abs(fall.last)  # of nothing there is no share
        else f"{share(fall.drop / _scale(series, fall))} worse"
        if series.unit != "dB"
        # A share of decibels means nothing: 10 dB are a factor of ten in the squared error.
        else f"{fall.drop:.2g} dB worse: the squared error grew by {share(10 ** (min(fall.drop, 300.0) / 10) - 1)}"
    )
    if held:
        text += f"; {', '.join(s.name for s in held[:2])} held its level meanwhile"
    return seen(
        ID, series, text, severity="ill" if ill else "watch", grade="is-p", onset=fall.onset_index, p=fall.p,
        best=best, last=last, share=min(fall.share, 99.0), size=_size(series, fall), best_at=series.at[fall.best_index],
    )  # fmt: skip


def _level(mean: float, start: int) -> list[float]:
    wave = np.random.default_rng(4).normal(0.0, 0.08, 120)
    return [0.3 + (mean - 0.3) * (1 - 0.7**i) + wave[i] if i < 12 else mean + wave[i] for i in range(start, start + 60)]


_rise = [0.3 + 0.5 * (1 - 0.9**i) + 0.004 * ((i * 7) % 5) for i in range(40)]
CASES = {
    "finding": {"val/accuracy": [*_rise, *[0.78 - 0.012 * i for i in range(25)]]},
    "clear": {"val/accuracy": _rise},
    "overfits": {
        "train/loss": [6.0 * 0.9**i + 0.5 * 0.985**i for i in range(80)],
        "val/loss": [*[6.0 * 0.9**i + 1.0 for i in range(40)], *[1.1 + 0.006 * i for i in range(40)]],
        "clock": "epoch",
        "expect": "ill",
    },
    "runs away": {
        "train/loss": [0.54, 0.46, 0.31, 0.25, 0.21],
        "val/loss": [0.75, 0.8, 1.17, 1.36, 1.48],
        "clock": "epoch",
        "expect": "ill",
    },
    # No single evaluation proves it, and the mean of the last third does: the spread of one is twice the fall.
    "shared": {"val/accuracy": [*_level(0.62, 0), *_level(0.50, 60)], "expect": "ill"},
    # Rows of one table beside the training loss are in the order of the training; rows of a table of scores need not be.
    "shared, in rows": {
        "train/loss": [0.9 * 0.96**i + 0.02 for i in range(120)], "val/accuracy": [*_level(0.62, 0), *_level(0.50, 60)],
        "clock": "row", "expect": "ill",
    },
    "shared, in rows of scores": {
        "val/accuracy": [*_level(0.62, 0), *_level(0.50, 60)], "clock": "row", "expect": "clear",
    },
    "shared by the noise": {"val/accuracy": [*_level(0.62, 0), *_level(0.61, 60)], "expect": "clear"},
    "a score that lost a little, and most of its gain": {
        "train/loss": [0.51, 0.21, 0.16, 0.125, 0.093, 0.065, 0.042, 0.022, 0.012, 0.0086],
        "val/loss": [0.261, 0.23, 0.224, 0.231, 0.248, 0.272, 0.301, 0.336, 0.37, 0.398],
        "val/wer": [0.2396, 0.2043, 0.2009, 0.2007, 0.2031, 0.209, 0.213, 0.2181, 0.2154, 0.2195],
        "clock": "epoch", "expect": "ill",
    },
    "a lesser score": {
        "val/map": _rise, "val/loss": [3.0 - v for v in _rise],
        "val/class_error": [*[0.2 - 0.01 * i for i in range(12)], *[0.084 + 0.001 * i for i in range(28)]],
        "expect": "watch",
    },
    "near miss": {"val/accuracy": [*_rise, 0.79, 0.8, 0.785, 0.795], "expect": "clear"},
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
