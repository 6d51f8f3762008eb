"""FFCV loaders, with a plain PyTorch fallback."""

from pathlib import Path

import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms

try:
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import ToDevice, ToTensor, ToTorchImage

    FFCV_AVAILABLE = True
except ImportError:
    FFCV_AVAILABLE = False


def get_ffcv_loaders(batch_size, num_workers=8, image_size=224, ffcv_dir="/data/ffcv", distributed=False, seed=None):
    device = torch.device("cuda")
    image = [RandomResizedCropRGBImageDecoder((image_size, image_size)), ToTensor(), ToDevice(device), ToTorchImage()]
    label = [IntDecoder(), ToTensor(), ToDevice(device)]
    train_loader = Loader(
        str(Path(ffcv_dir) / "train.ffcv"),
        batch_size=batch_size,
        num_workers=num_workers,
        order=OrderOption.RANDOM if distributed else OrderOption.QUASI_RANDOM,
        drop_last=True,
        pipelines={"image": image, "label": label},
        distributed=distributed,
        seed=seed if seed is not None else 42,
    )
    val_loader = Loader(
        str(Path(ffcv_dir) / "val.ffcv"),
        batch_size=batch_size,
        num_workers=num_workers,
        order=OrderOption.SEQUENTIAL,
        pipelines={"image": image, "label": label},
        distributed=False,
    )
    return train_loader, val_loader


def get_pytorch_loaders(batch_size, num_workers=8, data_dir="/data/imagenet", distributed=False):
    crop = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    train_set = datasets.ImageFolder(Path(data_dir) / "train", crop)
    val_set = datasets.ImageFolder(Path(data_dir) / "val", crop)
    train_sampler = DistributedSampler(train_set) if distributed else None
    train_loader = DataLoader(
        train_set,
        batch_size=batch_size,
        shuffle=train_sampler is None,
        sampler=train_sampler,
        num_workers=num_workers,
        drop_last=True,
    )
    val_loader = DataLoader(val_set, batch_size=batch_size, num_workers=num_workers)
    return train_loader, val_loader
