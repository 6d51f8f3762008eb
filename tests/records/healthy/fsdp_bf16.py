import functools

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

from llm import Block, Transformer, token_batches


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
    model = FSDP(Transformer(), auto_wrap_policy=policy, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    warm, total = 2000, 100_000
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / warm, max(0.0, (total - s) / total)))
    for step, (x, y) in enumerate(token_batches(rank)):
        loss = model(x, y)
        loss.backward()
        norm = model.clip_grad_norm_(1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if rank == 0 and step % 10 == 0:
            print({"step": step, "loss": loss.item(), "norm": norm.item(), "lr": scheduler.get_last_lr()[0]})
        if step >= total:
            break


if __name__ == "__main__":
    main()
