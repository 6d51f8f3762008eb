"""Noise levels, curricula and objectives, where arithmetic says what a model that learned nothing would show."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wheeltapper.judge.model import RuledOut
from wheeltapper.program.checks.noise_as_published import PUBLISHED
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import settings_like
from wheeltapper.rules.causes._settings import number
from wheeltapper.simulate.baselines import sedd_untrained_loss

FULL = 0.99  # of the tokens masked: where sampling starts
ALIKE = 1.5  # a curve within this factor of the untrained one, end against start, shows no learning: single batches spread by 10 %


def _noise_levels(case: Case) -> RuledOut | None:
    told = case.audited("noise-as-published")
    numbers = told[0].numbers if told else {}
    mean = numbers.get("P_mean", case.knob("diffusion.P_mean"))
    std = numbers.get("P_std", case.knob("diffusion.P_std"))
    if not isinstance(mean, (int, float)) or not isinstance(std, (int, float)) or (mean, std) not in PUBLISHED:
        return None
    low, middle, high = (math.exp(mean + z * std) for z in (-1.96, 0.0, 1.96))
    above = 0.5 * math.erfc(-mean / std / math.sqrt(2))
    return RuledOut(
        "noise-levels",
        "The noise levels are drawn from too narrow a range; the standard is log-uniform",
        f"exp(N({mean:g}, {std:g}²)) is what {PUBLISHED[mean, std]} itself uses: median {middle:.3g}, 95 % between {low:.2g} and "
        f"{high:.2g}, {above:.0%} above 1",
    )


def _absorbing(case: Case) -> tuple[int, float, float] | None:
    """Vocabulary and noise range of a masked (absorbing) diffusion; None where it is none or not known."""
    said = settings_like(case.run, r"graph|absorb|mask\w*_?diffusion")
    tokens, top = number(case.knob("vocab_size")), number(case.knob("diffusion.sigma_max"))
    if tokens is None or top is None or not any("absorb" in f"{leaf.dotted} {leaf.value}".lower() for leaf in said):
        return None
    return int(tokens), number(case.knob("diffusion.sigma_min")) or 0.0, top


def _curriculum_outruns(case: Case) -> RuledOut | None:
    """A rise with the curriculum, against what a model without any training would show at the same steps."""
    known, train = _absorbing(case), case.get("train_loss")
    ramp, length = str(case.knob("curriculum.ramp") or ""), number(case.knob("curriculum.steps"))
    if known is None or train is None or not case.knob("curriculum.enabled") or length is None or train.clock != "step":
        return None
    shape = RAMPS.get(ramp)
    if shape is None or int(train.finite.sum()) < 8:
        return None
    tokens, low, top = known
    at, x = train.at[train.finite], train.values[train.finite]
    masked = [EASIEST + (1 - EASIEST) * shape(min(1.0, float(t) / length)) for t in at]
    untrained = np.array([sedd_untrained_loss(tokens, top, low, c) for c in masked])
    k = max(2, len(x) // 5)
    ratio = x / untrained
    first, last = float(np.median(ratio[:k])), float(np.median(ratio[-k:]))
    if not 1 / ALIKE < last / first < ALIKE or last < 0.8:
        return None
    spots = [0, len(x) // 2, len(x) - 1]
    shown = "; ".join(f"step {at[i]:,.10g}: {untrained[i]:.2f}, logged {x[i]:.2f}" for i in spots)
    return RuledOut(
        "curriculum-outruns",
        "The curriculum is too fast: the model cannot keep up, and the loss rises",
        f"a model that learns nothing shows the same rise, because more tokens are masked ({shown}): the curve tells of the curriculum "
        "alone, and of learning nothing either way",
    )


# The share of the noise that a curriculum applies, by its own ramp over 0..1, as the protein fork of SEDD writes them.
EASIEST = 0.1
RAMPS: dict[str, Callable[[float], float]] = {"exponential": lambda p: 1 - math.exp(-3 * p), "linear": lambda p: p}


def _less_noise(case: Case) -> RuledOut | None:
    known = _absorbing(case)
    if known is None:
        return None
    tokens, low, top = known
    if 1 - math.exp(-top) >= FULL:
        return None
    less = float(f"{top * 5 / 8:.1g}")
    now, then = sedd_untrained_loss(tokens, top, low), sedd_untrained_loss(tokens, less, low)
    return RuledOut(
        "less-noise",
        f"A smaller sigma_max than {top:g} makes the loss stable",
        f"it lowers the loss without learning: an untrained model has {now:.3g} at {top:g} and {then:.3g} at {less:g} (ln {tokens} times the "
        f"share masked); and {top:g} masks {1 - math.exp(-top):.0%} of the tokens at most already, where sampling starts at 100 %",
    )


RULES = (_noise_levels, _curriculum_outruns, _less_noise)
