"""The model sees the tokens it must predict.

What it sees
------------
Attention over a sequence without a causal mask, in a model trained to predict the next token of that sequence.

Why it matters
--------------
The answer stands in the input one place further on. The loss falls to almost nothing; what is generated is noise.

How it decides
--------------
The targets are the inputs moved by one; attention lies between them, of torch's own layers or a softmax of a product,
and none of it is given a mask or a causal flag.

When it is wrong
----------------
If a layer whose code is not seen masks by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.labels_not_shifted import shift_of
from wheeltapper.program.play.derive import is_attention
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "causal-mask-missing"
CAUSE: str | None = "causal-leak"
DECIDES = True

MASKS = {"attn_mask", "mask", "src_mask", "tgt_mask", "is_causal", "tgt_is_causal", "causal", "attention_mask"}
CAUSAL = MASKS - {"attention_mask"}
HIDES = {"masked_fill", "masked_fill_", "where", "tril", "triu", "generate_square_subsequent_mask", "setitem"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in ("cross_entropy", "nll_loss") or len(loss.args) < 2:
            continue
        found = shift_of(loss.args[0], loss.args[1])
        if found is None or found[0] < 1:
            continue
        attends = [v for v in made_of(loss.args[0]) if is_attention(v)]
        decoding = [v for v in attends if not _is_encoder_of_other(v, found[1])]
        turned = next((m for v in decoding if (m := _hides_the_past(v)) is not None), None)
        if turned is not None:
            yield code.seen(
                ID, "The causal mask is the wrong way round: it hides the past and shows the future.", turned, loss
            )
            return
        wide = next((m for v in decoding if (m := _shows_the_next(v)) is not None), None)
        if wide is not None:
            yield code.seen(ID, "The causal mask leaves the token that is to be predicted in sight.", wide, loss)
            return
        if decoding and not any(_masked(v) for v in decoding):
            yield code.seen(
                ID,
                "The model predicts the next token and its attention has no causal mask: it sees the answer.",
                decoding[0],
                loss,
            )
            return
    yield from _whatever_the_loss(code)


def _whatever_the_loss(code: Code) -> Iterator[Finding]:
    """A triangle that begins too late hides too little, whatever the loss is called."""
    for value in code.story.calls:
        if not is_attention(value) or value.no_grad:
            continue
        wide = _shows_the_next(value)
        if wide is not None:
            yield code.seen(ID, "The mask of attention leaves the next place in sight.", wide, value, grade="suspected")
            return


def _is_encoder_of_other(value: Val, tokens: Val) -> bool:
    """Attention over something else than the sequence that is predicted (the source of a translation)."""
    if value.op != "net" or value.args[0].name in ("Transformer",):
        return False
    return not any(v is tokens for a in value.args[1:] for v in made_of(a))


def _masked(value: Val) -> bool:
    if value.op == "net" and value.args[0].name == "Transformer":
        return any(k in ("tgt_mask", "tgt_is_causal") for k in value.kwargs) or len(value.args) > 4
    for name in MASKS & set(value.kwargs):
        given = value.kwargs[name]
        if not (given.op == "const" and given.data in (None, False)):
            return True
    if value.op == "call" and value.name == "softmax":
        near = made_of(value.args[0], stop=_is_layer)  # what the tokens are made of hides nothing
        return any(v.op == "call" and v.name in HIDES for v in near) or _added_mask(value)
    if value.op == "net" and value.args[0].name in ("TransformerEncoder", "TransformerEncoderLayer"):
        return len(value.args) > 2
    return value.op == "call" and len(value.args) > 3


def _hides_the_past(value: Val) -> Val | None:
    """A fill of the scores where a triangle is zero or one, and what is left is the future."""
    near = made_of(*value.args[:1], stop=_is_layer) if value.op == "call" and value.name == "softmax" else ()
    for one in near:
        if one.op != "call" or one.name not in ("masked_fill", "masked_fill_") or len(one.args) < 2:
            continue
        test = one.args[1]
        equal = number(test.args[1]) if test.op == "cmp" and test.name == "Eq" else 1.0
        shape = test.args[0] if test.op == "cmp" else test
        upside = [v for v in made_of(shape, deep=False) if v.op == "call" and v.name in ("tril", "triu")]
        if len(upside) != 1 or equal not in (0, 1) or any(v.op == "unary" for v in made_of(shape, deep=False)):
            continue
        if (upside[0].name == "triu") == (equal == 0):
            return upside[0]
    return None


def _shows_the_next(value: Val) -> Val | None:
    """A triangle that begins one place too late (`triu(ones, diagonal=2)`, `tril(ones, diagonal=1)`), or a mask that is one all over."""
    given = [v for k, v in value.kwargs.items() if k in CAUSAL] if value.op == "net" or value.name != "softmax" else list(value.args[:1])
    for one in made_of(*given, stop=_is_layer):
        if one.op == "call" and one.name in ("triu", "tril"):
            reach = number(one.arg("diagonal", 1))
            if reach is not None and reach >= (2 if one.name == "triu" else 1):
                return one
        if one.op == "call" and one.name in ("masked_fill", "masked_fill_") and len(one.args) > 1:
            shape = next((v for v in made_of(one.args[1], deep=False) if v.op == "call" and v.name in ("ones", "tril", "triu", "arange")), None)
            if shape is not None and shape.name == "ones" and not any(v.op == "net" or v.op == "batch" for v in made_of(one.args[1])):
                return shape
    return None


def _is_layer(value: Val) -> bool:
    return value.op == "net" and value.args[0].op == "call"


def _added_mask(value: Val) -> bool:
    return any(
        v.op == "bin" and v.name == "Add" and number(v.args[1]) is None
        for v in made_of(value.args[0], deep=False, stop=lambda v: v.op == "net")
    )
