"""Train a protein SEDD with a noise curriculum."""

import argparse
from pathlib import Path

import torch
from schedule import WarmupCosineLR
from sedd import SEDD, ExponentialMovingAverage, Noise, curriculum_loss
from settings import Config, safe_getattr
from torch.utils.data import DataLoader, random_split
from tqdm import tqdm

import wandb


class Trainer:
    def __init__(self, config_file, datafile, device):
        self.cfg = Config(yamlfile=config_file)
        self.device = torch.device(device)
        torch.manual_seed(self.cfg.training.seed)
        self.work_dir = Path(self.cfg.work_dir)
        self.work_dir.mkdir(parents=True, exist_ok=True)
        self.setup_data(datafile or self.cfg.data.file)
        self.setup_model()
        self.setup_optimizer()

    def setup_data(self, datafile):
        data = torch.load(datafile)
        cut = int(len(data) * safe_getattr(self.cfg, "data.train_ratio", 0.9))
        train, val = random_split(data, [cut, len(data) - cut])
        batch_size = safe_getattr(self.cfg, "training.batch_size", 16)
        workers = safe_getattr(self.cfg, "training.num_workers", 0)
        self.train_loader = DataLoader(train, batch_size=batch_size, shuffle=True, num_workers=workers, drop_last=True)
        self.val_loader = DataLoader(val, batch_size=batch_size, num_workers=workers)

    def setup_model(self):
        self.model = SEDD(self.cfg).to(self.device)
        self.noise = Noise(self.cfg)
        self.ema = ExponentialMovingAverage(self.model.parameters(), decay=self.cfg.training.ema)

    def setup_optimizer(self):
        optim = self.cfg.optim
        if optim.optimizer == "AdamW":
            self.optimizer = torch.optim.AdamW(
                self.model.parameters(),
                lr=optim.lr,
                betas=(optim.beta1, optim.beta2),
                eps=optim.eps,
                weight_decay=optim.weight_decay,
            )
        else:
            raise NotImplementedError(optim.optimizer)
        self.scaler = torch.cuda.amp.GradScaler() if self.device.type == "cuda" else None
        self.scheduler = WarmupCosineLR(
            self.optimizer,
            warmup_steps=self.cfg.lr_schedule.warmup_steps,
            max_steps=self.cfg.lr_schedule.max_steps,
            base_lr=self.cfg.optim.lr * 0.1,
            max_lr=self.cfg.optim.lr,
            min_lr=self.cfg.optim.lr * self.cfg.lr_schedule.min_lr_ratio,
        )
        if self.cfg.lr_schedule.type != "cosine_with_warmup":
            raise NotImplementedError(self.cfg.lr_schedule.type)
        self.state = {"step": 0, "micro": 0}

    def setup_wandb(self, project, name):
        wandb.init(
            project=project,
            name=name,
            config={
                "batch_size": safe_getattr(self.cfg, "training.batch_size", 16),
                "accumulation_steps": safe_getattr(self.cfg, "training.accum", 2),
                "learning_rate": safe_getattr(self.cfg, "optim.lr", 5e-5),
                "warmup_steps": safe_getattr(self.cfg, "lr_schedule.warmup_steps", 1000),
                "max_iterations": safe_getattr(self.cfg, "training.n_iters", 5000),
            },
        )

    def compute_loss(self, batch, full=False):
        tokens = batch.to(self.device)
        time, ramp = 1, "linear"
        if self.cfg.curriculum.enabled and not full:
            time, ramp = self.cfg.curriculum.preschool_time, self.cfg.curriculum.difficulty_ramp
        step = self.state["step"] if self.cfg.curriculum.enabled and not full else 1
        return curriculum_loss(self.model, self.noise, tokens, step, preschool_time=time, curriculum_type=ramp)

    def train_step(self, batch):
        self.model.train()
        loss = self.compute_loss(batch) / self.cfg.training.accum
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        self.state["micro"] += 1
        if self.state["micro"] % self.cfg.training.accum == 0:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            if self.cfg.optim.grad_clip > 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.optim.grad_clip)
            if self.scaler is not None:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.scheduler.step()
            self.ema.update(self.model.parameters())
            self.optimizer.zero_grad()
            self.state["step"] += 1
        return loss.item() * self.cfg.training.accum

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            losses = [self.compute_loss(batch, full=True).item() for batch in self.val_loader]
        self.model.train()
        return sum(losses) / max(1, len(losses))

    def save_checkpoint(self, step, is_best=False):
        checkpoint = {
            "step": step,
            "model_state_dict": self.model.state_dict(),
            "ema_state_dict": self.ema.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
            "scheduler_state_dict": self.scheduler.state_dict(),
            "scaler_state_dict": self.scaler.state_dict() if self.scaler else None,
            "config": self.cfg,
        }
        torch.save(checkpoint, self.work_dir / f"checkpoint_step_{step}.pth")
        if is_best:
            torch.save(checkpoint, self.work_dir / "best_checkpoint.pth")

    def resume(self, path):
        checkpoint = torch.load(path, map_location=self.device)
        self.model.load_state_dict(checkpoint["model_state_dict"])
        self.optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
        self.scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
        self.ema.load_state_dict(checkpoint["ema_state_dict"])
        if self.scaler is not None and checkpoint["scaler_state_dict"]:
            self.scaler.load_state_dict(checkpoint["scaler_state_dict"])
        self.state["step"] = checkpoint["step"]

    def train(self, project, name):
        self.setup_wandb(project, name)
        best_val_loss = float("inf")
        step = self.state["step"]
        for epoch in range(self.cfg.training.epochs):
            running_loss = 0.0
            progress_bar = tqdm(self.train_loader, desc=f"Epoch {epoch + 1}/{self.cfg.training.epochs}")
            for batch in progress_bar:
                loss = self.train_step(batch)
                running_loss += loss
                if self.state["step"] == step:
                    continue
                step = self.state["step"]
                progress_bar.set_postfix(
                    {
                        "loss": f"{loss:.4f}",
                        "lr": f"{self.scheduler.get_last_lr()[0]:.2e}",
                        "step": f"{step}/{self.cfg.training.n_iters}",
                    }
                )
                if step % self.cfg.training.log_freq == 0:
                    wandb.log({"train/loss": running_loss / self.cfg.training.log_freq / self.cfg.training.accum}, step=step)
                    running_loss = 0.0
                if step % self.cfg.training.eval_freq == 0:
                    val_loss = self.validate()
                    wandb.log({"val/loss": val_loss}, step=step)
                if step % self.cfg.training.snapshot_freq == 0:
                    is_best = val_loss < best_val_loss
                    if is_best:
                        best_val_loss = val_loss
                    self.save_checkpoint(step, is_best)
                if step >= self.cfg.training.n_iters:
                    print(f"Reached maximum iterations ({self.cfg.training.n_iters})")
                    break
            if step >= self.cfg.training.n_iters:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=str, required=True)
    parser.add_argument("--datafile", type=str, default=None)
    parser.add_argument("--wandb_project", type=str, default="sedd")
    parser.add_argument("--wandb_name", type=str, default="run")
    parser.add_argument("--device", type=str, default="cpu")
    parser.add_argument("--resume", type=str, default=None)
    args = parser.parse_args()
    trainer = Trainer(args.config, args.datafile, args.device)
    if args.resume:
        trainer.resume(args.resume)
    trainer.train(args.wandb_project, args.wandb_name)


if __name__ == "__main__":
    main()
