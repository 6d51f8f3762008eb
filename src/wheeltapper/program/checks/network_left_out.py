"""A part of the network is in no optimizer.

What it sees
------------
A network, or a layer with weights, that goes into the loss with gradients on and that no optimizer is given, in a
program that trains the rest.

Why it matters
--------------
It gets gradients and never moves: it stays at its random start.

How it decides
--------------
Everything that the loss is made of is compared with the parameters of all optimizers. What was loaded, frozen, or
switched to `eval()` for good is meant to stay, and is left alone.

When it is wrong
----------------
If it is meant to stay random, as in a reservoir.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import PARAMETER_LAYERS
from wheeltapper.program.play.story import with_gradient
from wheeltapper.program.play.value import Val, choices
from wheeltapper.program.reading import Code

ID = "network-left-out"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True

LOADS = {
    "load_state_dict",
    "requires_grad_",
    "from_pretrained",
    "load",
    "load_weights",
    "load_model",
    "load_checkpoint",
}
WEIGHTED = PARAMETER_LAYERS | {
    "LSTM",
    "GRU",
    "RNN",
    "MultiheadAttention",
    "TransformerEncoder",
    "BatchNorm2d",
    "LayerNorm",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    movers = [o for o in story.optimizers if story.steps_of(o)]
    if (
        not movers
        or not story.complete
        or any(not story.moved_by(o) for o in story.optimizers)
        or story.named("add_param_group")
    ):
        return
    if any(n.op not in ("obj", "call") or not story.is_network(n) for o in movers for n in story.moved_by(o)) or _picks(
        code
    ):
        return
    moved = {id(p) for o in story.optimizers for n in story.moved_by(o) for p in story.parts_of(n)}
    seen: set[int] = set()
    for _, loss in story.backwards:
        for net in with_gradient(loss):
            layer = net.args[0] if net.op == "net" else None
            if (
                layer is None
                or id(layer) in moved
                or id(layer) in seen
                or not ((layer.op == "call" and layer.name in WEIGHTED) or _holds_weights(layer))
                or "@copied" in layer.fields
            ):
                continue
            seen.add(id(layer))
            if any(_made_within(layer, n) for o in story.optimizers for n in story.moved_by(o)):
                continue
            known = layer.op == "obj" or (layer.origin.startswith("torch.nn") and layer.order <= movers[0].order)
            if not known or settled(code, layer):
                continue
            yield code.seen(
                ID,
                f"This {layer.name} goes into the loss and is in no optimizer: it stays at its random start.",
                layer,
                movers[0],
                net,
            )
            return


def _holds_weights(network: Val) -> bool:
    """A network of the program with parameters of its own."""
    return network.op == "obj" and any(v.op == "call" and v.name == "Parameter" for k, v in network.fields.items() if k[:1] not in "@[")


def _made_within(layer: Val, network: Val) -> bool:
    """Whether the layer was made while the network was: it is then somewhere in it."""
    span = network.fields.get("@span")
    return span is not None and span.data[0] <= layer.order < span.data[1]


def _picks(code: Code) -> bool:
    """Parameters are picked by name or by a condition: which ones is not followed."""
    return any(c.name in ("named_parameters", "named_modules") for c in code.story.calls)


def settled(code: Code, layer: Val) -> bool:
    """Loaded, frozen or switched off, itself or in a network that holds it. Weights that are put back after training do not count."""
    story = code.story
    last = max((b.order for b, _ in story.backwards), default=len(story.calls))
    for call in story.calls:
        if call.name == "load_state_dict" and call.order > last and not call.loops:
            continue
        for_good = call.name == "eval" and not any(t.args[0] is call.args[0] for t in story.named("train"))
        fixed = call.name in LOADS or for_good or (call.name == "setattr" and call.args[1].data == "requires_grad")
        if fixed and call.args and story.runs(call) and any(one is layer or story.holds(one, layer) for one in _owners(call.args[0])):
            return True
    return False


def _owners(value: Val) -> list[Val]:
    out = list(choices(value))
    for one in list(out):
        if one.op in ("elem", "item", "attr") and one.args:
            out += list(one.args[:1]) + [b for a in one.args[:1] for b in a.args[:1]]
    return [o for o in out if o.op in ("obj", "call")]
