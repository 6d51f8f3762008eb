"""A trial as a report shows it: plain text and charts, computed once for terminal, Markdown, HTML and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from wheeltapper.report.curves import Chart, Line, Role, thin
from wheeltapper.report.spark import wants_log
from wheeltapper.report.text import clean, duration, num, plural
from wheeltapper.trial.ledger import Books
from wheeltapper.trial.measure import same_run
from wheeltapper.trial.model import Arm, Outcome, Rule
from wheeltapper.trial.plan import TrialPlan
from wheeltapper.trial.read import Trial, causes_in

ANSWERS = {"confirmed": "confirmed", "refuted": "refuted", "cannot-tell": "cannot tell", "": "not compared"}
SIGNS = {"confirmed": "✓", "refuted": "✗", "cannot-tell": "?", "": "·"}
RUNGS = {
    "none": "nothing reproduced",
    "reproduced": "the control shows the symptom again",
    "removed": "taking it away takes the symptom away",
    "re-inserted": "putting it back brings the symptom back",
    "dose-response": "half the change has part of the effect",
    "specific": "and a placebo does nothing",
}
MOST_LINES = 8  # seeds drawn of each side


@dataclass(frozen=True, slots=True)
class Repeat:
    """One row of an arm: a pair with the control of the same seed."""

    seed: int
    control: str
    arm: str
    difference: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ArmView:
    id: str
    kind: str
    cause: str | None
    text: str
    answer: str
    words: str
    why: str
    rung: str = ""
    effect: str = ""
    repeats: tuple[Repeat, ...] = ()
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class TrialView:
    name: str
    folder: str
    headline: str
    state: str
    facts: tuple[tuple[str, str], ...]
    arms: tuple[ArmView, ...]
    control: tuple[str, ...]  # what control and A/A say
    failures: tuple[tuple[str, str], ...] = ()
    record: tuple[tuple[str, str], ...] = field(default_factory=tuple)  # hashes and versions


def plan_rows(plan: TrialPlan) -> tuple[tuple[str, str], ...]:
    """The plan in words, before anything is run."""
    rule = plan.rule
    start = plan.fork.why if plan.fork.path is None else f"{plan.fork.why}: {plan.fork.path}"
    seeds = f"{plan.seeds[0]} to {plan.seeds[-1]}" if len(plan.seeds) > 1 else str(plan.seeds[0])
    rows = [
        ("question", question(rule)),
        ("starts from", start),
        ("runs to", f"{plan.clock} {plan.length:g}: {plan.length_why}"),
        ("seeds", f"{seeds}, the same in every arm; given {plan.seed_way}"),
        ("decided by", rule_words(rule)),
        ("where", f"{'a copy of ' if plan.command.isolated else ''}{plan.command.cwd}"),
        ("cost", cost_words(plan)),
    ]
    return tuple((name, clean(text, 600)) for name, text in rows)


def question(rule: Rule) -> str:
    if rule.kind == "symptom":
        return f"does “{rule.symptom}” go away?"
    goal = f"is {rule.metric} {'higher' if rule.better == 'up' else 'lower'}"
    by = f" by more than {rule.delta:g}" if rule.delta is not None else ""
    return f"{goal}{by} at the end?" + (f" (the run shows “{rule.symptom}”)" if rule.symptom else "")


def rule_words(rule: Rule) -> str:
    what = (
        "runs with and without the symptom" if rule.kind == "symptom" else f"differences of {rule.metric}, seed by seed"
    )
    return (
        f"{what}; looked at after every run; a false “confirmed” in at most {rule.alpha:.0%} of trials over "
        f"{plural(rule.arms, 'arm')}, a false “refuted” in at most {rule.beta:.0%}; at most {rule.most_pairs} seeds"
    )


def cost_words(plan: TrialPlan) -> str:
    cost = plan.cost
    runs = f"{cost.fewest} to {cost.most} runs"
    if cost.each is None:
        return f"{runs}; the record tells no time, so the first control will show what one costs"
    low, high = duration(cost.least_seconds or 0.0), duration(cost.most_seconds or 0.0)
    budget = "" if plan.budget is None else f"; the budget is {duration(plan.budget)}"
    return f"{runs} of {duration(cost.each)}: {low} to {high} of machine time by the record's own clock{budget}"


def trial_view(trial: Trial, *, charts: bool = False) -> TrialView:
    plan, books = trial.plan, trial.books
    control = books.outcomes.get("control", {})
    # An arm that waits for another to be refuted, and was not needed, is not worth a line.
    shown = [arm for arm in plan.tried if not arm.after or books.outcomes.get(arm.id)]
    arms = tuple(_arm(trial, arm, control, charts) for arm in shown)
    closed = books.closed
    done = sum(len(by_seed) for by_seed in books.outcomes.values())
    state = f"{plural(done, 'run')}, {duration(books.seconds)} of machine time"
    searched = not plan.tried
    state += "; not finished" if closed is None else "" if searched else f"; ended: {closed['why']}"
    return TrialView(
        name=clean(plan.name, 120),
        folder=clean(str(trial.folder), 300),
        headline=headline(trial),
        state=clean(state, 300),
        facts=plan_rows(plan)[:-1],
        arms=arms,
        control=_searched_words(books)
        if searched
        else _control_words(plan.rule, control, books.outcomes.get("aa", {})),
        failures=_failures(trial),
        record=_record(plan.hashes),
    )


def answers_in(trial: Trial) -> dict[str, str]:
    """The answer on each cause, and on each change that belongs to none."""
    verdicts = trial.books.verdicts
    out: dict[str, str] = {cause: verdict.answer for cause, verdict in causes_in(trial).items()}
    for arm in trial.plan.tried:
        if arm.kind == "remedy" and (arm.cause or arm.id) not in out:
            out[arm.cause or arm.id] = verdicts[arm.id].answer if arm.id in verdicts else ""
    return out


def headline(trial: Trial) -> str:
    closed, answers = trial.books.closed, answers_in(trial)
    if closed is not None and "culprits" in closed:
        return clean(closed["why"], 600)
    by = {answer: [name for name, one in answers.items() if one == answer] for answer in ANSWERS if answer}
    parts = [f"{ANSWERS[answer]}: {', '.join(names)}" for answer, names in by.items() if names]
    if not parts:
        return clean(f"nothing is decided: {closed['why']}" if closed else "nothing is decided yet", 300)
    return clean("; ".join(parts), 400)


def _arm(trial: Trial, arm: Arm, control: Mapping[int, Outcome], charts: bool) -> ArmView:
    plan, books = trial.plan, trial.books
    verdict = books.verdicts.get(arm.id)
    own = books.outcomes.get(arm.id, {})
    gone = books.abandoned.get(arm.id)
    answer = "" if verdict is None else verdict.answer
    why = verdict.why if verdict is not None else "no pair of runs ended"
    if gone:
        why = f"{why} (given up: {gone})" if verdict is not None else gone
    effect = ""
    if verdict is not None and verdict.effect is not None and plan.rule.kind == "difference":
        effect = f"{plan.rule.metric} {verdict.effect:+.4g}"
        if verdict.low is not None and verdict.high is not None and math.isfinite(verdict.high - verdict.low):
            effect += f" ({verdict.low:+.4g} to {verdict.high:+.4g})"
    return ArmView(
        id=clean(arm.id, 80),
        kind=arm.kind,
        cause=arm.cause,
        text=clean(arm.text, 300),
        answer=answer,
        words=ANSWERS[answer],
        why=clean(why, 800),
        rung=RUNGS[verdict.rung] if verdict is not None and verdict.rung != "none" else "",
        effect=clean(effect, 120),
        repeats=tuple(_repeat(seed, control.get(seed), own[seed]) for seed in sorted(own)),
        chart=_chart(plan, arm, control, own) if charts and own else None,
    )


def _repeat(seed: int, one: Outcome | None, two: Outcome) -> Repeat:
    gap = ""
    if one is not None and one.value is not None and two.value is not None and math.isfinite(two.value - one.value):
        gap = f"{two.value - one.value:+.4g}"
    return Repeat(seed, "—" if one is None else _outcome_words(one), _outcome_words(two), gap, clean(two.note, 200))


def _outcome_words(outcome: Outcome) -> str:
    """
    >>> _outcome_words(Outcome(1, 0.25, True)), _outcome_words(Outcome(1, None, False))
    ('0.25 ✗', 'no value ✓')
    """
    value = "no value" if outcome.value is None else num(outcome.value)
    return f"{value}{' ✗' if outcome.broke else ' ✓' if outcome.broke is False else ''}"


def _searched_words(books: Books) -> tuple[str, ...]:
    """Each question of a search, with its runs."""
    return tuple(
        clean(f"{arm}: {', '.join(_outcome_words(one) for _, one in sorted(by.items()))}", 300)
        for arm, by in books.outcomes.items()
    )


def _control_words(rule: Rule, control: Mapping[int, Outcome], aa: Mapping[int, Outcome]) -> tuple[str, ...]:
    if not control:
        return ("the control has not ended once",)
    out = []
    if rule.symptom:
        shown = sum(bool(o.broke) for o in control.values())
        out.append(f"control: “{rule.symptom}” in {shown} of {len(control)} runs")
    pairs = [(control[s], aa[s]) for s in sorted(aa) if s in control]
    gaps = [b.value - a.value for a, b in pairs if a.value is not None and b.value is not None]
    if pairs and all(same_run(a, b) for a, b in pairs):
        out.append(f"A/A: {plural(len(pairs), 'pair')}, equal to the last bit")
    elif [g for g in gaps if math.isfinite(g)]:
        widest = max(abs(g) for g in gaps if math.isfinite(g))
        out.append(f"A/A: {plural(len(gaps), 'pair')} of equal runs differ by up to {num(widest)} in {rule.metric}")
    return tuple(clean(line, 300) for line in out)


def _failures(trial: Trial) -> tuple[tuple[str, str], ...]:
    out = []
    for r in trial.records:
        if r["kind"] == "ended" and r.get("failed"):
            last = [line for line in str(r.get("tail", "")).splitlines() if line.strip()][-3:]
            told = f"exit code {r.get('code')} {r.get('why') or ''}: {r.get('note', '')}"
            out.append((clean(r["job"], 80), clean(" | ".join([told, *last]), 500)))
    return tuple(out[:20])


def _record(hashes: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    rows = []
    for name, value in hashes.items():
        if isinstance(value, Mapping):
            rows += [(f"{name} {clean(key, 120)}", clean(str(v), 100)) for key, v in value.items()]
        elif value is not None:
            rows.append((name, clean(str(value), 100)))
    return tuple(rows)


# ---------------------------------------------------------------- paired curves


def _chart(plan: TrialPlan, arm: Arm, control: Mapping[int, Outcome], own: Mapping[int, Outcome]) -> Chart | None:
    """The control's curves against the arm's, the same seeds on both sides."""
    seeds = [s for s in sorted(own) if s in control][:MOST_LINES]
    drawn: list[tuple[str, Role, Outcome]] = [("control", "val", control[s]) for s in seeds]
    drawn += [(arm.id, "train", own[s]) for s in seeds]
    drawn = [(name, role, o) for name, role, o in drawn if o.curve]
    if not drawn:
        return None
    ends = [x for _, _, o in drawn for x, _ in o.curve]
    start, end = min(ends), max(ends)
    lines: list[Line] = []
    for name, role, outcome in drawn:
        x, y = np.array([p[0] for p in outcome.curve]), np.array([p[1] for p in outcome.curve])
        lines.append(replace(thin(x, y, start, end), name=clean(name, 40), role=role))
    values = np.concatenate([ys for line in lines for _, ys in line.pieces] or [np.zeros(0)])
    if not len(values):
        return None
    log = wants_log(values)
    low, high = float(values.min()), float(values.max())
    title = f"{plan.rule.metric}: {arm.id}"
    return Chart(
        clean(title, 80),
        plan.clock,
        plan.rule.better,
        tuple(lines),
        start,
        end,
        low,
        high if high > low else low + 1.0,
        log,
    )
