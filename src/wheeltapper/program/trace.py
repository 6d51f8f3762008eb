"""Where a value went, and the four forms it travels in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from wheeltapper.program.program import Rest, callee

# value: the value itself, or something computed from it. text: formatted into a string, it can name a file
# but no longer be a number. box: something that holds it under its name (a namespace, a dict, a config
# object). any: some field of a box, picked by a name we do not know.
Form = Literal["value", "text", "box", "any"]
Step = tuple[ast.AST, Form] | None


@dataclass
class Trace:
    """Where a value went."""

    acts: list[tuple[ast.AST, str]] = field(default_factory=list)
    shows: list[ast.AST] = field(default_factory=list)
    named: list[ast.AST] = field(default_factory=list)  # formatted into the name of a file or a run
    decides_shows: list[ast.AST] = field(default_factory=list)  # decides only whether something is shown
    rests: set[Rest] = field(default_factory=set)  # everywhere it came to rest


def base_of(node: ast.expr) -> ast.expr | None:
    """The object a field is read from; None where the read does not say."""
    match node:
        case ast.Attribute(value=base) | ast.Subscript(value=base):
            return base
        case ast.Call(func=ast.Attribute(value=base, attr="get" | "pop" | "setdefault")):
            return base
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[base, *_]):
            return base
    return None


def holder_of(node: ast.expr) -> ast.expr:
    """`self.__dict__` and `vars(self)` hold the fields of `self`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and callee(node) == "vars" and node.args:
        return node.args[0]
    return node
