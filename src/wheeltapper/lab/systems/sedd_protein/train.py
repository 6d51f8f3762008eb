"""Discrete diffusion on sequences: python train.py --work_dir . --config config.yaml"""

from __future__ import annotations

import argparse
import copy
import math
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import nn

from wheeltapper.lab import clock
from wheeltapper.lab.files import WandbFile, resident_gb
from wheeltapper.lab.systems.sedd_protein.data import make_sequences, quality
from wheeltapper.lab.systems.sedd_protein.model import SEDD, Graph, Noise, sample


class EMA:
    """decay(n) = min(decay, (1 + n) / (10 + n))"""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.updates = decay, 0
        self.shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}

    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        with torch.no_grad():
            for name, value in model.state_dict().items():
                self.shadow[name].lerp_(value.to(self.shadow[name].dtype), 1 - decay)


class Trainer:
    def __init__(self, cfg: dict[str, Any], work_dir: Path, config_path: str) -> None:
        self.cfg, self.work_dir = cfg, work_dir
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.out = (work_dir / "train.out").open("a", encoding="utf-8")
        train = cfg["training"]
        torch.manual_seed(train["seed"])
        length = cfg["model"]["length"]
        self.data = make_sequences(train["max_samples"], length, train["seed"]).to(self.device)
        self.held = make_sequences(128, length, train["seed"] + 1).to(self.device)
        self.graph = Graph(cfg["graph"]["type"], cfg["tokens"])
        noise = cfg["noise"]
        self.noise = Noise(noise["type"], float(noise["sigma_min"]), float(noise["sigma_max"]), float(noise["eps"]))
        shape = {key: cfg["model"][key] for key in ("length", "hidden_size", "n_blocks", "n_heads", "dropout")}
        self.model = SEDD(self.graph, **shape).to(self.device)
        self.ema = EMA(self.model, train["ema"])
        self.build_optimizer()
        self.step, self.epoch, self.best_loss = 0, 0, math.inf
        self.steps_per_epoch = len(self.data) // train["batch_size"]
        self.say(f"🚀 Loaded config from {config_path}")
        self.say(f"📊 Dataset: {len(self.data)} sequences, {self.steps_per_epoch} batches per epoch")
        self.say(f"🧠 Model parameters: {sum(p.numel() for p in self.model.parameters()):,}")
        self.say(f"   Effective batch size: {train['batch_size'] * train['accum']}")
        self.load()
        stamp = f"{clock.now():%Y%m%d_%H%M%S}"
        run_id = f"{train['seed'] * 7919 % 2821109907456:08d}"
        self.wandb = WandbFile(work_dir / "wandb" / f"offline-run-{stamp}-{run_id}", run_id, "protein-sedd", cfg)

    def say(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()

    def build_optimizer(self) -> None:
        optim, train = self.cfg["optim"], self.cfg["training"]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=float(optim["lr"]),
            betas=(optim["beta1"], optim["beta2"]),
            eps=float(optim["eps"]),
            weight_decay=float(optim["weight_decay"]),
        )
        warmup = optim["warmup"]
        total = train["n_iters"] // train["accum"]

        def factor(update: int) -> float:
            """Linear warm-up, then a cosine; counted in optimizer updates."""
            if update < warmup:
                return (update + 1) / float(warmup)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, (update - warmup) / max(1, total - warmup))))

        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, factor)

    def difficulty(self, step: int) -> float:
        """The share of the full noise that the curriculum allows at this step."""
        plan = self.cfg["curriculum"]
        if not plan["enabled"]:
            return 1.0
        progress = min(1.0, step / plan["preschool_time"])
        ramp = progress if plan["difficulty_ramp"] == "linear" else 1 - math.exp(-3 * progress)
        return 0.1 + 0.9 * ramp

    def batches(self) -> Any:
        """One epoch of sequences, shuffled."""
        generator = torch.Generator().manual_seed(self.cfg["training"]["seed"] * 1000 + self.epoch)
        order = torch.randperm(len(self.data), generator=generator)
        size = self.cfg["training"]["batch_size"]
        for start in range(0, self.steps_per_epoch * size, size):
            batch = self.data[order[start : start + size]]
            yield batch

    def loss(self, model: nn.Module, x0: torch.Tensor, t: torch.Tensor, difficulty: float) -> torch.Tensor:
        """The score entropy per residue; a curriculum scales the noise, and everything that depends on it."""
        sigma, rate = difficulty * self.noise.total(t), difficulty * self.noise.rate(t)
        x = self.graph.corrupt(x0, sigma)
        score = model(x, sigma)
        return (rate * self.graph.entropy(score, sigma, x, x0)).mean() / x0.shape[1]

    def train_step(self, x0: torch.Tensor) -> tuple[float, float | None]:
        """One micro-batch; the optimizer moves after every `accum` of them."""
        accum = self.cfg["training"]["accum"]
        self.model.train()
        t = (1 - 1e-3) * torch.rand(len(x0), device=self.device) + 1e-3
        loss = self.loss(self.model, x0, t, self.difficulty(self.step))
        (loss / accum).backward()
        self.step += 1
        norm = None
        if self.step % accum == 0:
            limit = self.cfg["optim"]["grad_clip"]
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit if limit > 0 else math.inf).item()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            self.ema.update(self.model)
        return loss.item(), norm

    def averaged(self) -> nn.Module:
        model = copy.deepcopy(self.model)
        model.load_state_dict({name: value.float() for name, value in self.ema.shadow.items()})
        return model.eval()

    def evaluate(self) -> float:
        """The held-out loss with the averaged weights, full noise, and the same noise every time."""
        model = self.averaged()
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(11)
            times = torch.linspace(0.02, 0.98, len(self.held), device=self.device)
            return float(self.loss(model, self.held, times, 1.0))

    def generate(self) -> float:
        """How good generated sequences are; this is not the loss."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(12)
            made = sample(self.averaged(), self.noise, 64, self.cfg["model"]["length"], 16, self.device)
        return quality(made.cpu())

    def save(self, name: str) -> None:
        folder = self.work_dir / "checkpoints"
        folder.mkdir(exist_ok=True)
        state = {
            "step": self.step,
            "epoch": self.epoch,
            "best_loss": self.best_loss,
            "model_state_dict": self.model.state_dict(),
            "ema_state_dict": self.ema.shadow,
            "ema_updates": self.ema.updates,
            "optimizer_state_dict": self.optimizer.state_dict(),
            "scheduler_state_dict": self.scheduler.state_dict(),
            "config": self.cfg,
        }
        torch.save(state, folder / name)

    def load(self) -> None:
        path = self.work_dir / "checkpoints" / "checkpoint_latest.pth"
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model_state_dict"])
        self.ema.shadow, self.ema.updates = state["ema_state_dict"], state["ema_updates"]
        self.optimizer.load_state_dict(state["optimizer_state_dict"])
        self.scheduler.load_state_dict(state["scheduler_state_dict"])
        self.step, self.epoch, self.best_loss = state["step"], state["epoch"], state["best_loss"]
        self.say(f"📂 Resumed from {path} at step {self.step}, epoch {self.epoch}")

    def fit(self) -> None:
        train = self.cfg["training"]
        total, log_freq = train["n_iters"], train["log_freq"]
        epochs = -(-total // self.steps_per_epoch)
        last = began = clock.seconds()
        recent: list[float] = []
        while self.step < total:
            epoch_losses: list[float] = []
            for index, batch in enumerate(self.batches()):
                clock.alive(self.step)
                value, norm = self.train_step(batch)
                epoch_losses.append(value)
                recent.append(value)
                if self.step % log_freq == 0:
                    now, lr = clock.seconds(), self.optimizer.param_groups[0]["lr"]
                    pace = (now - last) / log_freq
                    share = (index + 1) / self.steps_per_epoch
                    bar = "█" * int(10 * share) + " " * (10 - int(10 * share))
                    self.out.write(
                        f"\rEpoch {self.epoch + 1}/{epochs}: {100 * share:3.0f}%|{bar}| {index + 1}/{self.steps_per_epoch} "
                        f"[{int(now - began) // 60:02d}:{int(now - began) % 60:02d}<00:00, {1 / max(pace, 1e-9):.2f}it/s, "
                        f"loss={value:.4f}, lr={lr:.2e}, step={self.step}/{total}, gpu_mem={resident_gb(self.device):.2f}GB]"
                    )
                    row = {
                        "train/loss": sum(recent) / len(recent),
                        "train/learning_rate": lr,
                        "train/step": self.step,
                        "train/epoch": self.epoch,
                        "train/batch_time": pace,
                        "train/samples_per_second": train["batch_size"] / max(pace, 1e-9),
                        "system/gpu_memory_allocated": resident_gb(self.device),
                    }
                    if norm is not None:
                        row["train/grad_norm"] = norm
                    self.wandb.log(self.step, row)
                    last, recent = now, []
                if self.step % train["eval_freq"] == 0:
                    val_loss = self.evaluate()
                    self.wandb.log(self.step, {"val/loss": val_loss})
                    self.say(f"\n📉 Validation loss at step {self.step}: {val_loss:.4f}")
                    if val_loss < self.best_loss:
                        self.best_loss = val_loss
                        self.say(f"🎉 New best loss: {val_loss:.4f}")
                        self.save("best_checkpoint.pth")
                    self.save("checkpoint_latest.pth")
                if self.step % train["snapshot_freq"] == 0:
                    self.save(f"checkpoint_step_{self.step}.pth")
                    value = self.generate()
                    self.wandb.log(self.step, {"generation/quality": value})
                    self.say(f"🧬 Generation quality at step {self.step}: {value:.4f}")
                if self.step >= total:
                    break
            self.epoch += 1
            average = sum(epoch_losses) / len(epoch_losses)
            self.say(f"\n📊 Epoch {self.epoch} completed. Average loss: {average:.4f}")
        self.save("final_checkpoint.pth")
        self.wandb.finish(0)
        self.say(f"🎯 Training completed at step {self.step}. Best loss: {self.best_loss:.4f}")
        self.out.close()


def main(argv: list[str] | None = None) -> tuple[nn.Module, Noise]:
    """Train, and give back the averaged weights and the noise they were trained for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work_dir", default=".")
    parser.add_argument("--config", required=True)
    args = parser.parse_args(argv)
    cfg = yaml.safe_load(Path(args.config).read_text(encoding="utf-8"))
    trainer = Trainer(cfg, Path(args.work_dir), args.config)
    trainer.fit()
    return trainer.averaged(), trainer.noise


if __name__ == "__main__":
    main()
