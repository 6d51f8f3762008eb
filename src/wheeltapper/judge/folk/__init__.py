"""Folk rules that a run invites and its evidence refuses. Each is named and answered with the run's own numbers.

A rule is asked only where people would say it: the pattern or the setting is there, and something is wrong (or
nothing but settings is known). One module an area; each lists its RULES.
"""

from __future__ import annotations

from collections.abc import Callable

from wheeltapper.judge.folk import objective, precision, readings, schedule, settings
from wheeltapper.judge.model import RuledOut
from wheeltapper.rules.causes import Case

RULES: tuple[Callable[[Case], RuledOut | None], ...] = (
    *precision.RULES,
    *readings.RULES,
    *schedule.RULES,
    *settings.RULES,
    *objective.RULES,
)


def refused(case: Case) -> tuple[RuledOut, ...]:
    """The folk rules someone would apply to this run, with why they do not hold."""
    return tuple(answer for rule in RULES if (answer := rule(case)) is not None)
