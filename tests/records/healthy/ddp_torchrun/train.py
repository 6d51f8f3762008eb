import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--epochs", default=90, type=int)
    parser.add_argument("--batch-size", default=256, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", default=1e-4, type=float)
    parser.add_argument("--workers", default=8, type=int)
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--seed", default=None, type=int)
    parser.add_argument("-p", "--print-freq", default=10, type=int)
    return parser.parse_args()


def main():
    args = parse()
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    if args.seed is not None:
        torch.manual_seed(args.seed + rank)
    model = DistributedDataParallel(models.resnet50().cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr * world_size, momentum=args.momentum, weight_decay=args.wd
    )
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60, 80])
    train_set = datasets.ImageFolder(args.data, transforms.ToTensor())
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=args.batch_size, sampler=sampler, num_workers=args.workers)
    start = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=f"cuda:{local}")
        start = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    criterion = torch.nn.CrossEntropyLoss().cuda()
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for i, (images, target) in enumerate(loader):
            output = model(images.cuda(non_blocking=True))
            loss = criterion(output, target.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if i % args.print_freq == 0 and rank == 0:
                print(f"[{epoch}][{i}/{len(loader)}] {loss.item():.4f}")
        scheduler.step()
        if rank == 0:
            torch.save(
                {
                    "epoch": epoch + 1,
                    "state_dict": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                },
                "checkpoint.pth.tar",
            )


if __name__ == "__main__":
    main()
