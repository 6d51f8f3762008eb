"""The wrapper throws away the reward.

What it sees
------------
A wrapper of an environment whose `step` sets the reward to something without the reward it was given.

Why it matters
--------------
The agent then learns for the bonus or the penalty alone: ending the episode at once may be the best it can do.

How it decides
--------------
In a class built on a wrapper, the name that the reward is unpacked into is set anew before it is read.

When it is wrong
----------------
If the reward is to be replaced.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "reward-overwritten"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        step = cls.methods.get("step")
        if step is None or not any("Wrapper" in base for base in cls.bases) or isinstance(step.node, ast.Lambda):
            continue
        name = None
        for node in step.node.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Tuple) and len(target.elts) in (4, 5) and isinstance(target.elts[1], ast.Name):
                name = target.elts[1].id
            elif isinstance(target, ast.Name) and name is not None and target.id == name:
                if name not in {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}:  # type: ignore[attr-defined]
                    text = f"{cls.name}.step() sets the reward anew and does not use the one of the environment."
                    yield code.finding(ID, text, node, grade="suspected", severity="watch")
                    return
                name = None
            elif name is not None and name in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
                name = None
