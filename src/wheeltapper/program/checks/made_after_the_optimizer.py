"""A part of the network is made after its optimizer.

What it sees
------------
Adapters, a new head or a new layer put into a network after the optimizer was made from its parameters.

Why it matters
--------------
The new part is in no optimizer: it keeps the values it was drawn with.

How it decides
--------------
A call or an assignment that puts new parameters into a network (reset_classifier, get_peft_model,
resize_token_embeddings, `model.fc = Linear(...)`) happens after the parameters of the same network were collected,
and no optimizer is made from it later.

When it is wrong
----------------
If the new part is added with add_param_group.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "made-after-the-optimizer"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True

RENEWS = {"reset_classifier", "get_peft_model", "add_adapter", "inject_adapter_in_model", "add_module"}
MAKERS = {"create_optimizer_v2", "create_optimizer"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.named("add_param_group"):
        return
    for call in story.calls:
        network = _renewed(story, call)
        if network is None or not story.complete:
            continue
        collected = [(o, c) for o in _optimizers(story) for c in made_of(o, deep=False) if _is_collected(c, network) and c.order >= 0]
        if collected and all(c.order < call.order for _, c in collected):
            yield code.seen(ID, "A part of the network is made after its parameters were collected: no optimizer has it.", call, collected[0][1], collected[0][0])
            return


def _optimizers(story: Story) -> list[Val]:
    return [*story.optimizers, *story.named(*MAKERS)]


def _is_collected(value: Val, network: Val) -> bool:
    named = value.op == "call" and value.name in ("parameters", "named_parameters", *MAKERS) and bool(value.args)
    return named and value.args[0] is network


def _renewed(story: Story, call: Val) -> Val | None:
    """The network that a call puts new parameters into."""
    if call.op != "call" or not call.args:
        return None
    if call.name in RENEWS:
        return call.args[0]
    if call.name == "setattr" and len(call.args) > 2 and "__init__" not in call.inside[-1:] and call.args[2].op == "call":
        made = call.args[2]
        base = call.args[0]
        fresh = made.origin.startswith("torch.nn.") and made.name in ("Linear", "Conv2d", "Sequential", "Embedding")
        return base if fresh and base.op in ("call", "obj") and story.is_network(base) else None
    return None
