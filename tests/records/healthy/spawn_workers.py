import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from net import Net, Samples


def worker(rank, world_size, args):
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.manual_seed(args.seed + rank)
    model = DDP(Net(args.width).to(rank), device_ids=[rank])
    lr = args.lr * world_size if args.scale_lr else args.lr
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=args.momentum)
    data = Samples(args.data)
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, seed=args.seed)
    loader = DataLoader(data, args.batch_size // world_size, sampler=sampler, num_workers=args.workers // world_size)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank)).backward()
            opt.step()
        if rank == 0 and (epoch + 1) % args.save_every == 0:
            torch.save(model.module.state_dict(), os.path.join(args.out, f"{epoch}.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--out", default="out")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--scale-lr", action="store_true")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n, args), nprocs=n, join=True)
