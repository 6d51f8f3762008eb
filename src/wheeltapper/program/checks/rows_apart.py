"""Inputs and targets are not of the same rows.

What it sees
------------
Inputs and targets that were put in another order, or are picked with different random numbers.

Why it matters
--------------
Every input gets a stranger's target. The best that can be learned is the mean.

How it decides
--------------
Both are traced back to the data: the random order, shuffle or flip on the way of one is not on the way of the other.
Classes that are random numbers themselves count too.

When it is wrong
----------------
If a row does not depend on its neighbour (targets of a whole batch that are all alike).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import REORDERS, lineage, pairs_of
from wheeltapper.program.play.story import CLASS_LOSSES, RANDOM
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "rows-apart"
CAUSE: str | None = "labels-shuffled"
DECIDES = True

ORDERS = {"randperm", "permutation", "shuffle"}  # other draws, outside of a loop, may be how the data is made


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss, given, target in pairs_of(story):
        mine, theirs = lineage(given), lineage(target)
        noise = [v for v in theirs if v.op == "call" and v.name in ("randn_like", "randn", "rand_like", "normal")]
        if any(story.in_training(v) or v.order < 0 for v in noise):
            continue  # noise that is to be found
        if any(v.op == "call" and v.name == "arange" for v in theirs):
            continue  # row numbers: positives-elsewhere asks about them
        a, b = {**_orders(mine), **_orders(_until_network(loss.args[0]))}, _orders(theirs)
        if a != b and (found := _odd(a, b)) is not None and _related(mine, theirs):
            yield code.seen(
                ID, "Inputs and targets are put in different orders: they do not belong together.", found, loss
            )
            return
        drawn = plain(target)
        if (
            loss.name in CLASS_LOSSES
            and drawn.op == "call"
            and drawn.name in ("randperm", "randint", "permutation")
            and not any(v is drawn for v in made_of(loss.args[0]))
        ):
            yield code.seen(ID, "The targets are random numbers that have nothing to do with the inputs.", drawn, loss)
            return
    yield from _in_place(code)
    yield from _arguments(code)


def _orders(way: list[Val]) -> dict[int, Val]:
    out: dict[int, Val] = {}
    for one in way:
        if one.op == "item" and len(one.args) > 1:
            drawn = plain(one.args[1])
            drawn = plain(drawn.args[0]) if drawn.op == "item" else drawn
            if drawn.op == "call" and drawn.name in RANDOM and (drawn.name in ORDERS or drawn.loops):
                out[id(drawn)] = drawn
        if one.op == "call" and one.name in REORDERS and one.name != "sample":
            out[id(one)] = one
    return out


def _until_network(value: Val) -> list[Val]:
    """The way of an output back to the network: `output[rows]`."""
    way = lineage(value)
    return way[: next((i for i, v in enumerate(way) if v.op == "net"), len(way))]


def _odd(a: dict[int, Val], b: dict[int, Val]) -> Val | None:
    """What puts one in another order than the other. Rows that are picked by an index count only where both are picked by one."""
    odd = [v for k, v in {**a, **b}.items() if (k in a) != (k in b) and (v.name in REORDERS or (a and b))]
    return odd[0] if odd else None


def _related(mine: list[Val], theirs: list[Val]) -> bool:
    """Whether both are rows of the same data, none made by a network."""
    if any(v.op == "net" for way in (mine, theirs) for v in way):
        return False
    splits = [{id(v.node) for v in way if v.op == "split"} for way in (mine, theirs)]
    return bool({id(v) for v in mine} & {id(v) for v in theirs}) or bool(splits[0] & splits[1])


def _in_place(code: Code) -> Iterator[Finding]:
    """`shuffle(y)` on one of the two, before they are put together."""
    story = code.story
    for call in story.named("shuffle"):
        thing = (
            call.args[-1] if call.origin.startswith(".") and len(call.args) > 1 else call.args[0] if call.args else None
        )
        by_method = call.origin.startswith(".") and len(call.args) < 2
        if thing is None or by_method or len(story.named("shuffle")) > 1:
            continue
        for loss, given, target in pairs_of(story):
            hit = [any(v is thing for v in lineage(w)) for w in (given, target)]
            if hit[0] != hit[1]:
                yield code.seen(ID, "One of inputs and targets is shuffled in place, the other is not.", call, loss)
                return


def _arguments(code: Code) -> Iterator[Finding]:
    """Two indices of one network (a user and an item), one of them put in another order."""
    for net in code.story.applications:
        ways = [lineage(a) for a in net.args[1:] if a.op != "const"]
        if len(ways) < 2 or not code.story.in_training(net):
            continue
        orders = [_orders(w) for w in ways]
        for place, order in enumerate(orders):
            odd = [
                v
                for k, v in order.items()
                if v.name == "permutation" and not any(k in o for i, o in enumerate(orders) if i != place)
            ]
            shared = any(set(o) & set(order) for i, o in enumerate(orders) if i != place)
            if odd and shared:
                yield code.seen(ID, "One of the network's inputs is put in another order than the others.", odd[0], net)
                return
