import argparse
import math

import torch
from accelerate import Accelerator
from diffusers.optimization import get_scheduler
from tqdm.auto import tqdm

from unet import UNet, loader_of


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir", type=str, default="out")
    parser.add_argument("--train_batch_size", type=int, default=16)
    parser.add_argument("--num_train_epochs", type=int, default=100)
    parser.add_argument("--max_train_steps", type=int, default=None)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--scale_lr", action="store_true")
    parser.add_argument("--lr_scheduler", type=str, default="cosine")
    parser.add_argument("--lr_warmup_steps", type=int, default=500)
    parser.add_argument("--mixed_precision", type=str, default="fp16")
    parser.add_argument("--max_grad_norm", default=1.0, type=float)
    parser.add_argument("--tracker_project_name", type=str, default="text2image")
    parser.add_argument("--checkpointing_steps", type=int, default=500)
    return parser.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(
        gradient_accumulation_steps=args.gradient_accumulation_steps, mixed_precision=args.mixed_precision
    )
    if args.scale_lr:
        args.learning_rate = (
            args.learning_rate * args.gradient_accumulation_steps * args.train_batch_size * accelerator.num_processes
        )
    unet = UNet()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=args.learning_rate)
    loader = loader_of(args.train_batch_size)
    updates = math.ceil(len(loader) / args.gradient_accumulation_steps)
    if args.max_train_steps is None:
        args.max_train_steps = args.num_train_epochs * updates
    lr_scheduler = get_scheduler(
        args.lr_scheduler,
        optimizer=optimizer,
        num_warmup_steps=args.lr_warmup_steps * accelerator.num_processes,
        num_training_steps=args.max_train_steps * accelerator.num_processes,
    )
    unet, optimizer, loader, lr_scheduler = accelerator.prepare(unet, optimizer, loader, lr_scheduler)
    if accelerator.is_main_process:
        accelerator.init_trackers(args.tracker_project_name, config=vars(args))
    global_step = 0
    bar = tqdm(range(args.max_train_steps), disable=not accelerator.is_local_main_process)
    for _ in range(args.num_train_epochs):
        unet.train()
        for batch in loader:
            with accelerator.accumulate(unet):
                loss = torch.nn.functional.mse_loss(unet(batch["noisy"], batch["t"]), batch["noise"])
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(unet.parameters(), args.max_grad_norm)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                bar.update(1)
                global_step += 1
                if global_step % args.checkpointing_steps == 0:
                    accelerator.save_state(args.output_dir)
            bar.set_postfix(loss=loss.item(), lr=lr_scheduler.get_last_lr()[0])
            if global_step >= args.max_train_steps:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
