"""The optimizer is given a part of the network only.

What it sees
------------
An optimizer made from the parameters of submodules (`model.head.parameters()`), or from those whose name passes a test,
with nothing that hands over the rest.

Why it matters
--------------
The other parameters get gradients and never move. Training looks slow or stuck, and no error is raised.

How it decides
--------------
The first argument of the optimizer, followed to where it is written: every `.parameters()` in it is called on a member of
a network, or it is filtered by name. Suspected only.

When it is wrong
----------------
Fine-tuning of a head, adapters, a second optimizer for the rest: what is trained is then a matter of intent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import Part, is_known_optimizer
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "params-not-in-optimizer"
CAUSE = "params-not-in-optimizer"
DECIDES = True
OWN = re.compile(r"Optimizer|^(SGD|Adam\w*)$")
PRETRAINED = re.compile(r"from_pretrained|load_pretrained|get_peft_model|load_from_checkpoint|load_pretrain", re.I)
ON_PURPOSE = re.compile(
    r"pre_?-?train|fine_?-?tun|prob(e|ing)\b|transfer|init_from|freez|frozen|lora\b|adapter|backbone|distil|teacher|reservoir",
    re.I,
)
PART = re.compile(
    r"(^|_)(head|fc|classifier|out\w*|last\w*|final\w*|proj\w*|norm|gate|decoder|linear)\d*$", re.IGNORECASE
)


def check(code: Code) -> Iterator[Finding]:
    if code.program.calls.get("add_param_group") or _others(code) or fine_tunes(code):
        return
    made = [p for p in code.made("optimizer") if is_known_optimizer(code.program, p) and p.call.args]
    models = {p: _models(code, p) for p in made}
    for part in made:
        if not models[part] or any(
            models[part] & models[other] or not models[other] for other in made if other is not part
        ):
            continue  # another optimizer may have the rest of it
        given = _written(code, part)
        test = _name_test(code, part, given)
        members = [
            dotted_name(c.func).split(".") for c in _calls(given) if callee(c) in ("parameters", "named_parameters")
        ]
        parts = [names[-2] for names in members if len(names) >= 3 and PART.search(names[-2])]
        places: list[ast.AST] = [part.call]
        if test is not None:
            which, places = f"only parameters with {ast.unparse(test)}", [part.call, test]
        elif members and len(parts) == len(members):
            which = f"the parameters of {', '.join(dict.fromkeys(parts))} only"
        else:
            continue
        scratch = from_scratch(code)
        yield code.finding(
            ID, f"The optimizer is given {which}: nothing else in the network is trained.", *places,
            grade="is" if scratch else "suspected", severity="ill" if scratch else "watch",
        )  # fmt: skip
        return


def _models(code: Code, part: Part) -> set[str]:
    """The networks whose parameters an optimizer is made from, by their first name."""
    given = _written(code, part)
    texts = [dotted_name(c.func) for c in _calls(given) if callee(c) in ("parameters", "named_parameters")]
    if isinstance(given, ast.List) and not given.elts:
        fills = [
            c
            for c in code.program.calls.get("append", [])
            if code.program.func_of[c] is code.program.func_of[part.call]
        ]
        loops = [loop for c in fills if (loop := _loop_over_parameters(code, c)) is not None]
        texts += [dotted_name(c.func) for loop in loops for c in _calls(loop.iter) if callee(c) == "named_parameters"]
    return {next((name for name in text.split(".") if name != "self"), "") for text in texts} - {""}


def _others(code: Code) -> bool:
    """Whether the program has an optimizer class of its own, which may have the rest."""
    return any(
        OWN.search(base) and name in code.program.calls for name, c in code.program.classes.items() for base in c.bases
    )


def fine_tunes(code: Code) -> bool:
    """Whether the network begins from trained weights: then what is trained is a matter of intent."""
    if any(PRETRAINED.search(name) for name in code.program.calls):
        return True
    for call in code.program.all_calls():
        for keyword in call.keywords:
            if keyword.arg in ("pretrained", "weights") and code.values.value(keyword.value) not in (None, False):
                return True
    return False


def from_scratch(code: Code) -> bool:
    """Nothing in the program speaks of weights that were trained before, or of training a part on purpose. Then the rest
    of the network stays as it was drawn, which hardly anybody wants."""
    return not fine_tunes(code) and not any(ON_PURPOSE.search(script.text) for script in code.program.scripts)


def _name_test(code: Code, part: Part, given: ast.expr) -> ast.expr | None:
    """The test of a parameter's name that decides alone what the optimizer is given: in a comprehension, or around the only
    append of the loop that fills the list."""
    if isinstance(given, ast.ListComp | ast.GeneratorExp) and "named_parameters" in ast.unparse(
        given.generators[0].iter
    ):
        return next((t for t in given.generators[0].ifs if by_name(t)), None)
    if not isinstance(given, ast.List) or given.elts or not isinstance(part.call.args[0], ast.Name):
        return None
    adds = [
        c for c in code.program.calls.get("append", []) if code.program.func_of[c] is code.program.func_of[part.call]
    ]
    loops = {loop for c in adds if (loop := _loop_over_parameters(code, c)) is not None}
    inside = [c for c in adds if _loop_over_parameters(code, c) is not None]
    if len(loops) != 1 or len(inside) != 1:
        return None
    up: ast.AST | None = code.program.parent(inside[0])
    while up is not None and up not in loops:
        if isinstance(up, ast.If) and by_name(up.test):
            return up.test
        up = code.program.parent(up)
    return None


def _loop_over_parameters(code: Code, node: ast.AST) -> ast.For | None:
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef):
        if isinstance(up, ast.For) and "named_parameters" in ast.unparse(up.iter):
            return up
        up = code.program.parent(up)
    return None


def by_name(test: ast.expr) -> bool:
    """`"head" in name`, `name.startswith("fc.")`: chosen by a name, and not merely left out by it."""
    for node in ast.walk(test):
        match node:
            case ast.Compare(ops=[ast.In()], left=ast.Constant(value=str()), comparators=[ast.Name()]):
                return not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
                return not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    return False


def _written(code: Code, part: Part) -> ast.expr:
    """The expression that makes the argument: in the call, or in the assignment of the name that stands there."""
    given = part.call.args[0]
    if not isinstance(given, ast.Name):
        return given
    func = code.program.func_of[part.call]
    body = func.node if func is not None else code.program.entry.tree
    for node in ast.walk(body):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == given.id for t in node.targets):
            return node.value
    return given


def _calls(node: ast.expr) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]
