"""The scaled inputs are not the ones that are used.

What it sees
------------
A scaler that is fitted and applied, while the raw columns go to the model.

Why it matters
--------------
The model sees numbers of very different size, as if there were no scaler.

How it decides
--------------
The result of `transform` is bound to a name that nothing reads, and the data it was made of is what `fit` or the
network gets.

When it is wrong
----------------
If the scaled copy is for a plot.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import SCALES, lineage, pairs_of
from wheeltapper.program.play.value import Val
from wheeltapper.program.program import Program
from wheeltapper.program.reading import Code

ID = "scaled-and-not-used"
CAUSE: str | None = "input-not-normalised"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    used = [given for _, given, _ in pairs_of(story)]
    for call in story.named("transform", "fit_transform"):
        if (
            len(call.args) < 2
            or call.node is None
            or not _is_scaler(call.args[0])
            or not _unread(code.program, call.node)
        ):
            continue
        for given in used:
            way = lineage(given)
            if any(v is call.args[1] for v in way) and not any(v.op == "call" and v.name in SCALES for v in way):
                yield code.seen(ID, "The inputs are scaled, and the raw ones are what the model is given.", call, given)
                return


def _is_scaler(value: Val) -> bool:
    while value.op == "call" and value.name == "fit" and value.args:
        value = value.args[0]
    return value.op == "call" and value.name.endswith(("Scaler", "Normalizer", "Transformer"))


def _unread(program: Program, node: ast.AST) -> bool:
    """Whether what is made here is bound to a name that nobody reads."""
    up = program.parent(node)
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
        return False
    name = up.targets[0].id
    script = program.script_of[node]
    return not any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in script.parents)
