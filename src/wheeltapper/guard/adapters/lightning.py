"""The guard in a Lightning Trainer.

    from wheeltapper.guard.adapters.lightning import GuardCallback
    trainer = Trainer(callbacks=[GuardCallback()])       # incidents go to trainer.log_dir, beside metrics.csv
    trainer.fit(model, loader)

Works with `lightning` and with `pytorch_lightning`. Of several optimizers the first is guarded.
"""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ModuleNotFoundError:
    from pytorch_lightning.callbacks import Callback

from wheeltapper.guard import scale
from wheeltapper.guard.session import Session, guarded, harmless


class GuardCallback(Callback):  # type: ignore[misc]
    """Options are those of `guarded`; run_dir is the folder of the Trainer's logger unless given."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.session: Session | None = None
        self._loss: Any = None
        self._batch: Any = None
        self._batch_id: Any = None

    @harmless
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.optimizers:
            return
        optimizer = trainer.optimizers[0]
        total = trainer.estimated_stepping_batches
        options: dict[str, Any] = {
            "run_dir": log_folder(trainer),
            "scheduler": next((s for s in schedulers(trainer) if s.optimizer is optimizer), None),
            "scaler": getattr(trainer.precision_plugin, "scaler", None),
            "total_steps": int(total) if total and total != float("inf") else None,
            "clip_norm": trainer.gradient_clip_val if trainer.gradient_clip_algorithm != "value" else None,
            "start_step": trainer.global_step,
        }
        model = getattr(trainer, "model", None)  # inside DDP or FSDP, where the module is
        self.session = guarded(pl_module if model is None else model, optimizer, **(options | self.options))

    @harmless
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        if self.session is not None:
            self.session.keep(batch)
            self._batch_id = (trainer.current_epoch, batch_idx)
            if self.session.stopping:
                trainer.should_stop = True

    @harmless
    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:  # noqa: ARG002
        # Lightning has divided it by the number of micro-batches and multiplied it with the loss scale.
        parts = trainer.accumulate_grad_batches
        held = scale.value(self.session.guard.scaler) if self.session is not None else None
        loss = loss.detach() if held is None else loss.detach() / held
        self._loss = loss * parts if parts > 1 else loss

    @harmless
    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if self.session is not None and self._loss is not None and not self.session.stopping:
            self.session.step(self._loss, self._batch_id)
        self._loss = None

    @harmless
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:  # noqa: ARG002
        if self.session is not None and self.session.stopping:
            trainer.should_stop = True

    @harmless
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if self.session is not None and not trainer.sanity_checking:
            values = {name: float(value) for name, value in trainer.callback_metrics.items() if "val" in name.lower()}
            self.session.metric(values, trainer.global_step)

    @harmless
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        if self.session is not None:
            self.session.close()

    @harmless
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Lightning may catch what stops a training, so nobody else would write it down."""
        if self.session is not None:
            if self.session.crash is not None and isinstance(exception, Exception):
                self.session.crash.tell(exception)
            self.session.close()


def log_folder(trainer: Any) -> str:
    """Where the first logger writes; without one a folder of our own, for the Trainer's is where the program was started."""
    folder = trainer.log_dir if getattr(trainer, "loggers", ()) else None
    return str(folder or os.path.join(trainer.default_root_dir, "guard"))


def schedulers(trainer: Any) -> list[Any]:
    return [config.scheduler for config in getattr(trainer, "lr_scheduler_configs", ())]
