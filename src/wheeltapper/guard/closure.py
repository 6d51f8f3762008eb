"""An optimizer.step(closure): the gradients are made inside of it, so what the guard does before a step comes after them.

Lightning calls every optimizer so (but not under a GradScaler), LBFGS has to be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Called = tuple[tuple[Any, ...], dict[str, Any]]


def before(enter: Callable[[], None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Called | None:
    """For an optimizer's pre-hook: call `enter` now, or hand it over to come right after the closure's first call."""
    by_name = "closure" in kwargs
    closure = kwargs.get("closure") if by_name else args[1] if len(args) > 1 else None
    if closure is None:
        enter()
        return None
    entered = False

    def wrapped() -> Any:
        nonlocal entered
        result = closure()
        if not entered:
            entered = True
            enter()
        return result

    return (args, {**kwargs, "closure": wrapped}) if by_name else ((args[0], wrapped, *args[2:]), kwargs)
