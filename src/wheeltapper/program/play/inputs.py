"""What the inputs of a network are made of: data, noise, or one number; and how they are scaled on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.slopes import filled_with
from wheeltapper.program.play.story import RANDOM, Story
from wheeltapper.program.play.value import MAX_WALK, Val, number

BENDS = {"log", "log1p", "log10", "log2", "sqrt", "tanh", "sigmoid", "exp", "softmax", "normalize", "layer_norm", "power_to_db"}
WEIGHTS = {"Parameter", "Buffer"}


def origins(value: Val) -> Iterator[Val]:
    """The ends that a value's content comes from. Where something is picked (an index, a mask) is no content."""
    seen: set[int] = set()
    queue = [value]
    for one in queue:
        if id(one) in seen or len(seen) > MAX_WALK:
            continue
        seen.add(id(one))
        if filled_with(one) is not None:
            yield one
            continue
        inside = _content(one)
        if inside:
            queue += inside
        elif not (one.op == "const" or (one.op == "call" and one.name in WEIGHTS)):
            yield one


def _content(value: Val) -> list[Val]:
    match value.op:
        case "net":
            return [value.data] if isinstance(value.data, Val) else [*value.args[1:], *value.kwargs.values()]
        case "item":
            return [value.args[0]]
        case "attr" if value.name in ("shape", "device", "dtype"):
            return [Val("const", data=0)]
        case "dict":
            return list(value.fields.values())
        case "list" | "tuple":
            return list(value.items or ())
        case "call" if value.name == "setitem" and len(value.args) > 2:
            return []  # written at a place of its own: a one-hot row, a frame that is filled
        case "call" if value.name in RANDOM:
            return []  # drawn, whatever its size was made of
        case "call" if value.name in WEIGHTS or value.name in ("size", "len"):
            return [] if value.name in WEIGHTS else [Val("const", data=0)]
        case "bin" | "unary" | "phi" | "comp" | "call" | "bool" | "cmp":
            return [*value.args, *value.kwargs.values()]
    return []


def constant_origin(value: Val) -> Val | None:
    """The tensor of one number that all content of a value comes from; None where data or noise is in it, or nothing is."""
    ends = list(origins(value))
    return ends[0] if ends and all(filled_with(e) is not None for e in ends) else None


@dataclass(frozen=True)
class Scaling:
    """Known factors and shifts between data and network, nearest to the network first."""

    factors: tuple[tuple[float, Val], ...]
    shifts: tuple[tuple[float, Val], ...]

    @property
    def total(self) -> float:
        out = 1.0
        for factor, _ in self.factors:
            out *= factor
        return out


def scaling_of(value: Val) -> Scaling:
    """By which known numbers an input is multiplied and shifted; an end where anything else is done to it."""
    factors: list[tuple[float, Val]] = []
    shifts: list[tuple[float, Val]] = []
    for one in lineage(value):
        if one.op == "bin" and one.name in ("Mult", "Div", "Add", "Sub"):
            known = number(one.args[1]) if number(one.args[0]) is None else number(one.args[0])
            if known is None or known == 0:
                break
            if one.name in ("Mult", "Div"):
                factors.append((known if one.name == "Mult" else 1 / known, one))
            else:
                shifts.append((known, one))
        elif (one.op == "call" and one.name in BENDS) or one.op not in ("item", "batch", "call", "phi", "attr", "elem", "list", "tuple", "split"):
            break
    return Scaling(tuple(factors), tuple(shifts))


def first_layers(story: Story) -> list[Val]:
    """Layers with weights of trained networks, applied with gradients, whose input no other layer made."""
    found = [
        c
        for c in story.calls
        if c.op == "net" and c.args[0].op == "call" and c.args[0].name != "Embedding" and len(c.args) > 1
    ]
    return [
        c
        for c in {id(c.args[0]): c for c in found if not c.no_grad and story.is_trained(c.args[0])}.values()
        if not any(v.op == "net" for v in lineage(c.args[1]))
    ]
