"""Columns of a fleet, and what people do with them: sort, filter, group.

    --sort -score                  descending; without the sign ascending
    --filter "p_ill>0.5"           = != < <= > >=, and ~ for "holds this text"; a filter without one searches all words
    --group optimizer.name         by any column or setting
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.fleet.row import Row
from wheeltapper.fleet.scan import Member
from wheeltapper.report.close import close_matches

Value = str | float | None


@dataclass(frozen=True, slots=True)
class Column:
    id: str
    title: str
    meaning: str
    of: Callable[[Member], Value]
    numeric: bool = False


def _number(name: str) -> Callable[[Member], Value]:
    def of(member: Member) -> Value:
        value: Value = getattr(member.row, name)
        return value

    return of


COLUMNS: dict[str, Column] = {
    column.id: column
    for column in (
        Column("verdict", "verdict", "ill, cannot tell or sound", _number("verdict")),
        Column("p_ill", "p ill", "probability that something is wrong", _number("p_ill"), True),
        Column("name", "run", "name of the run", lambda m: m.label),
        Column("cause", "leading cause", "the most probable known cause, where the run is not sound", _number("cause")),
        Column("kind", "kind", "kind of trouble: learning, evaluation, efficiency, crash", _number("trouble")),
        Column("score", "best score", "best value of the score that the run is judged by", _number("score"), True),
        Column("metric", "score of", "the score that the run is judged by", _number("score_name")),
        Column("progress", "progress", "share of the planned length that is done", lambda m: m.row.progress, True),
        Column("state", "state", "finished, crashed, stopped, running or unknown", _number("state")),
        Column("lr", "rate", "learning rate as it is set, else the highest logged", _number("lr"), True),
        Column("duration", "duration", "seconds from the first to the last row", _number("seconds"), True),
        Column("framework", "format", "what wrote the record", _number("framework")),
        Column("tags", "tags", "tags in the settings of the run", lambda m: " ".join(m.row.tags)),
        Column("points", "points", "numbers in the record", _number("points"), True),
        Column("changed", "changed", "when its newest file was written", _number("changed"), True),
        Column("headline", "in one line", "the diagnosis in one line", _number("headline")),
        Column("path", "path", "where it lies", lambda m: m.path),
    )
}
SHOWN = ("verdict", "p_ill", "name", "cause", "kind", "score", "progress", "lr", "duration", "framework", "tags")


def settings_in(members: Iterable[Member]) -> list[str]:
    """Every setting that some run declares, the most common first."""
    counts = Counter(key for member in members for key in member.row.settings)
    return [key for key, _ in counts.most_common()]


def column_named(name: str, members: Sequence[Member]) -> Column:
    """A column by its id, or a setting by its name. Raises InputError with near names."""
    if name in COLUMNS:
        return COLUMNS[name]
    known = settings_in(members)
    if name in known:
        return setting_column(name, members)
    near = close_matches(name, [*COLUMNS, *known])
    hint = f"Did you mean {', '.join(near)}?" if near else f"There are: {', '.join(COLUMNS)}, and the settings of the runs."
    raise InputError(f"no column and no setting is named {name!r}.", do=hint)


def setting_column(name: str, members: Iterable[Member]) -> Column:
    values = [member.row.settings.get(name) for member in members]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values if v is not None)

    def of(member: Member) -> Value:
        value = member.row.settings.get(name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return value if value is None or isinstance(value, str) else float(value) if numeric else str(value)

    return Column(name, name, f"the setting {name}", of, numeric)


def ordered(members: Sequence[Member], by: str | None) -> list[Member]:
    """Sorted by a column, "-column" downwards; what has no value comes last. Without one: what matters first."""
    if not by:
        return sorted(members, key=_urgency)
    column = column_named(by.removeprefix("-"), members)
    known = [m for m in members if column.of(m) not in (None, "")]
    unknown = [m for m in members if column.of(m) in (None, "")]
    known.sort(key=lambda m: _sortable(column.of(m)), reverse=by.startswith("-"))
    return [*known, *unknown]


_ORDER = {"ill": 0, "cannot-tell": 1, "sound": 2}


def _urgency(member: Member) -> tuple[int, float, str]:
    return _ORDER.get(member.row.verdict, 3), -member.row.p_ill, member.label


def _sortable(value: Value) -> tuple[bool, float, str]:
    return (False, value, "") if isinstance(value, int | float) else (True, 0.0, str(value).lower())


_FILTER = re.compile(r"^\s*([\w.\-/\[\]]+)\s*(<=|>=|!=|=|<|>|~)\s*(.*?)\s*$")


def matching(members: Sequence[Member], filters: Iterable[str]) -> list[Member]:
    """The runs that pass every filter."""
    tests = [_test(text, members) for text in filters if text.strip()]
    return [member for member in members if all(test(member) for test in tests)]


def _test(text: str, members: Sequence[Member]) -> Callable[[Member], bool]:
    parts = _FILTER.match(text)
    if parts is None:
        wanted = text.strip().lower()
        return lambda member: wanted in searchable(member)
    column, sign, right = column_named(parts[1], members), parts[2], parts[3]
    if sign == "~":
        return lambda member: right.lower() in str(column.of(member) or "").lower()
    if sign in ("=", "!=") and not _is_number(right):
        same = right.lower().replace(" ", "-") if column.id == "verdict" else right.lower()
        return lambda member: (str(column.of(member) or "").lower() == same) == (sign == "=")
    if not _is_number(right):
        raise InputError(f"the filter {text!r} compares with {right!r}, which is no number.", do='As in --filter "p_ill>0.5".')
    return lambda member: _compare(column.of(member), sign, float(right))


def searchable(member: Member) -> str:
    """All words of a run, for a search."""
    row: Row = member.row
    words = (member.label, row.words, row.cause, row.cause_title, row.headline, row.trouble, row.framework, row.state, *row.tags)
    return " ".join(words).lower()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _compare(value: Value, sign: str, right: float) -> bool:
    if value is None or not _is_number(str(value)):
        return sign == "!="
    left = float(value)
    same = abs(left - right) <= 1e-9 * max(abs(left), abs(right))
    below = left < right and not same
    return {"=": same, "!=": not same, "<": below, "<=": below or same, ">": not below and not same, ">=": not below}[sign]


@dataclass(frozen=True, slots=True)
class Group:
    """Runs with one value of a column."""

    value: str
    n: int
    ill: int
    cannot_tell: int
    sound: int
    cause: str  # the most common leading cause of its ill runs
    score_name: str
    best: float | None


def grouped(members: Sequence[Member], by: str) -> list[Group]:
    """The runs by the value of a column, the group with the largest share of ill runs first."""
    column = column_named(by, members)
    held: dict[Any, list[Member]] = {}
    for member in members:
        held.setdefault(column.of(member), []).append(member)
    groups = [_group(value, inside) for value, inside in held.items()]
    return sorted(groups, key=lambda g: (-g.ill / g.n, -g.n, g.value))


def _group(value: Value, inside: list[Member]) -> Group:
    verdicts = Counter(member.row.verdict for member in inside)
    causes = Counter(m.row.cause for m in inside if m.row.verdict == "ill" and m.row.cause)
    scores = Counter(m.row.score_name for m in inside if m.row.score is not None)
    name = scores.most_common(1)[0][0] if scores else ""
    known = [(m.row.score, m.row.better) for m in inside if m.row.score_name == name and m.row.score is not None]
    best = None
    if known:
        best = max(v for v, _ in known) if known[0][1] == "up" else min(v for v, _ in known)
    words = "(not set)" if value in (None, "") else f"{value:g}" if isinstance(value, int | float) else str(value)
    cause = causes.most_common(1)[0][0] if causes else ""
    return Group(words, len(inside), verdicts["ill"], verdicts["cannot-tell"], verdicts["sound"], cause, name, best)
