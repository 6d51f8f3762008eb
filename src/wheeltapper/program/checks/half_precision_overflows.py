"""A model of the T5 family is trained in fp16.

What it sees
------------
fp16 for a model that was trained in bfloat16 and whose activations do not fit into fp16.

Why it matters
--------------
Activations of its feed-forward layers overflow: the loss becomes nan or zero.

How it decides
--------------
The name of the model holds t5 (t5, flan-t5, mt5, byt5, ul2) and the arguments set fp16.

When it is wrong
----------------
Models that were converted with scaled weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import text_of
from wheeltapper.program.reading import Code

ID = "half-precision-overflows"
CAUSE: str | None = "fp16-overflow"
DECIDES = True

OVERFLOWS = re.compile(r"(^|[/_-])(flan-)?(m|by|long)?t5([/_-]|$)|ul2|gemma-2|pegasus", re.I)


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    names = [t for c in story.named("from_pretrained") for a in (*c.args, *c.kwargs.values()) if (t := text_of(a)) is not None]
    if not any(OVERFLOWS.search(n) for n in names):
        return
    for call in story.calls:
        given = call.kwargs.get("fp16")
        if call.op == "call" and given is not None and given.data is True:
            yield code.seen(ID, f"{names[0]} overflows in fp16.", given, call, grade="suspected")
            return
