"""The guard's CUDA kernel acted out on a CPU: what the driver is handed (addresses, tables, structures) is read and
computed in numpy, so that all of the host's side is tried where there is no GPU."""

from __future__ import annotations

import ctypes
import traceback
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from wheeltapper.guard import fused, kernel
from wheeltapper.guard.outbox import LIMIT
from wheeltapper.guard.straight import Straight

ARGUMENTS = 24  # of the kernel
DTYPES = {kind: dtype for dtype, kind in kernel.KINDS.items()}


def tensor_at(address: int, count: int, dtype: Any) -> Any:
    size = torch.tensor([], dtype=dtype).element_size()
    held = (ctypes.c_char * (count * size)).from_address(address)
    return torch.frombuffer(held, dtype=dtype, count=count)


def array_at(address: int, count: int, dtype: Any) -> Any:
    held = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(held, dtype=dtype, count=count)


class Driver:
    """`launched` counts launches; `busy` holds back the marks of rows, as a device that is behind does."""

    def __init__(self) -> None:
        self.launched = 0
        self.busy = False
        self._marks: list[tuple[int, float]] = []
        pointer, whole = ctypes.c_void_p, ctypes.c_uint
        kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *[whole] * 7, pointer, pointer, pointer)
        self.cuLaunchKernel = kind(self.launch)  # as a function of C, for the guard's part in C++

    def launch(self, _function: Any, blocks: int, *rest: Any) -> int:
        try:
            self.launched += 1
            self.step(blocks, list((ctypes.c_void_p * ARGUMENTS).from_address(rest[7])))
        except Exception:  # which C would not see
            traceback.print_exc()
            return 1
        return 0

    @staticmethod
    def word(pointer: int) -> int:
        return int(ctypes.c_uint64.from_address(pointer).value)

    def step(self, blocks: int, args: list[int]) -> None:
        table = array_at(args[0], kernel.TABLE, np.uint64)
        where, all_sums, samples, held, moved, first, all_squares, ended, bounds, row, back = (
            self.word(args[k]) for k in (1, 2, 5, 6, 7, 9, 10, 11, 13, 16, 17)
        )
        begun, parts, sampled, goal, groups, n = (
            int(ctypes.c_int.from_address(args[k]).value) for k in (3, 4, 8, 12, 14, 15)
        )
        starts = array_at(first, n + 1, np.int32)
        sums = tensor_at(all_sums, max(int(starts[-1]), 1), torch.float64)
        squares = tensor_at(all_squares, n, torch.float64)
        tickets = tensor_at(ended, n + 1, torch.int32)
        for k, p in enumerate(array_at(where, begun + parts + 1, fused.PIECES)[begun : begun + parts]):
            start, dtype, whole = int(table[p["tensor"]]), DTYPES[int(p["kind"])], int(p["whole"])
            total = 0.0
            if start:
                at = start + int(p["start"]) * torch.tensor([], dtype=dtype).element_size()
                total = float(tensor_at(at, int(p["count"]), dtype).double().square().sum())
            sums[begun + k] = total
            tickets[1 + whole] += 1
            if int(tickets[1 + whole]) == starts[whole + 1] - starts[whole]:
                tickets[1 + whole] = 0
                tickets[0] += 1
                squares[whole] = sums[starts[whole] : starts[whole + 1]].sum()
        if blocks > parts:
            assert blocks - parts == max(sampled, 0 if parts else 1)
            self.moves(sampled, samples, held, moved)
            tickets[0] += blocks - parts
        if int(tickets[0]) < goal:
            return
        assert int(tickets[0]) == goal
        tickets[0] = 0
        length = 7 + groups + n
        if row:
            out = tensor_at(row, length, torch.float32)
            out[7 + groups :] = squares.sqrt()
            ends = array_at(bounds, groups + 1, np.int32)
            out[7 : 7 + groups] = torch.stack([squares[a:b].sum() for a, b in pairwise(ends)]).sqrt()
            for k, arg in enumerate(args[19:]):
                if self.word(arg):
                    out[k] = tensor_at(self.word(arg), 1, torch.float32)[0]
        if back:
            if sampled:
                both = tensor_at(moved, 2 * sampled, torch.float64).view(-1, 2).sum(0).sqrt()
                tensor_at(back, length, torch.float32)[5:7] = both
            self._marks.append((back + 4 * length, float(ctypes.c_float.from_address(args[18]).value)))
            if not self.busy:
                self.finish()

    def finish(self) -> None:
        """All that was launched is done."""
        for place, mark in self._marks:
            ctypes.c_float.from_address(place).value = mark
        self._marks = []

    def moves(self, sampled: int, samples: int, held: int, moved: int) -> None:
        if not sampled:
            return
        sums = tensor_at(moved, 2 * sampled, torch.float64)
        for k, s in enumerate(array_at(samples, sampled, fused.SAMPLES)):
            count, run, gap = int(s["count"]), int(s["run"]), int(s["gap"])
            places = torch.arange(count)
            if run:
                places = (places // run) * gap + places % run
            data = tensor_at(int(s["data"]), int(places.max()) + 1, DTYPES[int(s["kind"])])
            before = tensor_at(held + 4 * int(s["at"]), count, torch.float32)
            now = data[places].float()
            sums[2 * k] = float(s["weight"]) * now.double().square().sum()
            sums[2 * k + 1] = float(s["weight"]) * (now - before).double().square().sum()
            before.copy_(now)


class Kernels:
    def __init__(self) -> None:
        self.driver = Driver()
        self.function = 1

    def mapped(self, host: int) -> int:
        return host


def with_a_ring(guard: Any) -> Any:
    """Rows are written to memory in turn, as to the pinned memory of a CUDA device."""
    box, driver = guard._outbox, guard._meter.fused.kernels.driver

    def resize(length: int) -> None:
        box.memory = torch.zeros(LIMIT, length)
        box._ring = list(box.memory.numpy())

    box.kind, box.wait, box.resize = "cuda", driver.finish, resize
    box.resize(len(guard._meter.row))
    box.send = lambda tensor, what, **_: box._waiting.append((tensor.clone().numpy(), Done(), what))
    return box


class Done:
    def query(self) -> bool:
        return True


def on_the_cpu(monkeypatch: Any) -> Driver:
    """From now on guards on a CPU measure by the kernel, acted out."""
    kernels = Kernels()
    monkeypatch.setattr(fused.Fused, "_start", lambda _, launch: launch(0))
    monkeypatch.setattr(fused.Fused, "stream", lambda _: 0)
    monkeypatch.setattr(fused, "build", lambda *args: fused.Fused(kernels, *args))
    return kernels.driver


def as_on_a_device(guard: Any, straight: bool = True) -> None:
    """The order of things that a guard on CUDA keeps under policy="watch"; on CUDA nothing to do, unless the short way is
    not to be taken."""
    if guard._cuda:
        guard._straight = guard._straight if straight else None
        return
    guard._once = guard.policy == "watch"
    if guard._once and guard._meter.fused is not None:
        with_a_ring(guard)
        guard._straight = Straight(guard, guard._meter, guard._meter.fused) if straight else None
