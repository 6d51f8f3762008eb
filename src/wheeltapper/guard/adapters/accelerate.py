"""The guard in a loop that uses accelerate.

    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with guard_accelerator(accelerator, model, optimizer):      # incidents go to accelerator.project_dir
        ...                                                     # the loop stays as it is

accelerator.backward(loss) is where the guard learns the loss and looks at the gradients, before they are clipped.
The accelerator is duck-typed: nothing of accelerate is imported.
"""

from __future__ import annotations

from typing import Any

from wheeltapper.guard.session import Session, guarded


def guard_accelerator(accelerator: Any, model: Any, optimizer: Any, **options: Any) -> Session:
    """A Session whose `step` is called by accelerator.backward; closing it gives the accelerator its method back. `run_dir` is
    the accelerator's own folder unless given; one that has none writes nothing."""
    inner = getattr(optimizer, "optimizer", optimizer)  # AcceleratedOptimizer wraps the one whose hooks fire
    scaler = options.pop("scaler", getattr(accelerator, "scaler", None))
    folder = getattr(accelerator, "logging_dir", None) or getattr(accelerator, "project_dir", None)
    options = ({"run_dir": folder} if folder else {}) | options
    session = guarded(model, inner, scaler=scaler, **options)
    original = accelerator.backward

    def backward(loss: Any, *args: Any, **kwargs: Any) -> Any:
        done = original(loss, *args, **kwargs)
        session.step(loss)
        return done

    accelerator.backward = backward
    close = session.close

    def closed() -> None:
        if accelerator.__dict__.get("backward") is backward:
            del accelerator.backward  # the method of the class shows again
        close()

    session.close = closed  # type: ignore[method-assign]
    return session
