"""The plan file: what is changed, what must then be seen, and what to do if it is not.

`plan.yaml` is written for people and read back by `followup`. Every number in it says where it comes from; a
number that has no source is not written. The shape is strict: a misspelt key is an error with its line of
repair, not a promise that is silently dropped.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Any, Literal

import msgspec
import yaml

from wheeltapper.errors import InputError

VERSION = 1
MOST_BYTES = 4_000_000  # a plan is a page of text; more is another file

Option = Literal["A", "B", "C"]
# apply: in the corrected config. try: in it as well, and a trial must decide. code: lines that a person must
# change. open: suspected, nothing is changed for it.
How = Literal["apply", "try", "code", "open"]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Source(_Strict, frozen=True):
    """The run that was diagnosed."""

    run: str
    hash: str
    verdict: str
    headline: str
    progress: str = ""


class PlannedEdit(_Strict, frozen=True):
    """One setting from its value then to its value now."""

    knob: str
    old: Any
    new: Any
    cause: str
    why: str = ""
    place: str = ""  # file:line of the old value


class SignThen(_Strict, frozen=True):
    """What was seen in the old run. `by`: the position where its absence can be told."""

    id: str
    summary: str
    series: str | None = None
    clock: str | None = None
    onset: float | None = None
    by: float | None = None
    level: float | None = None  # of the series at its end
    noise: float | None = None
    better: str | None = None  # up or down


class Issue(_Strict, frozen=True):
    """One cause that is treated, or that stays open."""

    cause: str
    title: str
    probability: float
    how: How
    remedy: str = ""
    predicts: str = ""
    knobs: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    signs: tuple[SignThen, ...] = ()
    trial: str = ""
    proved: bool = False  # by code or settings


class Resume(_Strict, frozen=True):
    """Where the next run continues."""

    checkpoint: str
    at: float | None = None
    clock: str | None = None
    why: str = ""


class Band(_Strict, frozen=True):
    """A value that is expected at a position. One side may be open."""

    metric: str
    clock: str
    at: float
    source: str  # where the numbers come from; never empty
    low: float | None = None
    high: float | None = None
    within: float = 0.0  # how far from `at` a logged value still counts


class Warn(_Strict, frozen=True):
    """A threshold that asks for a look at once, and its reason."""

    metric: str
    reason: str
    above: float | None = None
    below: float | None = None
    not_finite: bool = False
    after: float | None = None
    clock: str | None = None


class Rule(_Strict, frozen=True, rename={"when": "if"}):
    """If this is seen, then do that."""

    when: str
    then: str


class Monitor(_Strict, frozen=True):
    """How often to look, and until when."""

    look: str
    why: str


class Question(_Strict, frozen=True):
    """What is not known, and the test that decides it."""

    question: str
    test: str
    decides: tuple[str, ...] = ()


class Plan(_Strict, frozen=True):
    """The next run, promised."""

    version: Literal[1]
    option: Option
    source: Source
    made: str = ""
    edits: tuple[PlannedEdit, ...] = ()
    resume: Resume | None = None
    issues: tuple[Issue, ...] = ()
    expected: tuple[Band, ...] = ()
    warnings: tuple[Warn, ...] = ()
    contingencies: tuple[Rule, ...] = ()
    monitoring: tuple[Monitor, ...] = ()
    questions: tuple[Question, ...] = ()
    settings: dict[str, Any] = {}  # of the old run, by knob: what else changes is seen by them
    configs: tuple[str, ...] = ()  # corrected files, beside the plan
    case: str = "case.json"  # the running history, from the folder of the plan


HEADER = """\
# A plan by Wheeltapper. Start the next run with the changed settings, then:
#     wheeltapper followup NEW_RUN --plan plan.yaml
# Every expected value says where it comes from. What has no source is not promised.
"""


def dump_plan(plan: Plan) -> str:
    """The plan as YAML text.

    >>> print(dump_plan(Plan(1, "B", Source("exp1", "abc", "ill", "It broke"))).splitlines()[3])
    version: 1
    """
    data = msgspec.to_builtins(plan)
    return HEADER + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)


def load_plan(path: str | Path) -> Plan:
    """A plan from its file. Raises InputError with the place and what to do."""
    where = str(path)
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError("this is no plan: it is far too long.", where=where)
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the plan cannot be read: {error.strerror}.", where=where, do="`wheeltapper fix` writes one."
        ) from None
    except UnicodeDecodeError:
        raise InputError("this is no plan: it is not text.", where=where) from None
    return parse_plan(text, where)


def parse_plan(text: str, where: str = "plan.yaml") -> Plan:
    """A plan from its text."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        spot = f"{where}:{mark.line + 1}" if mark is not None else where
        raise InputError(f"not valid YAML: {getattr(error, 'problem', None) or error}.", where=spot) from None
    if not isinstance(data, dict) or "version" not in data:
        raise InputError("this is no plan: it has no `version`.", where=where, do="`wheeltapper fix` writes plan.yaml.")
    if data["version"] != VERSION or isinstance(data["version"], bool):
        raise InputError(
            f"the plan has version {data['version']!r}; this Wheeltapper reads version {VERSION}.",
            where=where,
            do="Write the plan again with `wheeltapper fix`, or use the Wheeltapper that wrote it.",
        )
    try:
        plan = msgspec.convert(data, Plan)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(_friendly(str(error)), where=where, do="Mend that entry and try again.") from None
    if PurePath(plan.case).name != "case.json":  # a plan may come from elsewhere; it names where we write
        raise InputError(f"`case` names {plan.case}; the history is called case.json.", where=where)
    for number, band in enumerate(plan.expected, start=1):
        if band.low is None and band.high is None:
            raise InputError(
                f"`expected`, entry {number} ({band.metric}): it has neither `low` nor `high`.", where=where
            )
        if not band.source.strip():
            raise InputError(f"`expected`, entry {number} ({band.metric}): it does not say its `source`.", where=where)
    return plan


_PATH = re.compile(r" - at `\$([^`]*)`")


def _friendly(message: str) -> str:
    """
    >>> _friendly("Object contains unknown field `lo` - at `$.expected[2]`")
    '`expected`, entry 3: there is no key `lo`.'
    >>> _friendly("Expected `str`, got `int` - at `$.source.run`")
    '`source.run`: a text is needed, not a whole number.'
    >>> _friendly("Object missing required field `source`")
    'the key `source` is missing.'
    """
    found = _PATH.search(message)
    told = _PATH.sub("", message)
    where = ""
    if found:
        path = found[1].lstrip(".")
        entry = re.match(r"(\w+)\[(\d+)\]\.?(.*)", path)
        where = f"`{path}`" if entry is None else f"`{entry[1]}`, entry {int(entry[2]) + 1}"
        where += f", `{entry[3]}`" if entry is not None and entry[3] else ""
    if unknown := re.match(r"Object contains unknown field `(.*)`", told):
        text = f"there is no key `{unknown[1]}`."
    elif missing := re.match(r"Object missing required field `(.*)`", told):
        text = f"the key `{missing[1]}` is missing."
    elif wrong := re.match(r"Expected `(.*)`, got `(.*)`", told):
        text = f"{_kinds(wrong[1])} is needed, not {_kinds(wrong[2])}."
    else:
        text = told[:1].lower() + told[1:] + "."
    return f"{where}: {text}" if where else text


_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing",
    "array": "a list", "object": "a group of keys",
}  # fmt: skip


def _kinds(types: str) -> str:
    return " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in types.split("|"))
