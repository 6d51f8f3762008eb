"""The loss scaler skips far more updates than it must.

## What it sees
Updates skipped for overflow, counted by the log or proved by the loss scale, at a rate well above that of a
scaler in balance.

## Why it matters
A skipped update is a batch thrown away. A scaler in balance skips about one in two thousand; many more mean
that gradients overflow for another reason than the scale, and that the run is shorter than its step count.

## How it decides
A scaler in balance skips one update per growth interval: 1 in I + 1, or two of them where it has a
hysteresis of two. The count is what the log says, or the least that the logged scale proves. The
first 100 updates are left out: there the scale is searched for. It is a watch when the count is ten
or more, over five times the balance, and the binomial chance of so many (Chernoff's bound, which is never too
small) is below 1e-6: that holds for a million runs looked at.

## When it is wrong
A scaler with a short growth interval that the settings do not tell.

## References
- PyTorch, torch/amp/grad_scaler.py.
- DeepSpeed, deepspeed/runtime/fp16/loss_scaler.py (deepspeedai/DeepSpeed).
- Nichol and Dhariwal 2021, Improved Denoising Diffusion Probabilistic Models (arXiv:2102.09672;
  openai/improved-diffusion).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.scaler import DEEPSPEED, MEGATRON, TORCH, Scaler, check_scale_series

ID = "high-skip-rate"
LIVE = True
SEARCH, FEWEST, TIMES, P = 100, 10, 5.0, 1e-6


def look(run: Run, knobs: Knobs | None = None, loss_scale: Series | None = None) -> Answer:
    scaler = _scaler(run, knobs)
    balance = scaler.hysteresis / (scaler.interval + 1)
    counted = _counted(run) or _proved(loss_scale, scaler) or _announced(run)
    if counted is None:
        return Unknown("neither skipped updates nor the loss scale are logged", ("loss scale", "skipped updates"))
    count, updates, series, how = counted
    if updates < SEARCH:
        return Unknown(f"only {updates:g} updates after the search for a scale", ("a longer record",))
    rate = count / updates
    p = _chernoff(count, updates, balance)
    if count < FEWEST or rate < TIMES * balance or p >= P:
        return Clear(f"{count:g} of {updates:g} updates skipped ({rate:.2%}); one in {1 / balance:.0f} is the balance")
    text = f"{how} {count:g} of {updates:,.0f} updates were skipped for overflow ({rate:.2%}); a scaler in balance skips {balance:.2%}"
    if series is not None:
        return seen(
            ID, series, text, severity="watch", grade="is-p", onset=0, p=p, rate=rate, balance=balance, count=count
        )
    numbers = {"rate": rate, "balance": balance, "count": float(count)}
    return Finding(id=ID, summary=text, severity="watch", grade="is-p", p=p, numbers=numbers)


def _scaler(run: Run, knobs: Knobs | None) -> Scaler:
    """Which scaler it was; the more generous where the record does not say."""
    told = " ".join(run.formats).lower()
    scaler = MEGATRON if "megatron" in told else DEEPSPEED if "deepspeed" in told else TORCH
    interval = knobs.value("amp.growth_interval") if knobs is not None else None
    if isinstance(interval, (int, float)) and interval >= 1:
        return scaler.having(interval=int(interval))
    return scaler if scaler is not TORCH else TORCH.having(interval=1000, hysteresis=2)


Counted = tuple[float, float, Series | None, str]


def _counted(run: Run) -> Counted | None:
    """A logged count: of the rows of a window, or running on."""
    for s in run.series.values():
        if s.quantity != "skipped" or s.clock != "step" or int(s.finite.sum()) < 5:
            continue
        late = s.finite & (s.at >= s.at[0] + SEARCH)
        x, at = s.values[late], s.at[late]
        if len(x) < 3:
            continue
        running_on = bool((np.diff(x) >= 0).all())
        count = float(x[-1] - x[0]) if running_on else float(x[1:].sum())
        return count, float(at[-1] - at[0]), s, "the log says:"
    return None


def _proved(scale: Series | None, scaler: Scaler) -> Counted | None:
    if scale is None or scale.clock != "step" or len(scale) < 5:
        return None
    late = scale.finite & (scale.at >= scale.at[0] + SEARCH)
    at, values = scale.at[late], scale.values[late]
    if len(at) < 3:
        return None
    moved = np.flatnonzero(np.diff(values) != 0)  # where nothing moved, both ends of the stretch say it all
    keep = np.unique(np.concatenate([[0], moved, moved + 1, [len(at) - 1]]))
    if len(keep) > 50_000:
        return None  # no scaler moves that often: this is no loss scale
    found = check_scale_series(scaler.having(hysteresis=1, late=0), at[keep], values[keep])
    return float(found.low), float(at[-1] - at[0]), scale, "the loss scale proves that at least"


def _announced(run: Run) -> Counted | None:
    events = [e for e in run.events if e.kind == "overflow"]
    steps = [float(np.nanmax(s.at)) for s in run.series.values() if s.clock == "step" and len(s) > 5]
    if not events or not steps:
        return None
    # Without positions the search of the start cannot be left out: twenty skips are allowed for it.
    return max(0.0, len(events) - 20.0), max(steps), None, "the log announces that"


def _chernoff(count: float, n: float, q: float) -> float:
    """An upper bound of the chance of `count` or more in n at rate q."""
    f = count / n
    if f <= q:
        return 1.0
    divergence = f * math.log(f / q) + ((1 - f) * math.log((1 - f) / (1 - q)) if f < 1 else 0.0)
    return math.exp(-min(n * divergence, 690.0))


CASES = {
    "finding": {"loss_scale": [65536.0 / 2 ** (i % 4) for i in range(400)]},
    "clear": {"loss_scale": [65536.0] * 400 + [32768.0] * 600 + [65536.0] * 400},
    "near miss": {"number of skipped iterations": [9.0] * 5 + [0.0] * 60, "spacing": 20.0, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
