"""The file of a plan: `plan.yaml`, written for people and read back by `followup`.

It may have been edited, or come from elsewhere: what is wrong in it is named with its line.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import msgspec
import yaml

from wheeltapper.errors import InputError
from wheeltapper.limits import is_plain_file
from wheeltapper.reading.record import CLOCKS
from wheeltapper.remedy.plan import Plan

VERSION = 1
PLAN = "plan.yaml"
MOST_BYTES = 4_000_000  # a plan is a page of text; more is another file


def _header(plan: Plan) -> str:
    """What to do with this plan, in comments."""
    if plan.option == "A":
        return "# A plan by Wheeltapper. Nothing is trained: the checkpoint under `resume` is used as it is.\n"
    start = "Start the next run with the changed settings"
    if plan.option == "C":
        start = "Resume from the checkpoint under `resume` with the changed settings"
    elif not plan.edits:
        start = "Mend by hand what `issues` names, and start the next run"
    return (
        f"# A plan by Wheeltapper. {start}, then:\n"
        "#     wheeltapper followup NEW_RUN --plan plan.yaml\n"
        "# Every expected value says where it comes from. What has no source is not promised.\n"
    )


def dump_plan(plan: Plan) -> str:
    """The plan as YAML text.

    >>> from wheeltapper.remedy.plan import Source
    >>> print(dump_plan(Plan(1, "B", Source("exp1", "abc", "ill", "It broke"))).splitlines()[3])
    version: 1
    """
    data = msgspec.to_builtins(plan)
    if plan.rates is not None:
        data["rates"] |= {"at": _Row(plan.rates.at), "values": _Row(plan.rates.values)}
    return _header(plan) + yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False
    )


class _Row(list[float]):
    """Numbers that are written in one line."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Row, lambda dumper, row: dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)
)


_PLACE = re.compile(r"(.+?)((?::\d+){0,2})$", re.DOTALL)


def seen_from(plan: Plan, folder: str | Path) -> Plan:
    """The plan with its files named from the folder it lies in: folder and run can be moved, or sent, together.

    A file with nothing but the root in common keeps its full path.
    """

    def near(place: str) -> str:
        found = _PLACE.match(place)
        if found is None:
            return place
        full, home = os.path.abspath(found[1]), os.path.abspath(folder)
        try:
            if os.path.dirname(common := os.path.commonpath([full, home])) == common:
                return full + found[2]
            return PurePath(os.path.relpath(full, home)).as_posix() + found[2]
        except ValueError:  # on Windows: another drive
            return full + found[2]

    change = msgspec.structs.replace
    resume = plan.resume
    if resume is not None:
        there = near(resume.checkpoint)
        resume = change(resume, checkpoint=there, why=resume.why.replace(resume.checkpoint, there))
    return change(
        plan,
        edits=tuple(change(e, place=near(e.place)) if e.place else e for e in plan.edits),
        issues=tuple(change(i, places=tuple(map(near, i.places))) for i in plan.issues),
        resume=resume,
    )


def load_plan(path: str | Path) -> Plan:
    """A plan from its file. Raises InputError with the place and what to do."""
    where = str(path)
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError("this is no plan: it is far too long.", where=where)
        if Path(path).exists() and not is_plain_file(Path(path)):
            raise InputError("this is no plan: a pipe, a socket or a device is not opened.", where=where)
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
            where=_spot(text, where, ("version",)),
            do="Write the plan again with `wheeltapper fix`, or use the Wheeltapper that wrote it.",
        )
    try:
        plan = msgspec.convert(data, Plan)
    except (msgspec.ValidationError, RecursionError) as error:
        spot = _spot(text, where, _steps(str(error)))
        raise InputError(_friendly(str(error)), where=spot, do="Mend that entry and try again.") from None
    for path, problem in _problems(plan):
        raise InputError(
            f"{_words(path)}: {problem}.", where=_spot(text, where, path), do="Mend that entry and try again."
        )
    return plan


# A part of a plan by its keys and indices.
Steps = tuple[str | int, ...]


def _problems(plan: Plan) -> Iterator[tuple[Steps, str]]:
    """What the types do not say: numbers that are none, bands without an edge or a source, files that lie elsewhere."""
    # A plan may come from elsewhere, and it names files that a later fix writes over or takes away.
    if PurePath(plan.case).name != "case.json":
        yield ("case",), f"it names {plan.case}; the history is called case.json"
    for number, name in enumerate(plan.configs):
        if PurePath(name).name != name or name in ("", ".", ".."):
            yield ("configs", number), f"{name!r} is not the name of a file beside the plan"
    yield from _not_finite(plan, ())
    if plan.rates is not None and len(plan.rates.at) != len(plan.rates.values):
        yield ("rates", "at"), "it has another length than `values`"
    for number, issue in enumerate(plan.issues):
        if not 0 <= issue.probability <= 1:
            yield ("issues", number, "probability"), f"{issue.probability:g} is no share between 0 and 1"
    for number, band in enumerate(plan.expected):
        here = ("expected", number)
        if band.low is None and band.high is None:
            yield here, f"{band.metric} has neither `low` nor `high`"
        elif band.low is not None and band.high is not None and band.low > band.high:
            yield (*here, "low"), f"{band.low:g} lies above `high`, {band.high:g}"
        if not band.source.strip():
            yield (*here, "source"), f"{band.metric} does not say its `source`"
        if band.within < 0:
            yield (*here, "within"), f"{band.within:g} is below zero"


def _not_finite(part: Any, path: Steps) -> Iterator[tuple[Steps, str]]:
    """Numbers of the plan itself; the settings of a run may hold anything."""
    if isinstance(part, msgspec.Struct):
        renamed = {field.name: field.encode_name for field in msgspec.structs.fields(part)}
        for name in part.__struct_fields__:
            if name not in ("settings", "old", "new"):
                yield from _not_finite(getattr(part, name), (*path, renamed[name]))
    elif isinstance(part, tuple):
        for number, one in enumerate(part):
            yield from _not_finite(one, (*path, number))
    elif isinstance(part, float) and not math.isfinite(part):
        yield path, f"{part} is no number that anything can be held against"


def _words(path: Steps) -> str:
    """
    >>> _words(("expected", 2, "low")), _words(("case",))
    ('`expected`, entry 3, `low`', '`case`')
    """
    return ", ".join(f"entry {part + 1}" if isinstance(part, int) else f"`{part}`" for part in path)


def _spot(text: str, where: str, path: Steps) -> str:
    """file:line of a part of the plan; of the nearest part around it, where it is missing.

    >>> _spot("version: 1\\nexpected:\\n- metric: lr\\n  low: x\\n", "plan.yaml", ("expected", 0, "low"))
    'plan.yaml:4'
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return where
    line = None
    for part in path:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if getattr(k, "value", None) == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = (node.value[part], node.value[part])
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return where if line is None else f"{where}:{line}"


_PATH = re.compile(r" - at `\$([^`]*)`")


def _steps(message: str) -> Steps:
    """The part of the plan that a message of msgspec is about.

    >>> _steps("Expected `float`, got `str` - at `$.expected[2].at`"), _steps("Object contains unknown field `lo` - at `$`")
    (('expected', 2, 'at'), ('lo',))
    """
    found = _PATH.search(message)
    steps: list[str | int] = []
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", found[1] if found else ""):
        steps.append(int(index) if index else name)
    unknown = re.match(r"Object contains unknown field `(.*)`", _PATH.sub("", message))
    return (*steps, unknown[1]) if unknown else tuple(steps)


def _friendly(message: str) -> str:
    """
    >>> _friendly("Object contains unknown field `lo` - at `$.expected[2]`")
    '`expected`, entry 3: there is no key `lo`.'
    >>> _friendly("Expected `str`, got `int` - at `$.source.run`")
    '`source`, `run`: a text is needed, not a whole number.'
    >>> _friendly("Object missing required field `source`")
    'the key `source` is missing.'
    >>> _friendly("Invalid enum value 'steps' - at `$.expected[0].clock`")
    '`expected`, entry 1, `clock`: steps is not among step, micro_step, epoch, sample, token, second, row.'
    """
    steps = _steps(message)
    told = _PATH.sub("", message)
    unknown = re.match(r"Object contains unknown field `(.*)`", told)
    where = _words(steps[:-1] if unknown else steps)
    if unknown:
        text = f"there is no key `{unknown[1]}`."
    elif missing := re.match(r"Object missing required field `(.*)`", told):
        text = f"the key `{missing[1]}` is missing."
    elif wrong := re.match(r"Expected `(.*)`, got `(.*)`", told):
        text = f"{_kinds(wrong[1])} is needed, not {_kinds(wrong[2])}."
    elif (enum := re.match(r"Invalid enum value '?([^']*)'?", told)) and steps[-1:] == ("clock",):
        text = f"{enum[1]} is not among {', '.join(CLOCKS)}."
    else:
        text = told[:1].lower() + told[1:] + "."
    return f"{where}: {text}" if where else text


_KINDS = {
    "str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing",
    "array": "a list", "object": "a group of keys",
}  # fmt: skip


def _kinds(types: str) -> str:
    return " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in types.split("|"))
