"""What the loss ignores is not what fills the gaps.

What it sees
------------
Targets that are padded with one number while the loss ignores another.

Why it matters
--------------
The padding is learned as if it were text, and a real symbol, often the end mark, is never learned.

How it decides
--------------
The targets are made by `pad_sequence` (or `F.pad`) with a known number, the loss has a known `ignore_index`, and the
two differ. The same for lengths: those that a packed sequence is cut to are counted on other sequences than the
packed ones.

When it is wrong
----------------
If the padding is replaced by the ignored number in between; that is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "padding-counted"
CAUSE: str | None = "wrong-ignore-index"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        ignored = number(loss.kwargs.get("ignore_index"))
        if ignored is None or len(loss.args) < 2:
            continue
        parts = list(made_of(loss.args[1], deep=False))
        if any(v.name in ("masked_fill", "masked_fill_", "where", "setitem", "clone") for v in parts):
            continue
        filled = {n for v in parts if (n := _filling(v)) is not None}
        if len(filled) == 1 and ignored not in filled:
            pad = next(v for v in parts if _filling(v) is not None)
            text = f"The targets are padded with {filled.pop():g} and the loss ignores {ignored:g}."
            yield code.seen(ID, text, loss, pad)
            return
    for call in code.story.named("pack_padded_sequence"):
        if len(call.args) > 1 and _of_others(call.args[0], call.args[1]):
            lengths = next(v for v in made_of(call.args[1]) if v.op == "call" and v.name == "len")
            yield code.seen(ID, "The lengths are those of other sequences than the packed ones.", lengths, call)
            return


def _filling(value: Val) -> float | None:
    if value.op == "call" and value.name == "pad_sequence":
        given = value.arg("padding_value", 2)
        return 0.0 if given is None else number(given)
    return None


def _of_others(packed: Val, lengths: Val) -> bool:
    sources = [v.args[0] for v in made_of(packed) if v.op == "call" and v.name == "pad_sequence" and v.args]
    counted = [v.args[1] for v in made_of(lengths) if v.op == "comp" and len(v.args) == 2 and v.args[0].op == "call" and v.args[0].name == "len"]
    return len(sources) == 1 and len(counted) == 1 and sources[0].op == "comp" and counted[0].op == "comp" and all(counted[0] is not s for s in (sources[0], *sources[0].args))
