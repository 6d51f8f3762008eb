"""What to run next. Pure: from the plan and the books alone, so that a resumed trial chooses as the first would have."""

from __future__ import annotations

from wheeltapper.trial.ledger import Books
from wheeltapper.trial.model import Arm
from wheeltapper.trial.plan import TrialPlan

LEFT_OVER = 3  # times as many seeds as planned may go to an arm that the others leave room for


def next_repeat(plan: TrialPlan, books: Books) -> tuple[Arm, int] | None:
    """The next repeat, round by round: the control before the arms, undecided arms only."""
    under_way = {(a.arm, a.seed) for a in books.open.values()}
    left = undecided(plan, books)
    if not left:
        return None
    control = books.outcomes.get("control", {})
    for index in range(LEFT_OVER * len(plan.seeds)):
        seed = plan.seeds[0] + index
        if index >= len(plan.seeds) and not _room_for_more(plan, books, left):
            return None
        for arm in [plan.arm("control"), *([plan.arm("aa")] if index < plan.aa else []), *left]:
            key = (arm.id, seed)
            if key in under_way or key in books.failed or seed in books.outcomes.get(arm.id, {}):
                continue
            if index >= 1 and arm.kind not in ("control", "aa") and not control:
                return None  # before a second round, the control must have shown what it does
            return arm, seed
    return None


def undecided(plan: TrialPlan, books: Books) -> list[Arm]:
    """The arms that more repeats could decide."""
    return [arm for arm in plan.tried if _is_open(arm, books)]


def _is_open(arm: Arm, books: Books) -> bool:
    verdicts = books.verdicts
    if arm.after and (arm.after not in verdicts or verdicts[arm.after].answer != "refuted"):
        return False
    known = verdicts.get(arm.id)
    return arm.id not in books.abandoned and (known is None or known.answer == "cannot-tell")


def _room_for_more(plan: TrialPlan, books: Books, left: list[Arm]) -> bool:
    """Whether the arms decided early leave enough of the planned repeats for what the others probably need."""
    told = [v.more for arm in left if (v := books.verdicts.get(arm.id)) is not None and v.more is not None]
    return bool(told) and len(books.tries) + min(told) * (1 + len(left)) <= plan.cost.most
