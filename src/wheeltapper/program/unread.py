"""Names that are set and never read: what a program computes and does not use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.program.reading import Code


def unread_names(code: Code, *, pairs: bool = False) -> Iterator[tuple[str, ast.Assign]]:
    """Names of functions that were played (and of the entry itself) that no statement of theirs reads, with the assignment.
    `pairs`: also those of `a, b = ...`."""
    entered = code.story.player.entered
    bodies: list[ast.AST] = [code.program.entry.tree]
    bodies += [f.node for funcs in code.program.functions.values() for f in funcs if f.scope in entered]
    for body in bodies:
        if isinstance(body, ast.Lambda):
            continue
        nodes = list(ast.walk(body))
        read = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
        shared = {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
        if read & {"locals", "vars", "globals", "exec", "eval"}:
            continue
        exported = isinstance(body, ast.Module) and any(s is not code.program.entry for s in code.program.scripts)
        for node in nodes if not exported else ():
            if isinstance(node, ast.Assign) and (
                not isinstance(body, ast.Module) or code.program.func_of.get(node) is None
            ):
                for name in _names(node.targets[0], pairs):
                    if name not in read | shared and not name.startswith("_"):
                        yield name, node


def is_commented_out(code: Code, name: str, node: ast.AST) -> bool:
    """Whether a comment near by still uses the name: it was taken out on purpose."""
    func = code.program.func_of.get(node)
    first = func.node.lineno if func is not None else 1
    last = (func.node.end_lineno or first) if func is not None else len(code.program.script_of[node].lines)
    lines = code.program.script_of[node].lines[first - 1 : last]
    return any(re.search(rf"#.*\b{re.escape(name)}\b", line) for line in lines)


def _names(target: ast.expr, pairs: bool) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    return [e.id for e in target.elts if isinstance(e, ast.Name)] if pairs and isinstance(target, ast.Tuple) else []
