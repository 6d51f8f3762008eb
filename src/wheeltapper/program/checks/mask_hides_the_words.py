"""A mask hides the words and shows the padding.

What it sees
------------
`scores.masked_fill(ids != pad, -inf)`, `key_padding_mask=(ids != pad)`, or a loss kept where the target *is* the
padding.

Why it matters
--------------
Attention looks at nothing but padding (or is NaN where there is none); the loss learns to write padding.

How it decides
--------------
What is compared with one number goes into an embedding as tokens, or is the target of the loss. The comparison says
"is not the padding" where a mask hides what it marks, or "is the padding" where it keeps what it marks. The number is
zero, the padding of that embedding, or called so.

When it is wrong
----------------
If the number marks words and not padding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.slopes import filled_with
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "mask-hides-the-words"
CAUSE: str | None = "objective-mismatch"
DECIDES = True

HIDING = {"key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"}
PADDING = re.compile(r"pad|vide|leer|blank|fill", re.I)


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    tokens = {id(plain(c.args[1])) for c in story.calls if c.op == "net" and c.args[0].name == "Embedding" and len(c.args) > 1}
    padding = {number(c.kwargs.get("padding_idx")) for c in story.named("Embedding")} - {None}
    for call in story.calls:
        masks = [v for k, v in call.kwargs.items() if k in HIDING]
        if call.name in ("masked_fill", "masked_fill_") and len(call.args) > 2 and _is_low(call.args[2]):
            masks.append(call.args[1])
        for mask in masks:
            test = _test(mask)
            if test is not None and test.name == "NotEq" and id(plain(test.args[0])) in tokens and _is_padding(test, padding):
                yield code.seen(ID, "The mask hides every word and leaves the padding in sight.", call, test)
                return
    for loss in story.loss_calls:
        target = plain(loss.args[1]) if len(loss.args) > 1 else None
        for whole in story.losses:
            for one in made_of(whole):
                test = next((t for a in one.args if (t := _test(a)) is not None), None) if one.op == "bin" and one.name == "Mult" else None
                kept = test is not None and test.name == "Eq" and plain(test.args[0]) is target and _is_padding(test, padding)
                if test is not None and kept:
                    yield code.seen(ID, "The loss is kept where the target is padding, and nowhere else.", one, test)
                    return


def _test(mask: Val) -> Val | None:
    """The comparison that a mask is, a change of shape or a `~` taken off."""
    mask = plain(mask)
    if mask.op == "item":
        mask = plain(mask.args[0])
    if mask.op == "unary" and mask.name == "Invert":
        inner = _test(mask.args[0])
        turned = {"Eq": "NotEq", "NotEq": "Eq"}.get(inner.name) if inner is not None else None
        return Val("cmp", turned, inner.args, node=inner.node) if inner is not None and turned else None
    return mask if mask.op == "cmp" and len(mask.args) == 2 and mask.name in ("Eq", "NotEq") else None


def _is_low(value: Val) -> bool:
    known = number(value)
    if known is not None:
        return known <= -1e4
    text = ast.unparse(value.node) if value.node is not None else ""
    return "-inf" in text or ("inf" in text and text.startswith("-")) or (filled_with(value) or 0.0) < -1e4 or "finfo" in text


def _is_padding(test: Val, padding: set[float | None]) -> bool:
    named = isinstance(test.node, ast.Compare) and bool(PADDING.search(ast.unparse(test.node.comparators[0])))
    return named or (number(test.args[1]) is not None and number(test.args[1]) in padding | {0.0})
