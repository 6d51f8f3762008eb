"""Runs that are still being written, for tests: rows are appended as a training would."""

from __future__ import annotations

import math
import random
import time
from pathlib import Path


class Live:
    """A run folder with a config and a table of epochs. `grow(n)` writes n more rows."""

    def __init__(self, root: Path, name: str = "exp", *, total: int = 200, seed: int = 0) -> None:
        self.folder = root / name
        self.folder.mkdir(parents=True)
        (self.folder / "args.yaml").write_text(f"epochs: {total}\nlr: 0.001\n")
        self.log = self.folder / "log.csv"
        self.log.write_text("epoch,train_loss,val_accuracy,lr,time\n")
        self.epoch = 0
        self._rng = random.Random(seed)

    def row(self, *, broken: bool = False) -> str:
        e = self.epoch
        loss = "nan" if broken else f"{0.3 + 2 / (1 + 0.3 * e) + self._rng.gauss(0, 0.02):.4f}"
        score = 10.0 if broken else 90 - 60 * math.exp(-e / 25) + self._rng.gauss(0, 0.4)
        self.epoch += 1
        return f"{e},{loss},{score:.3f},0.001,{1.7e9 + 60 * e:.0f}\n"

    def grow(self, n: int, *, broken: bool = False) -> None:
        with self.log.open("a") as file:
            file.write("".join(self.row(broken=broken) for _ in range(n)))


class Clock:
    """A clock that goes only when told to."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now
