"""A learning-rate scheduler is built and never stepped.

What it sees
------------
A scheduler that is made, and on which `step()` is never called anywhere in the program. Or a function that computes a learning
rate from the step, whose result is only shown, or that nothing calls.

Why it matters
--------------
The learning rate stays at its first value for the whole run: no decay, no warm-up.

How it decides
--------------
The scheduler object is followed through variables, fields, containers, calls and returns. If any path steps
it, hands it to code outside the program (another scheduler, `accelerator.prepare`, a trainer) or returns it
to a framework, nothing is said; reading its learning rate or saving its state does not count as stepping. A rate computed by hand is
followed the same way; only where nothing else in the program sets a learning rate is anything said. A function of the entry
script that nothing calls is worth a look.

When it is wrong
----------------
If something outside the program reaches into the object that holds the scheduler and steps it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program import vocabulary as words
from wheeltapper.program.conditions import nodes_of, part_reachable
from wheeltapper.program.hand_schedules import Rule
from wheeltapper.program.program import constant_text, dotted_name
from wheeltapper.program.reading import Code

ID = "scheduler-never-stepped"
CAUSE = "schedule-never-decays"
DECIDES = True
SETS = re.compile(r"(set|adjust|update|change|anneal)_?(\w+_)?(lr|learning_?rate)|apply_gradients", re.I)


def check(code: Code) -> Iterator[Finding]:
    yield from _by_hand(code)
    for part in code.made("scheduler"):
        if part.trace.acts or not part_reachable(code, part.call):
            continue
        name = min(part.names, key=len) if part.names else part.made_by
        yield code.finding(
            ID, f"{name} ({part.made_by}) is built and never stepped: the learning rate does not change.", part.call
        )


def _by_hand(code: Code) -> Iterator[Finding]:
    program = code.program
    if code.by_framework or code.made("scheduler", "engine") or _sets_rate(code) or not code.made("optimizer"):
        return
    for rule in code.rules:
        name, calls = rule.func.name, program.calls.get(rule.func.name, [])
        if len(program.functions[name]) > 1 or rule.func.script is not program.entry:
            continue
        loose = [n for n in _mentions(code, rule) if not _called(code, n)]
        if calls and not loose and not code.flow.trace([(call, "value") for call in calls]).acts:
            yield code.finding(
                ID, f"{name}() computes a learning rate ({rule.kind}) that nothing sets: the learning rate does not change.",
                calls[0], rule.func.node,
            )  # fmt: skip
        elif not calls and not loose:
            yield code.finding(
                ID, f"{name}() computes a learning rate ({rule.kind}) and nothing calls it: the learning rate does not change.",
                rule.func.node, severity="watch",
            )  # fmt: skip


def _sets_rate(code: Code) -> bool:
    """Whether anything writes a learning rate: `group["lr"] = ...`, `lr=` of a functional optimizer, a method of that name."""
    if any(SETS.search(name) for name in code.program.calls):
        return True
    for node in nodes_of(code.program, ast.Assign, ast.AugAssign):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        )
        if any(isinstance(t, ast.Subscript) and constant_text(t.slice) in ("lr", "learning_rate") for t in targets):
            return True
    return False


def _mentions(code: Code, rule: Rule) -> list[ast.expr]:
    name = rule.func.name
    if rule.func.owner is not None:
        return [n for n in code.program.reads.get(("f", name), []) if isinstance(n, ast.Attribute) and _own(n)]
    return code.program.reads.get(code.program.variable(name, rule.func.node), []) + code.program.reads.get(
        ("f", name), []
    )


def _own(node: ast.Attribute) -> bool:
    """`self.learning_rate` and the like; not `args.learning_rate`."""
    return not words.CONFIG_NAMES.match(dotted_name(node.value).split(".")[-1])


def _called(code: Code, node: ast.expr) -> bool:
    up = code.program.parent(node)
    return isinstance(up, ast.Call) and up.func is node
