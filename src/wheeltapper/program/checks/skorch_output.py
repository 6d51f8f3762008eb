"""The output does not fit the loss that skorch takes by default.

What it sees
------------
A `NeuralNetClassifier` of skorch without a criterion of its own, whose module returns raw outputs; or one with a
cross-entropy whose module returns a softmax.

Why it matters
--------------
The default NLLLoss takes the logarithm of the output: of a raw output, which may be negative, it is not a number.

How it decides
--------------
The module is played: what it returns is the output of a layer with nothing after it (default criterion), or a
softmax (cross-entropy).

When it is wrong
----------------
If the module is told to end otherwise by an option.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_raw_layer, produced
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "skorch-output"
CAUSE: str | None = "output-activation-wrong"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    player = code.story.player
    for call in code.story.named("NeuralNetClassifier"):
        module = call.arg("module", 0)
        if module is None or module.op != "class" or call.node is None:
            continue
        criterion = call.kwargs.get("criterion")
        given = {k.removeprefix("module__"): v for k, v in call.kwargs.items() if k.startswith("module__")}
        made = player.apply(
            player.instance(module, (), given, call.node), (Val("param", "X", node=call.node),), {}, call.node
        )
        ends = produced(made)
        if (criterion is None or criterion.name == "NLLLoss") and ends and all(is_raw_layer(e) for e in ends):
            text = "The module returns raw outputs, and skorch takes their logarithm for its default NLLLoss."
            yield code.seen(ID, text, ends[0], call)
            return
        if (
            criterion is not None
            and criterion.name == "CrossEntropyLoss"
            and ends
            and all(e.op == "call" and e.name == "softmax" for e in ends)
        ):
            yield code.seen(ID, "The module returns a softmax, and CrossEntropyLoss applies it again.", ends[0], call)
            return
