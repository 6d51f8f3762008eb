import contextlib

import torch
import torch.distributed as dist
import yaml
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from corpus import Corpus
from network import Network


def main(path="config.yaml"):
    with open(path) as f:
        cfg = yaml.safe_load(f)
    dist.init_process_group(backend="nccl")
    rank = dist.get_rank()
    model = DDP(Network(cfg["width"], cfg["depth"]).to(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])
    dataset = Corpus(cfg["data"])
    sampler = DistributedSampler(dataset, shuffle=True, seed=cfg["seed"])
    loader = DataLoader(dataset, batch_size=cfg["batch_size"], sampler=sampler)
    accum = cfg["accum_steps"]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=cfg["lr"], total_steps=cfg["epochs"] * (len(loader) // accum + 1)
    )
    for epoch in range(cfg["epochs"]):
        sampler.set_epoch(epoch)
        model.train()
        for i, (x, y) in enumerate(loader):
            sync = (i + 1) % accum == 0 or i + 1 == len(loader)
            context = contextlib.nullcontext() if sync else model.no_sync()
            with context:
                loss = torch.nn.functional.mse_loss(model(x.to(rank)), y.to(rank))
                (loss / accum).backward()
            if sync:
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
