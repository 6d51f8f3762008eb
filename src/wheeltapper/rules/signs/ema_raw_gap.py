"""The averaged weights do worse than the raw ones.

## What it sees
A score logged for the averaged (EMA) weights and for the raw weights, with the average clearly and steadily
worse.

## Why it matters
The average should lag a little and be calmer. If it stays worse, it still holds old weights (too long a
memory, or an average that is never updated), or its normalisation statistics do not belong to it. It is the
average that people deploy.

## How it decides
Pairs of series that differ only by the mark "ema" in the name, on the same evaluations. Over the last third
of them (five at least): the average is worse every time, by three standard errors of the paired differences
and by 2 % of the level. A gap that shrinks steadily towards zero is a young average and a note; one
that does not is a watch. The other way round, an average that is better, is sound.

## When it is wrong
Averages after a fall of the learning rate lag for their memory's length; a short record.

## References
- PyTorch, torch/optim/swa_utils.py.
- Diffusers, src/diffusers/training_utils.py, EMAModel (huggingface/diffusers).
- timm, timm/utils/model_ema.py (huggingface/pytorch-image-models).
- lucidrains/ema-pytorch (update_every, the ramp of the decay).
- Karras et al. 2024, Analyzing and Improving the Training Dynamics of Diffusion Models (arXiv:2312.02696;
  NVlabs/edm2).
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.study.statistics import badness

ID = "ema-raw-gap"
LIVE = True
ROWS, SIGMAS, SHARE = 5, 3.0, 0.02
_MARK = re.compile(r"(^|[^a-z])(model_)?ema(?=$|[^a-z])", re.IGNORECASE)


def look(run: Run) -> Answer | list[Finding]:
    pairs = _pairs(run)
    if not pairs:
        return Unknown("no score is logged for both the averaged and the raw weights", ("scores of both weights",))
    out = [finding for ema, raw in pairs if (finding := _one(ema, raw)) is not None]
    return out[:2] or Clear(f"{pairs[0][0].raw} is not worse than {pairs[0][1].raw}")


def _pairs(run: Run) -> list[tuple[Series, Series]]:
    def bare(name: str) -> str:
        return re.sub(r"[^a-z0-9]+", "", _MARK.sub("", name).lower())

    plain = {bare(s.raw): s for s in run.series.values() if not _MARK.search(s.raw)}
    marked = [
        s for s in run.series.values() if _MARK.search(s.raw) and s.better in ("up", "down") and s.split != "train"
    ]
    return [(s, plain[bare(s.raw)]) for s in marked if bare(s.raw) in plain]


def _one(ema: Series, raw: Series) -> Finding | None:
    if ema.clock != raw.clock:
        return None
    at, i, j = np.intersect1d(ema.at, raw.at, return_indices=True)
    worse = badness(ema.values[i], ema.better) - badness(raw.values[j], ema.better)
    keep = np.isfinite(worse)
    at, worse, i = at[keep], worse[keep], i[keep]
    tail = worse[-max(ROWS, len(worse) // 3) :]
    if len(tail) < ROWS:
        return None
    level = max(abs(float(np.median(raw.values[j][keep][-len(tail) :]))), 1e-300)
    gap = float(np.median(tail))
    error = float(np.std(tail, ddof=1)) / np.sqrt(len(tail))
    if tail.min() <= 0 or gap < SIGMAS * error or gap < SHARE * level:
        return None
    shrinks = bool(len(worse) >= 2 * ROWS and worse[-1] < 0.5 * worse.max() and (np.diff(tail) < 0).mean() > 0.7)
    held = np.flatnonzero(worse <= 0)
    index = int(i[int(held[-1]) + 1 if len(held) else 0])
    text = f"{ema.raw} is worse than {raw.raw} on each of the last {len(tail)} evaluations, by {gap:.4g} ({gap / level:.1%} of the level)"
    text += "; the gap shrinks, as for a young average" if shrinks else ""
    return seen(
        ID, ema, text, severity="note" if shrinks else "watch", grade="is", onset=index, gap=gap, share=gap / level
    )


CASES = {
    "finding": {"val/accuracy": [0.1 * i for i in range(9)], "ema_val/accuracy": [0.05] * 9},
    "clear": {"val/accuracy": [0.1 * i for i in range(9)], "ema_val/accuracy": [0.1 * i + 0.01 for i in range(9)]},
    "unknown": {"val/accuracy": [0.1, 0.2]},
}
