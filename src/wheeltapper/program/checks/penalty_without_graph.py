"""A derivative goes into the loss without a graph of its own.

What it sees
------------
`torch.autograd.grad` with respect to inputs, whose result is a part of the loss, without `create_graph=True`.

Why it matters
--------------
The derivative is then a number for the loss, not a function of the weights: a gradient penalty penalises nothing, and
an equation of derivatives is not learned.

How it decides
--------------
What the derivative is taken of is made by a trained network, what it is taken to is not one of its parameters, the
result goes into a loss that a backward pass starts from, and neither `create_graph` nor a variable for it is given.

When it is wrong
----------------
If the derivative is wanted as a constant; it is then usually detached.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story, with_gradient
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "penalty-without-graph"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        for value in with_gradient(loss):
            if value.op != "call" or value.name != "grad" or "autograd" not in value.origin or len(value.args) < 2:
                continue
            graph = value.kwargs.get("create_graph")
            told = graph is not None and graph.data is not False
            if told or not _is_input(story, value.args[1]) or len(value.args) > 4:
                continue
            if any(v.op == "net" and story.is_trained(v.args[0]) for v in made_of(value.args[0])):
                text = "This derivative is a part of the loss and has no graph: nothing is learned through it (create_graph=True is missing)."
                yield code.seen(ID, text, value)
                return


def _is_input(story: Story, value: Val) -> bool:
    """Data that was told to want a gradient; weights want one anyway."""
    if any(v.name in ("parameters", "named_parameters", "Parameter", "ParameterList") for v in made_of(value, deep=False)):
        return False
    asked = [c.args[0] for c in story.named("requires_grad_") if c.args]
    asked += [c.args[0] for c in story.named("setattr") if c.args[1].data == "requires_grad" and c.args[2].data is True]
    inner = value.items if value.op in ("list", "tuple") and value.items else [value]
    return any(v is a for v in inner for a in asked) or any("requires_grad" in v.kwargs for v in inner)
