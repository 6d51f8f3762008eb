"""Both views are the same tensor.

What it sees
------------
A contrastive loss over two views that are one and the same value.

Why it matters
--------------
The two outputs are equal whatever the network does: it matches them without learning what the augmentation leaves
unchanged.

How it decides
--------------
The similarities are of two outputs of one network for the very same input.

When it is wrong
----------------
If the network draws noise itself (dropout as the only augmentation, as SimCSE does).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import CLASS_LOSSES
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "views-identical"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in CLASS_LOSSES | {"cosine_similarity"}:
            continue
        nets = {
            v.order: v
            for v in made_of(loss.args[0], deep=False)
            if v.op == "net" and v.order >= 0 and story.in_training(v)
        }
        pairs = [(a, b) for a in nets.values() for b in nets.values() if a.order < b.order and a.args[0] is b.args[0]]
        for a, b in pairs:
            same = (
                len(a.args) > 1
                and len(b.args) == len(a.args)
                and all(plain(x) is plain(y) for x, y in zip(a.args[1:], b.args[1:], strict=True))
            )
            if same and _products(loss.args[0]):
                drops = any(v.op == "net" and v.args[0].name == "Dropout" for v in made_of(a)) or not isinstance(
                    a.data, Val
                )
                text = "Both views are the same tensor: their outputs match without any learning."
                yield code.seen(
                    ID, text, b, a, loss, grade="suspected" if drops and not _augmented(a.args[1]) else "is"
                )
                return


def _products(value: Val) -> bool:
    return any(
        (v.op == "bin" and v.name == "MatMult") or (v.op == "call" and v.name in ("matmul", "mm", "einsum"))
        for v in made_of(value, deep=False)
    )


def _augmented(value: Val) -> bool:
    return (
        any(v.op == "call" and v.name.startswith(("rand", "bernoulli", "normal")) for v in made_of(value))
        or plain(value).op == "batch"
    )
