"""Which files of settings a script writes itself: `open(os.path.join(out, "args.yaml"), "w")`, `write_text`, a dump."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath

from wheeltapper.limits import is_plain_file
from wheeltapper.program.options import literal
from wheeltapper.program.program import argument

MOST_BYTES = 2_000_000
_READERS = {"open", "read_text", "read_bytes", "load", "safe_load", "full_load", "fromfile", "add_argument", "main"}
_WRITERS = {"write_text", "write_bytes", "save", "to_yaml", "to_json", "save_json", "save_yaml"}


def written_by(scripts: Sequence[str], names: Collection[str]) -> frozenset[str]:
    """Those of `names` that a script opens for writing and none opens for reading."""
    writes: set[str] = set()
    reads: set[str] = set()
    for path in scripts:
        tree = parsed_script(path)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and _is_write(node):
                writes |= _named_in(node, names)
            elif isinstance(node, ast.Call) and _name(node) in _READERS:
                reads |= _named_in(node, names)
    return frozenset(writes - reads)


def parsed_script(path: str) -> ast.Module | None:
    """The syntax of a script; None for what is none, or is too large to be one."""
    if not path.endswith(".py") or not is_plain_file(Path(path)) or Path(path).stat().st_size > MOST_BYTES:
        return None
    try:
        return ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def _is_write(call: ast.Call) -> bool:
    if _name(call) == "open":
        mode = literal(argument(call, "mode", 0 if isinstance(call.func, ast.Attribute) else 1))
        return isinstance(mode, str) and mode[:1] in ("w", "a", "x")
    return _name(call) in _WRITERS


def _named_in(call: ast.Call, names: Collection[str]) -> set[str]:
    """Names of files that stand in a call: its arguments, and what a method is called on."""
    texts = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return {PurePath(text).name for text in texts} & set(names)
