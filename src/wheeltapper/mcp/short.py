"""Answers that stay short: at most MOST bytes of JSON, with what was left out named and a way to ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wheeltapper.report.brief import size_of

# 1,500 tokens. JSON of names and numbers takes about three bytes a token (measured: research/review/README.md).
MOST = 4500


def more(tool: str, **arguments: Any) -> dict[str, Any]:
    """A handle: the call that tells more."""
    return {"tool": tool, "arguments": arguments}


def fitted(answer: dict[str, Any], gives_way: Sequence[str], most: int = MOST) -> dict[str, Any]:
    """The answer with its lists shortened, those named first, until it fits; `left_out` counts what went."""
    out = dict(answer)
    left: dict[str, int] = {}
    for name in gives_way:
        while size_of(out) > most - 120 and isinstance(out.get(name), list) and out[name]:
            keep = len(out[name]) * 3 // 4
            left[name] = left.get(name, 0) + len(out[name]) - keep
            out[name] = out[name][:keep]
    if size_of(out) > most - 120:
        out = {key: _cut(value) for key, value in out.items()}
    return {**out, "left_out": left} if left else out


def _cut(value: Any, length: int = 300) -> Any:
    """Texts cut to so many letters: for the rare answer whose single sentences are too long."""
    if isinstance(value, str):
        return value if len(value) <= length else value[: length - 1] + "…"
    if isinstance(value, list):
        return [_cut(item, length) for item in value]
    if isinstance(value, dict):
        return {key: _cut(item, length) for key, item in value.items()}
    return value
