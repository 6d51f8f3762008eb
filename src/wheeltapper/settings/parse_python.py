"""Configurations written as Python: nanoGPT-style modules, mmengine `dict(...)` files, dataclass defaults.

By `ast` only; nothing is run. What only running would tell becomes a leaf whose note says so.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wheeltapper.settings.parse_repr import parse_namespace
from wheeltapper.settings.position import EXPRESSION, Source
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_LEAVES = 50_000
MOST_TEXT = 400_000  # characters; no module of settings is longer
MAX_NUMBER = 1e300  # folding stops before a hostile power can cost time
A_NAME = "a name in the code, not a literal"

_DICTS = {"dict", "Dict", "OrderedDict", "ConfigDict", "EasyDict", "edict", "AttrDict", "SimpleNamespace", "Namespace"}
_CONFIG_FUNCTION = re.compile(r"(get|default|make|build)_\w*(config|cfg|options|hparams)\w*\Z")
_OPS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class _NotLiteralError(Exception):
    pass


def parse_python(source: Source) -> ConfigTree:
    """Assignments of a module, or one literal expression."""
    reader = _Reader(source)
    body = _parse(source.text)
    if body is None:
        if re.match(r"\s*[\[{(]", source.text):
            tree = parse_namespace(source)
            return replace(tree, format="python")
        reader.piecewise()
    else:
        if len(body) == 1 and isinstance(body[0], ast.Expr) and not isinstance(body[0].value, ast.Constant):
            reader.value(body[0].value, ())
        reader.body(body)
    return ConfigTree(source.file, "python", tuple(reader.leaves), source.text, tuple(reader.problems))


def _parse(text: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.lstrip("\ufeff") if text.startswith("\ufeff") else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def sets_only(text: str) -> bool:
    """A module that is nothing but settings: assignments of literals, no function, no loop.

    >>> sets_only("lr = 3e-4\\nmodel = dict(type='GPT')"), sets_only("import os\\ndef main(): pass")
    (True, False)
    """
    body = _parse(text) if len(text) < MOST_TEXT else None
    if not body:
        return False
    plain = (ast.Assign, ast.AnnAssign, ast.Expr)
    held = [node for node in body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    return (
        len(held) >= 2
        and all(
            isinstance(node, plain) or (isinstance(node, ast.ImportFrom | ast.Import) and len(held) > 4)
            for node in body
        )
        and all(isinstance(node.value, ast.Constant) for node in body if isinstance(node, ast.Expr))
    )


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.leaves: list[Leaf] = []
        self.problems: list[str] = []
        self.known: dict[str, tuple[Any, int]] = {}  # names bound to literals so far, and their line
        self.line_shift = 0
        self.depth = 0

    def piecewise(self) -> None:
        """A file that does not parse: read it statement by statement and keep those that do."""
        lines = self.source.text.splitlines(keepends=True)
        starts = [i for i, line in enumerate(lines) if re.match(r"[^\s#)\]}]", line)] or [0]
        for first, last in zip(starts, [*starts[1:], len(lines)], strict=True):
            body = _parse("".join(lines[first:last]))
            self.line_shift = first
            if body is None:
                spot = self.source.spot(self.source.offset_of(first))
                self.problems.append(f"{spot}: not Python that this version reads; left out")
            else:
                self.body(body)
        self.line_shift = 0

    def body(self, statements: list[ast.stmt], path: Path = ()) -> None:
        for statement in statements:
            try:
                self._statement(statement, path)
            except RecursionError:
                self.problems.append(f"{self.source.file}:{statement.lineno}: nested too deep; left out")

    def _statement(self, node: ast.stmt, path: Path) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], node.value, path)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, path)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, path)
        elif isinstance(node, ast.ClassDef) and not path:
            self.body(node.body, (node.name,))
        elif isinstance(node, ast.FunctionDef) and not path and _CONFIG_FUNCTION.match(node.name):
            self.body(node.body, path)
            returned = node.body[-1]
            if isinstance(returned, ast.Return) and isinstance(returned.value, (ast.Dict, ast.Call)):
                self.value(returned.value, ())
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.AugAssign)):
            self._uncertain(node)

    def _assign(self, target: ast.expr, value: ast.expr, path: Path) -> None:
        where = _target_path(target)
        if where is None:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                for one, its in zip(target.elts, value.elts, strict=True):
                    self._assign(one, its, path)
            return
        full = (*path, *where)
        self.leaves = [
            leaf
            for leaf in self.leaves
            if leaf.path[: len(full)] != full and not (leaf.value == {} and full[: len(leaf.path)] == leaf.path)
        ]
        self.value(_field_default(value), full)
        if len(where) == 1:
            try:
                self.known[where[0]] = (self._fold(value), value.lineno + self.line_shift)
            except _NotLiteralError:
                self.known.pop(where[0], None)

    def _uncertain(self, node: ast.AST) -> None:
        """Assignments under a condition: the earlier value may not be the one used."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Assign, ast.AugAssign)):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                for target in targets:
                    where = _target_path(target)
                    if where is None:
                        continue
                    self.known.pop(where[0], None)
                    line = self.source.first_line + inner.lineno - 1 + self.line_shift
                    for index, leaf in enumerate(self.leaves):
                        if leaf.path[: len(where)] == where and leaf.note is None:
                            self.leaves[index] = replace(leaf, note=f"may be changed on line {line}")

    def value(self, node: ast.expr, path: Path) -> None:
        """Append the leaves of one value."""
        if len(self.leaves) >= MAX_LEAVES:
            return
        if isinstance(node, ast.Dict) and node.keys:
            for key, item in zip(node.keys, node.values, strict=True):
                self._member(key, item, path)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)) and node.elts:
            for index, item in enumerate(node.elts):
                self.value(item, (*path, index))
        elif isinstance(node, ast.Call) and (node.keywords or _is_dict(node)) and not _is_number_call(node):
            self._call(node, path)
        else:
            self._single(node, path)

    def _member(self, key: ast.expr | None, item: ast.expr, path: Path) -> None:
        if key is None:  # {**base}
            self._spread(item, path)
            return
        try:
            name = str(self._fold(key))
        except _NotLiteralError:
            name = ast.unparse(key)
        self.value(item, (*path, name))

    def _spread(self, item: ast.expr, path: Path) -> None:
        try:
            known = isinstance(self._fold(item), dict)
        except _NotLiteralError:
            known = isinstance(item, (ast.Dict, ast.Call))
        self.value(item, path if known else (*path, "**"))

    def _call(self, node: ast.Call, path: Path) -> None:
        before = len(self.leaves)
        if _is_dict(node):
            for argument in node.args:
                if isinstance(argument, ast.Dict):
                    self.value(argument, path)
        else:
            target = node.func
            if isinstance(target, ast.Call) and target.args:  # LazyCall(SGD)(lr=...)
                target = target.args[0]
            start, end = self._span(target)
            self.leaves.append(self.source.leaf((*path, "_target_"), self.source.text[start:end], start, end, A_NAME))
        for keyword in node.keywords:
            if keyword.arg is None:
                self._spread(keyword.value, path)
            else:
                self.value(keyword.value, (*path, keyword.arg))
        if len(self.leaves) == before:
            start, end = self._span(node)
            self.leaves.append(self.source.leaf(path, {}, start, end))

    def _single(self, node: ast.expr, path: Path) -> None:
        start, end = self._span(node)
        raw = self.source.text[start:end]
        note: str | None = None
        value: Any
        try:
            value = self._fold(node)
            if isinstance(node, ast.Name):
                note = f"the value of {node.id}, line {self.source.first_line + self.known[node.id][1] - 1}"
            if isinstance(value, (dict, list, tuple)) and value:
                for inner_path, inner in _scalars(value, path):
                    self.leaves.append(self.source.leaf(inner_path, inner, start, end, note))
                return
            if isinstance(value, tuple):
                value = []
        except _NotLiteralError:
            value = raw
            note = A_NAME if isinstance(node, (ast.Name, ast.Attribute)) else EXPRESSION
        self.leaves.append(self.source.leaf(path, value, start, end, note))

    def _span(self, node: ast.expr) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset),
        )

    def _offset(self, line: int, utf8_column: int) -> int:
        start = self.source.offset_of(line - 1 + self.line_shift)
        if start == 0 and self.source.text.startswith("\ufeff"):
            start = 1
        piece = self.source.text[start : start + utf8_column]
        if piece.isascii():
            return start + utf8_column
        return start + len(piece.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))

    def _fold(self, node: ast.expr) -> Any:
        """The value of an expression made of literals, names bound to literals, and arithmetic."""
        if isinstance(node, ast.Constant):
            if node.value is Ellipsis or isinstance(node.value, (bytes, complex)):
                raise _NotLiteralError
            return node.value
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id][0]
        if isinstance(node, ast.UnaryOp):
            operand = self._fold(node.operand)
            if isinstance(node.op, ast.Not):
                return not operand
            if isinstance(operand, (int, float)) and isinstance(node.op, (ast.USub, ast.UAdd)):
                return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPS:
            return _arithmetic(_OPS[type(node.op)], self._fold(node.left), self._fold(node.right))
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._fold(item) for item in node.elts]
        if isinstance(node, ast.Dict) and None not in node.keys:
            return {str(self._fold(k)): self._fold(v) for k, v in zip(node.keys, node.values, strict=True) if k}
        if isinstance(node, ast.Call) and _is_number_call(node):
            try:
                convert: Callable[[Any], Any] = float if node.func.id == "float" else int  # type: ignore[attr-defined]
                return convert(self._fold(node.args[0]))
            except (ValueError, TypeError, OverflowError):
                raise _NotLiteralError from None
        raise _NotLiteralError


def _arithmetic(op: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    numbers = all(isinstance(x, (int, float)) and abs(x) < MAX_NUMBER for x in (left, right))
    strings = op is operator.add and isinstance(left, str) and isinstance(right, str)
    if not (numbers or strings):
        raise _NotLiteralError
    if op is operator.pow and (abs(right) > 64 or abs(left) > 1e6):
        raise _NotLiteralError
    try:
        value = op(left, right)
    except (ArithmeticError, ValueError, TypeError):
        raise _NotLiteralError from None
    if isinstance(value, complex):
        raise _NotLiteralError
    return value


def _is_dict(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _DICTS


def _is_number_call(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Name) and node.func.id in ("float", "int")
    return named and len(node.args) == 1 and not node.keywords


def _field_default(node: ast.expr) -> ast.expr:
    """`field(default=3)` and `field(default_factory=lambda: [...])` of a dataclass."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("field", "Field"):
            for keyword in node.keywords:
                if keyword.arg == "default":
                    return keyword.value
                if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
                    return keyword.value.body
    return node


def _target_path(node: ast.expr) -> tuple[str, ...] | None:
    """`a`, `cfg.optim.lr` and `cfg["lr"]` as a path."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        head = _target_path(node.value)
        return None if head is None else (*head, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        head = _target_path(node.value)
        return None if head is None else (*head, node.slice.value)
    return None


def _scalars(value: Any, path: Path) -> list[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        return [pair for key, item in value.items() for pair in _scalars(item, (*path, str(key)))]
    if isinstance(value, (list, tuple)) and value:
        return [pair for index, item in enumerate(value) for pair in _scalars(item, (*path, index))]
    return [(path, value)]
