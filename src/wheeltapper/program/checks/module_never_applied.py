"""A part of the network is made and never applied.

What it sees
------------
A layer or a network that the constructor makes and no method ever calls; a second network that is kept up to date
(copied, averaged) and that nothing ever asks; a field of the data, read together with its neighbour, that nothing reads.

Why it matters
--------------
What it was made for is left out: the predictor that keeps a self-supervised pair from collapsing, the norm, the
target network whose slow answers keep the bootstrap stable.

How it decides
--------------
For a part: the name of the field is read nowhere in the program, not as text either, and the value is a network with
weights. For a second network: calls inside a loop write to it from another one, and it is never applied, saved or
given away. For a field of the data: it was set in one assignment with another that is read, and nothing reads it.

When it is wrong
----------------
If the part is kept so that old checkpoints load.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.target_network_never_updated import writes_to
from wheeltapper.program.play.derive import PARAMETER_LAYERS, is_frozen
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, choices, made_of
from wheeltapper.program.reading import Code

ID = "module-never-applied"
CAUSE: str | None = None
DECIDES = True
TAKES_OVER = {"load_state_dict", "copy_", "lerp_", "mul_", "add_", "update", "soft_update", "update_parameters", "polyak_update", "_foreach_lerp_"}
WEIGHTED = PARAMETER_LAYERS | {"LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell", "GRUCell", "BatchNorm1d", "BatchNorm2d", "LayerNorm"}

AVERAGE = re.compile(r"(?i)ema|avg|averag|shadow|swa")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not story.complete or not story.losses or code.by_framework:
        return
    read = _names_read(code)
    for holder, name, part in _parts(code):
        if name not in read and not name.startswith("_"):
            text = f"`{name}` is made and never applied."
            places = [n for n in (_forward(code, holder),) if n is not None]
            yield code.finding(ID, text, *([part.node] if part.node is not None else []), *places)
            return
    for network, write in _kept_up(story) if not story.uncalled else ():
        named = " ".join(ast.unparse(v.node) for v in (write, network, *write.args) if isinstance(v.node, ast.expr | ast.stmt))
        if AVERAGE.search(named) or AVERAGE.search(" ".join(code.program.entry.lines[max(0, getattr(network.node, "lineno", 1) - 1) :][:1])):
            continue  # an average is kept for after the training
        text = "This network is kept up to date and nothing ever asks it."
        bootstraps = [loss for _, loss in story.backwards]
        yield code.seen(ID, text, write, network, *_where_its_source_answers(story, network), *bootstraps[:1])
        return
    for node, name, beside in _fields_beside(code, read):
        text = f"`{name}` is set together with `{beside}`, and nothing ever reads it."
        uses = [n for n in code.program.live_nodes() if isinstance(n, ast.Attribute) and n.attr == beside]
        yield code.finding(ID, text, node, *[n for n in uses if isinstance(n.ctx, ast.Load)][:2], grade="suspected", severity="watch")
        return


def _names_read(code: Code) -> set[str]:
    """Every field that is read, and every text that could be the name of one."""
    out: set[str] = set()
    for script in code.program.scripts:
        for node in ast.walk(script.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                out.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                out.add(node.value)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1:
                out.update(str(n.value) for n in ast.walk(node.args[1]) if isinstance(n, ast.Constant))
    return out


def _parts(code: Code) -> Iterator[tuple[Val, str, Val]]:
    story = code.story
    seen: set[int] = set()
    for call in story.applications:
        for holder in story.parts_of(call.args[0]):
            if id(holder) in seen or holder.op != "obj" or _walks(code, holder):
                continue
            seen.add(id(holder))
            for name, part in holder.fields.items():
                if not name.startswith("@") and part.op in ("obj", "call") and story.is_network(part) and _has_weights(story, part):
                    yield holder, name, part


def _has_weights(story: Story, part: Val) -> bool:
    return any(p.op == "call" and p.name in WEIGHTED for p in story.parts_of(part)) and "@copied" not in part.fields


def _walks(code: Code, holder: Val) -> bool:
    """A class that goes through its children without naming them, or that is built on one of the program."""
    cls = code.program.classes.get(holder.name)
    words = {n.attr for n in ast.walk(cls.node) if isinstance(n, ast.Attribute)} if cls is not None else set()
    if cls is not None and any(_looks_up(n) for n in ast.walk(cls.node)):
        return True
    return cls is None or bool(words & {"children", "modules", "named_children", "_modules", "named_modules", "__dict__"})


def _looks_up(node: ast.AST) -> bool:
    """`getattr(self, f"norm{i}")`: a name that is put together."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr" and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)


def _forward(code: Code, holder: Val) -> ast.AST | None:
    method = code.program.method(holder.name, "forward")
    return method.node if method is not None else None


def _kept_up(story: Story) -> Iterator[tuple[Val, Val]]:
    asked = {id(c.args[0]) for c in story.calls if c.op == "net"}
    for network in _copies(story):
        if any(id(p) in asked for p in story.parts_of(network)) or (story.is_trained(network) and not is_frozen(story, network)):
            continue
        uses = [c for c in story.calls if any(a is network for a in (*c.args, *c.kwargs.values()))]
        given = [c for c in uses if c.name in ("state_dict", "save", "prepare", "DDP")]
        if any(c.name == "state_dict" and not _goes_to_itself(story, c, network) for c in given):
            continue
        writes = [c for c in story.calls if c.name in TAKES_OVER and writes_to(c, network, story)]
        if writes:
            yield network, writes[0]


def _goes_to_itself(story: Story, told: Val, network: Val) -> bool:
    loads = [c for c in story.named("load_state_dict") if len(c.args) > 1 and any(v is told for v in made_of(c.args[1]))]
    return bool(loads) and all(c.args[0] is network for c in loads)


def _copies(story: Story) -> list[Val]:
    """Networks that were made as copies, or loaded with the weights of another one."""
    found = [v for c in story.named("deepcopy") for v in (_copy_of(story, c),) if v is not None]
    found += [
        c.args[0]
        for c in story.named("load_state_dict")
        if len(c.args) > 1 and c.args[1].op == "call" and c.args[1].name == "state_dict" and c.args[1].args[0] is not c.args[0]
    ]
    return [v for v in {id(v): v for v in found}.values() if v.op in ("obj", "call") and story.is_network(v)]


def _copy_of(story: Story, call: Val) -> Val | None:
    """The copy that a deepcopy made: the network whose node it is."""
    for one in story.calls:
        for arg in one.args:
            for value in choices(arg):
                for inner in (value, *made_of(value)):
                    if inner.fields.get("@copy") is not None and inner.node is call.node:
                        return inner
    return None


def _where_its_source_answers(story: Story, network: Val) -> list[Val]:
    loads = [c for c in story.named("load_state_dict") if c.args[0] is network and len(c.args) > 1 and c.args[1].args]
    source = network.fields.get("@copy") or next((c.args[1].args[0] for c in loads), None)
    quiet = [c for c in story.calls if c.op == "net" and c.args[0] is source and story.in_training(c)]
    return sorted(quiet, key=lambda c: not c.no_grad)[:3]


def _fields_beside(code: Code, read: set[str]) -> Iterator[tuple[ast.Assign, str, str]]:
    for node in code.program.live_by_type.get(ast.Assign, []):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
            continue
        names = [e.attr for e in target.elts if isinstance(e, ast.Attribute)]
        ours = bool(code.program.targets(node.value)[0])
        unread = [n for n in names if n not in read]
        if ours and len(names) == len(target.elts) and len(unread) == 1 and len(names) > 1:
            yield node, unread[0], next(n for n in names if n in read)


