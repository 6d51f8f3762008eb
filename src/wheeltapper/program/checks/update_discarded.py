"""The updated weights are thrown away.

What it sees
------------
An update of parameters bound to a new name that nothing reads.

Why it matters
--------------
Every step starts from the same weights: the loss stays where it began.

How it decides
--------------
Inside a loop, the result of an update is bound to a name like `new_params` that no statement of the function reads.

When it is wrong
----------------
If the update is only for a look at it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code
from wheeltapper.program.unread import unread_names

ID = "update-discarded"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


NEW = re.compile(
    r"^(new|updated|next)_?(params?|weights?|state|model|variables|theta|w)$|^(params?|weights?|state)_?(new|next|updated)$",
    re.I,
)


def check(code: Code) -> Iterator[Finding]:
    for name, node in unread_names(code, pairs=True):
        if NEW.match(name) and isinstance(node.value, ast.Call) and _in_loop(code, node):
            yield code.finding(
                ID, f"`{name}`, the updated weights, is never used: every step starts from the same ones.", node
            )
            return


def _in_loop(code: Code, node: ast.AST) -> bool:
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef):
        if isinstance(up, ast.For | ast.While):
            return True
        up = code.program.parent(up)
    return False
