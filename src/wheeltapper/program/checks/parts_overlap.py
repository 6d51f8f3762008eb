"""Two parts of the data that should be apart begin at the same row.

What it sees
------------
`return (x[:k], y[:k]), (x[:q], y[:q])`: the second part, the queries or the held-out rows, begins with the first.

Why it matters
--------------
What is to be predicted was just fitted: the score is that of memory.

How it decides
--------------
A function returns two groups of slices of the same arrays, and both begin at the start.

When it is wrong
----------------
If the second part is meant to hold the first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "parts-overlap"
CAUSE: str | None = "split-overlap"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    entered = code.story.player.entered
    for node in code.program.live_by_type.get(ast.Return, []):
        func = code.program.func_of.get(node)
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Tuple) or len(value.elts) != 2 or func is None or func.scope not in entered:
            continue
        groups = [e.elts if isinstance(e, ast.Tuple) else [e] for e in value.elts]
        cuts = [[_cut(e) for e in group] for group in groups]
        if any(None in group for group in cuts) or len(cuts[0]) != len(cuts[1]):
            continue
        if all(a is not None and b is not None and a[0] == b[0] and a[1] == b[1] for a, b in zip(*cuts, strict=True)):
            yield code.finding(ID, "The two parts begin at the same row: one holds the other.", node)
            return


def _cut(node: ast.expr) -> tuple[str, str] | None:
    """The array and the first row of `array[first:end]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return None
    return ast.unparse(node.value), ast.unparse(node.slice.lower) if node.slice.lower is not None else ""
