"""Validity before blame: can a number be believed, and compared with itself over time?

Each score is held against what a trivial model would get, against its own definition, and against what
changed during the run. A score that fails is named, and no cause is blamed on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.judge.model import MetricVerdict
from wheeltapper.run.model import Series
from wheeltapper.study import Study
from wheeltapper.study.statistics import noise_of

WILD = 5.0  # a 99th percentile five times the median: no mean of a batch of usual size does that
MOST = 12  # scores shown; the rest are components


def judge_metrics(study: Study, findings: Sequence[Finding]) -> list[MetricVerdict]:
    """A verdict on each score a run is judged by."""
    scores: list[Series] = [
        s for s in (study.maybe("train_loss"), study.maybe("val_loss")) if s is not None
    ] + list(study.maybe("val_metrics") or ())
    return [_judge(series, study, findings) for series in scores[:MOST]]


def _judge(series: Series, study: Study, findings: Sequence[Finding]) -> MetricVerdict:
    about = [f for f in findings if f.series == series.name]
    for finding in about:
        if finding.id == "impossible-value" and finding.severity == "ill":
            return MetricVerdict(series.name, "no", finding.summary)
        if finding.id == "below-baseline":
            return MetricVerdict(series.name, "no", finding.summary, finding.numbers.get("baseline"))
        if finding.id == "constant-metric" and finding.severity == "ill":
            return MetricVerdict(series.name, "no", finding.summary)
    broken = [f for f in findings if f.id in ("below-baseline", "never-left-zero") and f.severity == "ill" and f.series]
    if broken and series.split in ("val", "test"):
        return MetricVerdict(series.name, "no", f"it comes from the evaluation in question: {broken[0].summary}")
    if int(series.finite.sum()) < 2:
        return MetricVerdict(series.name, "cannot-tell", f"{int(series.finite.sum())} finite values")
    best_so_far = _best_so_far(series)
    if best_so_far:
        return MetricVerdict(series.name, "cannot-tell", best_so_far)
    shifting: str = study.maybe("shifting") or ""
    if shifting and series.quantity == "loss":
        return MetricVerdict(series.name, "cannot-tell", f"not comparable over time: {shifting}")
    baseline, what = _trivial(series, study)
    wild = _wild(series)
    if wild:
        return MetricVerdict(series.name, "cannot-tell", wild, baseline)
    if series.quantity == "loss" and series.split == "train":
        return MetricVerdict(series.name, "yes", _noise_words(series), baseline)
    words = f"trivial level {baseline:.4g} ({what})" if baseline is not None else _noise_words(series)
    return MetricVerdict(series.name, "yes", words, baseline)


def _trivial(series: Series, study: Study) -> tuple[float | None, str]:
    """The score of a model that ignores its input, where it is known (ST-09, ST-10)."""
    knobs = study.maybe("knobs")
    classes = knobs.value("model.classes") if knobs is not None else None
    if isinstance(classes, (int, float)) and classes >= 2:
        if series.quantity == "accuracy":
            return (100.0 if series.unit == "%" else 1.0) / float(classes), f"chance over {classes:g} classes"
        if series.quantity == "loss" and series.split != "train":
            return math.log(float(classes)), f"ln {classes:g}"
    return None, ""


def _best_so_far(series: Series) -> str:
    """A metric that never gets worse over many evaluations, with exact repeats, is a running best."""
    x = series.values[series.finite]
    if len(x) < 15 or series.better not in ("up", "down"):
        return ""
    steps = np.diff(x if series.better == "up" else -x)
    if (steps >= 0).all() and float(np.mean(steps == 0)) > 0.3 and float(np.mean(steps > 0)) > 0.05:
        return "it never gets worse and often repeats exactly: this is the best so far, not the current value"
    return ""


def _wild(series: Series) -> str:
    """Values that spread over an order of magnitude at one level: single ones prove nothing (CASES §2.0 row 12)."""
    x = series.values[series.finite & (series.values > 0)]
    if len(x) < 20:
        return ""
    late = x[len(x) // 2 :]
    spread = float(np.quantile(late, 0.99) / np.median(late))
    if spread < WILD:
        return ""
    return f"single values spread {spread:.3g}-fold about their level (99th percentile over median): only levels of many count"


def _noise_words(series: Series) -> str:
    x = series.values[series.finite]
    noise = noise_of(x)
    level = float(np.median(x[-max(1, len(x) // 10) :]))
    share = noise.sigma / abs(level) if level else float("inf")
    how = {"batch": "single batches", "running": "a running mean, which hides spikes", "window": "means over a window"}
    kind = how.get(series.window or "", "")
    text = f"noise of a value is {share:.1%} of its level" if math.isfinite(share) else "its level is zero"
    return f"{text} ({kind})" if kind else text
