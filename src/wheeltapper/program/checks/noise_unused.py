"""The latent sample has no noise in it.

What it sees
------------
A spread or a noise that is computed for a sample and never used: `return mu` at the end of a reparametrisation.

Why it matters
--------------
Without noise the latent code is a point: the KL term has nothing to trade against, and samples from the prior mean
nothing to the decoder.

How it decides
--------------
A name such as `eps`, `noise` or `std` is set from a random draw or an exponential in a function of the network, and
no statement reads it, in a program with a KL term.

When it is wrong
----------------
If the mean alone is wanted at evaluation (that branch is not looked at).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code
from wheeltapper.program.unread import unread_names

ID = "noise-unused"
CAUSE: str | None = None
DECIDES = True


NAMED = re.compile(r"^(eps|epsilon|noise|std|sigma|e)$", re.I)


def check(code: Code) -> Iterator[Finding]:
    for name, node in unread_names(code):
        func = code.program.func_of.get(node)
        drawn = any(
            isinstance(n, ast.Call) and ast.unparse(n.func).split(".")[-1].startswith(("randn", "normal"))
            for n in ast.walk(node.value)
        )
        if (
            NAMED.match(name)
            and func is not None
            and func.owner is not None
            and drawn
            and "logvar" in _words(func.node)
        ):
            yield code.finding(ID, f"`{name}` is drawn and never used: the latent code has no noise in it.", node)
            return


def _words(node: ast.AST) -> str:
    return ast.unparse(node).replace("log_var", "logvar").replace("logsigma", "logvar").replace("log_sigma", "logvar")
