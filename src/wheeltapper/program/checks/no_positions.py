"""Attention without any position.

What it sees
------------
A transformer over embedded tokens to which no position is ever added.

Why it matters
--------------
Attention without positions sees a bag of tokens: order cannot be learned.

How it decides
--------------
Attention of torch's own layers, or written out, whose inputs are embeddings of tokens; on the way from the tokens to
the output there is no arange, no sine, no learned parameter or second embedding that is added, no recurrence and no
convolution.

When it is wrong
----------------
If a layer whose code is not seen adds it; causal attention learns a weak notion of position by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_attention
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "no-positions"
CAUSE: str | None = None
DECIDES = True

ORDERED = {
    "arange",
    "sin",
    "cos",
    "polar",
    "outer",
    "cumsum",
    "linspace",
    "rotary",
    "apply_rotary_emb",
    "alibi",
    "positional_encoding",
}
RECURS = {"LSTM", "GRU", "RNN", "Conv1d", "Conv2d", "Conv3d"}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if not loss.args or loss.name not in ("cross_entropy", "nll_loss"):
            continue
        way = list(made_of(loss.args[0]))
        attends = [v for v in way if is_attention(v)]
        tokens = [v for v in way if v.op == "net" and v.args[0].op == "call" and v.args[0].name == "Embedding"]
        if not attends or not tokens or len({id(t.args[0]) for t in tokens}) > 1 or any(_ordered(v) for v in way):
            continue
        yield code.seen(
            ID,
            "Nothing tells the attention where a token stands: no position is added to the embedding.",
            tokens[0],
            attends[0],
        )
        return


def _ordered(value: Val) -> bool:
    if value.op == "call" and (value.name in ORDERED or value.name == "Parameter" or "position" in value.name.lower()):
        return True
    if value.op == "net" and value.args[0].op == "call":
        return value.args[0].name in RECURS or not value.args[0].origin.startswith("torch.nn")
    if value.op == "attr" and value.name == "weight" and value.args[0].name == "Embedding":
        return True  # a table of positions, added as it is
    return value.op in ("attr", "param", "free") and any(w in value.name.lower() for w in ("pos", "rot", "freq"))
