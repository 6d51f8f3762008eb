"""The worst model is kept as the best.

What it sees
------------
A comparison that keeps a checkpoint (or remembers a score) when a loss is higher than the best so far, or a score
lower.

Why it matters
--------------
What is saved is the worst model of the run, and early stopping stops at the wrong time.

How it decides
--------------
The branch taken saves the model or sets the very value that is compared with; what is compared is derived from a loss
or from a share of right answers, and the direction is the wrong one. The best so far must start at the matching end.

When it is wrong
----------------
If the score is one that should be low (or high) against all custom.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import direction, direction_by_name
from wheeltapper.program.play.value import Val, choices, number
from wheeltapper.program.reading import Code

ID = "best-of-the-worst"
CAUSE: str | None = "early-stop-wrong-mode"
DECIDES = True

KEEPS = ("save", "save_pretrained", "save_model", "deepcopy", "state_dict", "save_checkpoint", "save_weights", "dump")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if call.name not in KEEPS or not call.guards:
            continue
        for guard in reversed(call.guards):
            test = guard.test
            if (
                test.op != "cmp"
                or len(test.args) != 2
                or test.name not in ("Lt", "LtE", "Gt", "GtE")
                or not guard.taken
            ):
                continue
            found = _wrong(test)
            if found is not None:
                yield code.seen(ID, found, test, call)
                return


def _wrong(test: Val) -> str | None:
    score, best = test.args
    rises = test.name in ("Gt", "GtE")
    if not _carried(best):
        if not _carried(score):
            return None
        score, best, rises = best, score, not rises
    better = _better(test, score)
    starts = [n for c in choices(best) if (n := _start(c)) is not None]
    if better == "low" and rises:
        return "The model is kept when the loss is higher than the lowest so far."
    if better == "high" and not rises:
        return "The model is kept when the score is lower than the best so far."
    if rises and starts and max(starts) > 1e6:
        return "The best so far starts where nothing can be higher: nothing is ever kept."
    if better is None and starts and ((rises and starts[0] > 1e6) or (not rises and starts[0] == 0.0)):
        return "The best so far starts where nothing can be better: the comparison is the wrong way round."
    return None


def _carried(best: Val) -> bool:
    """Whether `best` starts at a number and is then set to such a score; a margin may be added to it."""
    if best.op == "bin" and best.name in ("Add", "Sub", "Mult") and number(best.args[1]) is not None:
        return _carried(best.args[0])
    return best.op == "phi" or _start(best) is not None


def _start(value: Val) -> float | None:
    if value.op == "call" and value.name == "float" and value.args and isinstance(value.args[0].data, str):
        return {"inf": 1e30, "-inf": -1e30}.get(value.args[0].data.lower())
    if value.op in ("attr", "lib") and value.name in ("inf", "Inf"):
        return 1e30
    if value.op == "unary" and value.name == "USub":
        inner = _start(value.args[0])
        return None if inner is None else -inner
    return number(value)


def _better(test: Val, score: Val) -> str | None:
    """Which way the score is better: as its name says, and as it is computed; None where the two differ."""
    told = {d for n in _names(test.node) for d in (direction_by_name(n),) if d}
    made = direction(score)
    if len(told) == 1:
        return told.pop() if made is None or made in told else None
    return made if not told else None


def _names(node: ast.AST | None) -> list[str]:
    """What the two sides of a comparison are called, through fields, keys and what is added to them."""
    if not isinstance(node, ast.Compare):
        return []
    parts = [n for side in (node.left, *node.comparators) for n in ast.walk(side)]
    out = [n.id for n in parts if isinstance(n, ast.Name)] + [n.attr for n in parts if isinstance(n, ast.Attribute)]
    return out + [n.value for n in parts if isinstance(n, ast.Constant) and isinstance(n.value, str)]
