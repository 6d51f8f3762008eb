"""With which sign a part goes into a loss, and what the loss adds up."""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.program.play.value import MAX_WALK, Val, below, breaks_graph, made_of, number

REDUCES = {"mean", "sum", "nanmean", "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "stack", "cat", "scale", "clamp", "to"}
DEEP = 40


def signs_in(whole: Val, part: Val) -> set[int]:
    """+1 and -1: the ways in which a part is added up in a whole, through sums, means and weights; empty where it goes in otherwise."""
    return set(_signs(whole, part, 1, 0))


def _signs(value: Val, part: Val, sign: int, depth: int) -> Iterator[int]:
    if value is part:
        yield sign
        return
    if depth > DEEP:
        return
    go = depth + 1
    match value.op:
        case "phi":
            for one in value.args:
                yield from _signs(one, part, sign, go)
        case "unary" if value.name == "USub":
            yield from _signs(value.args[0], part, -sign, go)
        case "bin" if value.name in ("Add", "Sub"):
            yield from _signs(value.args[0], part, sign, go)
            yield from _signs(value.args[1], part, -sign if value.name == "Sub" else sign, go)
        case "bin" if value.name in ("Mult", "Div"):
            for one, weight in _weighed(value):
                yield from _signs(one, part, -sign if _is_negative(weight) else sign, go)
        case "net" | "batch" if isinstance(value.data, Val):
            yield from _signs(value.data, part, sign, go)
        case "item" | "comp" | "gen" if value.args:
            yield from _signs(value.args[0], part, sign, go)
        case "list" | "tuple":
            for one in value.items or ():
                yield from _signs(one, part, sign, go)
        case "call" if value.name in REDUCES and value.args:
            yield from _signs(value.args[-1] if value.name == "scale" else value.args[0], part, sign, go)
        case "call" if value.name in ("minimum", "maximum", "min", "max"):
            for one in value.args:
                yield from _signs(one, part, sign, go)
        case "call" if value.name in ("neg", "negative") and value.args:
            yield from _signs(value.args[0], part, -sign, go)


def _is_negative(weight: Val, depth: int = 0) -> bool:
    """A weight below nought: a number, or something with a minus in front (`-alpha.exp() * term`)."""
    known = number(weight)
    if known is not None or depth > DEEP:
        return (known or 1) < 0
    if weight.op == "unary" and weight.name == "USub":
        return not _is_negative(weight.args[0], depth + 1)
    if weight.op == "bin" and weight.name in ("Mult", "Div"):
        return _is_negative(weight.args[0], depth + 1) != _is_negative(weight.args[1], depth + 1)
    return False


def _weighed(product: Val) -> Iterator[tuple[Val, Val]]:
    """The factor of a product that networks made, with the weight beside it; both ways where both may be."""
    a, b = product.args
    made = [any(v.op == "net" for v in made_of(x)) for x in (a, b)]
    if made[0] and not (made[1] and product.name == "Mult"):
        yield a, b
    if made[1] and not made[0] and product.name == "Mult":
        yield b, a
    if not any(made):
        yield a, b


def summands(value: Val, depth: int = 0) -> Iterator[Val]:
    """The terms that are added up to a loss, weights and signs taken off. Neither a mean nor a choice of values is taken apart."""
    go = depth + 1
    if depth > DEEP:
        yield value
    elif value.op == "unary" and value.name == "USub":
        yield from summands(value.args[0], go)
    elif value.op == "bin" and value.name in ("Add", "Sub"):
        for one in value.args:
            yield from summands(one, go)
    elif value.op == "bin" and value.name in ("Mult", "Div") and len(list(_weighed(value))) == 1:
        for one, _ in _weighed(value):
            yield from summands(one, go)
    elif value.op == "net" and isinstance(value.data, Val) and value.data.op in ("bin", "unary"):
        yield from summands(value.data, go)
    elif value.op == "call" and value.name in ("stack", "sum") and value.args and value.args[0].items:
        for one in value.args[0].items:
            yield from summands(one, go)
    elif value.op != "const":
        yield value


def reached(value: Val) -> Iterator[Val]:
    """What a gradient comes back to: as made_of, but not through what cuts the graph, and through a network of the program only along
    what it computes, not to all that it was given."""
    seen: set[int] = set()
    queue = [value]
    for one in queue:
        if id(one) in seen or len(seen) > MAX_WALK:
            continue
        seen.add(id(one))
        if breaks_graph(one) or one.op == "cmp":
            continue
        yield one
        if one.op == "net" and isinstance(one.data, Val):
            queue.append(one.data)
        elif one.op == "item":
            queue.append(one.args[0])  # not to the index
        else:
            queue += below(one)


def cuts(value: Val) -> Iterator[Val]:
    """Where the ways of a gradient end before they come to a layer, nearest first."""
    for one in reached(value):
        inner = [one.data] if one.op == "net" and isinstance(one.data, Val) else one.args[:1] if one.op == "item" else below(one)
        yield from (v for v in inner if breaks_graph(v))


def is_layer(value: Val) -> bool:
    """A network applied whose inside is not known: its weights get the gradient that comes here."""
    return value.op == "net" and not isinstance(value.data, Val)
