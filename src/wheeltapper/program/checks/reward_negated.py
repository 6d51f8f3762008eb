"""The reward has the wrong sign.

What it sees
------------
The reward of the environment is negated before it is learned from.

Why it matters
--------------
The agent learns to do as badly as it can.

How it decides
--------------
What `step()` of an environment returns second, or what a reward wrapper is given, is multiplied by a negative number
on its way into the memory, the returns or the target.

When it is wrong
----------------
If the environment returns a cost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap
from wheeltapper.program.play.value import Val, choices, made_of, number, plain
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "reward-negated"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

NEGATED = "The reward is negated before it is learned from: the agent learns to do badly."
STORES = ("append", "push", "add", "store", "setitem", "remember")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    seen: set[int] = set()
    sources = [
        *story.losses,
        *(a for c in story.calls if c.name in STORES for a in c.args[1:]),
    ]
    for source in sources if story.named("reset") else ():
        for value in made_of(source):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if _negative(value) is not None and _is_reward(_negative(value)):
                yield code.seen(ID, NEGATED, value)
                return
    yield from _in_target(code)
    yield from _unpacked(code)
    for cls in code.program.classes.values():
        method = cls.methods.get("reward")
        if method is not None and "RewardWrapper" in cls.bases and method.params:
            given = Val("param", method.params[0], node=method.node)
            made = story.player.enter(method, (given,), {}, method.node, Val("obj", cls.name, data=cls, node=cls.node))
            if any((inner := _negative(v)) is not None and inner is given for c in choices(made) for v in made_of(c)):
                yield code.seen(
                    ID, "The reward wrapper turns the sign of the reward: the agent learns to do badly.", made
                )
                return


def _in_target(code: Code) -> Iterator[Finding]:
    """`-r + gamma * value`"""
    for loss in code.story.losses:
        for total, _, net in bootstrap(loss):
            for side in total.args:
                inner = _negative(side)
                if (
                    inner is not None
                    and plain(inner).op in ("item", "batch", "elem", "attr", "param")
                    and not any(v is net for v in made_of(side))
                ):
                    yield code.seen(ID, NEGATED, side, total)
                    return


def _unpacked(code: Code) -> Iterator[Finding]:
    """`after, reward, done = env.step(action)` of an environment that the program has itself, and `-reward` that is stored."""
    program = code.program
    for call in program.calls.get("step", []) if "reset" in program.calls else ():
        up = program.parent(call)
        names = up.targets[0].elts if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Tuple) else []
        if len(names) < 3 or not call.args or not isinstance(names[1], ast.Name):
            continue
        for store in (
            c for name in STORES for c in program.calls.get(name, []) if program.func_of[c] is program.func_of[call]
        ):
            for node in (n for a in store.args for n in ast.walk(a)):
                if (
                    isinstance(node, ast.UnaryOp)
                    and isinstance(node.op, ast.USub)
                    and dotted_name(node.operand) == names[1].id
                ):
                    yield code.finding(ID, NEGATED, node, call)
                    return


def _negative(value: Val) -> Val | None:
    if value.op == "unary" and value.name == "USub":
        return value.args[0]
    if value.op == "bin" and value.name == "Mult":
        for one, other in (value.args, tuple(reversed(value.args))):
            known = number(one)
            if known is not None and known < 0:
                return other
    return None


def _is_reward(value: Val | None) -> bool:
    return value is not None and any(
        v.op == "item"
        and v.data == 1
        and v.args[0].op == "call"
        and v.args[0].name == "step"
        and len(v.args[0].args) > 1
        for v in choices(value)
    )
