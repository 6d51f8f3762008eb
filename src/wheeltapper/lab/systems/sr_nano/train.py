"""Super-resolution training: python train.py -opt options/train/2xParagonSR2_Nano.yml [--auto_resume]"""

from __future__ import annotations

import argparse
import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from wheeltapper.lab import clock
from wheeltapper.lab.files import EventFile, resident_gb, save_safetensors
from wheeltapper.lab.precision import grads_through_half, half_hooks, scaler_for
from wheeltapper.lab.systems.sr_nano.data import degrade, make_scenes, psnr, ssim, ssim_map
from wheeltapper.lab.systems.sr_nano.losses import EMA, DynamicLossScheduler
from wheeltapper.lab.systems.sr_nano.model import ParagonSR2, PatchDiscriminator
from wheeltapper.lab.systems.sr_nano.options import Options, load_options

SCHEDULERS = {
    "multisteplr": torch.optim.lr_scheduler.MultiStepLR,
    "cosineannealinglr": torch.optim.lr_scheduler.CosineAnnealingLR,
    "cosineannealingwarmrestarts": torch.optim.lr_scheduler.CosineAnnealingWarmRestarts,
}


class Log:
    """The log file of one launch."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"train_{name}_{clock.now():%Y%m%d_%H%M%S}.log"

    def __call__(self, text: str, level: str = "INFO") -> None:
        now = clock.now()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d} {level}: {text}\n")


class SRModel:
    def __init__(self, opt: Options, log: Log) -> None:
        self.opt, self.log = opt, log
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        settings = {key: value for key, value in opt.network_g.items() if key != "type"}
        self.net_g = ParagonSR2(scale=opt.scale, **settings).to(self.device)
        log(f"Network [bold]ParagonSR2[/bold]({settings}) is created from [bold]traiNNer-redux[/bold].")
        self.scaled = opt.use_amp and not opt.amp_bf16
        if opt.use_amp:
            half = "bf16" if opt.amp_bf16 else "fp16"
            log(f"Using Automatic Mixed Precision (AMP) with fp32 and {half}.")
        if self.scaled and self.device.type == "cpu":
            half_hooks(self.net_g, (nn.Conv2d, nn.Linear, nn.Identity))
        self.scaler_g = scaler_for(self.device.type, enabled=self.scaled)
        train = opt.train
        self.ema = EMA(self.net_g, train.ema_decay, train.ema_power, train.ema_update_after_step)
        log(f"Using Exponential Moving Average (EMA) with decay: {train.ema_decay}.")
        if train.grad_clip:
            log("Gradient clipping is enabled.")
        self.weights = {loss.type.removesuffix("loss"): loss.loss_weight for loss in train.losses}
        for loss in train.losses:
            log(f"Loss [bold]{loss.type}[/bold]({{'loss_weight': {loss.loss_weight}}}) is created.")
        dls = train.dynamic_loss_scheduling
        self.dls = DynamicLossScheduler(dls) if dls and dls.enabled else None
        self.setup_optimizers()
        self.values: dict[str, float] = {}
        self.count = 0

    def setup_optimizers(self) -> None:
        train = self.opt.train
        parameters = []
        for name, parameter in self.net_g.named_parameters():
            if parameter.requires_grad:
                parameters.append(parameter)
            else:
                self.log(f"Params {name} will not be optimized.", "WARNING")
        settings = dict(train.optim_g)
        kind = settings.pop("type")
        self.optimizer_g = getattr(torch.optim, kind)(parameters, **settings)
        self.log(f"Optimizer [bold]{kind}[/bold]({settings}) is created.")
        settings = dict(train.scheduler)
        kind = settings.pop("type")
        self.scheduler = SCHEDULERS[kind.lower()](self.optimizer_g, **settings)
        self.log(f"Scheduler [bold]{kind}[/bold]({settings}) is created.")
        self.net_d, self.optimizer_d = None, None
        if self.opt.network_d and train.optim_d:
            self.net_d = PatchDiscriminator().to(self.device)
            settings = {key: value for key, value in train.optim_d.items() if key != "type"}
            self.optimizer_d = torch.optim.AdamW(self.net_d.parameters(), **settings)

    def update_learning_rate(self, current_iter: int) -> None:
        """The schedule, then a linear warm-up written over it."""
        if current_iter > 1:
            self.scheduler.step()
        warmup = self.opt.train.warmup_iter
        if current_iter < warmup:
            for group in self.optimizer_g.param_groups:
                group["lr"] = group["initial_lr"] * current_iter / warmup

    def criteria(self, output: torch.Tensor, gt: torch.Tensor) -> dict[str, torch.Tensor]:
        losses = {}
        if "l1" in self.weights:
            losses["l_g_l1"] = self.weights["l1"] * F.l1_loss(output, gt)
        if "ssim" in self.weights:
            losses["l_g_ssim"] = self.weights["ssim"] * (1 - ssim_map(output, gt).mean())
        if self.net_d is not None:
            losses["l_g_gan"] = self.weights["gan"] * F.softplus(-self.net_d(output)).mean()
        return losses

    def optimize_parameters(self, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        train = self.opt.train
        logged: dict[str, float] = {}
        half = torch.bfloat16 if self.opt.amp_bf16 else torch.float16
        for lq, gt in batches:
            autocast = self.opt.use_amp and (self.opt.amp_bf16 or self.device.type == "cuda")
            with torch.autocast(self.device.type, dtype=half, enabled=autocast):
                output = self.net_g(lq)
            losses = self.criteria(output.float(), gt)
            if self.dls is not None:
                weights = self.dls.weights({name: loss.item() for name, loss in losses.items()})
                losses = {name: weights[name] * loss for name, loss in losses.items()}
                logged |= {f"dynamic_weight_{name}": weight for name, weight in weights.items()}
            total = sum(losses.values(), torch.zeros((), device=self.device))
            if not torch.isfinite(total):
                raise RuntimeError(
                    "Training failed: NaN/Inf found in loss. Try reducing the learning rate. "
                    "If training still fails, please file an issue on the project's tracker."
                )
            self.scaler_g.scale(total / len(batches)).backward()
            for name, loss in [*losses.items(), ("l_g_total", total)]:
                logged[name] = logged.get(name, 0.0) + loss.item() / len(batches)
        if self.scaled and self.device.type == "cpu":
            grads_through_half(self.net_g)
        self.scaler_g.unscale_(self.optimizer_g)
        limit = 1.0 if train.grad_clip else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.net_g.parameters(), limit)
        logged["grad_norm_g"] = norm.item()
        scale = self.scaler_g.get_scale()
        self.scaler_g.step(self.optimizer_g)
        self.scaler_g.update()
        self.optimizer_g.zero_grad()
        if self.net_d is not None:
            logged |= self.optimize_discriminator(output.detach().float(), gt)
        logged["scale_g"] = self.scaler_g.get_scale()
        if self.scaler_g.get_scale() >= scale:
            self.ema.update(self.net_g)
        self.count += 1
        for name, value in logged.items():
            self.values[name] = self.values.get(name, 0.0) + value

    def optimize_discriminator(self, made: torch.Tensor, real: torch.Tensor) -> dict[str, float]:
        assert self.net_d is not None
        assert self.optimizer_d is not None
        self.optimizer_d.zero_grad()
        out_real, out_fake = self.net_d(real), self.net_d(made)
        l_real, l_fake = F.softplus(-out_real).mean(), F.softplus(out_fake).mean()
        (l_real + l_fake).backward()
        self.optimizer_d.step()
        return {
            "l_d_real": l_real.item(),
            "l_d_fake": l_fake.item(),
            "out_d_real": out_real.mean().item(),
            "out_d_fake": out_fake.mean().item(),
        }

    def averaged(self) -> nn.Module:
        """The network with the averaged weights: what validation judges and users get."""
        net = copy.deepcopy(self.net_g)
        net.load_state_dict({name: value.float() for name, value in self.ema.weights.items()})
        return net.eval()

    def test(self, net: nn.Module, lq: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return net(lq).float()

    def window(self) -> dict[str, float]:
        """Means since the last print."""
        out = {name: value / self.count for name, value in self.values.items()}
        self.values, self.count = {}, 0
        return out


def training_batches(opt: Options, scenes: torch.Tensor, seed: int) -> Any:
    """Random crops for ever: yields (epoch, lq, gt)."""
    data = opt.datasets.train
    generator = torch.Generator().manual_seed(seed)
    gt_size = (data.lq_size or 16) * opt.scale
    epoch = 0
    while True:
        order = torch.randperm(len(scenes), generator=generator)
        for start in range(0, len(order), data.batch_size_per_gpu):
            index = order[start : start + data.batch_size_per_gpu]
            span = (scenes.shape[-1] - gt_size) // opt.scale + 1
            top, left = (opt.scale * torch.randint(0, span, (2,), generator=generator)).tolist()
            gt = scenes[index][..., top : top + gt_size, left : left + gt_size]
            if data.use_hflip and torch.rand((), generator=generator) < 0.5:
                gt = gt.flip(-1)
            if data.use_rot and torch.rand((), generator=generator) < 0.5:
                gt = gt.transpose(-1, -2)
            lq = degrade(gt, opt.scale)
            yield epoch, lq, gt
        epoch += 1


def save_state(folder: Path, model: SRModel, epoch: int, current_iter: int) -> None:
    model.log(f"Saving models and training states to experiments folder for epoch: {epoch}, iter: {current_iter}.")
    save_safetensors(folder / "models" / f"net_g_ema_{current_iter}.safetensors", model.ema.weights)
    save_safetensors(folder / "resume_models" / f"net_g_{current_iter}.safetensors", model.net_g.state_dict())
    state = {
        "epoch": epoch,
        "iter": current_iter,
        "net_g": model.net_g.state_dict(),
        "ema": model.ema.weights,
        "optimizers": [model.optimizer_g.state_dict()],
        "schedulers": [model.scheduler.state_dict()],
        "scaler_g": model.scaler_g.state_dict(),
        "ema_step": model.ema.step,
    }
    (folder / "training_states").mkdir(exist_ok=True)
    torch.save(state, folder / "training_states" / f"{current_iter}.state")


def resume(folder: Path, model: SRModel) -> tuple[int, int]:
    states = sorted((folder / "training_states").glob("*.state"), key=lambda path: int(path.stem))
    if not states:
        return 0, 0
    state = torch.load(states[-1], weights_only=True)
    model.net_g.load_state_dict(state["net_g"])
    model.ema.weights, model.ema.step = state["ema"], state["ema_step"]
    model.optimizer_g.load_state_dict(state["optimizers"][0])
    model.scheduler.load_state_dict(state["schedulers"][0])
    model.scaler_g.load_state_dict(state["scaler_g"])
    model.log(f"Resuming training from epoch: {state['epoch']}, iter: {state['iter']:,}.")
    return state["epoch"], state["iter"]


def train_pipeline(opt_path: str, auto_resume: bool) -> nn.Module:
    opt, text = load_options(opt_path)
    folder = Path("experiments", opt.name)
    log = Log(folder, opt.name)
    (folder / Path(opt_path).name).write_text(text, encoding="utf-8")
    log(text, "DEBUG")
    seed = opt.manual_seed or 0
    torch.manual_seed(seed)
    log(f"Training with manual_seed={seed}.")
    data, held = opt.datasets.train, opt.datasets.val
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    scenes = make_scenes(*data.made).to(device)
    val_gt = make_scenes(*held.made)
    val_lq = degrade(val_gt, opt.scale)
    per_epoch = -(-len(scenes) // (data.batch_size_per_gpu * data.accum_iter))
    total_iter = opt.train.total_iter
    lq_size = data.lq_size or 16
    log(
        f"Training statistics for [b]{opt.name}[/b]:\n"
        f"\tNumber of train image pairs: {len(scenes):11,}\tDataset enlarge ratio: {1:17,}\n"
        f"\tBatch size per gpu: {data.batch_size_per_gpu:20,}\tAccumulate iterations: {data.accum_iter:17,}\n"
        f"\tHR crop size: {lq_size * opt.scale:26,}\tLR crop size: {lq_size:26,}\n"
        f"\tWorld size (gpu number): {1:15,}\tRequire iter per epoch: {per_epoch:16,}\n"
        f"\tTotal epochs: {-(-total_iter // per_epoch):26,}\tTotal iters: {total_iter:27,}"
    )
    log(f"Number of val images/folders in {held.name}: {len(val_gt)}")
    model = SRModel(opt, log)
    log("Model [bold]SRModel[/bold] is created.")
    epoch, current_iter = resume(folder, model) if auto_resume else (0, 0)
    events = EventFile(Path("tb_logger", opt.name), clock.now().timestamp())
    log(f"Start training from epoch: {epoch}, iter: {current_iter:,}.")
    batches = training_batches(opt, scenes, seed + current_iter)
    best: dict[str, tuple[float, int]] = {}
    began = last = clock.seconds()
    first_iter, offset = current_iter, epoch
    while current_iter < total_iter:
        clock.alive(current_iter)
        group = [next(batches) for _ in range(data.accum_iter)]
        epoch = offset + group[0][0]
        current_iter += 1
        model.update_learning_rate(current_iter)
        model.optimize_parameters([(lq.to(model.device), gt.to(model.device)) for _, lq, gt in group])
        if current_iter % opt.logger.print_freq == 0:
            values = model.window()
            now = clock.seconds()
            speed = opt.logger.print_freq / max(now - last, 1e-9)
            eta = timedelta(seconds=int((now - began) / (current_iter - first_iter) * (total_iter - current_iter)))
            last = now
            lr = model.optimizer_g.param_groups[0]["lr"]
            log(
                f"[epoch: {epoch:3,d}, iter: {current_iter:7,d}, lr:({lr:.3e})] [performance: {speed:.3f} it/s] "
                f"[eta: {eta}] [peak VRAM: {resident_gb(model.device):.2f} GB] "
                + " ".join(f"{name}: {value:.4e}" for name, value in values.items())
            )
            if opt.logger.use_tb_logger:
                folders = (("l_", "losses/"), ("grad_norm", "grad_norms/"), ("scale", "scales/"))
                tags = {
                    next((tag for start, tag in folders if name.startswith(start)), "") + name: value
                    for name, value in values.items()
                }
                events.scalars(current_iter, clock.now().timestamp(), tags)
        if model.dls is not None and current_iter == model.dls.options.baseline_iterations:
            log(
                f"Dynamic loss scheduler baseline established at iteration {current_iter}. "
                f"Baseline loss values: {model.dls.baseline}"
            )
        if current_iter % opt.logger.save_checkpoint_freq == 0 and current_iter < total_iter:
            save_state(folder, model, epoch, current_iter)
        if opt.val.val_enabled and current_iter % opt.val.val_freq == 0:
            net = model.averaged()
            sr = torch.cat([model.test(net, part.to(model.device)).cpu() for part in val_lq.split(8)])
            results = {"psnr": psnr(sr, val_gt), "ssim": ssim(sr, val_gt)}
            lines = [f"Validation {held.name}"]
            for name, value in results.items():
                if name not in best or value > best[name][0]:
                    best[name] = (value, current_iter)
                top, at = best[name]
                lines.append(f"\t # {name:<5}: {value:7.4f}\tBest: {top:7.4f} @ {at:9,d} iter")
            log("\n".join(lines) + "\n")
            tags = {f"metrics/{held.name}/{name}": value for name, value in results.items()}
            events.scalars(current_iter, clock.now().timestamp(), tags)
    log(f"End of training. Time consumed: {timedelta(seconds=int(clock.seconds() - began))}")
    log("Save the latest model.")
    save_state(folder, model, epoch, current_iter)
    return model.averaged()


def main(argv: list[str] | None = None) -> nn.Module:
    """Train, and give back the averaged weights."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-opt", required=True, help="path of the options YAML file")
    parser.add_argument("--auto_resume", action="store_true")
    args = parser.parse_args(argv)
    return train_pipeline(args.opt, args.auto_resume)


if __name__ == "__main__":
    main()
