"""The numbers of a step on a CUDA device by kernels of our own: two launches a step, and hardly anything else.

The kernels read tensors by their addresses. What an address means (dtype, device, one piece of memory) is checked when
it is new; a step whose addresses were all met before costs a comparison. Whatever does not fit (sparse gradients, shards,
tensors of other kinds) is left to the calls of torch in `measure` and `sample`, which give the same numbers.
"""

from __future__ import annotations

import ctypes
import logging
from array import array
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from wheeltapper.guard import kernel
from wheeltapper.guard.kernel import KINDS, PIECE, TABLE, Addresses, Launch
from wheeltapper.guard.outbox import Outbox
from wheeltapper.guard.sample import RUNS, Layout, dense, placed

log = logging.getLogger("wheeltapper.guard")

ADDRESS = torch.Tensor.data_ptr
STRIDE, PLACE = torch.Tensor.stride, torch.Tensor.get_device
VERSION, KIND = attrgetter("_version"), attrgetter("dtype")
NONE = (None,) * 5
PIECES = np.dtype([("tensor", "i4"), ("kind", "i4"), ("count", "i4"), ("unused", "i4"), ("start", "i8")])
SAMPLES = np.dtype(
    [("tensor", "i4"), ("kind", "i4"), ("count", "i4"), ("run", "i4"), ("gap", "i8"), ("at", "i8"), ("weight", "f8")]
)


class Unfit(Exception):  # noqa: N818
    """These tensors are not for the kernels."""


def build(params: Sequence[Any], group_of: Sequence[int], row: Any, head: int) -> Fused | None:
    """For the parameters of an optimizer and the row that their numbers go to; None where torch's calls must do."""
    device = row.device
    if device.type != "cuda" or not params:
        return None
    try:
        return Fused(kernel.load(device.index), params, group_of, row, head)
    except Exception as error:
        log.info("the guard measures by torch's own calls, which cost the host more: %s", error)
        return None


def uploaded(data: np.ndarray[Any, Any], device: torch.device) -> Any:
    return placed(torch.from_numpy(data.view(np.uint8).reshape(-1)), device)


def address(tensor: Any) -> Any:
    return ctypes.c_uint64(tensor.data_ptr())


class Fused:
    """Measures the gradients of a fixed list of parameters, and writes the row of a step: `head` numbers, the norm of
    every group, the norm of every parameter."""

    def __init__(self, kernels: Any, params: Sequence[Any], group_of: Sequence[int], row: Any, head: int) -> None:
        self.kernels, self.row, self.device, self.head = kernels, row, row.device, head
        self.count, self._length = len(params), len(row)
        self._kinds = [p.dtype for p in params]
        self._strides = [p.stride() for p in params]
        fit(params, self._kinds, self.device)
        self._now: list[int] = []
        self._index = self.device.index if self.device.type == "cuda" else -1
        pieces: list[tuple[int, int, int, int, int]] = []
        first, ends = [0], []
        for i, p in enumerate(params):
            n, kind = p.numel(), KINDS[p.dtype]
            pieces += [(i % TABLE, kind, min(PIECE, n - at), 0, at) for at in range(0, n, PIECE)]
            first.append(len(pieces))
            if i % TABLE == TABLE - 1 or i == self.count - 1:
                ends.append(len(pieces))
        groups = np.searchsorted(group_of, np.arange(max(group_of) + 2))
        if any(a > b for a, b in pairwise(group_of)):
            raise Unfit("the groups are not in order")
        # One more of each: a tensor of no bytes would have no address.
        self._held = [
            uploaded(np.array([*pieces, (0, 0, 0, 0, 0)], dtype=PIECES), self.device),
            torch.zeros(len(pieces) + 1, dtype=torch.float64, device=self.device),
            uploaded(np.array(first, dtype=np.int32), self.device),
            torch.zeros(self.count, dtype=torch.float64, device=self.device),
            uploaded(groups.astype(np.int32), self.device),
            torch.zeros(1, dtype=torch.int32, device=self.device),
        ]
        where, sums, begins, squares, bounds, ended = map(address, self._held)
        self._tables: list[Any] = []
        self._launches: list[Launch] = []
        begun = 0
        for end in ends:
            table = Addresses()
            args = [
                table,
                ctypes.c_uint64(where.value + begun * PIECES.itemsize),
                ctypes.c_uint64(sums.value + begun * 8),
            ]
            self._tables.append(table)
            if end > begun:
                self._launches.append(Launch(kernels, "wheeltapper_sums", end - begun, args))
            begun = end
        self._into = address(row)
        self._scalars = [ctypes.c_uint64(0) for _ in range(head - 2)]
        self._numbers = [
            self._into,
            begins,
            sums,
            squares,
            bounds,
            ctypes.c_int(len(groups) - 1),
            ended,
            *self._scalars,
        ]
        self._ring: tuple[Any, int] = (None, 0)
        self.sample((), None)
        for launch in self._launches:  # of no tensors: what cannot be launched fails here
            self._start(launch)
        self.norms()

    def sample(self, params: Sequence[Any], layout: Layout | None) -> Moves:
        """From now on these parameters are sampled."""
        self.moves = Moves(self, params, layout)
        self._finish = Launch(self.kernels, "wheeltapper_row", 0, [*self.moves.args, *self._numbers])
        return self.moves

    def _start(self, launch: Launch, event: int | None = None) -> None:
        """Launch on the current stream, and record an event after it. Stream 0 is that of the current device."""
        index, of = self._index, torch._C
        if of._cuda_getDevice() != index:
            with torch.cuda.device(index):
                self._start(launch, event)
            return
        stream = of._cuda_getCurrentRawStream(index)
        launch(stream)
        if event is not None:
            self.kernels.record(event, stream)

    def gradients(self, grads: list[Any]) -> None:
        """Sum the squares of these gradients; None where there is none. Raises for such as the kernels cannot read."""
        there, kinds, strides = grads, self._kinds, self._strides
        try:
            now = list(map(ADDRESS, grads))
        except TypeError:  # one is None
            here = [i for i, g in enumerate(grads) if g is not None]
            there, kinds, strides = [[known[i] for i in here] for known in (grads, kinds, strides)]
            now = [0] * len(grads)
            for i, at in zip(here, map(ADDRESS, there), strict=True):
                now[i] = at
        if now != self._now:
            # A gradient lies in memory as its parameter does, unless somebody put it there.
            if (
                list(map(STRIDE, there)) != strides
                or list(map(KIND, there)) != kinds
                or set(map(PLACE, there)) != {self._index}
                or set(map(type, there)) != {torch.Tensor}
            ):
                fit(there, kinds, self.device)
                if there is grads:  # a dimension of one may have any stride
                    self._strides = list(map(STRIDE, grads))
            packed = array("Q", now).tobytes()
            for k, table in enumerate(self._tables):
                part = packed[8 * TABLE * k : 8 * TABLE * (k + 1)]
                ctypes.memmove(table, part, len(part))
            self._now = now
        for launch in self._launches:
            self._start(launch)

    def gather(self) -> None:
        """Take the sample of the weights."""
        self._write(self.row.data_ptr(), True, 0, NONE)

    def norms(self) -> Any:
        """The norms of the gradients summed last, in a tensor of the device; 0 where there is none."""
        self._write(self.row.data_ptr(), False, self.count, NONE)
        return self.row[-self.count :].clone()

    def _write(self, row: int, moved: bool, tensors: int, scalars: Sequence[Any], event: int | None = None) -> None:
        for place, scalar in zip(self._scalars, scalars, strict=True):
            place.value = 0 if scalar is None else scalar.data_ptr()
        sampled = len(self.moves) if moved else 0
        self._into.value, self.moves.sampled.value, self._finish.blocks = row, sampled, sampled + tensors
        if sampled + tensors:
            self._start(self._finish, event)

    def send(self, scalars: list[Any], moved: bool, outbox: Outbox, what: Any) -> bool:
        """Write the row of a step and send it off; whether the move of the weights is in it. Scalars are float32 on the
        device, or None."""
        moved = moved and self.moves.there()
        if outbox.memory is None:
            self._write(self.row.data_ptr(), moved, self.count, scalars)
            outbox.send(self.row, what, row=True)
            return moved
        if self._ring[0] is not outbox.memory:
            self._ring = (outbox.memory, self.kernels.mapped(outbox.memory.data_ptr()))
        at = outbox.take(what)
        if at is None:
            if moved:
                self.gather()
            return moved
        # Straight into the host's pinned memory: no copy is to be asked for.
        slot, event = at
        self._write(self._ring[1] + slot * 4 * self._length, moved, self.count, scalars, event)
        return moved


def fit(tensors: Sequence[Any], kinds: Sequence[Any], device: torch.device) -> None:
    """Raise unless all are plain tensors of these dtypes on the device, each in one piece of memory."""
    index = device.index if device.type == "cuda" else -1
    for k, t in enumerate(tensors):
        if t.dtype not in KINDS or t.dtype != kinds[k] or t.get_device() != index or t.layout != torch.strided:
            raise Unfit(f"a tensor is {t.dtype} on {t.device}")
        if type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter:
            raise Unfit(f"a tensor is a {type(t).__name__}")
        if not dense(t):
            raise Unfit("a tensor is not in one piece of memory")


class Moves:
    """As `sample.Moves`, with the sample gathered, compared and kept by the kernel that writes the row."""

    weights_first = True

    def __init__(self, fused: Fused, params: Sequence[Any], layout: Layout | None) -> None:
        order = layout.order if layout is not None else []
        if len(order) > TABLE:
            raise Unfit("more tensors than a table holds")
        self._fused = fused
        self._params = [params[i] for i in order]
        self._kinds = [p.dtype for p in self._params]
        self._sizes = [p.numel() for p in self._params]
        self._at: list[int] = []
        self._versions: list[int] = []
        rows, at = [(0, 0, 0, 0, 0, 0, 0.0)], 0
        for k, (size, kind) in enumerate(zip(self._sizes, self._kinds, strict=True)):
            assert layout is not None
            count, large = layout.counts[k], size > RUNS * layout.run
            run, gap = (layout.run, (size - layout.run) // (RUNS - 1)) if large else (0, 0)
            rows.append((k, KINDS[kind], count, run, gap, at, size / count))
            at += count
        self._held = [
            uploaded(np.array(rows[1:] or rows, dtype=SAMPLES), fused.device),
            torch.zeros(at + 1, device=fused.device),
            torch.zeros(2 * len(order) + 2, dtype=torch.float64, device=fused.device),
        ]
        self._table, self.sampled = Addresses(), ctypes.c_int(0)
        self.args = [self._table, *map(address, self._held), self.sampled]

    def __len__(self) -> int:
        return len(self._params)

    def before(self) -> None:
        """Before a step: take the sample, unless nobody wrote to the weights since the last one."""
        if self._versions == list(map(VERSION, self._params)) or not self._place():
            return
        self._fused.gather()
        self._versions = [-1]  # there is a sample

    def _place(self) -> bool:
        """Where the weights lie now. If they are of another kind too, the next look makes the sample anew."""
        now = list(map(ADDRESS, self._params))
        if now == self._at:
            return True
        self._versions, self._at = [], []
        try:
            fit(self._params, self._kinds, self._fused.device)
        except Unfit:
            return False
        if [p.numel() for p in self._params] != self._sizes:
            return False
        self._at = now
        ctypes.memmove(self._table, array("Q", now).tobytes(), 8 * len(now))
        return True

    def after(self) -> Any:
        """After it: whether there is a sample of the weights before. The kernel is launched with the row."""
        if not self._versions:
            return None
        self._versions = list(map(VERSION, self._params))
        return True

    def there(self) -> bool:
        """Whether the weights still lie where they did: an address that was left must not be read."""
        if self._at and list(map(ADDRESS, self._params)) == self._at:
            return True
        self._versions, self._at = [], []
        return False
