"""The optimizer never makes a step.

What it sees
------------
A loop with a backward pass whose gradients an optimizer should use, and that optimizer's `step()` is nowhere.

Why it matters
--------------
No weight ever changes. The curves show noise around the first value.

How it decides
--------------
The optimizer is one of torch's, moves a network that a backward pass reaches, and neither it nor anything it is
handed to is asked to step.

When it is wrong
----------------
If a library that it is handed to steps it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import SCHEDULERS
from wheeltapper.program.play.story import with_gradient
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "step-missing"
CAUSE: str | None = "frozen-parameters"
DECIDES = True

QUIET = {
    "state_dict",
    "load_state_dict",
    "zero_grad",
    "CosineAnnealingLR",
    "StepLR",
    "LambdaLR",
    "OneCycleLR",
    "setattr",
    "prepare",
    "save",
    "print",
    "setitem",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    yield from _by_hand_in_lightning(code)
    if not any(story.in_training(c) for c in story.named("zero_grad")):
        return  # a part of a program: who writes zero_grad() means to step
    if story.named("optimizers"):
        return  # Lightning hands them out again under another name
    if any(not _is_known(story.is_network(c.args[0]), c.args[0]) for c in story.named("step") if c.args):
        return  # something that is not known is stepped: it may be the optimizer
    for optimizer in story.optimizers:
        if optimizer.guards or optimizer.loops:
            continue
        if (
            ("configure_optimizers" in optimizer.inside and not story.named("manual_backward"))
            or story.steps_of(optimizer)
            or not story.complete
            or not story.moved_by(optimizer)
        ):
            continue
        nets = {id(p) for n in story.moved_by(optimizer) for p in story.parts_of(n)}
        learns = any(
            v.op == "net" and (id(v.args[0]) in nets or any(id(p) in nets for p in story.parts_of(v.args[0])))
            for loss in story.losses
            for v in with_gradient(loss)
        )
        rivals = [
            o
            for o in story.optimizers
            if o is not optimizer and story.steps_of(o) and any(id(n) in nets for n in story.moved_by(o))
        ]
        if not learns or rivals:
            continue
        if not any(call.loops for call, _ in story.backwards) or any(_handed(c, optimizer) for c in story.calls):
            continue
        yield code.seen(
            ID,
            f"{optimizer.name} is made and its gradients are computed, but it never steps.",
            story.backwards[-1][0],
            optimizer,
        )
        return


def _by_hand_in_lightning(code: Code) -> Iterator[Finding]:
    """`automatic_optimization = False`, and nothing steps by hand."""
    off = [
        c for c in code.story.named("setattr") if c.args[1].data == "automatic_optimization" and c.args[2].data is False
    ]
    if off and not any(name in code.program.calls for name in ("manual_backward", "backward", "step", "optimizers")):
        yield code.seen(ID, "Automatic optimisation is turned off, and nothing steps an optimizer by hand.", off[0])


def _is_known(network: bool, value: Val) -> bool:
    return network or value.op in ("call", "obj", "lib")


def _handed(call: Val, optimizer: Val) -> bool:
    """Whether something that is not seen gets the optimizer, or one of several that may be it is asked to step."""
    given = [*call.args, *call.kwargs.values()]
    flat = [v for g in given for v in (g, *(g.items or []), *(g.args if g.op == "phi" else ()))]
    if not any(v is optimizer for v in flat):
        return False
    return (
        call.name not in QUIET | SCHEDULERS
        and not call.origin.startswith("torch.optim")
        and not call.origin.startswith(("?", "."))
    )
