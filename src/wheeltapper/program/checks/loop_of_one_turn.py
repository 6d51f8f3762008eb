"""A loop over a range makes a single turn.

What it sees
------------
`range(0, n, n)`: the step is the whole length.

Why it matters
--------------
Only the first block is used, and the rest of the data is thrown away.

How it decides
--------------
The second and the third argument of a range are the same expression, and the first is 0.

When it is wrong
----------------
Never, where the length is not zero: such a range has one turn.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "loop-of-one-turn"
CAUSE: str | None = "too-few-updates"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.program.calls.get("range", []):
        if len(call.args) == 3 and ast.unparse(call.args[1]) == ast.unparse(call.args[2]) and ast.unparse(call.args[0]) == "0":
            yield code.finding(ID, "The range has a single turn: its step is its length.", call)
            return
