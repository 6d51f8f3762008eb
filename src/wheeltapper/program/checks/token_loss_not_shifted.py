"""A model of tokens is asked for the tokens it is given.

What it sees
------------
`cross_entropy(model(tokens), tokens)` with an imported language model.

Why it matters
--------------
The answer to every place is the input at that place: the loss goes to zero, and the model cannot continue a text.

How it decides
--------------
Input and target are the same tokens, nothing hides any of them, and the program elsewhere shifts them or the model
is named as a language model.

When it is wrong
----------------
If the model shifts its input itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import RANDOM
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "token-loss-not-shifted"
CAUSE: str | None = "causal-leak"
DECIDES = True


LANGUAGE = re.compile(r"gpt|lm$|language|causal|decoder|llama|transformer", re.I)
HIDES = {"masked_fill", "masked_fill_", "where", "setitem", "scatter", "bernoulli", "dropout"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        for net in (
            v for v in made_of(loss.args[0], deep=False) if v.op == "net" and story.in_training(v) and len(v.args) > 1
        ):
            given, target = plain(net.args[1]), plain(loss.args[1])
            named = LANGUAGE.search(f"{net.args[0].origin} {net.args[0].name}") is not None
            hidden = any(v.op == "call" and (v.name in HIDES or v.name in RANDOM) for v in made_of(given, deep=False))
            if (
                given is target
                and given.op in ("batch", "elem", "item")
                and named
                and not hidden
                and not isinstance(net.data, Val)
            ):
                yield code.seen(ID, "The targets are the tokens that were just given, not the next ones.", loss, net)
                return
