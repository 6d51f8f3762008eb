"""The network is trained on the validation data too.

What it sees
------------
A backward pass and a step in a loop over a loader that is called validation, test or dev, beside one over another
loader.

Why it matters
--------------
What is meant to be held out is learnt. The score can no longer tell how well the network does on new data, and every
schedule that counts steps runs too fast.

How it decides
--------------
The loader is followed from the loop to where it was made and named. Another backward pass goes over a loader with
another name, and the data of the two differ.

When it is wrong
----------------
If the final fit uses all data on purpose: then no score is taken on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.val_in_train_mode import VALIDATION
from wheeltapper.program.play.lineage import LOOPERS
from wheeltapper.program.play.value import Val
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "trained-on-validation"
CAUSE: str | None = "train-val-leak"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    named = [(call, loader, name) for call, _ in code.story.backwards for loader, name in _loaders(code, call)]
    held = [(call, loader, name) for call, loader, name in named if VALIDATION.search(name)]
    for call, loader, name in held:
        if all(other is loader for _, other, _ in named) or not _is_stepped(code, call):
            continue
        site = [Val("const", node=s) for s in call.sites[-1:]]
        yield code.seen(ID, f"The network is trained on `{name}`.", call, *site, loader)
        return


def _is_stepped(code: Code, call: Val) -> bool:
    return any(step.loops == call.loops for step in code.story.named("step"))


def _loaders(code: Code, call: Val) -> Iterator[tuple[Val, str]]:
    """The loader that the innermost loop over one goes over, with the name it was given where it was made."""
    for turn in reversed(call.loops):
        over = turn.over
        while over is not None and over.op == "call" and over.name in LOOPERS and over.args:
            over = over.args[0]
        if over is None or over.op != "call" or over.name != "DataLoader" or over.node not in code.program.script_of:
            continue
        up = code.program.parent(over.node)
        if isinstance(up, ast.Assign):
            yield over, dotted_name(up.targets[0]).split(".")[-1]
        return
