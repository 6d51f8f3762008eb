"""The average of the weights is never updated.

What it sees
------------
A copy of the network that is saved or evaluated as an average, and that nothing writes to after the start.

Why it matters
--------------
What is kept is the untrained network.

How it decides
--------------
A network that starts with the weights of the trained one, is neither moved by an optimizer nor written to inside a
loop, and whose weights are saved (or which is evaluated) after training steps.

When it is wrong
----------------
If it is a frozen reference: those are used in the loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.target_network_never_updated import writes_to
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "average-never-updated"
CAUSE: str | None = "ema-horizon-too-long"
DECIDES = True
AVERAGE = re.compile(r"ema|average|avg|shadow|swa", re.I)


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    starts = [
        c
        for c in story.named("load_state_dict")
        if len(c.args) > 1 and not c.loops and _state_of_trained(code, c.args[1])
    ]
    copies = [c.args[0] for c in starts]
    copies += [
        v.args[0]
        for loss in story.losses
        for v in made_of(loss)
        if v.op == "net" and v.no_grad and "@copy" in v.args[0].fields and _compared(loss)
    ]
    copies += [c for c in _named_copies(code) if not any(c is o for o in copies)]
    in_loss = {id(v.args[0]) for loss in story.losses for v in made_of(loss) if v.op == "net"}
    for copy in copies:
        if (
            (id(copy) in in_loss and "@copy" not in copy.fields)
            or story.is_trained(copy)
            or any(writes_to(c, copy, story) for c in story.calls)
        ):
            continue
        kept = [c for c in story.named("state_dict") if c.args[0] is copy and c.loops]
        judged = [c for c in story.applications if c.args[0] is copy and c.loops]
        judged += [
            v for loss in story.losses for v in made_of(loss) if v.op == "net" and v.args[0] is copy and _compared(loss)
        ][:1]
        if kept or judged:
            yield code.seen(
                ID,
                "Nothing ever updates this copy of the network, and it is what is kept or evaluated.",
                (kept or judged)[0],
                copy,
            )
            return


def _named_copies(code: Code) -> list[Val]:
    """Copies of a trained network that are kept under the name of an average."""
    out: dict[int, Val] = {}
    for call in code.story.applications:
        net = call.args[0]
        up = code.program.parent(net.node) if net.node is not None and net.node in code.program.script_of else None
        name = ast.unparse(up.targets[0]) if isinstance(up, ast.Assign) else ""
        if "@copy" in net.fields and AVERAGE.search(name) and code.story.is_trained(net.fields["@copy"]):
            out[id(net)] = net
    return list(out.values())


def _compared(loss: Val) -> bool:
    """Two views are drawn together: the copy is a moving target, not a frozen reference."""
    names = {v.name for v in made_of(loss, deep=False) if v.op == "call"}
    return bool(names & {"cosine_similarity", "normalize"}) and "logsigmoid" not in names and "kl_div" not in names


def _state_of_trained(code: Code, value: Val) -> bool:
    return any(
        v.op == "call" and v.name == "state_dict" and v.args and code.story.is_trained(v.args[0])
        for v in made_of(value)
    )
