"""Where rows come from: the way of a value back to the data, and whether two values are rows of the same data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from wheeltapper.program.play.story import RANDOM, Story
from wheeltapper.program.play.value import Val, made_of, number, plain

SCALES = {
    "transform",
    "fit_transform",
    "normalize",
    "Normalize",
    "standardize",
    "scale",
    "minmax_scale",
    "zscore",
    "inverse_transform",
}
STATISTICS = {
    "mean",
    "std",
    "min",
    "max",
    "amin",
    "amax",
    "median",
    "var",
    "quantile",
    "percentile",
    "std_mean",
    "nanmean",
}
LOOPERS = {"enumerate", "tqdm", "iter", "islice", "cycle", "progress_bar", "track", "zip"}
GENERATORS = {"default_rng", "RandomState", "Generator", "Random"}
LONG = 1_000_000.0  # stands for a length that is not known
REORDERS = {"permutation", "shuffle", "flip", "roll", "flipud", "sample", "sort", "sorted", "argsort"}


def lineage(value: Val) -> list[Val]:
    """A value and what it was made of, along the data: not along indices, statistics or networks."""
    out: list[Val] = []
    for _ in range(60):
        if any(v is value for v in out):
            break
        out.append(value)
        step = _before(value)
        if step is None:
            break
        value = step
    return out


def _before(value: Val) -> Val | None:
    match value.op:
        case "batch" | "item" | "elem" | "split" | "attr" | "unary" | "comp" | "gen" if value.args:
            return value.args[0]
        case "phi":
            return value.args[-1]
        case "bin":
            return value.args[1] if number(value.args[0]) is not None else value.args[0]
        case "list" | "tuple" if value.items:
            return value.items[0]
        case "call" if value.args and value.name not in ("load", "read_csv", "load_dataset"):
            if value.name in REORDERS | {"choice"} and len(value.args) > 1 and value.args[0].name in GENERATORS:
                return value.args[1]
            if value.name == "where" and len(value.args) > 2:
                return value.args[1]
            scaled = value.name in SCALES and len(value.args) > 1 and value.args[0].op in ("call", "obj", "attr")
            return value.args[1] if scaled else value.args[0] if value.args[0].op not in ("lib", "const") else None
    return None


def key(value: Val | None, depth: int = 0) -> Any:
    """What a value is, by how it is made: equal keys mean equal data."""
    if value is None or depth > 14:
        return id(value)
    if value.op == "const":
        unset = value.data is None and value.node is not None  # an option that only the command line knows
        return ("const", id(value.node)) if unset else ("const", value.data)
    if value.op == "obj":
        given = value.fields.get("@args")
        if _draws(value):
            return (value.op, id(value))
        return (
            "obj",
            value.name,
            *(
                key(a, depth + 1)
                for a in (given.items if given is not None and given.items else ())
                if not isinstance(a.data, bool) and a.name != "Compose"
            ),
            _kw(value, depth),
        )
    if value.op in ("param", "free", "index", "func", "class") or _is_grown(value):
        return (value.op, id(value))
    if value.op == "lib":
        return ("lib", value.origin)
    if value.op == "gen":
        if value.name == "map":
            return ("gen", *(key(a, depth + 1) for a in value.args))
        told = [v for k, v in value.fields.items() if k[:1] == "@" and k[1:].isdecimal()]
        parts = [v for v in told if is_part(v)]
        return ("gen", value.name, *(key(v, depth + 1) for v in told)) if parts else (value.op, id(value))
    parts = [*value.args, *(value.items or []), *(value.fields.values() if value.op == "dict" else ())]
    if value.op == "call" and (value.name in RANDOM or _is_made_up(value)):
        return (value.op, id(value))
    return (
        value.op,
        value.name,
        value.data if isinstance(value.data, str | int | float) else None,
        *(key(a, depth + 1) for a in parts),
        _kw(value, depth),
    )


def _is_grown(value: Val) -> bool:
    """A list that is not as it was written: what a loop put into it, and how often, its parts do not tell."""
    written = value.node.elts if isinstance(value.node, ast.List | ast.Tuple) else None
    return value.op == "list" and (not value.items or (written is not None and len(written) != len(value.items)))


def _draws(value: Val) -> bool:
    """An object of the program that draws random numbers while it is made: the next one like it holds others."""
    return bool(value.fields.get("@draws"))


def _is_made_up(value: Val) -> bool:
    """A call of something unseen that is given numbers only (`make_data(1000)`): it may draw, and then give others every time."""
    told = [*value.args, *value.kwargs.values()]
    unseen = value.origin.split(".")[0] not in (
        "torch",
        "numpy",
        "pandas",
        "torchvision",
        "keras",
        "tensorflow",
        "sklearn",
    )
    return unseen and not value.origin.startswith(".") and bool(value.name) and all(number(a) is not None for a in told)


def _kw(value: Val, depth: int) -> Any:
    return tuple(
        sorted(
            (k, str(key(v, depth + 1)))
            for k, v in value.kwargs.items()
            if k not in ("transform", "augment", "training", "download", "batch_size")
        )
    )


def dataset_of(over: Val | None) -> Val | None:
    """The dataset that a loop goes over: through loaders, counters and bars."""
    for _ in range(10):
        if over is None:
            return None
        if over.op == "call" and over.name in LOOPERS and over.args:
            over = over.args[0]
        elif over.op == "call" and over.name == "DataLoader":
            known = over.origin.startswith(("torch", "torch_geometric", "DataLoader")) or "dataset" in over.kwargs
            if not known:
                return over  # of another library: dgl's first argument is the graph, not the data
            over = over.arg("dataset", 0)
        elif over.op == "call" and over.name in ("range", "arange", "count"):
            return None
        else:
            return over
    return over


def sources_of(call: Val) -> list[Val]:
    """The data that a network is applied to: the dataset of the innermost loop over one, else the parts of arrays its inputs are."""
    other = False  # a loop over data lies around, but what is looked at comes from elsewhere
    inside = False  # of a loop over numbers, which pick their rows from something else
    for turn in reversed(call.loops):
        found = dataset_of(turn.over)
        known = found is not None and found.op not in ("list", "tuple", "const")
        if found is not None and known and (not inside or _gives(turn.over, found, call)):
            return [found]
        other = other or known
        inside = inside or turn.over is not None
    parts = [s for a in call.args[1:2] if (s := part_of(a)) is not None]
    return parts or ([Val("free", args=call.args[1:2], node=call.node)] if other else [])


def _gives(over: Val | None, dataset: Val, call: Val) -> bool:
    """Whether what a network is applied to is an element of what an outer loop goes over."""
    marks = {id(dataset), id(over), id(dataset.fields.get("@elem")), *(id(a) for a in dataset.args if dataset.op == "gen")}
    given = list(made_of(*call.args[1:], *call.kwargs.values(), deep=False))
    return any(id(v) in marks or (v.op == "batch" and v.data is over) for v in given)


def part_of(value: Val) -> Val | None:
    """The part of a split that rows come from: `data[:n]`, a half of `train_test_split`, `data["train"]`."""
    for one in lineage(value):
        if one.op == "split" or (one.op == "item" and is_part(one)):
            return one
    return None


def is_part(value: Val) -> bool:
    """`base[a:b]` with bounds that do not change from row to row."""
    if value.op == "split":
        return True
    if value.op != "item" or len(value.args) < 2:
        return False
    index = value.args[1]
    if index.op == "const" and isinstance(index.data, str):
        return index.data.lower() in ("train", "test", "val", "valid", "validation", "dev", "eval")
    return (
        index.op == "slice"
        and value.args[0].op not in ("list", "const")
        and not any(
            v.op in ("index", "elem", "batch", "param") or v.name in RANDOM
            for a in index.args
            for v in made_of(a, stop=_is_length)
        )
    )


def _is_length(value: Val) -> bool:
    return value.op == "call" and value.name in ("len", "size")


def bounds(value: Val) -> tuple[float, float] | None:
    """The rows of `base[a:b]`, with a length that is not known taken for a million."""
    if value.op != "item" or value.args[1].op != "slice":
        return None
    first, end = (worth(a) if not (a.op == "const" and a.data is None) else None for a in value.args[1].args[:2])
    given = [not (a.op == "const" and a.data is None) for a in value.args[1].args[:2]]
    if (given[0] and first is None) or (given[1] and end is None):
        return None
    low = first if first is not None else 0.0
    high = end if end is not None else LONG
    return (low + LONG if low < 0 else low), (high + LONG if high < 0 else high)


def worth(value: Val, depth: int = 0) -> float | None:
    """A number, with every length taken for a million."""
    known = number(value)
    if known is not None or depth > 10:
        return known
    if value.op == "call" and value.name in ("len", "size", "numel"):
        return LONG
    if value.op == "item" and value.args[0].op == "attr" and value.args[0].name == "shape":
        return LONG
    if value.op == "attr" and value.name in ("size", "num_rows"):
        return LONG
    if value.op == "bin" or (value.op == "call" and value.name in ("int", "round", "min", "max", "floor", "ceil")):
        parts = [worth(a, depth + 1) for a in value.args]
        if all(p is not None for p in parts):
            return number(Val(value.op, value.name, tuple(Val("const", data=p) for p in parts)))
    return None


def evaluated_on(story: Story) -> Iterator[tuple[Val, Val]]:
    """Each evaluation with the data it is made on."""
    for call in story.evaluations:
        if call.order not in story.scored:
            continue
        for source in sources_of(call):
            yield call, source


def trained_on(story: Story) -> list[Val]:
    """The data that the losses are made of."""
    out: list[Val] = []
    for call, loss in story.backwards:
        loops = Val("net", args=(call,), loops=call.loops)
        found = sources_of(loops)
        if not found:
            found = [
                s
                for v in made_of(loss)
                if v.op == "net" and v.order >= 0
                for a in v.args[1:2]
                if (s := part_of(a)) is not None
            ]
        out += found
    return list({id(v): v for v in out}.values())


def pairs_of(story: Story) -> Iterator[tuple[Val, Val, Val]]:
    """(loss, input of the network, target) for losses that compare an output with a target."""
    for call in story.named("fit"):
        if len(call.args) > 2:
            yield call, call.args[1], call.args[2]
    for loss in story.loss_calls:
        if len(loss.args) < 2:
            continue
        nets = [v for v in made_of(loss.args[0], deep=False) if v.op == "net"]
        for net in nets[:1]:
            for given in net.args[1:]:
                yield loss, given, loss.args[1]


def same(a: Val, b: Val) -> bool:
    return plain(a) is plain(b)
