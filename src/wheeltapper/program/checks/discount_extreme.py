"""Rewards are discounted to nothing, or not at all.

What it sees
------------
A discount of 0 (or close to it), or of more than 1, in a bootstrapped target or a sum of rewards.

Why it matters
--------------
With 0 the agent learns only the next reward; above 1 the values grow without bound.

How it decides
--------------
The factor in `r + gamma * next`, a literal or a constant.

When it is wrong
----------------
In a task of one step, where the discount does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "discount-extreme"
CAUSE: str | None = "gamma-too-low"
DECIDES = True
LIBRARY = {"PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "TRPO", "QRDQN", "TQC", "RecurrentPPO", "MaskablePPO"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    found: list[tuple[float, Val, Val]] = []
    for _, loss in story.backwards:
        for total, discount, _ in bootstrap(loss):
            if not story.runs(total) or any(t is total for t in _sums(loss)):
                continue
            found.append((number(discount) or 0.0, discount, total))
        found += list(_returns(loss))
    if story.backwards and story.named("reset"):
        for call in story.calls:
            if call.name in ("setitem", "append"):
                found += list(_returns(call.args[-1]))
    for call in story.calls:
        if call.name in LIBRARY and (known := number(call.kwargs.get("gamma"))) is not None:
            found.append((known, call.kwargs["gamma"], call))
    for value, node, total in found:
        if value < 0.3 or value > 1:
            much = "later rewards count for nothing" if value < 0.3 else "values grow without bound"
            yield code.seen(
                ID,
                f"Rewards are discounted by {value:g}: {much}.",
                total,
                node,
                grade="is" if value == 0 or value > 1 else "suspected",
            )
            return


def _sums(loss: Val) -> Iterator[Val]:
    """The sums that a loss itself is: weighed terms, and no target."""
    for value in made_of(loss, stop=lambda v: v.op not in ("bin", "phi", "unary")):
        if value.op == "bin":
            yield value


def _returns(value: Val) -> Iterator[tuple[float, Val, Val]]:
    """`total = reward + gamma * total` with rewards of an environment."""
    for one in made_of(value):
        if one.op == "bin" and one.name == "Add" and _rewarded(one.args[0]):
            side = one.args[1]
            known = [a for a in side.args if number(a) is not None] if side.op == "bin" and side.name == "Mult" else []
            if known and not any(v.op == "net" for v in made_of(side)):
                yield number(known[0]) or 0.0, known[0], one


def _rewarded(value: Val) -> bool:
    return any(
        v.op == "item" and v.data == 1 and v.args[0].op == "call" and v.args[0].name == "step" for v in made_of(value)
    )
