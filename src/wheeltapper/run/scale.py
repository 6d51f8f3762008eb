"""In what a share is logged: as a fraction, in percent, or not as a share at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wheeltapper.run.model import Series

_SHARES = {"accuracy", "top5", "error", "top5_error"}
COUNTED = {"accuracy", "top5"}
BEYOND = 101.0  # percent: rounding does not reach it
FEWEST = 3
APART = 20.0  # times: no score in percent is so much better on other data


def same_scale(series: dict[str, Series]) -> dict[str, Series]:
    """A model at chance over 200 classes logs 0.5 (percent); its top-5 of 2.5 shows the scale of both. And an "accuracy" that
    lies above 100 on most rows counts right answers, of a batch or of a set: it is a score that should rise, and no share;
    so are its fellows of the same files, also where they happen to lie below 100."""
    shares = [s for s in series.values() if s.quantity in _SHARES]
    whole = {f for s in shares if not s.part for f in s.files}  # "acc_mean_pos" is of another kind than "acc_top1"
    percent = {f for s in shares if s.unit == "%" for f in s.files if not s.part or f not in whole}
    counted = {f for s in series.values() if _counts(s) for f in s.files}
    out = {}
    for label, s in series.items():
        if s.quantity in COUNTED and s.unit == "%" and counted & set(s.files):
            s = replace(s, quantity="score", unit="count")
        elif s.quantity in _SHARES and s.unit == "fraction" and percent & set(s.files) and not _far_below(s, shares):
            s = replace(s, unit="%")
        out[label] = s
    return out


def _far_below(s: Series, shares: list[Series]) -> bool:
    """ "acc": 0.95 beside "val_acc": 92.6: the one is a fraction, whatever the other is."""
    tops = [float(np.max(o.values[o.finite])) for o in shares if o.unit == "%" and _elsewhere(o, s)]
    own = float(np.max(s.values[s.finite])) if np.any(s.finite) else 0.0
    return bool(tops) and own > 0.2 and max(tops) > APART * own


def _elsewhere(o: Series, s: Series) -> bool:
    """The same score on other data."""
    return o.quantity == s.quantity and o.split != s.split and bool(np.any(o.finite))


def _counts(s: Series) -> bool:
    x = s.values[s.finite]
    return s.quantity in COUNTED and s.unit == "%" and len(x) >= FEWEST and float(np.median(x)) > BEYOND
