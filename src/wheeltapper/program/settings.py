"""Settings that stand in the code: what a run without a config file was run with, where that is provable.

A literal, a constant written once, or an option that the recorded command line gives is what ran. The default of an option
may have been overridden on a command line that nobody kept: it is marked so, and is no proof of anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.program.conditions import PLUMBING, is_main, part_reachable
from wheeltapper.program.framework_settings import framework_settings
from wheeltapper.program.objects import BY_NAME
from wheeltapper.program.options import ABSENT, Option, evaluated, literal
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code
from wheeltapper.program.values import Values
from wheeltapper.settings.tree import ConfigTree, Leaf

FORMAT = "code"
SURE = "stands in the code"
OVERRIDABLE = "the default in the code; a command line that is not recorded may have set another"
# Arguments of an optimizer, by the names that settings have for them, and their place where they need no name.
OF_OPTIMIZER = (("lr", 1), ("weight_decay", None), ("momentum", None), ("betas", None))


# Names at the top of a script that mean one thing only; `steps` and `decay` may be of anything.
CONSTANTS = re.compile(
    r"(?:base_?|init(?:ial)?_?)?lr|learning_rate|(?:train_)?batch_size|(?:n|num|max)?_?epochs|weight_decay|momentum|max_(?:iters|steps)|total_steps"
    r"|grad_clip|max_grad_norm|clip_grad_norm|warmup_(?:steps|iters|epochs)|label_smoothing|seed|(?:grad|gradient)_accum\w*",
    re.I,
)


@dataclass(frozen=True)
class _Stands:
    name: str
    value: Any
    sure: bool
    place: Place


def settings_of(code: Code, *, sure: bool = True) -> ConfigTree:
    """The settings of a training program as a configuration; without `sure` also those that may have been overridden."""
    found: dict[str, Leaf] = {}
    open_ended = bool(evaluated(code.program)) or "globals(" in code.program.entry.text
    for one in (
        *_of_optimizer(code),
        *_of_clipping(code),
        *_of_options(code),
        *_of_boxes(code),
        *_of_frameworks(code),
        *_of_constants(code),
    ):
        certain = one.sure and not open_ended
        if one.name in found or (sure and not certain):
            continue
        file, line = one.place.file or code.program.entry.name, one.place.line or 1
        note = SURE if certain else OVERRIDABLE
        found[one.name] = Leaf((one.name,), one.value, str(one.value), file, line, one.place.column or 1, note=note)
    return ConfigTree(code.program.entry.name, FORMAT, tuple(found.values()), kind="read from the code")


def _strict(code: Code) -> Values:
    """Values that no command line can change: options count only where they are given."""
    fixed = {o.name: o for o in code.options if _in_code(o)}
    return Values(code.program, code.given, fixed)


def _in_code(option: Option) -> bool:
    return option.kind in ("dataclass", "dict") and not option.flag.startswith("--")


def _told(code: Code, name: str, node: ast.expr | None, happens: bool) -> Iterator[_Stands]:
    if node is None:
        return
    value: Any = code.values.number(node)
    certain = value is not None and _strict(code).number(node) == value
    if value is None and isinstance(node, ast.Tuple | ast.List) and (told := literal(node)) is not ABSENT:
        value, certain = list(told), True
    if value is not None:
        yield _Stands(name, value, certain and happens, code.program.place(node))


def _of_optimizer(code: Code) -> Iterator[_Stands]:
    made = [p for p in code.made("optimizer") if part_reachable(code, p.call)]
    if len(made) != 1 or made[0].made_by in BY_NAME.values():
        return
    call = made[0].call
    happens = _happens(code, call)
    yield _Stands("optimizer", made[0].made_by, happens, code.program.place(call))
    for name, position in OF_OPTIMIZER:
        yield from _told(code, name, argument(call, name, position), happens)


def _happens(code: Code, call: ast.Call) -> bool:
    """Whether a call is made whatever the command line says: every condition it stands under is known, or is plumbing."""
    strict = _strict(code)
    for event in (e for e in code.loop.events if e.node is call):
        tests = [(g.node.test, g.taken) for g in event.guards]
        if all(strict.truth(t) == taken or is_main(t) or PLUMBING.search(ast.unparse(t)) for t, taken in tests):
            return True
    return False


def _of_clipping(code: Code) -> Iterator[_Stands]:
    calls = [c for name in ("clip_grad_norm_", "clip_grad_norm") for c in code.program.calls.get(name, [])]
    calls = [c for c in calls if part_reachable(code, c)]
    if len(calls) == 1:
        yield from _told(code, "clip_grad_norm", argument(calls[0], "max_norm", 1), _happens(code, calls[0]))


def _of_options(code: Code) -> Iterator[_Stands]:
    """Options by the names that settings have. A launch script that starts the program gives all that was given, unless it
    passes on what it was called with."""
    program = code.program
    passed_on = any("$@" in launch.text or "$*" in launch.text for launch in program.launches)
    commanded = bool(code.given) and not passed_on
    for option in code.options:
        if not program.reads.get(option.rest):
            continue
        given = code.given.get(option.name)
        if given is not None and isinstance(given.value, bool | int | float | str):
            yield _Stands(option.name, given.value, True, given.place)
            continue
        default = option.default
        if default is ABSENT or not isinstance(default, bool | int | float | str):
            continue
        changed = [v for v in program.writes.get(("f", option.name), []) if literal(v) != default]
        certain = not changed and (commanded if not _in_code(option) else True)
        yield _Stands(option.name, default, certain, program.place(option.node))


def _of_boxes(code: Code) -> Iterator[_Stands]:
    """Settings that are kept together at the top of the entry: the fields of a plain class, of a namespace, of a dictionary."""
    program, player = code.program, code.story.player
    fixed = {o.name for o in code.options if not _in_code(o)}
    for box in player.module_env(program.entry).names.values():
        cls = program.classes.get(box.name) if box.op in ("obj", "class") else None
        if cls is not None and not player.is_network_class(cls):
            fields = {n: player.class_field(cls.name, n, cls.node) for n in _plain_fields(cls.node)}
            fields.update({n: v for n, v in box.fields.items() if n in fields})
        elif box.op in ("space", "dict") and box.data != "options":
            fields = box.fields
        else:
            continue
        for name, value in fields.items():
            told = value.data if value.op == "const" else None
            known = isinstance(told, bool | int | float | str) and value.node is not None and name not in fixed
            if known and value.node in program.script_of and value.node is not None:
                changed = any(literal(v) != told for v in program.writes.get(("f", name), []))
                yield _Stands(name, told, value.sure and not changed, program.place(value.node))


def _plain_fields(node: ast.ClassDef) -> list[str]:
    """The names that the body of a class sets to something written out."""
    pairs = [
        (s.targets[0] if isinstance(s, ast.Assign) else s.target, s.value)
        for s in node.body
        if isinstance(s, ast.Assign | ast.AnnAssign)
    ]
    return [t.id for t, v in pairs if isinstance(t, ast.Name) and v is not None and literal(v) is not ABSENT]


def _of_frameworks(code: Code) -> Iterator[_Stands]:
    """What a framework, a scheduler or the training loader is given."""
    for told in framework_settings(code.story):
        node = told.at.node
        if node is not None and node in code.program.script_of:
            yield _Stands(told.name, told.value, told.sure, code.program.place(node))


def _of_constants(code: Code) -> Iterator[_Stands]:
    """Names at the top of the entry that are written once, with a number or a word."""
    program = code.program
    for statement in program.entry.tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name) as target], value=value)
                | ast.AnnAssign(target=ast.Name(id=name) as target, value=ast.expr() as value)
            ):
                rest = program.rest_of(target)
            case _:
                continue
        told = literal(value)
        if not CONSTANTS.fullmatch(name) or not isinstance(told, bool | int | float | str) or rest is None:
            continue
        if rest not in program.opaque and len(program.writes.get(rest, [])) == 1 and program.reads.get(rest):
            yield _Stands(name.lower(), told, True, program.place(value))
