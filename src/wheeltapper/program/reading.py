"""Everything read from one program, for the checks: its options, parts, loop and known values."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from wheeltapper.finding import Finding, Grade, Place, Severity
from wheeltapper.program.flow import Flow
from wheeltapper.program.hand_averages import HandAverage, hand_averages
from wheeltapper.program.hand_schedules import Rule, rules_of
from wheeltapper.program.index import programs_of
from wheeltapper.program.launch import Given, given_by
from wheeltapper.program.loop import Loop, loop_of
from wheeltapper.program.objects import (
    Part,
    by_gradients,
    configures_a_runner,
    fits_estimators,
    parts_of,
    run_by_framework,
    trains,
)
from wheeltapper.program.options import Option, Usage, options_of, usages_of
from wheeltapper.program.play.configs import place_of
from wheeltapper.program.play.story import Story, story_of
from wheeltapper.program.play.value import Val
from wheeltapper.program.program import Program, Rest
from wheeltapper.program.scripts import Sources, read_sources
from wheeltapper.program.trace import Form
from wheeltapper.program.values import Values
from wheeltapper.reading.record import Note
from wheeltapper.settings.tree import ConfigTree

KEPT_NODES = 300_000  # of syntax trees: some 100 MB
Answer = tuple[list["Code"], tuple[Note, ...]]
_last: list[tuple[Any, tuple[ConfigTree, ...], Answer]] = []  # the configs are held, so that their ids stay theirs


@dataclass(frozen=True)
class Roots:
    """Where a configuration enters the program: what a loader returns, or the parameter of a hydra main."""

    starts: tuple[tuple[ast.expr, Form], ...] = ()
    rests: tuple[tuple[Rest, Form], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.starts or self.rests)


@dataclass(eq=False)
class Code:
    """One program and what is known about it. Each part is computed when first asked for."""

    program: Program
    configs: tuple[ConfigTree, ...] = ()
    given: dict[str, Given] = field(default_factory=dict)

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.program)

    @cached_property
    def options(self) -> list[Option]:
        return options_of(self.program)

    @cached_property
    def usages(self) -> list[Usage]:
        return usages_of(self.program, self.flow, self.options)

    @cached_property
    def parts(self) -> list[Part]:
        return parts_of(self.program, self.flow, self.values)

    @cached_property
    def loop(self) -> Loop:
        return loop_of(self.program, self.parts, self.hand_averages, self.rules)

    @cached_property
    def story(self) -> Story:
        """The program played with symbols: what its values are made of, and what happens in which order."""
        return story_of(self.program, {name: one.value for name, one in self.given.items()}, self.config)

    @cached_property
    def rules(self) -> list[Rule]:
        """Functions that compute a learning rate by hand."""
        return rules_of(self.program)

    @cached_property
    def hand_averages(self) -> list[HandAverage]:
        return hand_averages(self.program)

    @cached_property
    def trains(self) -> bool:
        """Whether starting the entry reaches a backward pass, or a framework that makes one."""
        known = self.by_framework or bool(self.loop.of("backward")) or by_gradients(self.program)
        told = known or fits_estimators(self.program) or configures_a_runner(self.program)
        return told or ("backward" in self.program.calls and bool(self.story.backwards))

    @cached_property
    def values(self) -> Values:
        leaves = self.config.leaves if self.config is not None else ()
        return Values(self.program, self.given, {o.name: o for o in reversed(self.options)}, leaves)

    @cached_property
    def config(self) -> ConfigTree | None:
        """The config file this program loads: the one named on its command line or in its code, or the only one."""
        if not self.calls_any(
            "safe_load", "load", "full_load", "load_config", "fromfile", "parse_config", "from_yaml", "merge_from_file",
            "parse_json_file", "parse_yaml_file", "LightningCLI",
        ) and not any("hydra" in str(table) for table in self.program.imported.values()):
            return None
        files = [tree for tree in self.configs if tree.format in ("yaml", "json", "toml")]
        named = [str(g.value) for g in self.given.values()] + [
            o.default
            for o in self.options
            if isinstance(o.default, str) and o.default.endswith((".yaml", ".yml", ".json", ".toml"))
        ]
        chosen = [tree for tree in files if any(Path(name).name == Path(tree.file).name for name in named)]
        chosen = chosen or files
        return chosen[0] if len(chosen) == 1 else None

    @cached_property
    def config_roots(self) -> Roots:
        program = self.program
        starts: list[tuple[ast.expr, Form]] = [
            (call, "box")
            for name in ("safe_load", "full_load", "load", "loads", "unsafe_load")
            for call in program.calls.get(name, [])
            if program.origin(call.func).split(".")[0] in ("yaml", "json", "toml", "tomllib", "tomli", "omegaconf")
        ]
        rests: list[tuple[Rest, Form]] = [
            (("v", func.scope, func.params[0]), "box")
            for funcs in program.functions.values()
            for func in funcs
            if func.params and any("hydra" in ast.unparse(d) for d in getattr(func.node, "decorator_list", []))
        ]
        return Roots(tuple(starts), tuple(rests))

    @cached_property
    def by_framework(self) -> bool:
        """Whether a framework owns the loop: one is used, and the program has no loop of its own."""
        return run_by_framework(self.program) and not self.loop.backwards

    def made(self, *kinds: str) -> list[Part]:
        return [p for p in self.parts if p.kind in kinds or p.made_by in kinds]

    def calls_any(self, *names: str) -> bool:
        return any(name in self.program.calls for name in names)

    def finding(
        self, id: str, summary: str, *nodes: ast.AST | Place, severity: Severity = "ill", grade: Grade = "is",
        numbers: Mapping[str, float] | None = None,
    ) -> Finding:  # fmt: skip
        places = tuple(n if isinstance(n, Place) else self.program.place(n) for n in nodes)
        return Finding(id, summary, severity, grade, numbers=dict(numbers or {}), places=tuple(dict.fromkeys(places)))

    def seen(
        self, id: str, summary: str, *values: Val, severity: Severity = "ill", grade: Grade = "is",
        numbers: Mapping[str, float] | None = None,
    ) -> Finding:  # fmt: skip
        """A finding at values of the played program. It is no proof where a default of an option keeps one from happening,
        where the play was cut short, or where nothing calls what was played."""
        nodes: list[ast.AST | Place] = [p for v in values if (p := place_of(v)) is not None]
        nodes += [v.node for v in values if v.node is not None and v.node in self.program.script_of and place_of(v) is None]
        nodes += [site for v in values[:1] for site in v.sites[-2:] if site in self.program.script_of]
        runs = self.story.complete and not self.story.uncalled and all(self.story.runs(v) for v in values)
        grade = grade if runs else "suspected"
        if grade == "suspected" and severity == "ill":
            severity = "watch"
        return self.finding(id, summary, *nodes, severity=severity, grade=grade, numbers=numbers)


def read_code(paths: Iterable[Path | str], configs: tuple[ConfigTree, ...] = ()) -> tuple[list[Code], tuple[Note, ...]]:
    """The training programs under `paths`, with what their launch scripts give them. The last answer is kept, if it is not
    large: the audit of a run and its diagnosis ask for the same."""
    files = [Path(path) for path in paths]
    key = (tuple(map(_state, files)), tuple(map(id, configs)))
    if _last and _last[0][0] == key:
        return _last[0][2]
    sources = read_sources(files)
    codes, left = codes_of(sources, configs)
    notes = sources.notes
    if left:
        text = f"{left} more scripts that may train were not followed: together with the others they are too much code"
        notes = (*notes, Note(text, ".", level="lost"))
    small = sum(len(script.parents) for script in sources.scripts) <= KEPT_NODES and all(map(Path.is_file, files))
    _last[:] = [(key, configs, (codes, notes))] if small else []
    return codes, notes


def _state(path: Path) -> tuple[str, int, int]:
    try:
        info = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), info.st_size, info.st_mtime_ns


def codes_of(sources: Sources, configs: tuple[ConfigTree, ...] = ()) -> tuple[list[Code], int]:
    """The programs that train, and how many scripts were left out for want of time."""
    every, left = programs_of(sources)
    programs = [p for p in every if trains(p)]
    given: dict[str, dict[str, Given]] = {p.entry.name: {} for p in programs}
    for launch in sources.launches:
        started = {p.entry.name: found for p in programs if (found := given_by(launch, p.entry)) is not None}
        near = {name: found for name, found in started.items() if Path(name).parent == launch.path.parent}
        chosen = near if len(near) == 1 else started
        if len(chosen) != 1:
            continue  # several programs of that name: which one it starts is not known
        for name, found in chosen.items():
            for option, one in found.items():
                before = given[name].get(option)
                clash = before is not None and before.value != one.value
                given[name][option] = Given(None, one.place) if clash else one  # two launch scripts disagree
    codes = [Code(p, configs, {k: v for k, v in given[p.entry.name].items() if v.value is not None}) for p in programs]
    return codes, left
