"""Every process shuffles the sharded data with its own seed.

What it sees
------------
A distributed sampler (or FFCV loader) whose seed contains the rank; or a permutation drawn with such a seed and then cut
by hand, `order[rank::world_size]`.

Why it matters
--------------
A sampler cuts one permutation into shards. With different permutations the shards overlap: with 8 processes only
1 − (7/8)^8 = 65.6 % of the data is seen in an epoch, and some of it up to 8 times.

How it decides
--------------
The seed given to `DistributedSampler(...)` with shuffling on, or to an FFCV `Loader(..., distributed=...)` of random
order, mentions the rank, directly or through the variable or argument it comes from. By hand: a slice that begins at the rank and
goes in steps, of a `randperm` whose generator was seeded so in the same function. Seeding torch or numpy per rank is right
and is not reported.

When it is wrong
----------------
If the data are already sharded before the sampler sees them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import mentions, nodes_of
from wheeltapper.program.program import argument, callee
from wheeltapper.program.reading import Code

ID = "per-rank-sampler-seed"
CAUSE = "per-rank-seed"
DECIDES = True
TOLD = (
    "The seed of the sharded data contains the rank: processes shuffle differently, so their shards overlap and an epoch "
    "misses part of the data (1 − (1 − 1/n)^n is seen: 65.6 % with 8 processes)."
)
RANK = re.compile(r"(^|_)rank$|get_rank|local_rank|process_index", re.I)


def check(code: Code) -> Iterator[Finding]:
    yield from _by_hand(code)
    for part in code.made("sampler", "loader"):
        if part.made_by == "DataLoader":
            continue
        seed = argument(part.call, "seed", 4 if part.kind == "sampler" else None)
        if seed is None or not mentions(code.program, seed, RANK):
            continue
        if part.kind == "sampler":
            shuffle = argument(part.call, "shuffle", 3)
            if shuffle is not None and code.values.value(shuffle) is False:
                continue
        elif not _sharded(code, part.call):
            continue
        yield code.finding(ID, TOLD, seed, part.call)


def _sharded(code: Code, call: ast.Call) -> bool:
    distributed = argument(call, "distributed")
    order = argument(call, "order")
    sequential = order is not None and "SEQUENTIAL" in ast.unparse(order) and "RANDOM" not in ast.unparse(order)
    return distributed is not None and code.values.value(distributed) is not False and not sequential


def _by_hand(code: Code) -> Iterator[Finding]:
    for cut in nodes_of(code.program, ast.Subscript):
        assert isinstance(cut, ast.Subscript)
        part = cut.slice
        if not isinstance(part, ast.Slice) or part.lower is None or part.step is None:
            continue
        if not mentions(code.program, part.lower, RANK):
            continue
        drawn = _made(code, cut.value, "randperm", "permutation")
        generator = argument(drawn, "generator") if drawn is not None else None
        if drawn is not None and callee(drawn) == "permutation" and isinstance(drawn.func, ast.Attribute):
            generator = drawn.func.value
        seeded = _made(code, generator, "manual_seed", "default_rng", "RandomState") if generator is not None else None
        if seeded is not None and seeded.args and mentions(code.program, seeded.args[0], RANK):
            yield code.finding(ID, TOLD, seeded.args[0], cut)
            return


def _made(code: Code, node: ast.expr, *names: str) -> ast.Call | None:
    """The call of one of these names that an expression is, or that its name was given once."""
    if isinstance(node, ast.Call):
        return node if callee(node) in names else None
    rest = code.program.rest_of(node)
    written = code.program.writes.get(rest, []) if rest is not None and rest[0] == "v" else []
    only = written[0] if len(written) == 1 else None
    return only if isinstance(only, ast.Call) and callee(only) in names else None
