"""A section or key of the configuration file is read by nothing.

What it sees
------------
A training key of the config file, or a whole section of it, that the program which loads the file never reads, or reads
only to show.

Why it matters
--------------
Plain loaders accept any key. A schedule written under a name that the code does not look at has no effect, and the
file goes on saying that it has.

How it decides
--------------
The loaded configuration is followed through the program. A key counts as read where any expression reads an attribute or
key of that name anywhere. If the configuration, or the section, is handed to code outside the program as a whole,
nothing is said about what is in it. At least half of the file's top-level keys must be read, else the file is not this
program's.

When it is wrong
----------------
If another program reads the same file, or keys are read under names built at run time.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding, Place
from wheeltapper.program import vocabulary as words
from wheeltapper.program.reading import Code
from wheeltapper.settings.tree import ConfigTree, Leaf

ID = "config-key-never-read"
CAUSE = "option-not-wired"
DECIDES = False
FOR_THE_LOADER = {"hydra", "defaults", "_target_", "_base_", "version", "name", "notes", "description", "tags", "wandb"}


def check(code: Code) -> Iterator[Finding]:
    tree = code.config
    if tree is None:
        return
    roots = code.config_roots
    if not roots or code.flow.trace(list(roots.starts), list(roots.rests)).acts:
        return
    tops = {str(leaf.path[0]): leaf for leaf in reversed(tree.leaves) if leaf.path}
    read = {top for top in tops if _is_read(code, top)}
    if len(read) * 2 < len(tops) or len(read) < 2:
        return
    for top, first in reversed(tops.items()):
        if top in FOR_THE_LOADER or top.startswith("_"):
            continue
        if top not in read:
            yield from _section(code, tree, top, first)
        elif not code.flow.box_trace(("f", top)).acts:
            yield from _keys(code, tree, top)


def _section(code: Code, tree: ConfigTree, top: str, first: Leaf) -> Iterator[Finding]:
    inside = [leaf for leaf in tree.leaves if str(leaf.path[0]) == top]
    knobs = [leaf for leaf in inside if words.KNOB.search(str(leaf.path[-1])) or words.KNOB.search(top)]
    if not knobs:
        return
    what = f"The section {top}" if len(first.path) > 1 else f"The key {top} = {first.value}"
    line = first.line - (1 if len(first.path) > 1 else 0)
    yield code.finding(
        ID, f"{what} is read by nothing in {code.program.entry.name}.", Place(tree.file, line),
        *(Place(leaf.file, leaf.line, leaf.column) for leaf in knobs[:3]), severity="ill",
    )  # fmt: skip


def _keys(code: Code, tree: ConfigTree, top: str) -> Iterator[Finding]:
    for leaf in tree.leaves:
        if str(leaf.path[0]) != top or len(leaf.path) != 2:
            continue
        key = str(leaf.path[-1])
        if not words.KNOB.search(key) or leaf.value in (None, False):
            continue
        trace = code.flow.field_trace(key)
        if not trace.acts and not trace.named:
            how = "shown and used by nothing" if trace.shows or _is_read(code, key) else "read by nothing"
            yield code.finding(
                ID, f"The key {leaf.dotted} = {leaf.value} is {how} in {code.program.entry.name}.",
                Place(leaf.file, leaf.line, leaf.column), severity="ill",
            )  # fmt: skip


def _is_read(code: Code, name: str) -> bool:
    return bool(code.program.reads.get(("f", name)))
