"""A transition is stored with the same state twice.

What it sees
------------
`buffer.add(obs, action, reward, obs, done)`: the state before and the state after are one variable.

Why it matters
--------------
The value of a state is then learned from itself, not from the state that the action led to.

How it decides
--------------
A call that stores four or more things, at least one of them given by the step of an environment in the same loop, is
given one name twice.

When it is wrong
----------------
If the store takes the same thing for two purposes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

STORES = {"add", "push", "store", "append", "put", "remember", "insert", "store_transition", "add_transition", "add_experience", "write", "record"}

ID = "transition-repeats-state"
CAUSE: str | None = "target-misaligned"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for name in sorted(STORES & set(code.program.calls)):
        for call in code.program.calls[name]:
            given = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
            names = [a.id for a in given if isinstance(a, ast.Name)]
            twice = sorted({n for n in names if names.count(n) > 1})
            if len(given) >= 4 and twice and _after_a_step(code, call, set(names)):
                text = f"The transition is stored with `{twice[0]}` twice: the state after the step is not in it."
                yield code.finding(ID, text, call)
                return


def _after_a_step(code: Code, call: ast.Call, names: set[str]) -> bool:
    """Whether some of what is stored came from the step of an environment."""
    for step in code.program.calls.get("step", []):
        up = code.program.parent(step)
        if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Tuple) and code.program.func_of.get(step) is code.program.func_of.get(call):
            given = {n.id for n in ast.walk(up.targets[0]) if isinstance(n, ast.Name)}
            if given & names and callee(step) == "step":
                return True
    return False
