"""Mean and spread are computed and nothing is normalised with them.

What it sees
------------
A mean and a standard deviation of the training data that no statement reads.

Why it matters
--------------
The network gets the raw numbers: large or unequal scales make it slow, or stuck.

How it decides
--------------
Both names of `mean, std = x.mean(), x.std()` (or one of two assignments) are set from statistics of data and never
read.

When it is wrong
----------------
If they are computed for a report only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code
from wheeltapper.program.unread import unread_names

ID = "statistics-unused"
CAUSE: str | None = "input-not-normalised"
DECIDES = True


MEAN = re.compile(r"^(x_)?(mean|mu|mean_?x?|m)$|_mean$|^mean_", re.I)
SPREAD = re.compile(r"^(x_)?(std|sd|sigma|std_?x?|s|scale)$|_std$|^std_", re.I)


def check(code: Code) -> Iterator[Finding]:
    found = [
        (n, node) for n, node in unread_names(code, pairs=True) if re.search(r"\.(mean|std)\(", ast.unparse(node.value))
    ]
    means = [node for n, node in found if MEAN.search(n)]
    spreads = [node for n, node in found if SPREAD.search(n)]
    if means and spreads and code.program.func_of.get(means[0]) is code.program.func_of.get(spreads[0]):
        yield code.finding(
            ID, "Mean and spread of the data are computed and never used: the inputs stay as they are.", spreads[0]
        )
