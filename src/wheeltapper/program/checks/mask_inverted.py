"""A mask hides what should be seen.

What it sees
------------
Scores of attention (or of a choice) that are filled with minus infinity where the symbols are real, and kept where
there is padding.

Why it matters
--------------
Everything that carries information is hidden, and the padding is attended to.

How it decides
--------------
The mask given to `masked_fill` with a very negative number, or as a `key_padding_mask`, is `ids != number`: true for
the real symbols.

When it is wrong
----------------
If the number compared with is that of a symbol to be hidden from everything else.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

PADDING_MASKS = ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask")
HIDDEN = -1000.0

ID = "mask-inverted"
CAUSE: str | None = "attention-mask-inverted"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        if call.name in ("masked_fill", "masked_fill_") and len(call.args) > 2 and _hides(call.args[2]) and _is_real(call.args[1]):
            yield code.seen(ID, "The mask hides the real symbols and keeps the padding.", call, call.args[1])
            return
        for name in PADDING_MASKS:
            given = call.kwargs.get(name)
            if given is not None and call.op == "net" and _is_real(given):
                yield code.seen(ID, f"{name} must be true where there is padding; it is true for the real symbols.", call, given)
                return


def _hides(value: Val) -> bool:
    known = number(value)
    if known is not None:
        return known < HIDDEN
    return any(v.op == "call" and v.name == "float" and str(v.args[0].data if v.args else "").startswith("-inf") for v in made_of(value)) or any(
        v.name in ("inf", "min") for v in made_of(value)
    )


def _is_real(value: Val, depth: int = 0) -> bool:
    """`ids != padding`, through changes of shape."""
    if depth > 8:
        return False
    if value.op == "cmp":
        return value.name == "NotEq" and len(value.args) == 2 and number(value.args[1]) is not None and _are_symbols(value.args[0])
    if value.op == "call" and value.name == "ne" and len(value.args) > 1:
        return number(value.args[1]) is not None and _are_symbols(value.args[0])
    carries = value.op == "call" and value.name in ("unsqueeze", "view", "expand", "reshape", "transpose", "permute", "squeeze", "repeat")
    return (carries or value.op == "item") and bool(value.args) and _is_real(value.args[0], depth + 1)


def _are_symbols(value: Val) -> bool:
    """Data, and not a mask of it."""
    parts = list(made_of(value, deep=False))
    return not any(v.op == "cmp" or v.name in ("tril", "triu", "ones", "zeros", "arange", "attention_mask", "mask") for v in parts) and not any(
        isinstance(v.data, str) and "mask" in v.data for v in parts
    )
