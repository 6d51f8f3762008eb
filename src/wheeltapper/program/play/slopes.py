"""Which way a value moves when the outputs of a network grow: up, down, or that is not known."""

from __future__ import annotations

from collections.abc import Callable

from wheeltapper.program.play.value import Val, made_of, number

RISING = {
    "mean", "sum", "softplus", "relu", "logsigmoid", "sigmoid", "tanh", "exp", "log", "log1p", "sqrt", "leaky_relu", "elu", "gelu", "silu",
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "clamp", "clamp_min", "clamp_max", "clip", "softmax", "log_softmax", "stack", "cat",
    "min", "max", "minimum", "maximum", "float", "detach", "clone", "contiguous", "nanmean", "logsumexp", "transpose", "permute",
}  # fmt: skip
FILLED = {"ones": 1.0, "ones_like": 1.0, "zeros": 0.0, "zeros_like": 0.0}
Asked = Callable[[Val], bool]


def filled_with(value: Val | None) -> float | None:
    """The one number that a tensor is filled with."""
    if value is None:
        return None
    if value.op == "call" and value.name in FILLED:
        return FILLED[value.name]
    if value.op == "call" and value.name in ("full", "full_like", "fill_") and len(value.args) > 1:
        return number(value.args[1])
    if value.op == "bin" and value.name == "Mult":
        parts = [(filled_with(a), number(a)) for a in value.args]
        if any(known == 0 for _, known in parts):
            return 0.0
        return next((f * (parts[1 - i][1] or 1.0) for i, (f, _) in enumerate(parts) if f is not None), None)
    return None


def slope(value: Val, of: Asked, depth: int = 0) -> int | None:
    """+1 or -1: the value rises or falls with the outputs that `of` picks; 0: it does not hang on them; None: not known."""
    if of(value):
        return 1
    if depth > 40 or not any(of(v) for v in made_of(value)):
        return 0 if depth <= 40 else None
    go = depth + 1
    match value.op:
        case "unary" if value.name == "USub":
            return _turned(slope(value.args[0], of, go), -1)
        case "bin":
            return _of_two(value, of, go)
        case "phi":
            return _joined([slope(a, of, go) for a in value.args])
        case "list" | "tuple":
            return _joined([slope(a, of, go) for a in value.items or ()])
        case "item" | "attr" | "comp" | "gen":
            return slope(value.args[0], of, go)
        case "net" if isinstance(value.data, Val):
            return slope(value.data, of, go)
        case "call":
            return _of_call(value, of, go)
    return None


def _of_two(value: Val, of: Asked, depth: int) -> int | None:
    a, b = value.args
    one, other = slope(a, of, depth), slope(b, of, depth)
    if value.name in ("Add", "Sub"):
        return _joined([one, other if value.name == "Add" else _turned(other, -1)])
    if value.name in ("Mult", "Div"):
        known = number(b)
        if known is not None and known != 0:
            return _turned(one, 1 if known > 0 else -1)
        known = number(a)
        if value.name == "Mult" and known is not None and known != 0:
            return _turned(other, 1 if known > 0 else -1)
    return None


def _of_call(value: Val, of: Asked, depth: int) -> int | None:
    if value.name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss") and value.args:
        wanted = filled_with(value.arg("target", 1))
        return None if wanted is None else _turned(slope(value.args[0], of, depth), -1 if wanted > 0.5 else 1)
    if value.name == "neg":
        return _turned(slope(value.args[0], of, depth), -1)
    if value.name in RISING:
        return _joined([slope(a, of, depth) for a in value.args])
    return None


def _turned(known: int | None, sign: int) -> int | None:
    return None if known is None else known * sign


def _joined(parts: list[int | None]) -> int | None:
    found = {p for p in parts if p != 0}
    return 0 if not found else found.pop() if len(found) == 1 else None
