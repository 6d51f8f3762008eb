"""Something is computed for the training and never used.

What it sees
------------
A value that a function of the training computes, gives a name, and never reads again: a mask that no call gets, the
second half of a batch, the teacher's answer, the weights that were to be put back, the loop's position in the data.

Why it matters
--------------
What was computed was meant to go somewhere, and something else stands in its place: the program runs, and trains
another thing than it says.

How it decides
--------------
The name is set by arithmetic or by a call without effects, in a function that the training enters, and nothing reads
it afterwards. Of several values that one call returns, only those count whose neighbours are marked as unused with
an underscore, halves of one tensor, and pairs of which neither is read. A loop `range(first, end, step)` whose
position is not read goes over the same data again and again.

When it is wrong
----------------
If the value was left behind by an edit and is not missed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.dead import Dead, computes, dead_values
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "value-never-used"
CAUSE: str | None = None
DECIDES = True

HALVES = {"chunk", "split", "tensor_split", "unbind", "hsplit", "vsplit", "array_split"}
SHOWN = {  # numbers for people and for the machine, not for the training
    "time", "perf_counter", "now", "item", "strftime", "len", "size", "format", "join", "numel", "get_rank", "device_count", "monotonic",
    "getenv", "min", "max", "int", "float", "arange", "linspace", "prod", "exists", "get_world_size", "cuda", "is_available", "str", "round", "environ", "current_device", "type",
}  # fmt: skip


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    for loop in _idle_ranges(code):
        text = f"`{ast.unparse(loop.target)}` goes through the data and nothing reads it: every turn takes the same part."
        yield code.finding(ID, text, loop, *loop.body[:1])
        return
    dead = list(dead_values(code)) if code.story.losses else []
    for one in dead:
        if _counts(code, one, dead) and not _comes_after(code, one):
            text = f"`{one.name}` is computed and never used."
            others = [d.node for d in dead if d.scope is one.scope and d is not one]
            yield code.finding(
                ID, text, one.node, *one.beside[:4], *others[:2], grade="suspected", severity="watch"
            )
            return


def _counts(code: Code, one: Dead, dead: list[Dead]) -> bool:
    calls = {callee(n) for n in ast.walk(one.value) if isinstance(n, ast.Call)}
    if calls & SHOWN or any(isinstance(n, ast.JoinedStr | ast.Await | ast.Yield) for n in ast.walk(one.value)):
        return False
    if one.whole:
        return computes(code, one.value) and not _are_settings(one.value)
    if not isinstance(one.value, ast.Call):
        return False
    if callee(one.value) in HALVES and "random" not in ast.unparse(one.value.func):
        return True
    applied = any(c.op == "net" and c.node is one.value for c in code.story.calls)
    ours = (applied or bool(code.program.targets(one.value)[0])) and callee(one.value) not in ("step", "reset")
    return ours and (one.marked or _whole_pair(one, dead))


def _are_settings(value: ast.expr) -> bool:
    """Arithmetic of numbers and of settings: `cfg["steps"] // cfg["batch"]`."""
    if any(isinstance(n, ast.Call | ast.Compare | ast.ListComp | ast.DictComp) for n in ast.walk(value)):
        return False
    places = [n.slice for n in ast.walk(value) if isinstance(n, ast.Subscript)]
    texts = bool(places) and all(isinstance(p, ast.Constant) and isinstance(p.value, str) for p in places)
    return texts or any(isinstance(n, ast.FloorDiv | ast.Mod) for n in ast.walk(value))


def _comes_after(code: Code, one: Dead) -> bool:
    """Behind the training, in straight code: a demonstration of what was learned."""
    if any(isinstance(n, ast.For | ast.While) and any(m is one.node for m in ast.walk(n)) for n in ast.walk(one.scope)):
        return False
    inner = {id(n) for n in ast.walk(one.scope)}
    trained = [t.node for t in code.story.training_loops if id(t.node) in inner]
    calls = [n for call, _ in code.story.backwards for n in (*call.sites, call.node) if n is not None and id(n) in inner]
    ends = [n.end_lineno or 0 for n in (*trained, *calls) if hasattr(n, "end_lineno")]
    return bool(ends) and one.node.lineno > max(ends)


def _whole_pair(one: Dead, dead: list[Dead]) -> bool:
    """`first, (x, y) = f()` of which neither x nor y is read."""
    unread = {d.name for d in dead if d.node is one.node}
    target = one.node.targets[0]
    for part in target.elts if isinstance(target, ast.Tuple) else ():
        names = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
        if isinstance(part, ast.Tuple) and one.name in names and names <= unread:
            return True
    return False


def _idle_ranges(code: Code) -> Iterator[ast.For]:
    entered = code.story.player.entered
    for node in code.program.live_by_type.get(ast.For, []):
        assert isinstance(node, ast.For)
        func = code.program.func_of.get(node)
        steps = isinstance(node.iter, ast.Call) and callee(node.iter) == "range" and len(node.iter.args) == 3
        if not steps or not isinstance(node.target, ast.Name) or (func is not None and func.scope not in entered):
            continue
        scope = func.node if func is not None else code.program.entry.tree
        read = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        stride = node.iter.args[2] if isinstance(node.iter, ast.Call) else None
        if node.target.id not in read and not isinstance(stride, ast.Constant | ast.UnaryOp):
            yield node
