"""One small training in every framework that the guard has a place in, with and without the guard.

`train` returns everything that could differ: losses, weights, moments, random states. The same on a CPU and a GPU, in
one process and in several.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from wheeltapper.guard import Guard
from wheeltapper.guard.adapters.accelerate import guard_accelerator
from wheeltapper.guard.session import guarded

PACKAGES = {"accelerate": "accelerate", "trainer": "transformers", "callback": "transformers", "lightning": "lightning"}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def present(how: str) -> bool:
    return how not in PACKAGES or importlib.util.find_spec(PACKAGES[how]) is not None


@dataclass(frozen=True)
class Setup:
    how: str = "guard"  # guard, context, accelerate, trainer, callback (of the Trainer, alone), lightning
    device: str = "cpu"
    precision: str = "fp32"
    parts: int = 1  # micro-batches of a step
    fused: bool = False
    steps: int = 8
    checkpointed: bool = False
    compiled: bool = False
    poison: int = -1  # the forward pass whose batch is spoiled, on the rank that `poison_rank` says
    poison_rank: int = 0
    poison_by: float = float("nan")


@dataclass
class Trained:
    tensors: dict[str, Any]
    guard: Guard | None = None
    losses: list[float] = field(default_factory=list)


class Net(nn.Module):
    """A classifier that returns its loss, as a Hugging Face model does, and counts its forward passes."""

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup, self.passes, self.losses = setup, 0, []
        self.body = nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))

    def forward(self, x: Any, labels: Any = None) -> Any:
        if self.training:
            if self.passes == self.setup.poison and int(os.environ.get("RANK", 0)) == self.setup.poison_rank:
                x = x * self.setup.poison_by
            self.passes += 1
        logits = checkpoint(self.body, x, use_reentrant=False) if self.setup.checkpointed else self.body(x)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        if self.training and not self.setup.compiled:
            self.losses.append(loss.detach().clone())
        return {"loss": loss, "logits": logits}


def data(n: int) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(5)
    return [{"x": torch.randn(6, generator=generator), "labels": torch.tensor(i % 3)} for i in range(n)]


def made(setup: Setup, parameters: Any) -> Any:
    return torch.optim.AdamW(parameters, 1e-2, fused=setup.fused)


def seed() -> None:
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)


def train(setup: Setup, options: dict[str, Any] | None, folder: Path) -> Trained:
    """`options` are the guard's; None trains without it."""
    if setup.how in PACKAGES:
        importlib.import_module(PACKAGES[setup.how])  # which may draw numbers
    seed()
    return ARMS[setup.how](setup, options, folder)


def ranks() -> int:
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


# A loop of one's own


def own_loop(setup: Setup, options: dict[str, Any] | None, folder: Path) -> Trained:
    net: Any = Net(setup).to(setup.device)
    model = nn.parallel.DistributedDataParallel(net) if torch.distributed.is_initialized() else net
    model = torch.compile(model) if setup.compiled else model
    optimizer = made(setup, model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    scaler = torch.amp.GradScaler(setup.device) if setup.precision == "fp16" else None
    known = {"scheduler": scheduler, "scaler": scaler, "run_dir": folder, "clip_norm": 1.0}
    session: Any = None
    if options is not None:
        make = Guard if setup.how == "guard" else guarded
        session = make(model, optimizer, **(known | options))
    batches = split(setup)
    with session if session is not None else contextlib.nullcontext():
        for k in range(setup.steps * setup.parts):
            x, y = next(batches)
            if setup.how == "context" and session is not None:
                session.keep((x, y))
            with autocast(setup):
                loss = model(x, y)["loss"]
            (scaler.scale(loss / setup.parts) if scaler else loss / setup.parts).backward()
            if session is not None:
                session.step(loss, batch_id=k)
            if (k + 1) % setup.parts:
                continue
            if scaler:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer) if scaler else optimizer.step()
            if scaler:
                scaler.update()
            scheduler.step()
            optimizer.zero_grad()
    return trained(net, optimizer, getattr(session, "guard", session))


def autocast(setup: Setup) -> Any:
    if setup.precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(setup.device, DTYPES[setup.precision])


def split(setup: Setup) -> Iterator[tuple[Any, Any]]:
    """Batches of two, each rank its own, over and over."""
    items, rank, world = data(48), int(os.environ.get("RANK", 0)), ranks()
    at = 2 * rank
    while True:
        pair = [items[i % len(items)] for i in (at, at + 1)]
        yield tuple(torch.stack([p[key] for p in pair]).to(setup.device) for key in ("x", "labels"))
        at += 2 * world


# accelerate


def accelerated(setup: Setup, options: dict[str, Any] | None, folder: Path) -> Trained:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    accelerator = Accelerator(
        cpu=setup.device == "cpu",
        mixed_precision="no" if setup.precision == "fp32" or halved(setup) else setup.precision,
        gradient_accumulation_steps=setup.parts,
    )
    if halved(setup):
        halve(accelerator)
    net: Any = Net(setup)
    optimizer: Any = made(setup, net.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    loader = torch.utils.data.DataLoader(data(48), batch_size=2)
    model, optimizer, loader, schedule = accelerator.prepare(net, optimizer, loader, schedule)
    session = None
    if options is not None:
        known = {"scheduler": schedule, "run_dir": folder, "clip_norm": 1.0}
        session = guard_accelerator(accelerator, model, optimizer, **(known | options))
    done = 0
    with session if session is not None else contextlib.nullcontext():
        while done < setup.steps:
            for batch in loader:
                with accelerator.accumulate(model):
                    accelerator.backward(model(**batch)["loss"])
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                        done += 1
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                if done >= setup.steps:
                    break
    assert "backward" not in accelerator.__dict__, "the accelerator has its method back"
    return trained(net, optimizer.optimizer, session.guard if session else None)


def halved(setup: Setup) -> bool:
    """Whether fp16 is asked for where accelerate and the Trainer refuse it, though torch has it."""
    return setup.precision == "fp16" and setup.device == "cpu"


def halve(accelerator: Any) -> None:
    accelerator.native_amp, accelerator.scaler = True, torch.amp.GradScaler("cpu")
    accelerator.state._mixed_precision = "fp16"


# Hugging Face


def by_trainer(setup: Setup, options: dict[str, Any] | None, folder: Path, **settings: Any) -> Trained:
    import transformers
    from accelerate.state import AcceleratorState

    from wheeltapper.guard.adapters.hf import GuardCallback, guard_trainer

    AcceleratorState._reset_state(True)
    known: dict[str, Any] = {
        "output_dir": str(folder), "max_steps": setup.steps, "per_device_train_batch_size": 2, "report_to": [],
        "gradient_accumulation_steps": setup.parts, "use_cpu": setup.device == "cpu", "disable_tqdm": True,
        "save_strategy": "no", "eval_strategy": "steps", "eval_steps": 4, "logging_steps": 2, "seed": 4,
        "bf16": setup.precision == "bf16", "fp16": setup.precision == "fp16" and not halved(setup), "learning_rate": 1e-2,
        "optim": "adamw_torch_fused" if setup.fused else "adamw_torch", "lr_scheduler_type": "cosine",
        "ddp_backend": torch.distributed.get_backend() if torch.distributed.is_initialized() else None,
        "dataloader_pin_memory": False,
    }  # fmt: skip
    if ranks() > 1 and setup.device == "cuda":  # gathering from a GPU is not in gloo
        known |= {"eval_strategy": "no", "average_tokens_across_devices": False}
    args = transformers.TrainingArguments(**(known | settings))
    net = Net(setup)
    trainer = transformers.Trainer(model=net, args=args, train_dataset=data(48), eval_dataset=data(6))
    trainer.remove_callback(transformers.PrinterCallback)
    if halved(setup):
        halve(trainer.accelerator)
    callback: Any = None
    if options is not None and setup.how == "trainer":
        callback = guard_trainer(trainer, **options)
    elif options is not None:
        callback = GuardCallback(**options)
        trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=settings.get("resume_from_checkpoint"))
    if heard(callback) and known["eval_strategy"] != "no":
        assert "eval_loss" in callback.session.asker.history.metrics
    optimizer = trainer.optimizer
    return trained(net, getattr(optimizer, "optimizer", optimizer), callback.session.guard if callback else None)


def heard(callback: Any) -> bool:
    """Whether the evaluations were told to someone."""
    return callback is not None and callback.session.asker is not None and callback.session.guard.passive is None


# Lightning


def by_lightning(setup: Setup, options: dict[str, Any] | None, folder: Path) -> Trained:
    import lightning

    from wheeltapper.guard.adapters.lightning import GuardCallback

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net(setup)

        def training_step(self, batch: Any, _index: int) -> Any:
            return self.net(**batch)["loss"]

        def validation_step(self, batch: Any, _index: int) -> None:
            self.log("val_loss", self.net(**batch)["loss"], batch_size=2)

        def configure_optimizers(self) -> Any:
            optimizer = made(setup, self.parameters())
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
            return [optimizer], [{"scheduler": scheduler, "interval": "step"}]

    strategy: Any = "auto"
    if torch.distributed.is_initialized():
        from lightning.pytorch.strategies import DDPStrategy

        # Each process a node of its own, so that they share one GPU. Lightning takes WORLD_SIZE away when it is done.
        os.environ |= {"NODE_RANK": os.environ["RANK"], "WORLD_SIZE": str(ranks())}
        strategy = DDPStrategy(process_group_backend=torch.distributed.get_backend())
    callback = GuardCallback(**options) if options is not None else None
    module = Module()
    precision: dict[str, Any] = {
        "precision": {"fp32": "32-true", "bf16": "bf16-mixed", "fp16": "16-mixed"}[setup.precision]
    }
    if halved(setup):
        from lightning.pytorch.plugins import MixedPrecision

        precision = {"plugins": [MixedPrecision("16-mixed", "cpu")]}
    trainer = lightning.Trainer(
        default_root_dir=str(folder), max_steps=setup.steps, logger=False, enable_checkpointing=False, devices=1,
        accelerator="gpu" if setup.device == "cuda" else "cpu", enable_progress_bar=False, enable_model_summary=False,
        strategy=strategy, **precision,
        gradient_clip_val=None if setup.fused and setup.precision != "fp32" else 1.0,
        accumulate_grad_batches=setup.parts, callbacks=[callback] if callback else [],
        num_nodes=ranks(), val_check_interval=12,
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(data(48), batch_size=2)
    trainer.fit(module, loader, torch.utils.data.DataLoader(data(6), batch_size=2))
    guard = None
    if callback is not None:
        assert callback.session is not None
        guard = callback.session.guard
        if heard(callback) and setup.steps * setup.parts >= 12:
            assert "val_loss" in callback.session.asker.history.metrics
    return trained(module.net, trainer.optimizers[0], guard)


ARMS: dict[str, Callable[..., Trained]] = {
    "guard": own_loop,
    "context": own_loop,
    "accelerate": accelerated,
    "trainer": by_trainer,
    "callback": by_trainer,
    "lightning": by_lightning,
}


# What is compared


def trained(net: Any, optimizer: Any, guard: Guard | None) -> Trained:
    state = optimizer.state_dict()["state"]
    moments = {f"{k}.{name}": v for k in state for name, v in state[k].items() if isinstance(v, torch.Tensor)}
    tensors = {
        **{f"weight {k}": v for k, v in net.state_dict().items()},
        **{f"moment {k}": v for k, v in moments.items()},
        **{f"loss {k}": v for k, v in enumerate(net.losses)},
        "rate": torch.tensor([g["lr"] for g in optimizer.param_groups]),
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.random.get_state()[1].astype(np.int64)),
        "python": torch.tensor(random.random()),
    }
    if torch.cuda.is_available():
        tensors["cuda"] = torch.cuda.get_rng_state()
    kept = {name: value.detach().cpu().clone() for name, value in tensors.items()}
    return Trained(kept, guard, [float(v) for v in net.losses])


def differ(a: Trained, b: Trained) -> list[str]:
    """What is not the same to the bit; a nan is equal to the same nan."""
    names = dict.fromkeys([*a.tensors, *b.tensors])
    return [n for n in names if n not in a.tensors or n not in b.tensors or raw(a.tensors[n]) != raw(b.tensors[n])]


def raw(tensor: Any) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())
