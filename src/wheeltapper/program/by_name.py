"""Optimizers and schedulers whose class is looked up by name: `getattr(torch.optim, cfg["type"])(...)`, a table of classes,
a variable that holds one, `hydra.utils.instantiate(cfg.optimizer)`.

What is made is known by its kind as soon as the module or the table says it; which class it is only where the name can be
read from the config, the command line or the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wheeltapper.program.program import Program, callee, constant_text, dotted_name

if TYPE_CHECKING:
    from wheeltapper.program.values import Values

MODULES = {"torch.optim": "optimizer", "torch.optim.lr_scheduler": "scheduler", "lr_scheduler": "scheduler"}
SECTIONS = (("scheduler", re.compile(r"sched|lr_policy", re.I)), ("optimizer", re.compile(r"optim|^opt$", re.I)))
MAX_DEPTH = 5


@dataclass(frozen=True)
class Made:
    """What a call makes: its kind, and its class where that is known."""

    kind: str
    name: str | None


def made_by_name(program: Program, values: Values, known: dict[str, str]) -> Iterator[tuple[ast.Call, Made]]:
    """Calls of a class that was looked up; `known` are the classes that say their kind by their name."""
    found: dict[ast.Call, Made] = {}
    for call in program.calls.get("", []):
        made = _class(program, values, known, call.func, 0)
        if made is not None:
            found[call] = made
    for rest, written in program.writes.items():
        if rest[0] not in "vf" or rest in program.opaque:
            continue
        if rest[0] == "f" and any(value not in program.written_on for value in written):
            continue  # the key of a dictionary is no name that a class is called by
        if not any(_may_be_class(value, known) for value in written):
            continue
        for read in program.reads.get(rest, []):
            up = program.parent(read)
            if isinstance(up, ast.Call) and up.func is read and callee(up) not in known:
                made = _class(program, values, known, read, 0)
                if made is not None:
                    found[up] = made
    for call in program.calls.get("instantiate", []):
        section = dotted_name(call.args[0]).split(".")[-1] if call.args else ""
        kind = next((kind for kind, pattern in SECTIONS if pattern.search(section)), None)
        if kind is not None and "hydra" in program.origin(call.func):
            found[call] = Made(kind, _target(values, section))
    yield from found.items()


def _may_be_class(node: ast.expr, known: dict[str, str]) -> bool:
    """Cheap: whether an expression may be a class of a known kind, and not an instance."""
    match node:
        case ast.Name() | ast.Attribute():
            return dotted_name(node).split(".")[-1] in known
        case ast.IfExp() | ast.Subscript():
            return True
        case ast.Call():
            return callee(node) in ("getattr", "get", "partial")
    return False


def _class(program: Program, values: Values, known: dict[str, str], node: ast.expr, depth: int) -> Made | None:
    """The class an expression stands for."""
    if depth > MAX_DEPTH:
        return None
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[module, name, *_]):
            return _of_module(program, values, module, name)
        case ast.Subscript(value=ast.Attribute(value=module, attr="__dict__"), slice=name):
            return _of_module(program, values, module, name)
        case ast.Call(func=ast.Name(id="vars"), args=[_]):
            return None
        case ast.Subscript(value=table, slice=name):
            return _of_table(program, values, known, table, name, depth)
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[name, *others]):
            made = _of_table(program, values, known, table, name, depth)
            other = _class(program, values, known, others[0], depth + 1) if others else None
            return made if made is None or other is None or made.kind == other.kind else None
        case ast.Call(args=[inner, *_]) if callee(node) == "partial":
            return _class(program, values, known, inner, depth + 1)
        case ast.IfExp(body=body, orelse=orelse):
            return _same([_class(program, values, known, part, depth + 1) for part in (body, orelse)])
        case ast.Name() | ast.Attribute():
            last = dotted_name(node).split(".")[-1]
            if last in known and last not in program.classes:
                return Made(known[last], last)
            rest = program.rest_of(node)
            written = values.sources(rest, node) if rest is not None else None
            return _same([_class(program, values, known, value, depth + 1) for value in written]) if written else None
    return None


def _same(found: list[Made | None]) -> Made | None:
    """What several possible classes have in common."""
    kinds = {made.kind if made is not None else None for made in found}
    if len(kinds) != 1 or None in kinds:
        return None
    names = {made.name for made in found if made is not None}
    return Made(str(kinds.pop()), names.pop() if len(names) == 1 else None)


def _of_module(program: Program, values: Values, module: ast.expr, name: ast.expr) -> Made | None:
    kind = MODULES.get(program.origin(module).lstrip("."))
    if kind is None:
        return None
    text = values.value(name)
    return Made(kind, text if isinstance(text, str) else None)


def _of_table(
    program: Program, values: Values, known: dict[str, str], table: ast.expr, name: ast.expr, depth: int
) -> Made | None:
    """An entry of a dictionary of classes, all of one kind."""
    rest = program.rest_of(table)
    tables = [table] if isinstance(table, ast.Dict) else program.writes.get(rest, []) if rest is not None else []
    if len(tables) != 1 or not isinstance(tables[0], ast.Dict) or not tables[0].values:
        return None
    entries = {
        constant_text(key): _class(program, values, known, value, depth + 1)
        for key, value in zip(tables[0].keys, tables[0].values, strict=True)
    }
    text = values.value(name)
    if isinstance(text, str) and entries.get(text) is not None:
        return entries[text]
    made = _same(list(entries.values()))
    if made is None or not isinstance(text, str):
        return made
    return next((e for k, e in entries.items() if e is not None and k is not None and k.lower() == text.lower()), made)


def _target(values: Values, section: str) -> str | None:
    leaf = values.leaf((section, "_target_"))
    return str(leaf.value).split(".")[-1] if leaf is not None and leaf.path[-2:-1] == (section,) else None
