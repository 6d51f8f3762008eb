"""The model is put into evaluation mode and never back into training mode.

What it sees
------------
`model.eval()` inside the training loop, and no `model.train()` anywhere inside that loop.

Why it matters
--------------
After the first validation, dropout is off and batch norm uses frozen statistics for the rest of the run.

How it decides
--------------
The model whose parameters the optimizer was given is switched by `eval()` in the loop that holds the backward
pass (or in what it calls), and no `train()` at all is called in that loop. If any `train()` call exists that the
walk did not reach, nothing is said.

When it is wrong
----------------
If training in evaluation mode is meant (frozen batch norm while fine-tuning).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.loop import Event
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "train-mode-not-restored"
CAUSE: str | None = "stuck-eval-mode"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    yield from _by_engine(code)
    if code.by_framework or not code.loop.complete:
        return
    reached = {e.node for e in code.loop.of("train", "eval")}
    if any(c not in reached and _may_be_a_mode(code, c) for c in code.program.calls.get("train", [])):
        return
    trained = trained_models(code)
    for loop in dict.fromkeys(b.loops[0] for b in code.loop.backwards):
        if code.loop.inside(loop, "train") or _made_inside(code, loop):
            continue
        evals = [e for e in code.loop.inside(loop, "eval") if e.name in trained]
        if any(_meant(code, e) for e in code.loop.inside(loop, "eval")):
            continue
        if evals:
            yield code.finding(
                ID,
                f"{evals[0].name}.eval() is called inside the training loop and {evals[0].name}.train() is not: after the first "
                "evaluation the model trains in evaluation mode.",
                evals[0].node,
                code.loop.backwards[0].node,
            )
            return


def _by_engine(code: Code) -> Iterator[Finding]:
    """A step that an engine runs: the network is set to evaluate and never back."""
    story = code.story
    if code.loop.backwards or code.by_framework or not story.complete:
        return
    for network in story.trained:
        evals = [c for c in story.named("eval") if c.args and c.args[0] is network]
        trains = [c for c in story.named("train") if c.args and c.args[0] is network]
        backward = [b for b, _ in story.backwards if b.loops]
        if evals and not trains and backward:
            text = "The network is set to evaluate and never back to train: after the first evaluation it trains in that mode."
            yield code.seen(ID, text, backward[0], *story.applications[:1], evals[0])
            return


def _meant(code: Code, event: Event) -> bool:
    """`model.eval()` in every turn of the batch loop itself, right before the loss: training in that mode is meant."""
    return any(
        b.loops == event.loops and b.functions == event.functions and b.guards == event.guards and event.order < b.order
        for b in code.loop.backwards
    )


def _made_inside(code: Code, loop: ast.AST) -> bool:
    """An optimizer is made at every turn, and the network with it: an `eval()` at its end ends nothing."""
    within = set(ast.walk(loop))
    return any(part.call in within for part in code.made("optimizer"))


def _may_be_a_mode(code: Code, call: ast.Call) -> bool:
    funcs, unseen = code.program.targets(call)
    return unseen or not funcs


def trained_models(code: Code) -> set[str]:
    """Names of the models whose parameters an optimizer was given."""
    names = set()
    for part in code.made("optimizer"):
        for node in part.call.args[:1]:
            for inner in ast.walk(node):
                if (
                    isinstance(inner, ast.Call)
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr in ("parameters", "named_parameters")
                ):
                    base = inner.func.value
                    while isinstance(base, ast.Attribute) and base.attr in ("module", "_orig_mod"):
                        base = base.value
                    names.add(dotted_name(base).split(".")[-1])
    return names
