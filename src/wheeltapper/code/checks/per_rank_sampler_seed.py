"""Every process shuffles the sharded data with its own seed.

What it sees
------------
A distributed sampler (or FFCV loader) whose seed contains the rank.

Why it matters
--------------
A sampler cuts one permutation into shards. With different permutations the shards overlap: with 8 processes only
1 − (7/8)^8 = 65.6 % of the data is seen in an epoch, and some of it up to 8 times.

How it decides
--------------
The seed given to `DistributedSampler(...)` with shuffling on, or to an FFCV `Loader(..., distributed=...)` of random
order, mentions the rank, directly or through the variable or argument it comes from. Seeding torch or numpy per rank
is right and is not reported.

When it is wrong
----------------
If the data are already sharded before the sampler sees them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.code.conditions import mentions
from wheeltapper.code.program import argument
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "per-rank-sampler-seed"
RANK = re.compile(r"(^|_)rank$|get_rank|local_rank|process_index", re.I)


def check(code: Code) -> Iterator[Finding]:
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
        yield code.finding(
            ID,
            "The seed of the sharded data contains the rank: processes shuffle differently, so their shards overlap and an epoch "
            "misses part of the data (1 − (1 − 1/n)^n is seen: 65.6 % with 8 processes).",
            seed,
            part.call,
        )


def _sharded(code: Code, call: ast.Call) -> bool:
    distributed = argument(call, "distributed")
    order = argument(call, "order")
    sequential = order is not None and "SEQUENTIAL" in ast.unparse(order) and "RANDOM" not in ast.unparse(order)
    return distributed is not None and code.values.value(distributed) is not False and not sequential
