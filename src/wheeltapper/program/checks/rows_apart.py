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
from wheeltapper.program.play.value import Val, below, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "rows-apart"
CAUSE: str | None = "labels-shuffled"
DECIDES = True

MAX_CONTENT = 2000  # values looked at
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
    yield from _columns_back(code)
    yield from _masks(code)
    yield from _one_side_picked(code)
    yield from _other_ends(code)
    yield from _arguments(code)


def _orders(way: list[Val]) -> dict[int, Val]:
    """The draws that put a value's rows in their order; what is done to one record is no order of rows."""
    out: dict[int, Val] = {}
    record = max((i for i, v in enumerate(way) if _picks_record(v)), default=-1)
    for place, one in enumerate(way):
        if place < record and one.op == "call":
            continue
        if one.op == "item" and len(one.args) > 1:
            drawn = plain(one.args[1])
            drawn = plain(drawn.args[0]) if drawn.op == "item" else drawn
            if drawn.op == "call" and drawn.name in RANDOM and (drawn.name in ORDERS or drawn.loops):
                out[id(drawn)] = drawn
                if _whole(drawn, one.args[0]):
                    drawn.fields["@whole"] = one
        if one.op == "call" and one.name in REORDERS and one.name != "sample" and _by_rows(one):
            out[id(one)] = one
    return out


def _picks_record(value: Val) -> bool:
    """`self.x[i]` of a dataset, one element of what a loop goes over."""
    return value.op == "elem" or (value.op == "item" and len(value.args) > 1 and value.args[1].op == "index")


def _by_rows(value: Val) -> bool:
    """Whether a flip or a roll goes along the first axis; the other axes are pictures and sequences."""
    if value.name not in ("flip", "roll", "sort", "argsort"):
        return True
    axes = (
        value.kwargs.get("dims")
        or value.kwargs.get("axis")
        or value.kwargs.get("dim")
        or (value.args[-1] if len(value.args) > 1 else None)
    )
    told = {number(a) for a in (axes.items if axes is not None and axes.items else [axes])}
    return axes is None or 0 in told or (value.name == "roll" and len(value.args) == 2 and not value.kwargs)


def _whole(drawn: Val, base: Val) -> bool:
    """A permutation as long as what it picks from: `y[torch.randperm(len(y))]`."""
    size = drawn.args[-1] if drawn.args else None
    return drawn.name in ORDERS and size is not None and any(v is plain(base) for v in made_of(size, deep=False))


def _until_network(value: Val) -> list[Val]:
    """The way of an output back to the network: `output[rows]`."""
    way = lineage(value)
    return way[: next((i for i, v in enumerate(way) if v.op == "net"), len(way))]


def _odd(a: dict[int, Val], b: dict[int, Val]) -> Val | None:
    """What puts one in another order than the other. Rows that are picked by an index count only where both are picked by one."""
    odd = [
        v
        for k, v in {**a, **b}.items()
        if (k in a) != (k in b) and (v.name in REORDERS or (a and b) or "@whole" in v.fields)
    ]
    return odd[0] if odd else None


def _related(mine: list[Val], theirs: list[Val]) -> bool:
    """Whether both are rows of the same data, none made by a network."""
    if any(v.op == "net" for way in (mine, theirs) for v in way):
        return False
    splits = [{id(v.node) for v in way if v.op == "split"} for way in (mine, theirs)]
    if {id(v) for v in mine} & {id(v) for v in theirs} or splits[0] & splits[1]:
        return True
    loaders = [{id(v.data) for v in way if v.op == "batch"} for way in (mine, theirs)]
    if loaders[0] & loaders[1]:
        return True
    whole = [v for way in (mine, theirs) for v in _orders(way).values() if "@whole" in v.fields and not v.loops]
    parts = [_content(way[0]) for way in (mine, theirs)]
    data = [{id(v) for v in p if (v.op == "call" and v.order >= 0) or v.op == "elem"} for p in parts]
    held = [{id(v.args[1]) for v in p if v.op == "item" and len(v.args) > 1} for p in parts]
    drawn_for_both = any(all(id(w) in h for h in held) for w in whole)
    return (
        bool(whole) and not drawn_for_both and bool(data[0] & data[1])
    )  # put in an order of its own, of the same data


def _content(value: Val) -> list[Val]:
    """What the numbers of a value are made of; not what says which of them are picked."""
    out: dict[int, Val] = {}
    queue = [value]
    for one in queue:
        if id(one) not in out and len(out) < MAX_CONTENT:
            out[id(one)] = one
            queue += one.args[:1] if one.op == "item" else below(one, deep=False)
    return list(out.values())


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
            if hit[0] != hit[1] and not all(any(v is thing for v in made_of(w)) for w in (given, target)):
                yield code.seen(ID, "One of inputs and targets is shuffled in place, the other is not.", call, loss)
                return


def _columns_back(code: Code) -> Iterator[Finding]:
    """`labels = data["label"]; shuffle(labels); data.add_column("label", labels)`."""
    for call in code.story.named("shuffle"):
        thing = call.args[-1] if call.args else None
        if thing is None or not isinstance(thing.data, str):
            continue
        for put in code.story.named("add_column"):
            if put.order > call.order and any(v is thing for a in put.args[1:] for v in made_of(a)):
                yield code.seen(ID, f"The column {thing.data!r} is shuffled and put back beside the others.", call, put)
                return


def _masks(code: Code) -> Iterator[Finding]:
    """`loss(out[train], y[val])`: outputs and targets picked by two masks."""
    for loss in code.story.loss_calls:
        picked = [plain(a) for a in loss.args[:2]]
        if len(picked) < 2 or any(p.op != "item" or p.args[1].op not in ("attr", "item", "call") for p in picked):
            continue
        one, other = (p.args[1] for p in picked)
        if one.op == "attr" and other.op == "attr" and one.args[0] is other.args[0] and one.name != other.name:
            yield code.seen(ID, f"Outputs are picked by {one.name} and targets by {other.name}.", loss, picked[1])
            return


def _other_ends(code: Code) -> Iterator[Finding]:
    """`cat(inputs[-60:])` and `cat(targets[:60])` of two lists that grow together."""
    for loss, given, target in pairs_of(code.story):
        cuts = [
            [v for v in lineage(w) if v.op == "item" and v.args[1].op == "slice" and v.args[0].op == "list"]
            for w in (given, target)
        ]
        for a, b in zip(*cuts, strict=False):
            ends = [tuple(number(x) for x in v.args[1].args[:2]) for v in (a, b)]
            grown = {len(v.args[0].items or ()) for v in (a, b)}
            if a.args[0] is not b.args[0] and len(grown) == 1 and ends[0] != ends[1] and any(e is not None for e in (*ends[0], *ends[1])):
                yield code.seen(
                    ID, "Inputs and targets are cut from other ends of lists that grow together.", b, a, loss
                )
                return


def _one_side_picked(code: Code) -> Iterator[Finding]:
    """A dataset of `x[rows]` and the whole `y`: record i of one is not record i of the other."""
    for loss, given, target in pairs_of(code.story):
        ways = [lineage(given), lineage(target)]
        tails = [
            w[max(i for i, v in enumerate(w) if _picks_record(v)) + 1 :]
            for w in ways
            if any(_picks_record(v) for v in w)
        ]
        if len(tails) != 2 or tails[0][-1] is not tails[1][-1]:
            continue
        picks = [[v for v in t if v.op == "item" and len(v.args) > 1 and not isinstance(v.data, str)] for t in tails]
        for one, other in (picks, picks[::-1]):
            rows = [v for v in one if v.args[1].op in ("item", "call", "elem") and number(v.args[1]) is None]
            if rows and not other and len(one) == 1:
                text = "Only one of inputs and targets is cut down to the rows of this part: record by record they do not belong together."
                yield code.seen(ID, text, rows[0], loss)
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
