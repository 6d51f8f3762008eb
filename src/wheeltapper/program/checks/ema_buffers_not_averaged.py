"""An averaged model is evaluated with the live model's batch-norm statistics.

What it sees
------------
`AveragedModel(...)` without `use_buffers=True`, in a program with batch normalisation, with no `update_bn`, that
evaluates the average. Or an average written by hand over `parameters()` of a second model, in such a program, where
nothing ever touches buffers.

Why it matters
--------------
The running statistics are copied from the live model, which has other weights. The averaged model can then score
below the live one although its weights are better. Written by hand, the statistics stay those of the first weights, and
the average can score like an untrained model.

How it decides
--------------
All four are read from the code. How much it costs depends on how far the weights lie apart, so it is suspected. By hand:
the update runs over the parameters of two models, the program names batch norm, and no call of `buffers()`,
`named_buffers()`, `load_state_dict()` on the average or `update_bn()` is made; an average that is itself run while
training (a teacher) keeps statistics of its own and is left alone. That is a fact.

When it is wrong
----------------
With a short horizon the difference is small.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.averages import updates_of
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.hand_averages import HandAverage
from wheeltapper.program.play.value import made_of
from wheeltapper.program.program import argument, callee, dotted_name
from wheeltapper.program.reading import Code

ID = "ema-buffers-not-averaged"
CAUSE = "ema-buffers-stale"
DECIDES = True
BATCH_NORM = re.compile(r"BatchNorm[123]d|SyncBatchNorm|\bresnet\d+|\bResNet\d+|mobilenet|efficientnet", re.I)


JUDGED = re.compile(r"val|eval|test|sampl|generat|predict|infer|visual|image|demo", re.I)


def check(code: Code) -> Iterator[Finding]:
    if code.calls_any("update_bn"):
        return
    yield from _by_hand(code)
    for part in code.made("AveragedModel"):
        buffers = argument(part.call, "use_buffers", 4)
        if buffers is not None or not part_reachable(code, part.call):
            continue
        evaluated = [e for e in code.loop.of("eval") if e.name in part.names]
        normed = any(BATCH_NORM.search(script.text) for script in code.program.scripts)
        if evaluated and normed:
            yield code.finding(
                ID,
                "AveragedModel copies batch-norm statistics from the live model (use_buffers is False) and is evaluated with them.",
                part.call,
                evaluated[0].node,
                severity="watch",
                grade="suspected",
            )


def _by_hand(code: Code) -> Iterator[Finding]:
    if code.calls_any("buffers", "named_buffers"):
        return
    normed = any(BATCH_NORM.search(script.text) for script in code.program.scripts)
    for hand in code.hand_averages:
        owner = _owner(hand)
        if hand.over != "parameters" or owner is None or not normed or not updates_of(code, hand):
            continue
        if any(e.name == owner for e in code.loop.of("load") if e.loops) or _runs_in_training(code, owner):
            continue
        yield code.finding(
            ID,
            f"Only the parameters of {owner} are averaged and its buffers never change: it is judged with the batch-norm statistics "
            "it began with.",
            hand.node,
        )
        return


def _owner(hand: HandAverage) -> str | None:
    """The model that the averaged tensor is a parameter of: `a` of `for p, q in zip(a.parameters(), b.parameters())`."""
    kept = dotted_name(hand.kept).split(".")[0]
    call, target = hand.loop.iter, hand.loop.target
    if not (isinstance(call, ast.Call) and callee(call) == "zip" and isinstance(target, ast.Tuple)):
        return None
    for name, given in zip(target.elts, call.args, strict=False):
        if (
            isinstance(name, ast.Name)
            and name.id == kept
            and isinstance(given, ast.Call)
            and callee(given) == "parameters"
        ):
            parts = dotted_name(given.func).split(".")[:-1]
            return next((part for part in reversed(parts) if part not in ("module", "self")), None)
    return None


def _runs_in_training(code: Code, owner: str) -> bool:
    """Whether the average is applied in training: as the play shows, else, under any of its names, anywhere that is not
    plainly a judgement of it."""
    story = code.story
    copies = [c for c in story.applications if "@copied" in c.args[0].fields]
    if copies and story.complete and len({id(c.args[0]) for c in copies}) == 1:
        used = {v.order for loss in story.losses for v in made_of(loss) if v.op == "net"}
        return any(not c.no_grad or c.order in used for c in copies)
    for name in _names(code, owner):
        for call in code.program.calls.get(name, []):
            func = code.program.func_of[call]
            if func is None or not JUDGED.search(func.name):
                return True
    return False


def _names(code: Code, owner: str) -> set[str]:
    """The names that plain assignments and arguments give the same object: `teacher_without_ddp = teacher.module`."""
    pairs = set()
    for rest, values in code.program.writes.items():
        for value in values:
            if isinstance(value, ast.Name | ast.Attribute) and rest[0] in "vf":
                parts = [part for part in dotted_name(value).split(".") if part not in ("module", "self", "_orig_mod")]
                if len(parts) == 1:
                    pairs.add(frozenset((rest[-1], parts[0])))
    names = {owner}
    for _ in range(4):
        names |= {name for pair in pairs if pair & names for name in pair}
    return names
