"""Which functions of a program can come to an event of training at all; the walk enters no others.

A repository's drawing and file handling is most of its code and none of its training loop. A function counts as soon
as it names a method that may be an event, or a function that counts: too many by that, never too few.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from wheeltapper.program.program import Func, Program

CLIPS = {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_"}
EVENTS = CLIPS | {
    "clip_gradients", "backward", "manual_backward", "unscale_", "zero_grad", "set_epoch", "eval", "train", "load_state_dict",
    "load_checkpoint", "restore", "save", "step", "step_update", "update", "update_parameters", "nan_to_num", "nan_to_num_",
}  # fmt: skip
NETWORK_CALL = re.compile(r"model|net", re.I)


def eventful(program: Program, makers: set[Func | None]) -> set[str]:
    """Scopes of functions that hold an event or name one that does. `makers` make a part of the training."""
    named = _aliases(program)
    users: dict[str, set[str]] = defaultdict(set)  # name -> scopes that mention it
    for scope, names in program.mentions.items():
        for name in names:
            users[name].add(scope)
    found = {f.scope for f in makers if f is not None} | {s for name in EVENTS for s in users.get(name, ())}
    found |= _of_calls(program)
    queue = list(found)
    while queue:
        func = program.scopes[queue.pop()]
        outer = program.func_of[func.node]  # what is defined inside runs where its maker hands it
        names = {func.name, *named.get(func.name, ())} | ({func.owner} if func.owner is not None else set())
        over = {s for name in names for s in users.get(name, ())} | ({outer.scope} if outer is not None else set())
        fresh = over - found
        found |= fresh
        queue += fresh
    return found


def _of_calls(program: Program) -> set[str]:
    """Functions that loop over calls of a network (a validation without eval() has no event), or call through a table."""
    out: set[str] = set()
    loops = {f.scope for n in program.live_by_type.get(ast.For, []) if (f := program.func_of[n]) is not None}
    for name, calls in program.calls.items():
        network = bool(NETWORK_CALL.search(name))
        for call in calls:
            func = program.func_of[call]
            if func is not None and ((network and func.scope in loops) or isinstance(call.func, ast.Subscript)):
                out.add(func.scope)
    return out


def _aliases(program: Program) -> dict[str, set[str]]:
    """Other names that functions are kept under: `set_defaults(func=train)`, `self.step_fn = train_step`."""
    out: dict[str, set[str]] = defaultdict(set)
    for rest, values in program.writes.items():
        for value in values:
            name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
            if name in program.functions:
                out[name].add(rest[-1])
    return out
