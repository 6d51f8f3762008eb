"""Every episode begins with the same random numbers.

What it sees
------------
reset() of an environment that seeds its generator with a constant each time.

Why it matters
--------------
All episodes are one and the same: the policy learns it by heart.

How it decides
--------------
`super().reset(seed=0)`, `np.random.seed(0)`, `self.rng = default_rng(0)` inside reset(), with a number that is
written out.

When it is wrong
----------------
A benchmark with a single, fixed start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "every-episode-alike"
CAUSE: str | None = "same-batch-repeated"
DECIDES = True

SEEDS = {"seed", "default_rng", "manual_seed", "RandomState", "Random"}


def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        reset = cls.methods.get("reset")
        if reset is None or "step" not in cls.methods:
            continue
        for node in ast.walk(reset.node):
            if not isinstance(node, ast.Call):
                continue
            given = [k.value for k in node.keywords if k.arg == "seed"] if callee(node) == "reset" else node.args[:1] if callee(node) in SEEDS else []
            if any(isinstance(g, ast.Constant) and isinstance(g.value, int) and not isinstance(g.value, bool) for g in given):
                yield code.finding(ID, "reset() seeds its random numbers with a constant: every episode is the same.", node)
                return
