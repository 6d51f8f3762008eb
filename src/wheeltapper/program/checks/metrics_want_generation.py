"""The metrics decode texts that are never generated.

What it sees
------------
compute_metrics decodes predictions as token ids, and the trainer is not told to generate.

Why it matters
--------------
It gets the scores of every token under teacher forcing: decoding fails or compares nonsense.

How it decides
--------------
A Seq2Seq trainer with a compute_metrics in which batch_decode is called, and no predict_with_generate in its
arguments.

When it is wrong
----------------
If the predictions are turned into ids first (argmax, preprocess_logits_for_metrics).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "metrics-want-generation"
CAUSE: str | None = "eval-broken"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    program = code.program
    if "batch_decode" not in program.calls or any("preprocess_logits_for_metrics" in s.text or "argmax" in s.text for s in program.scripts):
        return
    for call in code.story.calls:
        args = call.kwargs.get("args")
        if call.op != "call" or call.name != "Seq2SeqTrainer" or "compute_metrics" not in call.kwargs or args is None or args.op != "call":
            continue
        told = args.kwargs.get("predict_with_generate")
        if "**" not in args.kwargs and (told is None or told.data is False):
            beside = [v for k, v in args.kwargs.items() if k.startswith("generation")]
            yield code.seen(ID, "The metrics decode token ids, and predict_with_generate is not set.", *([told] if told is not None else beside[:1]), call, args)
            return

