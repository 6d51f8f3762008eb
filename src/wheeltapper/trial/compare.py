"""The verdict on one changed thing, from the outcomes of a control and of arms that share its seeds.

`decide` and `decide_all` may be asked after every run that ends: the bets behind them (sequential.py) hold at
every look. What is claimed, and how often it may be wrong:

confirmed     symptom: the arm breaks less often than the control, and in no more than a quarter of its runs.
              difference: the arm is better than the control by more than `delta`, pair by pair.
              Wrong with chance at most alpha, over all looks and (Holm) all arms together.
refuted       symptom: the arm still breaks in more than a quarter of its runs. difference: it gains less than
              delta. Wrong with chance at most beta for each arm.
cannot-tell   neither yet, with the number of further pairs that would probably tell; or the control did not
              show the symptom, or the comparison is not fair (TRL-09), and then no number of pairs tells.

A run that broke counts as broken and is never dropped: its endpoint is worse than any number. The difference
bet takes pairs to be alike up to the sign if the change does nothing (same seed, same data, so either run could
have been either arm). It keeps alpha for heavy tails, clustered and rounded values (LOG.md); it is not about a
change that makes most runs a little better and few runs much worse: those few are counted as broken instead.

An exact A/A (equal to the last bit) proves that a run can be repeated, not that one pair is enough: any change
draws the chaos of training anew, so a symptom that comes and goes would go by luck. Pairs are asked for anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.trial import power
from wheeltapper.trial.exact import boschloo_less, holm
from wheeltapper.trial.model import Outcome, Rule, Rung, Verdict
from wheeltapper.trial.sequential import confidence_sequence, fewer_evalue, over_evalue, t_evalue

# A cure that leaves more than one run in four broken is not the cure of that symptom.
STILL_BREAKS = 0.25
# Fewer pairs decide no difference, however large (TRL-05: 4 for d = 3). With three, values in two clusters pass
# alpha/3 too often (measured 1.8 %, LOG.md).
LEAST_PAIRS, LEAST_TO_REFUTE = 4, 3
# A value rounded to q has an error of q/sqrt(12), a difference of two such q/sqrt(6).
ROUNDING = 1 / math.sqrt(6)
# The part of the loss that comes from the learning rate's own noise is about proportional to the rate (SGD near
# a minimum), so at a tenth of the peak at most a tenth of it is left in the comparison.
COOLED = 0.1
Bias = Literal["", "for", "against"]


@dataclass(frozen=True, slots=True)
class Floor:
    """What repeating the control with the same seed shows (TRL-01)."""

    spread: float  # root mean square of the paired differences
    pairs: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Weighed:
    """The evidence about one arm before alpha is shared out among the arms."""

    verdict: Verdict  # the answer if "confirmed" is not granted
    bet: float  # e-value of "confirmed"; 0: cannot be confirmed whatever the number
    granted: str  # the sentence if it is


def decide(
    control: Sequence[Outcome],
    arm: Sequence[Outcome],
    rule: Rule,
    *,
    aa: Sequence[Outcome] = (),
    bias: Bias = "",
    forecast: bool = True,
) -> Verdict:
    """The verdict on one arm; alpha is shared evenly among `rule.arms`. `forecast`: say how many more would tell."""
    weighed = weigh(control, arm, rule, aa, bias, forecast)
    return _granted(weighed) if weighed.bet >= rule.arms / rule.alpha else weighed.verdict


def decide_all(
    control: Sequence[Outcome],
    arms: Mapping[str, Sequence[Outcome]],
    rule: Rule,
    *,
    aa: Sequence[Outcome] = (),
    bias: Mapping[str, Bias] | None = None,
    forecast: bool = True,
) -> dict[str, Verdict]:
    """The verdicts on all arms, with Holm's sharing of alpha; `bias` is what `rate_bias` says of each."""
    found = {name: weigh(control, arm, rule, aa, (bias or {}).get(name, ""), forecast) for name, arm in arms.items()}
    stands = holm({name: 1 / max(one.bet, 1.0) for name, one in found.items()}, rule.alpha, rule.arms)
    return {name: _granted(one) if stands[name] and one.bet else one.verdict for name, one in found.items()}


def _granted(weighed: Weighed) -> Verdict:
    rung: Rung = "removed" if weighed.verdict.rung == "reproduced" else "none"
    return replace(weighed.verdict, answer="confirmed", why=weighed.granted, rung=rung, more=None)


def weigh(
    control: Sequence[Outcome],
    arm: Sequence[Outcome],
    rule: Rule,
    aa: Sequence[Outcome] = (),
    bias: Bias = "",
    forecast: bool = True,
) -> Weighed:
    """The evidence about one arm, by the rule."""
    floor = noise_floor(control, aa)
    shown = [_ill(one, rule) for one in control if one.broke is not None]
    if not control or not arm:
        return _never("No pair has ended yet.", more=power.first_guess(rule))
    if shown and not any(shown):
        return _never(f"The control did not show the symptom (0 of {len(shown)} runs): nothing can be concluded.")
    pairs = paired(control, arm)
    if not pairs:
        return _never("No run of the arm shares a seed with the control yet.", more=power.first_guess(rule))
    broken = any(one.value is not None and not math.isfinite(one.value) for one, _ in pairs)
    if rule.kind == "symptom" or broken:
        return _by_symptom(pairs, shown, rule, floor, forecast)
    if shown and 2 * sum(shown) < len(shown):
        return _never(
            f"The control showed the symptom in only {sum(shown)} of {len(shown)} runs: nothing can be concluded."
        )
    return _by_difference(pairs, bool(shown), rule, floor, bias, forecast)


def _ill(one: Outcome, rule: Rule) -> bool:
    """Whether a control run shows the trouble again: its sign, or an endpoint no better than the original's."""
    if one.broke or rule.original is None or one.value is None:
        return bool(one.broke)
    gain = one.value - rule.original if rule.better == "up" else rule.original - one.value
    return gain <= (rule.delta or 0.0)


def _never(why: str, pairs: int = 0, more: int | None = None) -> Weighed:
    return Weighed(Verdict("cannot-tell", why, pairs=pairs, more=more), 0.0, "")


def paired(control: Sequence[Outcome], arm: Sequence[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Runs of the two arms with one seed, in the order of the control."""
    by_seed = {one.seed: one for one in arm}
    return [(one, by_seed[one.seed]) for one in control if one.seed in by_seed]


def noise_floor(control: Sequence[Outcome], aa: Sequence[Outcome]) -> Floor:
    """How far two runs of the same seed lie apart when nothing is changed. Broken runs say nothing of it."""
    gaps = [_gap(one, two) for one, two in paired(control, aa)]
    finite = [gap for gap in gaps if gap is not None and math.isfinite(gap)]
    spread = math.sqrt(sum(gap**2 for gap in finite) / len(finite)) if finite else 0.0
    return Floor(spread, len(finite), bool(finite) and spread == 0.0)


def _gap(one: Outcome, two: Outcome) -> float | None:
    return None if one.value is None or two.value is None else two.value - one.value


def _broke(one: Outcome) -> bool | None:
    """Whether the run broke: as the record tells, and in any case where its endpoint is not a number."""
    if one.value is not None and not math.isfinite(one.value):
        return True
    return one.broke if one.broke is not None or one.value is None else False


# -- did the symptom go away ---------------------------------------------------------------------------------


def _by_symptom(
    pairs: list[tuple[Outcome, Outcome]], shown: Sequence[bool], rule: Rule, floor: Floor, forecast: bool
) -> Weighed:
    known = [(_broke(one), _broke(two)) for one, two in pairs]
    told = [(one, two) for one, two in known if one is not None and two is not None]
    n = len(told)
    if not n:
        return _never("No pair tells whether the symptom was there.", pairs=len(pairs))
    in_control, in_arm = sum(one for one, _ in told), sum(two for _, two in told)
    if not in_control and not any(shown):
        return _never(f"The control did not show the symptom (0 of {n} runs): nothing can be concluded.", pairs=n)
    both = sum(one and two for one, two in told)
    counts = (both, in_control - both, in_arm - both, n - in_control - in_arm + both)
    bet = float(fewer_evalue(*(np.array(k) for k in counts)))
    against = float(over_evalue(np.array(in_arm), np.array(n), STILL_BREAKS))
    cured = in_arm <= STILL_BREAKS * n
    tally = f"The symptom was there in {in_control} of {n} control runs and in {in_arm} of {n} with the change"
    p_exact = boschloo_less(in_arm, n, in_control, n)
    gaps = [gap for one, two in pairs if (gap := _gap(one, two)) is not None and math.isfinite(gap)]
    base = Verdict(
        "cannot-tell",
        "",
        pairs=n,
        effect=sum(gaps) / len(gaps) if gaps else None,
        p=min(1.0, 1 / bet),
        rung="reproduced",
        deterministic=floor.exact,
    )
    if against >= 1 / rule.beta and n >= LEAST_TO_REFUTE:
        late = _postponed(pairs)
        return Weighed(replace(base, answer="refuted", why=f"{tally}: it stays.{late}"), 0.0, "")
    more = power.pairs_for_symptom(counts, rule, STILL_BREAKS) if forecast else None
    hint = f" {power.say(more)}" if forecast else ""
    if not cured:
        return Weighed(replace(base, why=f"{tally}.{hint}", more=more), 0.0, "")
    why = f"{tally}, which is not enough to tell (p = {min(1.0, 1 / bet):.2g} at any look).{hint}"
    granted = f"{tally} (p = {1 / bet:.2g} at any look; {p_exact:.2g} by Boschloo's exact test)."
    return Weighed(replace(base, why=why, more=more), bet, granted)


def _postponed(pairs: list[tuple[Outcome, Outcome]]) -> str:
    """A change that only moves the symptom to later steps is told apart from one that does nothing."""
    ratios = [two.onset / one.onset for one, two in pairs if one.onset and two.onset and one.broke and two.broke]
    if len(ratios) < 2 or not min(ratios) > 1:
        return ""
    return f" It comes {float(np.median(ratios)):.1f} times later in every pair: postponed, not removed."


# -- is the endpoint better ----------------------------------------------------------------------------------


def _by_difference(
    pairs: list[tuple[Outcome, Outcome]], reproduced: bool, rule: Rule, floor: Floor, bias: Bias, forecast: bool
) -> Weighed:
    valued = [(one, two) for one, two in pairs if one.value is not None and two.value is not None]
    n = len(valued)
    if not n:
        return _never("No pair has a value of the endpoint.", pairs=len(pairs))
    sign = 1.0 if rule.better == "up" else -1.0
    gain = np.array([sign * (gap if (gap := _gap(one, two)) is not None else math.nan) for one, two in valued])
    base = Verdict("cannot-tell", "", pairs=n, rung="reproduced" if reproduced else "none", deterministic=floor.exact)
    lost = int(np.sum(~np.isfinite(gain)))
    if lost:
        return _with_lost_arms(gain, lost, rule, base)
    delta = least_that_matters(valued, rule, floor)
    spread = max(floor.spread, ROUNDING * rounding_of(valued))
    bet, against = float(t_evalue(gain - delta, spread)), float(t_evalue(delta - gain, spread))
    # The bets are one-sided at alpha, so the interval that fits them leaves alpha out on each side (ST-12).
    low, high = confidence_sequence(gain, 2 * rule.alpha, spread)
    base = replace(
        base,
        effect=sign * float(gain.mean()) + 0.0,  # no minus zero
        low=min(sign * low, sign * high) + 0.0,
        high=max(sign * low, sign * high) + 0.0,
        p=min(1.0, 1 / bet),
    )
    told = f"{rule.metric} {_better(float(gain.mean()))} over {n} {'pair' if n == 1 else 'pairs'}"
    told += f" ({1 - 2 * rule.alpha:.0%} sequence {base.low:.3g} to {base.high:.3g} for the change)" if n > 1 else ""
    matters = f"what matters is {delta:.3g}"
    if against >= 1 / rule.beta and n >= LEAST_TO_REFUTE:
        if bias == "against":
            return Weighed(replace(base, why=f"{told}. {UNFAIR}"), 0.0, "")
        why = f"{told}; {matters}. {_how(gain, delta, rule, spread)}"
        return Weighed(replace(base, answer="refuted", why=why), 0.0, "")
    still = [_broke(two) for _, two in valued]
    left = sum(bool(one) for one in still)
    more = power.pairs_for_difference(gain - delta, spread, rule, LEAST_PAIRS) if forecast else None
    why = f"{told}; {matters}." + (f" {power.say(more)}" if forecast else "")
    if bias == "for" and gain.mean() > 0:
        return Weighed(replace(base, why=f"{told}. {UNFAIR}"), 0.0, "")
    if left > STILL_BREAKS * n and reproduced:
        why = f"{told}, but the symptom is still there in {left} of {n}: part of the cause at most."
        return Weighed(replace(base, why=why), 0.0, "")
    if n < LEAST_PAIRS:
        return Weighed(replace(base, why=why, more=more or LEAST_PAIRS - n), 0.0, "")
    unseen = "" if reproduced else " Whether the control shows the symptom itself was not recorded."
    granted = f"{told}; {matters} (p = {1 / max(bet, 1.0):.2g} at any look).{unseen}"
    return Weighed(replace(base, why=why, more=more), bet, granted)


UNFAIR = (
    "The comparison is not fair: the arms end at different learning rates without the same cool-down, and a short "
    "run without one favours the lower rate. Run both with an equal cool-down at the end."
)


def _with_lost_arms(gain: Floats, lost: int, rule: Rule, base: Verdict) -> Weighed:
    """Some runs with the change broke where the control did not: no mean exists, and that alone is an answer."""
    n = len(gain)
    told = f"{lost} of {n} runs with the change broke (NaN or inf) where the control did not"
    if float(over_evalue(np.array(lost), np.array(n), STILL_BREAKS)) >= 1 / rule.beta:
        return Weighed(replace(base, answer="refuted", why=f"{told}: it makes things worse."), 0.0, "")
    return Weighed(replace(base, why=f"{told}: no average can be taken over them."), 0.0, "")


def _better(gain: float) -> str:
    if not gain:
        return "is the same"
    return f"is {'better' if gain > 0 else 'worse'} by {abs(gain):.3g}"


def _how(gain: Floats, delta: float, rule: Rule, spread: float) -> str:
    """What kind of "no" it is; "no effect" only by equivalence (TRL-16)."""
    if equivalent(gain, delta, rule.alpha, spread):
        return "No effect that matters, either way (equivalence shown)."
    if float(t_evalue(-gain, spread)) >= 1 / rule.alpha:
        return "The change makes it worse."
    if float(t_evalue(gain, spread)) >= 1 / rule.alpha:
        return "It helps, but by less than the symptom needs: part of the cause at most."
    return "It gains less than the symptom needs."


def equivalent(x: Floats, delta: float, alpha: float, floor: float = 0.0) -> bool:
    """Two one-sided tests: is the mean of x inside (-delta, delta)? Valid at any look (ST-12).

    Both bounds must be excluded, each at alpha; no sharing is needed, as at most one of the two can be true.
    """
    return bool(min(t_evalue(x + delta, floor), t_evalue(delta - x, floor)) >= 1 / alpha)


def least_that_matters(pairs: Sequence[tuple[Outcome, Outcome]], rule: Rule, floor: Floor) -> float:
    """`rule.delta`; else twice the A/A spread; else half the spread of the control over seeds.

    The last is for an exact or missing A/A: a change that moves the endpoint by less than half of what
    another seed does is not what makes a run ill.
    """
    if rule.delta is not None:
        return rule.delta
    values = [one.value for one, _ in pairs if one.value is not None]
    seeds = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return max(2 * floor.spread, 0.5 * seeds)


def rounding_of(pairs: Sequence[tuple[Outcome, Outcome]]) -> float:
    """The grid the endpoint lives on (an accuracy on few pictures, two decimals of a log): the largest step that
    fits into every difference of values, to a thousandth of their range; 0 where there is none."""
    values = np.unique([value for pair in pairs for one in pair if (value := one.value) is not None])
    if len(values) < 2:
        return 0.0
    fine = 1e-3 * float(values[-1] - values[0])
    step = 0.0
    for gap in np.diff(values).tolist():
        rest = gap
        while rest > fine:  # Euclid
            step, rest = rest, step % rest if step else 0.0
            rest = 0.0 if step - rest <= fine else rest
    return step if all(abs(gap / step - round(gap / step)) * step <= fine for gap in np.diff(values)) else 0.0


# -- fairness and the ladder ---------------------------------------------------------------------------------


def rate_bias(control_rates: Sequence[float], arm_rates: Sequence[float]) -> Bias:
    """Whether the learning rates at the end favour one arm (TRL-09): "for" the arm, "against" it, or "".

    Fair is: both end under a tenth of the highest rate of the two, or at the same rate. The series are the rates
    in use, in order. Whether a symptom appears is not biased this way (TRL-10), so `decide` only heeds it for
    differences.

    >>> rate_bias([1e-3, 1e-3], [1e-4, 1e-4]), rate_bias([1e-3, 1e-5], [1e-4, 1e-6])
    ('for', '')
    """
    one, two = ([rate for rate in rates if math.isfinite(rate)] for rates in (control_rates, arm_rates))
    if not one or not two or math.isclose(one[-1], two[-1], rel_tol=COOLED):
        return ""
    if max(one[-1], two[-1]) <= COOLED * max(*one, *two):
        return ""
    return "for" if two[-1] < one[-1] else "against"


def ladder(
    verdict: Verdict,
    *,
    again: Verdict | None = None,
    dose_p: float | None = None,
    placebo: Verdict | None = None,
    alpha: float = 0.05,
) -> Rung:
    """The highest rung of the causal ladder that was reached (TRL-14).

    `again` is decide(re-inserted, mended): putting the fault back breaks it again. `dose_p` is exact.trend_p
    over the doses. `placebo` is the verdict on a knob that should do nothing: it must not be confirmed.
    """
    if verdict.answer != "confirmed":
        return verdict.rung
    rung = verdict.rung
    if again is not None and again.answer == "confirmed":
        rung = "re-inserted"
    if dose_p is not None and dose_p <= alpha:
        rung = "dose-response"
    if placebo is not None and placebo.answer == "refuted" and rung in ("re-inserted", "dose-response"):
        rung = "specific"
    return rung
