"""The numbers of a step on a CUDA device by kernels of our own: three launches a step, and nothing else of the device.

The kernels read tensors by their addresses. What an address means (dtype, device, one piece of memory) is checked when
it is new; a step whose addresses were all met before costs a comparison. Whatever does not fit (sparse gradients, shards,
tensors of other kinds) is left to the calls of torch in `measure` and `sample`, which give the same numbers.
"""

from __future__ import annotations

import ctypes
import logging
from array import array
from collections.abc import Sequence
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
VERSION = attrgetter("_version")
MET = 64  # sets of addresses that are remembered: the allocator hands out the same few in turn
PIECES = np.dtype([("tensor", "i4"), ("kind", "i4"), ("count", "i4"), ("unused", "i4"), ("start", "i8")])
SAMPLES = np.dtype(
    [("tensor", "i4"), ("kind", "i4"), ("count", "i4"), ("run", "i4"), ("gap", "i8"), ("at", "i8"), ("weight", "f8")]
)


class Unfit(Exception):  # noqa: N818
    """These tensors are not for the kernels."""


def build(params: Sequence[Any], row: Any, head: int) -> Fused | None:
    """For the parameters of an optimizer and the row that their numbers go to; None where torch's calls must do."""
    device = row.device
    if device.type != "cuda" or not params:
        return None
    try:
        return Fused(kernel.load(device.index), params, row, head)
    except Exception as error:
        log.info("the guard measures by torch's own calls, which cost the host more: %s", error)
        return None


def uploaded(data: np.ndarray[Any, Any], device: torch.device) -> Any:
    return placed(torch.from_numpy(data.view(np.uint8).reshape(-1)), device)


def address(tensor: Any) -> Any:
    return ctypes.c_uint64(tensor.data_ptr())


class Fused:
    """Measures the gradients of a fixed list of parameters, and writes the row of a step."""

    def __init__(self, kernels: Any, params: Sequence[Any], row: Any, head: int) -> None:
        self.kernels, self.row, self.device, self.head = kernels, row, row.device, head
        self.count = len(params)
        self._kinds = [p.dtype for p in params]
        self._strides = [p.stride() for p in params]
        fit(params, self._kinds, self.device)
        self._now: tuple[int, ...] = ()
        self._met: dict[tuple[int, ...], bytes] = {}
        pieces: list[tuple[int, int, int, int, int]] = []
        first, ends = [0], []
        for i, p in enumerate(params):
            n, kind = p.numel(), KINDS[p.dtype]
            pieces += [(i % TABLE, kind, min(PIECE, n - at), 0, at) for at in range(0, n, PIECE)]
            first.append(len(pieces))
            if i % TABLE == TABLE - 1 or i == self.count - 1:
                ends.append(len(pieces))
        # One more of each: a tensor of no bytes would have no address.
        self._pieces = uploaded(np.array([*pieces, (0, 0, 0, 0, 0)], dtype=PIECES), self.device)
        self._first = uploaded(np.array(first, dtype=np.int32), self.device)
        self._sums = torch.zeros(len(pieces) + 1, dtype=torch.float64, device=self.device)
        self._launches: list[tuple[Launch, Any]] = []
        begun = 0
        for end in ends:
            table = Addresses()
            where = ctypes.c_uint64(self._pieces.data_ptr() + begun * PIECES.itemsize)
            into = ctypes.c_uint64(self._sums.data_ptr() + begun * 8)
            if end > begun:
                self._launches.append((Launch(kernels, "wheeltapper_sums", end - begun, [table, where, into]), table))
            else:  # nothing in any of these tensors
                self._launches.append((lambda _: None, table))  # type: ignore[arg-type]
            begun = end
        self._none = torch.zeros(2, dtype=torch.float64, device=self.device)
        self._moved, self._moves = ctypes.c_int(0), address(self._none)
        self._into = address(row)
        self._scalars = [ctypes.c_uint64(0) for _ in range(head - 2)]
        self._finish = Launch(
            kernels,
            "wheeltapper_row",
            self.count + 1,
            [self._into, address(self._first), address(self._sums), self._moves, self._moved, *self._scalars],
        )
        self._ring: tuple[Any, int] = (None, 0)
        self._launch(self._launches[0][0])  # of no tensors: a launch that fails does so here
        self.norms()

    def stream(self) -> int:
        return int(torch._C._cuda_getCurrentRawStream(self.device.index))

    def _launch(self, launch: Launch) -> None:
        if torch._C._cuda_getDevice() == self.device.index:
            launch(self.stream())
            return
        with torch.cuda.device(self.device):
            launch(self.stream())

    def gradients(self, grads: list[Any]) -> None:
        """Sum the squares of these gradients; None where there is none. Raises for such as the kernels cannot read."""
        try:
            now = tuple(map(ADDRESS, grads))
        except TypeError:  # one is None
            now = tuple(0 if g is None else g.data_ptr() for g in grads)
        if now != self._now:
            packed = self._met.get(now)
            if packed is None:
                packed = self._meet(grads, now)
            for k, (_, table) in enumerate(self._launches):
                part = packed[8 * TABLE * k : 8 * TABLE * (k + 1)]
                ctypes.memmove(table, part, len(part))
            self._now = now
        for launch, _ in self._launches:
            self._launch(launch)

    def _meet(self, grads: list[Any], now: tuple[int, ...]) -> bytes:
        """Addresses that are new. A gradient lies in memory as its parameter does, unless somebody put it there."""
        if len(self._met) >= MET:
            self._met.clear()
        there = [g for g in grads if g is not None]
        kinds = [k for g, k in zip(grads, self._kinds, strict=True) if g is not None]
        strides = [s for g, s in zip(grads, self._strides, strict=True) if g is not None]
        fit(there, kinds, self.device, strides)
        packed = self._met[now] = array("Q", now).tobytes()
        return packed

    def norms(self) -> Any:
        """The norms of the gradients summed last, in a tensor of the device; 0 where there is none."""
        for scalar in self._scalars:
            scalar.value = 0
        self._into.value = self.row.data_ptr()
        self._launch(self._finish)
        return self.row[self.head :].clone()

    def send(self, scalars: list[Any], outbox: Outbox, what: Any) -> None:
        """Write the row of a step and send it off. Scalars are float32 on the device, or None."""
        for place, scalar in zip(self._scalars, scalars, strict=True):
            place.value = 0 if scalar is None else scalar.data_ptr()
        if outbox.memory is None:
            self._into.value = self.row.data_ptr()
            self._launch(self._finish)
            outbox.send(self.row, what, row=True)
            return
        if self._ring[0] is not outbox.memory:
            self._ring = (outbox.memory, self.kernels.mapped(outbox.memory.data_ptr()))
        at = outbox.take(what)
        if at is None:
            return
        # Straight into the host's pinned memory: no copy is to be asked for.
        slot, event = at
        self._into.value = self._ring[1] + slot * 4 * len(self.row)
        self._launch(self._finish)
        self.kernels.record(event, self.stream())

    def moves(self, params: Sequence[Any], layout: Layout) -> Moves:
        found = Moves(self, params, layout)
        self._moves.value, self._moved.value = found.sums.data_ptr(), len(layout.order)
        return found


def fit(
    tensors: Sequence[Any], kinds: Sequence[Any], device: torch.device, strides: Sequence[Any] | None = None
) -> None:
    """Raise unless all are plain tensors of these dtypes on the device, each in one piece of memory."""
    index = device.index if device.type == "cuda" else -1
    for k, t in enumerate(tensors):
        if t.dtype not in KINDS or t.dtype != kinds[k] or t.get_device() != index or t.layout != torch.strided:
            raise Unfit(f"a tensor is {t.dtype} on {t.device}")
        if type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter:
            raise Unfit(f"a tensor is a {type(t).__name__}")
        if (strides is None or t.stride() != strides[k]) and not dense(t):
            raise Unfit("a tensor is not in one piece of memory")


class Moves:
    """As `sample.Moves`, with the sample gathered, compared and kept by one kernel."""

    weights_first = True

    def __init__(self, fused: Fused, params: Sequence[Any], layout: Layout) -> None:
        if len(layout.order) > TABLE:
            raise Unfit("more tensors than a table holds")
        self._fused, self._layout = fused, layout
        self._params = [params[i] for i in layout.order]
        self._kinds = [p.dtype for p in self._params]
        self._at: list[int] = []
        self._versions: list[int] | None = None
        self.held = torch.zeros(max(layout.total, 1), device=layout.device)
        self.sums = torch.zeros(2 * len(layout.order), dtype=torch.float64, device=layout.device)
        rows, at, whole = [], 0, RUNS * layout.run
        for k, (size, count) in enumerate(zip(layout.sizes, layout.counts, strict=True)):
            gap = (size - layout.run) // (RUNS - 1) if size > whole else 0
            run = layout.run if size > whole else 0
            rows.append((k, KINDS[self._kinds[k]], count, run, gap, at, size / count))
            at += count
        self._samples = uploaded(np.array(rows, dtype=SAMPLES), layout.device)
        self._table = Addresses()
        args = [self._table, address(self._samples), address(self.held), address(self.sums)]
        self._launch = Launch(fused.kernels, "wheeltapper_moves", len(rows), args)

    def before(self) -> None:
        """Before a step: take the sample, unless nobody wrote to the weights since the last one."""
        if self._versions is not None and self._versions == list(map(VERSION, self._params)):
            return
        self._versions = None
        try:
            fit(self._params, self._kinds, self._layout.device)
            self._at = list(map(ADDRESS, self._params))
        except (Unfit, RuntimeError):  # changed by somebody; the next look makes the sample anew
            return
        if [p.numel() for p in self._params] != self._layout.sizes:
            return
        ctypes.memmove(self._table, array("Q", self._at).tobytes(), 8 * len(self._at))
        self._fused._launch(self._launch)
        self._versions = []

    def after(self) -> Any:
        """After it: whether the row will hold the norms of weights and change; None if they are not known."""
        if self._versions is None or list(map(ADDRESS, self._params)) != self._at:
            self._versions = None
            return None
        self._fused._launch(self._launch)
        self._versions = list(map(VERSION, self._params))
        return True
