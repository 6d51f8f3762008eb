"""Proposed configurations and commands: would they load, and what would they change?"""

from __future__ import annotations

import re
import shlex

from wheeltapper.remedy.loads import declared_options
from wheeltapper.review.answer_settings import answer_setting
from wheeltapper.review.model import Answer, Command, Config, Setting, Verdict
from wheeltapper.review.record import Record
from wheeltapper.settings.check import check_config
from wheeltapper.settings.dialects.schema import Problem
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import ConfigTree

_OPTION = re.compile(r"(?<!\S)(--[A-Za-z][\w-]*)(?:[= ]([^\s\\-][^\s\\]*))?")


def answer_config(claim: Config, record: Record) -> Answer:
    """Load it by the framework's own rules; a part of a configuration may lack what the rest holds."""
    tree = parse_text(claim.source, "proposed", claim.format)
    problems = [p for p in check_config([tree], dialect=record.knobs.dialect, version=record.day) if _counts(p, claim)]
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return Answer(claim, "contradicted", f"it does not load: {first.text}{more}")
    changed, same = _changes(tree, record)
    if not changed and same:
        return Answer(claim, "contradicted", f"without effect: all {same} settings in it are so already")
    if tree.problems:
        return Answer(claim, "undecided", f"it could not be read in full: {tree.problems[0]}")
    told = f"{changed} of its {changed + same} settings differ from this run's"
    return Answer(
        claim, "undecided", f"no rule of its framework refuses it; {told}; what it brings, a run would have to show"
    )


def _counts(problem: Problem, claim: Config) -> bool:
    """Certain problems; of a part, those that do not come from its being one."""
    if problem.grade != "is":
        return False
    return claim.complete or (problem.id not in ("missing", "wrong-place") and "required" not in problem.text)


def _changes(tree: ConfigTree, record: Record) -> tuple[int, int]:
    changed = same = 0
    for leaf in tree.leaves:
        name = ".".join(str(part) for part in leaf.path if not isinstance(part, int))
        held = answer_setting(Setting(name=name, value=leaf.value), record)
        if held.verdict == "supported" or held.why.startswith("it is set, and does not act"):
            same += 1
        else:
            changed += 1
    return changed, same


def answer_command(claim: Command, record: Record) -> Answer:
    """The options of a command line: are they declared, as they are now, and do they act?"""
    options = _OPTION.findall(claim.source)
    if not options:
        return Answer(claim, "no-claim", "a command without options of the training program")
    declared = set(declared_options(record.run).values())
    flags = {flag.split("/")[0] for flag in declared}
    told: list[str] = []
    for flag, raw in options:
        if flags and flag not in flags and not _other_program(claim.source, record):
            if record.value_of(flag) is None:
                return Answer(claim, "not-in-record", f"the program in this record declares no option {flag}")
            continue
        if not raw or raw.startswith("#"):
            continue
        answer = answer_setting(Setting(name=flag, value=_literal(raw)), record)
        if answer.verdict == "contradicted":
            return Answer(claim, "contradicted", answer.why, answer.places)
        told.append(f"{flag} {answer.verdict}")
    if not told:
        return Answer(claim, "undecided", "switches without a value")
    verdict: Verdict = "supported" if all(word.endswith("supported") for word in told) else "not-in-record"
    return Answer(claim, verdict, "as in this run" if verdict == "supported" else "; ".join(told))


def _other_program(source: str, record: Record) -> bool:
    """A command for a script that is not among the record's."""
    try:
        words = shlex.split(source.split("#")[0])
    except ValueError:
        words = source.split()
    scripts = [word for word in words if word.endswith((".py", ".sh"))]
    names = {script.rsplit("/", 1)[-1] for script in record.run.scripts}
    return bool(scripts) and not any(script.rsplit("/", 1)[-1] in names for script in scripts)


def _literal(raw: str) -> object:
    try:
        return float(raw)
    except ValueError:
        return raw.strip("'\"")
