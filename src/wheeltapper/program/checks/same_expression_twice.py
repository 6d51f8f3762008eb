"""Two things that should differ are made by the same expression.

What it sees
------------
`return view, view`, `yield clean + noise, clean + noise`: a pair that a dataset or a function of the data gives, with
one random value for both.

Why it matters
--------------
The two views match without any learning; the noisy input is its own target.

How it decides
--------------
Both parts of the pair are the same variable, or the same arithmetic of the same variables, and random numbers are in
it.

When it is wrong
----------------
If the pair is an autoencoder's; then nothing random is in it, or it is meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "same-expression-twice"
CAUSE: str | None = "views-identical"
DECIDES = True
NOISE = {"rand", "randn", "randn_like", "rand_like", "normal", "uniform", "bernoulli", "standard_normal", "random", "augment", "transform"}

def check(code: Code) -> Iterator[Finding]:
    entered = code.story.player.entered
    for kind in (ast.Return, ast.Yield):
        for node in code.program.live_by_type.get(kind, []):
            func = code.program.func_of.get(node)
            value = getattr(node, "value", None)
            if not isinstance(value, ast.Tuple) or func is None or func.scope not in entered or len(value.elts) > 3:
                continue
            texts = [ast.unparse(e) for e in value.elts]
            for place, one in enumerate(value.elts[:-1]):
                same = texts[place] == texts[place + 1]
                if same and _is_drawn(code, func.node, one):
                    text = f"Both parts of the pair are `{texts[place]}`: one random draw stands for two."
                    yield code.finding(ID, text, node)
                    return


def _is_drawn(code: Code, func: ast.AST, node: ast.expr) -> bool:
    """Arithmetic of names, or a name, that a random draw (or a function that draws) went into."""
    if not isinstance(node, ast.Name | ast.BinOp) or any(isinstance(n, ast.Call) for n in ast.walk(node)):
        return False
    wanted = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for _ in range(3):
        for one in ast.walk(func):
            if isinstance(one, ast.Assign) and wanted & {n.id for t in one.targets for n in ast.walk(t) if isinstance(n, ast.Name)}:
                calls = [n for n in ast.walk(one.value) if isinstance(n, ast.Call)]
                if any(callee(c) in NOISE or _draws(code, c) for c in calls):
                    return True
                wanted = wanted | {n.id for n in ast.walk(one.value) if isinstance(n, ast.Name)}
    return False


def _draws(code: Code, call: ast.Call) -> bool:
    funcs, _ = code.program.targets(call)
    return any(callee(n) in NOISE for f in funcs for n in ast.walk(f.node) if isinstance(n, ast.Call))
