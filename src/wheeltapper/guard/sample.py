"""A fixed sample of the coordinates of many tensors, gathered in a few launches.

Four runs of coordinates at even distances stand for a tensor: one strided view of four rows, so that one concatenation
takes all large tensors and one all small ones. The guard holds a few megabytes, whatever the size of the model, and
never a second copy of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

# Four runs of 1024: the RMS of 4096 coordinates is within 1.1 % (1/sqrt(2n)) for Gaussian values and, for a
# kurtosis of 100, still within 8 %; the guard reads these numbers on a log scale. What is put together over all
# tensors at every step needs fewer of each.
RUNS, RUN, SHORT_RUN = 4, 1024, 256


def local(tensor: Any) -> Any:
    """This rank's part of a DTensor; a plain tensor as it is."""
    return tensor._local_tensor if hasattr(tensor, "_local_tensor") else tensor


def view(data: Any, run: int = RUN) -> Any:
    """The sampled coordinates of a dense tensor: a view, nothing is copied. One of four runs or less is taken whole.

    >>> view(torch.zeros(10)).shape, view(torch.zeros(100, 100)).shape
    (torch.Size([10]), torch.Size([4, 1024]))
    """
    n = data.numel()
    return (
        data.as_strided((n,), (1,)) if n <= RUNS * run else data.as_strided((RUNS, run), ((n - run) // (RUNS - 1), 1))
    )


def dense(data: Any) -> bool:
    """Whether the coordinates fill one piece of memory, in whatever order (contiguous, channels-last, transposed)."""
    if data.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(data.stride(), data.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def placed(tensor: Any, device: torch.device) -> Any:
    """A small tensor on the device. Out of pinned memory: a copy out of ordinary memory would wait."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Layout:
    """Which tensors are sampled and where each lies in the flat vector: by dtype, large ones first."""

    def __init__(self, which: Iterable[int], tensors: Sequence[Any], device: torch.device, run: int = RUN) -> None:
        self.run, whole = run, RUNS * run
        kinds: dict[tuple[Any, bool], list[int]] = {}
        for i in which:
            kinds.setdefault((tensors[i].dtype, tensors[i].numel() > whole), []).append(i)
        self.order = [i for part in kinds.values() for i in part]
        self.sizes = [tensors[i].numel() for i in self.order]
        self.counts = [min(n, whole) for n in self.sizes]
        self.total = sum(self.counts)
        self.parts: list[tuple[Any, bool, list[int], int, int]] = []  # dtype, large, tensors, from, to
        at = 0
        for (dtype, large), part in kinds.items():
            length = sum(min(tensors[i].numel(), whole) for i in part)
            self.parts.append((dtype, large, part, at, at + length))
            at += length
        self.offsets = placed(torch.tensor([0, *np.cumsum(self.counts).tolist()], dtype=torch.long), device)
        self.lengths = placed(torch.tensor(self.counts, dtype=torch.float32), device)
        self.device = device

    def rooms(self, out: Any) -> list[Any]:
        """The places of the parts in a flat vector."""
        return [out[a:b].view(-1, self.run) if large else out[a:b] for _, large, _, a, b in self.parts]

    def views(self, tensors: Any) -> list[list[Any]]:
        """Views of the sampled coordinates; `tensors` has one for each of `order`, by its index."""
        return [[view(tensors[i], self.run) for i in part] for _, _, part, _, _ in self.parts]

    def take(self, views: list[list[Any]], rooms: list[Any] | None = None) -> Any:
        """The coordinates as float32, into `rooms` where they are given; else a new flat vector is returned."""
        flat = None
        if rooms is None:
            flat = torch.empty(self.total, dtype=torch.float32, device=self.device)
            rooms = self.rooms(flat)
        for part, room in zip(views, rooms, strict=True):
            if part[0].dtype == torch.float32:
                torch.cat(part, out=room)
            else:  # with another dtype as its target torch.cat would copy one by one
                room.copy_(torch.cat(part))
        return flat

    def sums(self, flat: Any) -> Any:
        """The sum over each tensor's coordinates of a flat vector."""
        return torch.segment_reduce(flat, "sum", offsets=self.offsets, unsafe=True)

    def rms(self, flat: Any) -> Any:
        """The RMS of each tensor's coordinates. A vector of our own: it is overwritten."""
        return (self.sums(flat.mul_(flat)) / self.lengths).sqrt_()

    def spread(self, each: Any) -> Any:
        """One number for each tensor, repeated for each of its coordinates."""
        return torch.repeat_interleave(each, self.lengths.long(), output_size=self.total)


# The largest tensors that hold this share of all coordinates stand for the weights at every step; the looks take
# all. The others are biases and gains: a hundred more tensors to gather for a hundredth of the coordinates.
COVER, FEW, MANY = 0.99, 32, 128


def largest(sizes: Sequence[int]) -> list[int]:
    """Positions of the tensors that stand for the weights at every step: all of FEW, at most MANY.

    >>> largest([5, 1000, 3]), len(largest([10] * 64 + [100_000] * 64))
    ([0, 1, 2], 64)
    """
    if len(sizes) <= FEW:
        return list(range(len(sizes)))
    by_size = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    held = np.cumsum([sizes[i] for i in by_size])
    enough = int(np.searchsorted(held, COVER * held[-1])) + 1
    return sorted(by_size[: min(max(enough, FEW), MANY)])


class Moves:
    """How far a step moves the weights, on the sample: ‖Δw‖ and ‖w‖ over all coordinates, each tensor weighing by its
    size. The sample after a step is the one before the next, unless someone wrote in between."""

    def __init__(self, params: Sequence[Any], which: Sequence[int], device: torch.device) -> None:
        tensors = [local(p.detach()) for p in params]
        self.layout = Layout(which, tensors, device, SHORT_RUN)
        self._params = [params[i] for i in self.layout.order]
        self._views = self.layout.views(tensors)
        counts = torch.tensor(self.layout.counts)
        weights = (torch.tensor(self.layout.sizes) / counts).sqrt().repeat_interleave(counts)
        self._root = placed(weights.float(), device)
        # The weights as they are in the first or the last row, those before in the other, the change between them: so
        # the two that are wanted lie side by side.
        held = torch.zeros(3, self.layout.total, device=device)
        self._rows = list(held.unbind(0))
        self._rooms = {k: self.layout.rooms(self._rows[k]) for k in (0, 2)}
        self._pairs = {0: held[:2], 2: held[1:]}
        self._weighed = torch.empty_like(held[:2])
        self._now = 0
        self._versions: list[int] | None = None

    def before(self) -> None:
        """Before a step. An optimizer, `load_state_dict` and every in-place change count a tensor's version up; one
        made through `.data` does not, and is then taken as a part of the step."""
        if self._versions is None or self._versions != [p._version for p in self._params]:
            self.layout.take(self._views, self._rooms[self._now])

    def after(self) -> Any:
        """After it: the norms of change and weights on the device, in the order that `weights_first` says."""
        was, now = self._now, 2 - self._now
        self.layout.take(self._views, self._rooms[now])
        torch.sub(self._rows[now], self._rows[was], out=self._rows[1])
        torch.mul(self._pairs[now], self._root, out=self._weighed)
        self._now = now
        self._versions = [p._version for p in self._params]
        return torch.linalg.vector_norm(self._weighed, dim=1)

    @property
    def weights_first(self) -> bool:
        return self._now == 0
