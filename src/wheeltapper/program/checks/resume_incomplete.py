"""A checkpoint holds state that resuming does not restore.

What it sees
------------
A checkpoint saved with the state of an optimizer, scheduler, scaler or average, and a resume that restores part of
it and never reads the rest.

Why it matters
--------------
The resumed run starts with a fresh scheduler, loss scale or average: the learning rate jumps back, the first steps
overflow, the average forgets. It looks like a spike after the restart.

How it decides
--------------
The saved dictionary names its parts by key, each with a `state_dict()` (of an average also its weights). The loaded
checkpoint is read by key, and the optimizer's key is among them, or a step or epoch that then says where a loop goes on
(so this is a resume, not a load of weights). A saved key that is read nowhere is reported. If the checkpoint is handed on as a whole or read under names built at run time, nothing is said.

When it is wrong
----------------
If that part is rebuilt from the step number on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.objects import kind_of
from wheeltapper.program.program import Rest, callee, constant_text, dotted_name
from wheeltapper.program.reading import Code

ID = "resume-incomplete"
CAUSE = "resume-lost-optimizer"
DECIDES = False


def DECIDES_IF(finding: Finding, resumed: bool) -> bool:  # noqa: N802, ARG001
    """A resume that loses something matters to a run that was resumed."""
    return resumed


POSITIONS = ("epoch", "step", "iter", "iteration", "global_step", "current_iter", "iter_num", "start_epoch")
WEIGHTS = {"shadow", "weights", "shadow_params", "params", "averaged", "ema_params", "collected_params"}
RESTORED = ("optimizer", "scheduler", "scaler", "ema")


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    saved = saved_states(code)
    keys = [
        base
        for key in {*saved, *_beside(code, saved)}
        for r in code.program.reads.get(("f", key), [])
        if not isinstance(r, ast.Attribute) and (base := _holder(code, r)) is not None
    ]
    loads = []
    for call in code.program.calls.get("load", []):
        if code.program.origin(call.func) != "torch.load":
            continue
        trace = code.flow.trace([(call, "box")])
        if not trace.rests & set(keys):
            continue  # data, not this checkpoint
        if trace.acts:
            return
        loads.append(call)
    if not loads:
        return
    read = {key for key in saved if code.program.reads.get(("f", key))}
    if not any(saved[key][0] == "optimizer" for key in read) and not _goes_on(code, loads):
        return
    for key, (kind, node) in saved.items():
        if key not in read and not any(saved[other][0] == kind for other in read):
            yield code.finding(
                ID,
                f'The {kind} state is saved under "{key}" and never restored on resume.',
                node,
                loads[0],
                severity="watch" if kind == "scaler" else "ill",
            )


def _goes_on(code: Code, loads: list[ast.Call]) -> bool:
    """Whether a step or an epoch out of the checkpoint says where training goes on."""
    held = {rest for call in loads for rest in code.flow.trace([(call, "box")]).rests}
    for key in POSITIONS:
        for node in code.program.reads.get(("f", key), []):
            if isinstance(node, ast.Attribute) or _holder(code, node) not in held:
                continue
            if any("loop runs" in why for _, why in code.flow.trace([(node, "value")]).acts):
                return True
    return False


def _beside(code: Code, saved: dict[str, tuple[str, ast.AST]]) -> set[str]:
    """The other keys of the dictionaries that hold a saved state."""
    out: set[str] = set()
    for node in nodes_of(code.program, ast.Dict):
        assert isinstance(node, ast.Dict)
        keys = {text for k in node.keys if (text := constant_text(k)) is not None}
        if keys & set(saved):
            out |= keys
    return out


def _holder(code: Code, node: ast.expr) -> Rest | None:
    """Where the object a key is read from rests: `ckpt` of `ckpt["optimizer"]` and of `ckpt.get("optimizer")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return code.program.rest_of(node.func.value)
    return code.program.rest_of(node.value) if isinstance(node, ast.Subscript | ast.Attribute) else None


def saved_states(code: Code) -> dict[str, tuple[str, ast.AST]]:
    """Keys of saved dictionaries whose value is the state of a part: key -> (kind of part, place)."""
    out: dict[str, tuple[str, ast.AST]] = {}
    for node in nodes_of(code.program, ast.Dict, ast.Assign):
        pairs: list[tuple[str | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [(constant_text(k), v) for k, v in zip(node.keys, node.values, strict=True)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(constant_text(node.targets[0].slice), node.value)]
        for key, value in pairs:
            kind = _state_of(code, value)
            if key is not None and kind is not None:
                out.setdefault(key, (kind, value))
    return out


def _state_of(code: Code, value: ast.expr) -> str | None:
    if isinstance(value, ast.Attribute) and value.attr in WEIGHTS:
        return "ema" if kind_of(dotted_name(value.value).split(".")[-1], code.parts) == "ema" else None
    for inner in ast.walk(value):
        if isinstance(inner, ast.Call) and callee(inner) == "state_dict" and isinstance(inner.func, ast.Attribute):
            kind = kind_of(dotted_name(inner.func.value).split(".")[-1], code.parts)
            return kind if kind in RESTORED else None
    return None
