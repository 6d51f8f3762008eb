"""The collator masks tokens for a model that predicts the next one.

What it sees
------------
`DataCollatorForLanguageModeling(mlm=True)` (the default) with a causal language model, or `mlm=False` with a masked
one.

Why it matters
--------------
The labels are those of another task: the model learns to fill gaps that it can see, or to copy.

How it decides
--------------
The class that the model is loaded with, against the collator given to the same trainer.

When it is wrong
----------------
Never, for models that are loaded by these classes.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "collator-does-not-fit"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        model, collator = call.kwargs.get("model"), call.kwargs.get("data_collator")
        if model is None or collator is None or collator.name != "DataCollatorForLanguageModeling":
            continue
        given = collator.kwargs.get("mlm")
        masks = given is None or given.data is not False
        causal = _loaded_as(model, ("CausalLM", "GPT2LMHead", "LlamaFor"))
        masked = _loaded_as(model, ("MaskedLM",))
        if causal and masks:
            yield code.seen(
                ID,
                "The collator hides tokens for a masked model, and the model predicts the next token.",
                given or collator,
                collator,
                call,
            )
            return
        if masked and not masks:
            yield code.seen(
                ID,
                "The collator gives the targets of a causal model, and the model is a masked one.",
                given or collator,
                collator,
                call,
            )
            return


def _loaded_as(model: Val, words: tuple[str, ...]) -> bool:
    found = [model, *(v for v in made_of(model))]
    return any(any(w in v.origin for w in words) for v in found if v.op == "call")
