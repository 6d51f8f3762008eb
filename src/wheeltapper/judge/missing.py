"""What to collect next, ordered by how much it would decide."""

from __future__ import annotations

from collections.abc import Sequence

from wheeltapper.finding import Unknown
from wheeltapper.judge.model import SOMETHING_ELSE, Missing, RankedCause, Verdict
from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Run

NAMED = "a loss or a score, under its name"
# What separates the common causes of a diverged, stuck or declined run, and what it would tell.
ASKS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "the learning rate at every step",
        "planned against effective: the cheapest strong check",
        ("lr-too-high", "lr-too-low"),
    ),
    (
        "the gradient norm before clipping",
        "whether the norm rose before the loss did",
        ("lr-too-high", "bad-data-from-step", "fp16-overflow"),
    ),
    (NAMED, "without one nothing can be judged; columns without a header have no names", ()),
    ("a score on held-out data", "whether what was learned holds elsewhere", ("overfitting", "train-val-leak")),
    ("the config or the command line", "which settings the run really had", ("lr-too-high", "no-warmup")),
)


def what_is_missing(
    case: Case, verdict: Verdict, ranked: Sequence[RankedCause], unknowns: Sequence[tuple[str, Unknown]]
) -> tuple[Missing, ...]:
    """Things the record lacks, most decisive first; only those that bear on the answer given."""
    lacking = _lacking(case)
    out: list[Missing] = []
    open_causes = [c for c in ranked if c.id != SOMETHING_ELSE]
    for what, why, decides in ASKS:
        if what in lacking:
            bearing = tuple(c.id for c in open_causes if c.id in decides)
            if verdict == "sound" and "held-out" not in what:
                continue
            bits = 5.0 if what == NAMED else 1.0 + 2.0 * sum(c.probability for c in open_causes if c.id in decides)
            out.append(Missing(what, why, bearing, bits))
    if verdict == "ill" and open_causes and open_causes[0].probability < 0.9 and open_causes[0].trial:
        first = open_causes[0]
        out.append(Missing(f"a trial: {first.trial}", f"it would confirm or refute {first.id}", (first.id,), 4.0))
    if verdict == "cannot-tell":
        needs = dict.fromkeys(need for _, unknown in unknowns for need in unknown.needs)
        out += [Missing(need, "a rule could not look without it", (), 0.5) for need in list(needs)[:5]]
    return tuple(sorted(out, key=lambda m: -m.bits))


def _lacking(case: Case) -> set[str]:
    run: Run = case.run
    out = set()
    if case.get("lr") is None:
        out.add("the learning rate at every step")
    if case.get("grad_norm") is None:
        out.add("the gradient norm before clipping")
    if case.get("val_loss") is None and case.get("val_metrics") is None:
        out.add("a score on held-out data")
    if not any(series.better in ("up", "down") for series in run.series.values()):
        out.add(NAMED)
    if not run.configs:
        out.add("the config or the command line")
    return out
