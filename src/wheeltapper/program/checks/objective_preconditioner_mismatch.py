"""The loss compares a preconditioned output with a target of the raw network.

What it sees
------------
A network wrapper whose `forward` returns the denoised image (x − σF, or c_skip·x + c_out·F), and a loss whose target is
(clean − c_skip·noisy) / c_out, which is what the raw network F should give. Or a wrapper of EDM's family (EDMPrecond, VPPrecond,
VEPrecond, iDDPMPrecond), which returns the denoised image, compared with a target made of the noise or the noisy image.

Why it matters
--------------
The output is not the regressed quantity: the network has to learn a target that grows as 1/σ, and samples drawn from it
are wrong even where the loss is low.

How it decides
--------------
Both forms are found in one program by their shape: a division by `c_out` in the target of a mean-square loss, and a
forward that returns a combination with the network's output. Suspected: which wrapper is built may be decided at run
time. For the wrappers known by name: the noisy image is the clean one plus noise; what the model gives for it is subtracted from,
or handed to a loss with, something that was computed from the noisy image or the noise. That is a fact.

When it is wrong
----------------
If the loss calls the raw network inside the wrapper.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import argument, callee
from wheeltapper.program.reading import Code

ID = "objective-preconditioner-mismatch"
CAUSE = "objective-mismatch"
DECIDES = True
PRECONDITIONER = re.compile(r"precond|edm_wrapper|EDMWrapper|VPPrecond|VEPrecond|EDMPrecond", re.I)


KNOWN = {"EDMPrecond", "VPPrecond", "VEPrecond", "iDDPMPrecond"}
LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "MSELoss"}


def check(code: Code) -> Iterator[Finding]:
    made = [c for name in KNOWN for c in code.program.calls.get(name, [])]
    target = next((t for t in _compared(code) if t is not None), None) if made else None
    if target is not None:
        yield code.finding(
            ID,
            f"{callee(made[0])} returns the denoised image, and the loss compares it with {ast.unparse(target)}, which is made of the noisy "
            "image: the network is trained towards another quantity than it is used for.",
            target,
            made[0],
        )
        return
    targets = [n for n in nodes_of(code.program, ast.BinOp) if _raw_target(n)]
    wrappers = [c for name, calls in code.program.calls.items() if PRECONDITIONER.search(name) for c in calls] + [
        m.node for cls in code.program.classes.values() if (m := cls.methods.get("forward")) and _denoises(m.node)
    ]
    losses = [c for name in ("mse_loss", "MSELoss") for c in code.program.calls.get(name, [])]
    if targets and wrappers and losses and not _calls_raw(code):
        yield code.finding(
            ID,
            "The loss target is (clean − c_skip·noisy) / c_out, which the raw network should give, and the model called is a "
            "preconditioned wrapper that already returns the denoised image.",
            targets[0],
            wrappers[0],
            grade="suspected",
        )


def _compared(code: Code) -> Iterator[ast.expr | None]:
    """What the output of the model for a noisy image is compared with, where that is made of the noisy image."""
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        noisy, noise = node.targets[0], _noise_in(node.value)
        if noise is None or not isinstance(noisy, ast.Name):
            continue
        func = code.program.func_of[node]
        inside = list(ast.walk(func.node if func is not None else code.program.entry.tree))
        outputs = {n.targets[0].id for n in inside if isinstance(n, ast.Assign) and _model_of(n, noisy.id)}  # type: ignore[attr-defined]
        for pair in inside:
            sides = _sides(pair)
            for output, target in (sides, sides[::-1]) if sides is not None else ():
                if isinstance(output, ast.Name) and output.id in outputs and isinstance(target, ast.Name):
                    yield target if _made_of(inside, target.id, {noisy.id, *noise}) else None


def _noise_in(value: ast.expr) -> set[str] | None:
    """The names of the noise in `clean + sigma * noise`; empty where it is drawn on the spot, None where there is none."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add) or not isinstance(value.left, ast.Name):
        return None
    names = {n.id for n in ast.walk(value.right) if isinstance(n, ast.Name)}
    if any(isinstance(n, ast.Call) and callee(n) in ("randn_like", "randn") for n in ast.walk(value.right)):
        return set()
    named = {n for n in names if re.fullmatch(r"noise|eps|epsilon|n", n)}
    return named or None


def _model_of(node: ast.Assign, noisy: str) -> bool:
    call = node.value
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    known = isinstance(call, ast.Call) and bool(re.search(r"net|model|denois|precond", callee(call), re.I))
    return known and isinstance(node.targets[0], ast.Name) and isinstance(first, ast.Name) and first.id == noisy


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node.left, node.right
    if isinstance(node, ast.Call) and callee(node) in LOSSES and len(node.args) > 1:
        return node.args[0], node.args[1]
    return None


def _made_of(inside: list[ast.AST], name: str, parts: set[str]) -> bool:
    made = [
        n.value
        for n in inside
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]
    return len(made) == 1 and any(isinstance(n, ast.Name) and n.id in parts for n in ast.walk(made[0]))


def _raw_target(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and "c_out" in ast.unparse(node.right)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Sub)
        and "c_skip" in ast.unparse(node.left)
    )


def _denoises(node: ast.AST) -> bool:
    """`return c_skip * x + c_out * F(...)`, or `x - sigma * F`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
            text = ast.unparse(inner)
            if "c_skip" in text and "c_out" in text:
                return True
    return False


def _calls_raw(code: Code) -> bool:
    """`wrapper.model(c_in * x, c_noise)`: the raw network is called by the loss itself."""
    for call in code.program.all_calls():
        first = argument(call, "x", 0)
        if first is not None and "c_in" in ast.unparse(first) and callee(call) not in ("wrapper",):
            func = code.program.func_of[call]
            if func is None or not _denoises(func.node):
                return True
    return False
