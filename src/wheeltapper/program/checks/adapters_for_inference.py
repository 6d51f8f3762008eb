"""Adapters are made for inference and then trained.

What it sees
------------
A LoraConfig (or another adapter) with inference_mode=True in a program that trains.

Why it matters
--------------
The adapters are frozen: nothing is trained at all.

How it decides
--------------
The flag is given as True to the configuration of an adapter.

When it is wrong
----------------
If they are thawed again later.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "adapters-for-inference"
CAUSE: str | None = "frozen-parameters"
DECIDES = True

ADAPTERS = ("LoraConfig", "LoHaConfig", "IA3Config", "PrefixTuningConfig", "PromptTuningConfig", "AdaLoraConfig", "VeraConfig")


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named(*ADAPTERS):
        given = call.kwargs.get("inference_mode")
        if given is not None and given.data is True:
            yield code.seen(ID, "inference_mode=True freezes the adapters: nothing is trained.", given, call)
            return
