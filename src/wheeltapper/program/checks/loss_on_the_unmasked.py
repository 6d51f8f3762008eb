"""The loss counts the tokens that were not hidden.

What it sees
------------
A masked language model whose targets are ignored at the hidden places, or counted at all places, or whose input was
never hidden.

Why it matters
--------------
The model learns to copy what it sees: a loss near zero, and nothing about the hidden tokens.

How it decides
--------------
The same mask hides the input and sets the targets to the ignored index; or no target is ignored though the input was
hidden; or the targets are ignored by a mask and the network gets the tokens as they were.

When it is wrong
----------------
If all places are meant to be reconstructed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "loss-on-the-unmasked"
CAUSE: str | None = "labels-broken"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        nets = [v for v in made_of(loss.args[0], deep=False) if v.op == "net" and len(v.args) > 1]
        if not nets:
            continue
        tokens, target = plain(nets[0].args[1]), plain(loss.args[1])
        hidden = written(tokens)
        ignored = [
            w
            for w in written(target)
            if (put := number(w.args[2])) is not None and put in (number(loss.kwargs.get("ignore_index")), -100)
        ]
        masks = [m for w in hidden for m in made_of(w.args[1])]
        if ignored and hidden and any(any(m is v for m in masks) for v in _plain_mask(ignored[0])):
            yield code.seen(ID, "The targets are ignored at the very places that were hidden.", ignored[0], loss)
            return
        base = base_of(target)
        if (
            hidden
            and not ignored
            and base is base_of(tokens)
            and any(m.op == "call" and m.name in ("rand", "rand_like", "bernoulli") for m in masks)
            and "ignore_index" in loss.kwargs
        ):
            yield code.seen(ID, "The loss counts every place, also those that were not hidden.", loss, hidden[0])
            return


def written(value: Val) -> list[Val]:
    """The writes into a tensor at chosen places."""
    out = []
    for _ in range(6):
        value = plain(value)
        if value.op == "call" and value.name in ("setitem", "masked_fill", "masked_fill_"):
            out.append(value)
            value = value.args[0]
        else:
            break
    return out


def base_of(value: Val) -> Val:
    for _ in range(6):
        value = plain(value)
        if value.op == "call" and value.name in ("setitem", "masked_fill", "masked_fill_"):
            value = value.args[0]
    return value


def _plain_mask(write: Val) -> list[Val]:
    """The mask of a write, if it is used as it is and not turned round."""
    mask = write.args[1]
    return [mask] if not (mask.op == "unary" and mask.name in ("Invert", "Not")) else []
