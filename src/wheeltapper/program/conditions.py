"""Reading the conditions events lie under: every n-th step, which branch, whether it can happen at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.program import vocabulary as words
from wheeltapper.program.loop import Event, Guard
from wheeltapper.program.program import Program, dotted_name
from wheeltapper.program.reading import Code

# Conditions that are plumbing: is the part there, is this process the first, is mixed precision on.
PLUMBING = re.compile(
    r"is not None|is None|__name__|rank|^self\.\w+$|^\w+$|^not \w+$|amp|fp16|scaler|mixed_precision|distributed|is_main|isinstance|hasattr"
)


def inner_guards(event: Event, loop: ast.AST) -> list[Guard]:
    """The conditions between a loop and an event inside it."""
    depth = event.loops.index(loop) + 1
    return [g for g in event.guards if g.depth >= depth]


def every(event: Event, loop: ast.AST) -> ast.expr | None:
    """The n of `if step % n == 0` around an event inside a loop; None if there is no such condition."""
    for guard in inner_guards(event, loop):
        for node in ast.walk(guard.node.test):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                return node.right
    return None


def conditional(event: Event, loop: ast.AST) -> bool:
    """Whether anything but plumbing decides if the event happens in each turn of the loop."""
    return any(not PLUMBING.search(ast.unparse(g.node.test)) for g in inner_guards(event, loop))


def together(a: Event, b: Event) -> bool:
    """Whether two events can happen in the same turn: no condition puts them in different branches."""
    taken = {g.node: g.taken for g in a.guards}
    return all(taken.get(g.node, g.taken) == g.taken for g in b.guards)


def reachable(code: Code, event: Event) -> bool:
    """False where the values given (or the defaults) rule the event out."""
    for guard in event.guards:
        truth = code.values.truth(guard.node.test)
        if truth is not None and truth != guard.taken and not is_main(guard.node.test):
            return False
    return True


def part_reachable(code: Code, call: ast.Call) -> bool:
    """Whether the making of a part can happen; True when the walk never came by."""
    events = [e for e in code.loop.of("make") if e.node is call]
    return not events or any(reachable(code, e) for e in events)


def accumulating(code: Code) -> Iterator[tuple[ast.AST, ast.expr, Event]]:
    """The batch loops in which the optimizer steps every so many micro-batches: the loop, the number, the first step."""
    for loop in code.loop.batch_loops:
        steps = [e for e in code.loop.inside(loop, "step", "scaler-step") if e.loops[-1] is loop]
        counts = [c for e in steps if (c := every(e, loop)) is not None and is_accumulation(code, c)]
        if steps and len(counts) == len(steps) and code.values.number(counts[0]) != 1:
            yield loop, counts[0], steps[0]


def is_accumulation(code: Code, count: ast.expr) -> bool:
    """Whether the n of `step % n` is the number of micro-batches per update."""
    name = dotted_name(count).split(".")[-1]
    if isinstance(count, ast.Subscript) and isinstance(count.slice, ast.Constant):
        name = str(count.slice.value)
    names = {name, *code.values.factors(count)}
    return any(words.ACCUMULATION.match(n) for n in names)


def mentions(program: Program, node: ast.expr, pattern: re.Pattern[str], depth: int = 0) -> bool:
    """Whether an expression, or what its names were assigned from, mentions a name."""
    for inner in ast.walk(node):
        name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else ""
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            name = inner.value
        if name and pattern.search(name):
            return True
        if depth < 4 and isinstance(inner, ast.Name | ast.Attribute):
            rest = program.rest_of(inner)
            if rest is not None and rest[0] == "v":
                for value in program.writes.get(rest, []):
                    if value is not node and mentions(program, value, pattern, depth + 1):
                        return True
    return False


def nodes_of(program: Program, *types: type[ast.AST]) -> Iterator[ast.AST]:
    for kind in types:
        yield from program.live_by_type.get(kind, [])


def is_main(test: ast.expr) -> bool:
    return "__name__" in ast.unparse(test)
