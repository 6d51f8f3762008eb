"""An option is declared, and nothing acts on it.

What it sees
------------
An option of the command line, a field of a config class or a training key of a config dictionary whose
value reaches nothing: it is never read, or read only to be printed, logged or saved.

Why it matters
--------------
Whoever sets the option believes the run follows it. A learning-rate schedule, a warm-up, clipping or a
resume that was declared and never wired is found out after the GPU time is spent.

How it decides
--------------
The value is followed by name through assignments, fields, dictionaries, calls and returns of the program
and its own modules. It counts as used as soon as any path ends in anything but a print, a log call, a
saved file or the name of a run, or in anything that is not understood. If the whole configuration is
handed to code outside the program, none of its options is judged.

What a launch script or a config dictionary sets weighs more than a default that nobody set: that may be a leftover of
another script, and only the settings a run is known by (its rate, batch, clip, schedule) are then worth a look; where
the launch script is there and leaves it to the default, the default was meant.

When it is wrong
----------------
If another program reads the saved configuration back; if the value is fetched through names built at run
time in a way that looks like a plain look-up. An option that only guards an error message counts as used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby

from wheeltapper.finding import Finding, Severity
from wheeltapper.program import vocabulary as words
from wheeltapper.program.options import ABSENT, Usage
from wheeltapper.program.program import argument, dotted_name
from wheeltapper.program.reading import Code

ID = "option-never-used"
CAUSE = "option-not-wired"
DECIDES = False


def DECIDES_IF(finding: Finding, resumed: bool) -> bool:  # noqa: N802, ARG001
    """A setting that was given for this run and would have steered the optimisation."""
    return "asked" in finding.numbers


# Passed by launchers whether or not the program wants them.
LAUNCHER_OPTIONS = {
    "local_rank",
    "rank",
    "node_rank",
    "world_size",
    "local_world_size",
    "master_addr",
    "master_port",
    "f",
}
NEUTRAL = (None, False, 0, 0.0, "", "0", "0.0", "none", "None", "constant")
OWNED_UP = re.compile(
    r"deprecat|unused|ignored|no effect|not used|not implemented|legacy|compatib|reserved|todo|placeholder|dummy", re.I
)


def check(code: Code) -> Iterator[Finding]:
    usages = sorted(code.usages, key=_group)
    for (name, _), group in groupby(usages, key=_group):
        declared = list(group)
        if any(u.acts for u in declared) or name in LAUNCHER_OPTIONS or any(_owned_up(u) for u in declared):
            continue
        yield _finding(code, name, declared)


def _group(usage: Usage) -> tuple[str, bool]:
    """A flag and the key it is kept under are one option; a field of a config class is its own."""
    return usage.option.name, usage.option.kind == "dataclass"


def _finding(code: Code, name: str, declared: list[Usage]) -> Finding:
    first = next((u for u in declared if u.option.kind != "dict"), declared[0])
    shown = [node for u in declared for node in (*u.trace.shows, *u.trace.decides_shows)]
    given = code.given.get(name)
    value = code.values.option(name)
    how = "never read" if not any(u.reads for u in declared) else "shown or saved, and used by nothing"
    told = f" (set to {value})" if given is not None else f" (default {value})" if value not in (None, False) else ""
    set_here = given is not None or first.option.kind == "dict"
    return code.finding(
        ID,
        f"{first.option.flag}{told} is declared, {how}: setting it changes nothing.",
        first.option.node,
        *([given.place] if given is not None else []),
        *(u.option.node for u in declared if u is not first),
        *shown[:2],
        numbers={"asked": 1.0} if given is not None and value not in NEUTRAL and words.OPTIMISES.match(name) else {},
        severity=_severity(code, first, name, set_here),
    )


def _severity(code: Code, first: Usage, name: str, set_here: bool) -> Severity:
    """A setting that somebody made and that shapes training makes another run of it; a default that nobody set may be a
    leftover of another script, and is worth a look where it is one of those a run is known by."""
    core = bool(words.CORE.match(name))
    if _used_elsewhere(code, first):
        return "note"
    if set_here:
        return "ill" if core else "watch"
    if not core or first.option.default in (None, False, 0, "", ABSENT):
        return "note"
    return "ill" if code.given else "watch"  # a launch script that leaves it out: the run was to have the default


def _used_elsewhere(code: Code, usage: Usage) -> bool:
    """A config class or dictionary that several programs share: code that this program does not come to reads it."""
    program, option = code.program, usage.option
    if option.kind == "dataclass":
        name = option.name
    elif option.kind == "dict" and option.holder is not None:
        up = program.parent(option.holder)
        name = dotted_name(up.targets[0]).split(".")[-1] if isinstance(up, ast.Assign) else ""
    else:
        return False
    buried = program.buried()
    reads = (
        n for n, f in program.func_of.items() if isinstance(n, ast.Attribute) and f is not None and f.scope in buried
    )
    return bool(name) and any(n.attr == name and isinstance(n.ctx, ast.Load) for n in reads)


def _owned_up(usage: Usage) -> bool:
    """The declaration itself says that it does nothing."""
    node = usage.option.node
    if isinstance(node, ast.Call):
        told = argument(node, "help")
        return told is not None and bool(OWNED_UP.search(ast.unparse(told)) or "SUPPRESS" in ast.unparse(told))
    return False
