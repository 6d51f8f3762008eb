"""The same names stand in two orders.

What it sees
------------
A list of classes in the program and one in a configuration file that hold the same names in another order.

Why it matters
--------------
The numbers of the classes mean one thing where labels are written, and another where they are read.

How it decides
--------------
A list written out in a script and the names of a data file (a list, or numbered from 0), with the same members, three
or more, and different order.

When it is wrong
----------------
If the order is changed on purpose and mapped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding, Place
from wheeltapper.program.reading import Code
from wheeltapper.settings.tree import ConfigTree, Leaf

ID = "names-in-another-order"
CAUSE: str | None = "labels-broken"
DECIDES = True

KEYS = {"names", "classes", "labels", "class_names", "categories"}


def check(code: Code) -> Iterator[Finding]:
    listed = [n for s in code.program.scripts for n in ast.walk(s.tree) if isinstance(n, ast.List | ast.Tuple) and len(n.elts) >= 3]
    for tree in code.configs:
        leaves = _ordered(tree)
        names = [leaf.value for leaf in leaves]
        if len(names) < 3 or len(set(names)) != len(names):
            continue
        for node in listed:
            mine = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            if len(mine) == len(names) and set(mine) == set(names) and mine != names:
                first = next(leaf for leaf, other in zip(leaves, mine, strict=True) if leaf.value != other)
                yield code.finding(ID, "The same classes stand in another order here and in the program.", Place(first.file, first.line, first.column), node)
                return


def _ordered(tree: ConfigTree) -> list[Leaf]:
    return [leaf for leaf in tree.leaves if len(leaf.path) == 2 and leaf.path[0] in KEYS and isinstance(leaf.value, str)]
