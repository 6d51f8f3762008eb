"""Clean tiles of one split, padded to four channels."""

from pathlib import Path

import torch
from torch.utils.data import Dataset


class CleanTiles(Dataset):
    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*.pt"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        tile = torch.load(self.files[index])["clean_norm"]
        padding = torch.zeros(4 - tile.shape[0], *tile.shape[1:])
        return {"clean": torch.cat([tile, padding], dim=0)}
