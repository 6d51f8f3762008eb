import argparse

import torch
import yaml
from timm.data import create_dataset, create_loader
from timm.loss import LabelSmoothingCrossEntropy
from timm.models import create_model
from timm.optim import create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler_v2, scheduler_kwargs
from timm.utils import ModelEmaV3, NativeScaler, dispatch_clip_grad

config_parser = argparse.ArgumentParser(add_help=False)
config_parser.add_argument("-c", "--config", default="", type=str)
parser = argparse.ArgumentParser()
group = parser.add_argument_group("Training")
group.add_argument("--data-dir", type=str)
group.add_argument("--model", default="resnet50", type=str)
group.add_argument("-b", "--batch-size", type=int, default=128)
group.add_argument("--opt", default="sgd", type=str)
group.add_argument("--lr", type=float, default=None)
group.add_argument("--momentum", type=float, default=0.9)
group.add_argument("--weight-decay", type=float, default=2e-5)
group.add_argument("--clip-grad", type=float, default=None)
group.add_argument("--sched", type=str, default="cosine")
group.add_argument("--epochs", type=int, default=300)
group.add_argument("--warmup-epochs", type=int, default=5)
group.add_argument("--smoothing", type=float, default=0.1)
group.add_argument("--model-ema", action="store_true", default=False)
group.add_argument("--model-ema-decay", type=float, default=0.9998)
group.add_argument("--grad-accum-steps", type=int, default=1)
group.add_argument("--log-interval", type=int, default=50)


def _parse_args():
    args_config, remaining = config_parser.parse_known_args()
    if args_config.config:
        with open(args_config.config) as f:
            parser.set_defaults(**yaml.safe_load(f))
    args = parser.parse_args(remaining)
    return args, yaml.safe_dump(args.__dict__, default_flow_style=False)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, lr_scheduler=None, loss_scaler=None, model_ema=None):
    model.train()
    accum_steps = args.grad_accum_steps
    last_accum_steps = len(loader) % accum_steps
    updates_per_epoch = (len(loader) + accum_steps - 1) // accum_steps
    num_updates = epoch * updates_per_epoch
    last_batch_idx_to_accum = len(loader) - last_accum_steps
    optimizer.zero_grad()
    for batch_idx, (x, target) in enumerate(loader):
        need_update = batch_idx == len(loader) - 1 or (batch_idx + 1) % accum_steps == 0
        if batch_idx >= last_batch_idx_to_accum:
            accum_steps = last_accum_steps
        loss = loss_fn(model(x), target)
        if accum_steps > 1:
            loss /= accum_steps
        if loss_scaler is not None:
            loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters(), need_update=need_update)
        else:
            loss.backward()
            if need_update:
                if args.clip_grad is not None:
                    dispatch_clip_grad(model.parameters(), value=args.clip_grad)
                optimizer.step()
        if not need_update:
            continue
        num_updates += 1
        optimizer.zero_grad()
        if model_ema is not None:
            model_ema.update(model, step=num_updates)
        if lr_scheduler is not None:
            lr_scheduler.step_update(num_updates=num_updates)


def main():
    args, args_text = _parse_args()
    print(args_text)
    model = create_model(args.model)
    optimizer = create_optimizer_v2(model, **optimizer_kwargs(cfg=args))
    loader = create_loader(create_dataset("", root=args.data_dir), input_size=224, batch_size=args.batch_size)
    model_ema = ModelEmaV3(model, decay=args.model_ema_decay) if args.model_ema else None
    scheduler, num_epochs = create_scheduler_v2(optimizer, **scheduler_kwargs(args), updates_per_epoch=len(loader))
    loss_fn = LabelSmoothingCrossEntropy(smoothing=args.smoothing)
    for epoch in range(num_epochs):
        train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, scheduler, NativeScaler(), model_ema)
        if scheduler is not None:
            scheduler.step(epoch + 1)
        if model_ema is not None and epoch % args.log_interval == 0:
            torch.save(model_ema.module.state_dict(), "ema.pth")


if __name__ == "__main__":
    main()
