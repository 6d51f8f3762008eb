"""The classes are looked for along the wrong axis.

What it sees
------------
An argmax or a softmax along the first axis, that of the batch, on the output of a network.

Why it matters
--------------
Softmax over the batch mixes the samples; argmax over it gives row numbers, and the accuracy is that of chance.

How it decides
--------------
The axis is 0 and the value is what a network gives for a batch from a loader, or the scores of attention.

When it is wrong
----------------
If the batch is not the first axis.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap, is_attention, produced
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "wrong-axis"
CAUSE: str | None = "eval-broken"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in along_the_batch(code, "argmax"):
        yield code.seen(ID, "The largest output is looked for along the batch, not along the classes.", call)
        return
    for best in _of_targets(code):
        yield code.seen(ID, "The largest value is taken along the batch, not along the actions.", best)
        return
    for func in _metrics(code):
        for node in func:
            yield code.seen(ID, "The largest output is looked for along the batch, not along the classes.", node)
            return


def _of_targets(code: Code) -> Iterator[Val]:
    """`r + gamma * q(s).max(0)`"""
    for loss in code.story.losses:
        for _, _, part in bootstrap(loss):
            largest = [
                v
                for v in made_of(part, deep=False)
                if v.op == "call" and v.name in ("max", "amax", "argmax") and v.args
            ]
            for one in largest:
                whole = one.args[0].op == "net" and len(one.args[0].args) > 1
                if whole and number(one.arg("dim", 1) or one.arg("axis")) == 0:
                    yield one


def along_the_batch(code: Code, *names: str) -> Iterator[Val]:
    """Calls of these functions along the first axis of what a network made of a batch, or of the scores of attention."""
    judged = {
        v.order for loss in code.story.named("cross_entropy") for a in loss.args[:1] if (v := plain(a)).op == "net"
    }
    scored = {
        id(v)
        for loss in code.story.loss_calls
        if loss.name in ("nll_loss", "cross_entropy")
        for v in (*produced(loss.args[0]), plain(loss.args[0]))
    }
    for call in code.story.named(*names):
        axis = number(call.arg("dim", 1) or call.arg("axis"))
        if axis != 0 or not call.args:
            continue
        if (
            _batched(call.args[0])
            or is_attention(call)
            or plain(call.args[0]).order in judged - {-1}
            or id(call) in scored
        ):
            yield call


def _batched(value: Val) -> bool:
    """Made by a network from batches of a loader, without a change of axes."""
    if any(
        v.op == "call" and not _drops_last(v) and v.name in ("transpose", "permute", "unsqueeze", "stack", "squeeze", "mean", "T", "t", "sum")
        for v in _near(value)
    ):
        return False
    if plain(value).op == "item":
        return False
    nets = [v for v in made_of(value) if v.op == "net"]
    fed = [
        v
        for n in nets
        for a in n.args[1:]
        for v in made_of(a)
        if v.op == "batch" or (v.op == "call" and v.name in ("stack", "randint", "pad_sequence"))
    ]
    return bool(nets) and bool(fed)


def _drops_last(value: Val) -> bool:
    """`scores.squeeze(-1)`: the first axis is still the batch."""
    return value.name == "squeeze" and len(value.args) == 2 and number(value.args[1]) in (-1, 2)


def _near(value: Val) -> list[Val]:
    return list(made_of(value, deep=False, stop=lambda v: v.op == "net"))


def _metrics(code: Code) -> Iterator[list[Val]]:
    """Functions given to a trainer as `compute_metrics`: their first argument holds (predictions, labels)."""
    for call in code.story.calls:
        given = call.kwargs.get("compute_metrics")
        if given is None or given.op != "func":
            continue
        before = len(code.story.player.calls)
        pair = Val("param", "eval_prediction", node=given.node)
        code.story.player.apply(given, (pair,), {}, given.node or call.node)  # type: ignore[arg-type]
        made = code.story.player.calls[before:]
        yield [c for c in made if c.name == "argmax" and number(c.arg("axis", 1) or c.arg("dim")) == 0]
