"""Every update throws the policy far from the one that gathered its data.

## What it sees
In PPO and its kin, a divergence between the old and the new policy above 1 at nearly every update, with nearly all
samples beyond the clip range.

## Why it matters
The episodes of an update were played by the old policy. Where the new one is far off, they say little about it, and a sample
beyond the clip has no gradient: the trust region exists in name only. Returns may still rise, slowly and by luck.

## How it decides
By arithmetic. A sample at the edge of the usual clip (a ratio of 1.2) has a squared log ratio of 0.033, and half its mean is
what is logged as approximate KL: 0.017 if all samples stood there. Recipes stop an update at 0.01 to 0.05. A KL of 1 is a ratio of
four. It counts where 95 % of at least ten updates lie above 1 and four fifths of the samples are clipped at the median update.
It is a suspicion of illness, not more: one public run shows it (24 and 92 %, its return at 41 % of a sister's); of 12 others, among them
one that learns well at 69 % clipped, the largest median is 0.08. Without the clip fraction, a watch.

## When it is wrong
A KL to a reference policy (RLHF) that is summed over tokens: only the one between two updates is looked at.

## References
- Schulman et al. 2017, Proximal Policy Optimization Algorithms (arXiv:1707.06347).
- OpenAI Spinning Up, PPO: updates stop at a mean KL of 1.5 times 0.01; tensorflow/agents, PPOAgent: adaptive_kl_target 0.01.
- openai/baselines, issue 456; hill-a/stable-baselines, issue 213: clipping does not bound the divergence.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.study.curves import Task

ID = "policy-leaps"
LIVE = False
UPDATES, FAR, NEARLY, CLIPPED = 10, 1.0, 0.05, 0.8
_KL = re.compile(r"(?:^|[/._ ])approx_?kl$", re.IGNORECASE)
_CLIP = re.compile(r"clip_?frac(tion)?$", re.IGNORECASE)


def look(run: Run, task: Task) -> Answer:
    if not task.reinforcement:
        return Unknown("no policy is trained here")
    moves = _first(run, _KL)
    if moves is None:
        return Unknown("the divergence of old and new policy is not logged", ("approx_kl",))
    clip = _first(run, _CLIP)
    x = moves.values[moves.finite]
    low, middle = float(np.quantile(x, NEARLY)), float(np.median(x))
    clipped = float(np.median(clip.values[clip.finite])) if clip is not None else None
    if low < FAR or (clipped is not None and clipped < CLIPPED):
        return Clear(f"{moves.name} is {middle:.3g} at the median update")
    beyond = f", with {clipped:.0%} of the samples beyond the clip range" if clipped is not None else ""
    text = (
        f"{moves.name} is {middle:.3g} at the median of {len(x)} updates and above {low:.3g} at 95 % of them{beyond}: "
        f"recipes stop at 0.01 to 0.05"
    )
    return seen(
        ID, moves, text, severity="ill" if clipped is not None else "watch", grade="suspected", onset=int(np.flatnonzero(moves.finite)[0]),
        median=middle, low=low, clipped=-1.0 if clipped is None else clipped,
    )  # fmt: skip


def _first(run: Run, name: re.Pattern[str]) -> Series | None:
    found = [s for s in run.series.values() if name.search(s.raw) and int(s.finite.sum()) >= UPDATES]
    return max(found, key=len) if found else None


_returns = [10.0 + 0.5 * i for i in range(40)]
CASES = {
    "finding": {
        "return": _returns, "approxkl": [30.0 - 0.5 * i for i in range(40)], "clipfrac": [0.95 - 0.001 * i for i in range(40)],
        "expect": "ill",
    },
    "clear": {"return": _returns, "approxkl": [0.02] * 40, "clipfrac": [0.15] * 40},
    "a wild beginning": {
        "return": _returns, "approxkl": [50.0] * 10 + [0.05] * 30, "clipfrac": [0.95] * 10 + [0.4] * 30, "expect": "clear",
    },
    "no clip fraction": {"return": _returns, "approxkl": [4.0] * 40, "expect": "watch"},
    "unknown": {"return": _returns},
}  # fmt: skip
