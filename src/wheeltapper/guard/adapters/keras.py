"""The guard in Keras 3 on the torch backend.

    from wheeltapper.guard.adapters.keras import with_guard
    callbacks = with_guard([keras.callbacks.CSVLogger("runs/exp1/history.csv")])
    model.fit(x, y, validation_data=val, callbacks=callbacks)      # incidents go to runs/exp1

Keras has an optimizer of its own, which torch's hooks do not see: the guard is told of each of its steps, of the loss before it
is reduced to a mean of the epoch, and of what an evaluation found. It watches and stops; it skips and rolls back nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import torch

from wheeltapper.errors import InputError
from wheeltapper.guard.session import Session, guarded, harmless

POLICIES = ("watch", "stop")


class _Steps(torch.optim.Optimizer):  # type: ignore[misc]
    """Keras's optimizer as the guard knows one: parameters, a rate, and a step that does what Keras does."""

    def __init__(self, parameters: Sequence[Any], rate: float) -> None:
        super().__init__(list(parameters), {"lr": rate})
        self.now: Callable[[], Any] | None = None

    def step(self, closure: Any = None) -> Any:  # noqa: ARG002
        return None if self.now is None else self.now()


class GuardCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Options are those of `guarded`. Without run_dir nothing is written: `with_guard` finds it from the other callbacks."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        if keras.backend.backend() != "torch":
            raise InputError(
                f"the guard looks into torch's tensors, and Keras runs on {keras.backend.backend()}.",
                do='Set os.environ["KERAS_BACKEND"] = "torch" before keras is imported, or leave the guard out.',
            )
        if options.get("policy", "watch") not in POLICIES:
            raise InputError(f"in Keras the guard cannot {options['policy']}.", do=f"Policies: {', '.join(POLICIES)}.")
        self.options = options
        self.session: Session | None = None
        self._loss: Any = None
        self._steps: _Steps | None = None

    @harmless
    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        self.end()
        optimizer = self.model.optimizer
        parameters = [v.value for v in self.model.trainable_variables]
        if optimizer is None or not parameters:
            return
        steps = (self.params or {}).get("steps")
        epochs = (self.params or {}).get("epochs")
        options: dict[str, Any] = {"total_steps": steps * epochs if steps and epochs else None}
        self._steps = _Steps(parameters, _rate(optimizer))
        self.session = guarded(self.model, self._steps, **(options | self.options))
        self._wrap(optimizer)

    def _wrap(self, optimizer: Any) -> None:
        """The two places of Keras's own step that the guard hears of; `end` takes both off again."""
        compute, apply = self.model._compute_loss, optimizer.apply

        def heard(*args: Any, **kwargs: Any) -> Any:
            loss = compute(*args, **kwargs)
            if kwargs.get("training", True):
                self._loss = loss.detach()
            return loss

        def applied(*args: Any, **kwargs: Any) -> Any:
            return self._applied(lambda: apply(*args, **kwargs), optimizer)

        object.__setattr__(self.model, "_compute_loss", heard)
        object.__setattr__(optimizer, "apply", applied)

    def _applied(self, apply: Callable[[], Any], optimizer: Any) -> Any:
        done: list[Any] = []
        if self.session is not None and self._steps is not None:
            self._before(optimizer)
            self._steps.now = lambda: done.append(apply())
            self._steps.step()
        return done[0] if done else apply()

    @harmless
    def _before(self, optimizer: Any) -> None:
        assert self.session is not None
        assert self._steps is not None
        self._steps.param_groups[0]["lr"] = _rate(optimizer)
        if not self.session.stopping:
            self.session.step(self._loss)

    @harmless
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        if self.session is not None and self.session.stopping:
            self.model.stop_training = True

    @harmless
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self.session is not None and logs:
            values = {f"val/{name[4:]}": float(v) for name, v in logs.items() if name.startswith("val_")}
            self.session.metric(values, self.session.guard.tick or epoch)

    @harmless
    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        self.end()

    def end(self) -> None:
        model = getattr(self, "model", None)
        for owner, name in ((model, "_compute_loss"), (getattr(model, "optimizer", None), "apply")):
            if owner is not None:
                vars(owner).pop(name, None)  # the method of the class shows again
        if self.session is not None:
            self.session.close()


def _rate(optimizer: Any) -> float:
    return float(keras.ops.convert_to_numpy(optimizer.learning_rate))


def with_guard(callbacks: Sequence[Any] = (), **options: Any) -> list[Any]:
    """The callbacks of a `fit` with the guard among them; its folder is where the first of the others writes its log."""
    places = (_folder(callback) for callback in callbacks)
    found = next((place for place in places if place is not None), None)
    return [*callbacks, GuardCallback(**({"run_dir": found} | options))]


def _folder(callback: Any) -> str | None:
    """Where a callback of Keras writes: TensorBoard's folder, that of CSVLogger's or ModelCheckpoint's file."""
    folder = getattr(callback, "log_dir", None) or getattr(callback, "_log_write_dir", None)
    if folder:
        return str(folder)
    file = getattr(callback, "filename", None) or getattr(callback, "filepath", None)
    return None if not file else os.path.dirname(os.path.abspath(str(file)))
