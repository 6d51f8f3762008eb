"""From the books of a trial to its last word: fairness of the rates, the rung of the ladder, bits for the diagnosis."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from wheeltapper.trial.compare import STILL_BREAKS, Bias, decide, decide_all, ladder, rate_bias
from wheeltapper.trial.exact import trend_p
from wheeltapper.trial.ledger import Books, Record
from wheeltapper.trial.measure import same_run
from wheeltapper.trial.model import Arm, Outcome, Rule, Rung, Verdict
from wheeltapper.trial.plan import TrialPlan


def in_order(outcomes: Mapping[int, Outcome], running: Collection[int] = ()) -> list[Outcome]:
    """Outcomes by seed, up to the first seed that still runs.

    Runs that break end first. Counting whatever has ended would show, of many that run side by side, the broken
    ones alone, and a cure that fails one run in ten would be refuted by its first three failures.
    """
    first = min(running, default=math.inf)
    return [outcomes[seed] for seed in sorted(outcomes) if seed < first]


def seed_does_nothing(control: Sequence[Outcome]) -> bool:
    """Whether another seed gave the first run again."""
    told = [o for o in control if len(o.curve) >= 2]
    return len(told) >= 2 and any(same_run(told[0], other) for other in told[1:])


def one_seed(plan: TrialPlan) -> str:
    """What to do where every repeat is the same run: more pairs would tell nothing."""
    return (
        f"All seeds give the same run, so pairs of runs prove nothing; the seed was given {plan.seed_way}. Put {{seed}} "
        "into --cmd where the training takes its seed, or let the script read WHEELTAPPER_SEED, and begin another trial."
    )


def verdicts_now(plan: TrialPlan, books: Books) -> dict[str, Verdict]:
    """What the outcomes so far say of each arm that has any."""
    control = in_order(books.outcomes.get("control", {}))
    arms = {arm.id: in_order(books.outcomes.get(arm.id, {}), _to_come(books, arm.id)) for arm in plan.tried}
    arms = {name: outcomes for name, outcomes in arms.items() if outcomes}
    aa = in_order(books.outcomes.get("aa", {}))
    bias = {name: bias_of(control, outcomes) for name, outcomes in arms.items()}
    found = decide_all(control, arms, plan.rule, aa=aa, bias=bias)
    return {name: heed_crashes(one, sum(arm == name for arm, _ in books.failed)) for name, one in found.items()}


def _to_come(books: Books, arm: str) -> set[int]:
    """Seeds of which a pair of this arm is still to come."""
    return {a.seed for a in books.open.values() if a.arm in (arm, "control")}


def heed_crashes(verdict: Verdict, crashed: int) -> Verdict:
    """An arm is not confirmed by the repeats that came through if more than a quarter of all crashed."""
    many = verdict.pairs + crashed
    if verdict.answer != "confirmed" or crashed <= STILL_BREAKS * many:
        return verdict
    why = f"{crashed} of {many} repeats with the change crashed or left no record, so those that came through do not tell."
    return replace(verdict, answer="cannot-tell", why=f"{why} Of those: {verdict.why}", rung="reproduced")


def bias_of(control: Sequence[Outcome], arm: Sequence[Outcome]) -> Bias:
    """Whether the learning rates at the end favour one side (TRL-09), where they were logged."""
    one = next((o.rates for o in control if o.rates), None)
    two = next((o.rates for o in arm if o.rates), None)
    return "" if one is None or two is None else rate_bias(one, two)


def rung_of(plan: TrialPlan, books: Books, records: Sequence[Record], arm: Arm, verdict: Verdict) -> Rung:
    """How far up the ladder an arm came. Put back: repeats of the control that began after one of the arm had ended
    must break again (A, B, A in time, so that a machine that changed in between is not taken for the cure)."""
    outcomes, control = books.outcomes.get(arm.id, {}), books.outcomes.get("control", {})
    times = times_of(records)
    ended = min((times[arm.id, seed][1] for seed in outcomes if (arm.id, seed) in times), default=math.inf)
    late = [o for seed, o in sorted(control.items()) if times.get(("control", seed), (0.0, 0.0))[0] >= ended]
    again = decide(late, in_order(outcomes), replace(plan.rule, arms=1)) if late else None
    half = books.outcomes.get(f"{arm.id}.half", {})
    dose_p = _dose_p(plan.rule, control, half, outcomes) if half else None
    placebo = next((books.verdicts[a.id] for a in plan.tried if a.kind == "placebo" and a.id in books.verdicts), None)
    return ladder(verdict, again=again, dose_p=dose_p, placebo=placebo, alpha=plan.rule.alpha)


def _dose_p(rule: Rule, *doses: Mapping[int, Outcome]) -> float | None:
    """One block per seed, from no dose to the full one, larger is better; a broken run is worse than any number."""
    sign = 1.0 if rule.better == "up" else -1.0
    blocks = []
    for seed in sorted(set.intersection(*(set(d) for d in doses))):
        values = [d[seed].value for d in doses]
        if all(v is not None for v in values):
            blocks.append([sign * v if v is not None and math.isfinite(v) else -math.inf for v in values])
    return trend_p(blocks) if blocks else None


def times_of(records: Sequence[Record]) -> dict[tuple[str, int], tuple[float, float]]:
    """When each counted repeat started and ended."""
    sent = {r["job"]: (r["arm"], r["seed"], r["at"]) for r in records if r["kind"] == "submitted"}
    began: dict[str, float] = {r["job"]: r["at"] for r in records if r["kind"] == "started"}
    out: dict[tuple[str, int], tuple[float, float]] = {}
    for r in records:
        if r["kind"] == "ended" and r.get("outcome") and r["job"] in sent:
            arm, seed, at = sent[r["job"]]
            out[arm, seed] = (float(began.get(r["job"]) or at), float(r["at"]))
    return out
