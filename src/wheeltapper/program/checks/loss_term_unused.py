"""A term of the loss is computed and left out.

What it sees
------------
A name that stands for a term of the loss (`kl`, `aux_loss`, `penalty`, ...), set and never read.

Why it matters
--------------
The loss that is minimised is another one than the code was written for: without the KL term a VAE is an
autoencoder, without a penalty nothing is held back.

How it decides
--------------
The name is set from an expression of tensors in a function of the training path and no statement of that function
reads it.

When it is wrong
----------------
If the line is left over on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code
from wheeltapper.program.unread import is_commented_out, unread_names

ID = "loss-term-unused"
CAUSE: str | None = None
DECIDES = True


MAKER = re.compile(r"fn$|func|criterion|weight|name|class|hist|list|log$", re.I)
TERM = re.compile(
    r"^(kl|kld|kl_\w+|kld_\w+|\w+_kl|\w*_?loss\w*|loss_\w+|penalty|\w+_penalty|gp|reg|\w+_reg|entropy|commit\w*|recon\w*|bce|mse)$",
    re.I,
)


def check(code: Code) -> Iterator[Finding]:
    lines = {getattr(v.node, "lineno", 0) for loss in code.story.losses for v in made_of(loss)}
    for name, node in unread_names(code):
        func = code.program.func_of.get(node)
        first, last = (func.node.lineno, func.node.end_lineno or 0) if func is not None else (0, 10**9)
        if is_commented_out(code, name, node) or not _gives_something(code, node.value):
            continue
        if not TERM.match(name) or MAKER.search(name) or not isinstance(node.value, ast.BinOp | ast.Call | ast.UnaryOp):
            continue
        if any(first <= line <= last for line in lines) and _computes(node.value):
            text = f"`{name}` is computed and never used: it is no part of the loss."
            yield code.finding(
                ID, text, node, grade="is" if re.match(r"kl|.*_kl$|.*penalty|gp$", name, re.I) else "suspected"
            )
            return


def _gives_something(code: Code, node: ast.expr) -> bool:
    """Not a function of the program that returns nothing."""
    funcs, unseen = code.program.targets(node) if isinstance(node, ast.Call) else ([], True)
    return unseen or any(isinstance(n, ast.Return) and n.value is not None for f in funcs for n in ast.walk(f.node))


def _computes(node: ast.expr) -> bool:
    """An expression over tensors, not a counter or a format."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1][:1].isupper():
        return False  # a module that computes it
    return bool(calls) and not any("item" in ast.unparse(c.func) or "zeros" in ast.unparse(c.func) for c in calls)
