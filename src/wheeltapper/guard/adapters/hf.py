"""The guard in a Hugging Face Trainer.

    trainer = Trainer(model=model, args=args, train_dataset=data)
    guard_trainer(trainer)               # before trainer.train(); incidents go to args.output_dir
    trainer.train()

`guard_trainer` adds a callback and wraps trainer.training_step, which is where the loss of each micro-batch is known
and the gradients are not clipped yet. Where only a callback can be given, GuardCallback alone measures as well, with
gradients as they are after clipping and the loss that the model itself returns.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import TrainerCallback

from wheeltapper.guard.session import Session, guarded, harmless


class GuardCallback(TrainerCallback):  # type: ignore[misc]
    """Options are those of `guarded`; run_dir is the Trainer's output_dir unless given."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.session: Session | None = None
        self.trainer: Any = None  # then training_step tells the loss; else a hook on the model does
        self._hook: Any = None
        self._losses: list[Any] = []
        self._tick = 0

    @harmless
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.end()  # of a training that was broken off
        model, optimizer = kwargs.get("model"), kwargs.get("optimizer")
        if model is None or optimizer is None:
            return
        options: dict[str, Any] = {
            "run_dir": args.output_dir,
            "total_steps": state.max_steps if state.max_steps and state.max_steps > 0 else None,
            "clip_norm": args.max_grad_norm or None,
            "scheduler": kwargs.get("lr_scheduler"),
            "scaler": getattr(optimizer, "scaler", None),
            "config": args.to_dict() if hasattr(args, "to_dict") else None,
            "start_step": state.global_step,
        }
        # The callback is handed the model inside DDP; the Trainer knows the whole.
        whole = getattr(self.trainer, "model_wrapped", None)
        if whole is None and torch.distributed.is_available() and torch.distributed.is_initialized():
            options["process_group"] = torch.distributed.group.WORLD
        inner = getattr(optimizer, "optimizer", optimizer)
        self.session = guarded(model if whole is None else whole, inner, **(options | self.options))
        self._tick = self.session.guard.tick
        if self.trainer is None:
            self._hook = model.register_forward_hook(self._seen)

    @harmless
    def micro(self, loss: Any, inputs: Any, parts: int) -> None:
        """After the backward pass of one micro-batch. The Trainer has divided the loss by their number."""
        if self.session is not None and not self.session.stopping:
            self.session.keep(inputs)
            self.session.step(loss * parts if parts > 1 else loss)

    @harmless
    def _seen(self, model: Any, _inputs: Any, output: Any) -> None:
        loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        if loss is not None and model.training:
            self._losses.append(loss.detach())

    @harmless
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        session, losses, self._losses = self.session, self._losses, []
        if session is None:
            return control
        # Where the scaler met an overflow there was no step that the losses could belong to.
        if losses and not session.stopping and session.guard.tick != self._tick:
            session.step(sum(losses) / len(losses))  # a tensor: nothing waits for the device
        self._tick = session.guard.tick
        if session.stopping:
            control.should_training_stop = True
            # A state that is not finite must not become the Trainer's newest checkpoint.
            control.should_save = any("stopped_at" in i.facts for i in session.incidents if i.action == "stop")
        return control

    @harmless
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:  # noqa: ARG002
        if self.session is not None and isinstance(metrics, dict):
            self.session.metric(metrics, state.global_step)

    @harmless
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.end()

    def end(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        if self.session is not None:
            self.session.close()


def guard_trainer(trainer: Any, **options: Any) -> GuardCallback:
    """Put the guard into a Trainer, before trainer.train(). The session is in `.session` once training has begun."""
    callback = GuardCallback(**options)
    callback.trainer = trainer
    original = trainer.training_step

    def training_step(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loss = original(model, inputs, *args, **kwargs)
        # The last micro-batches of an epoch may be fewer; newer Trainers say how many.
        planned = trainer.args.gradient_accumulation_steps
        callback.micro(loss, inputs, getattr(trainer, "current_gradient_accumulation_steps", planned))
        return loss

    trainer.training_step = training_step
    trainer.add_callback(callback)
    return callback
