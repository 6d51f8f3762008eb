"""The guard's CUDA kernels acted out on a CPU: what the driver is handed (addresses, tables, structures) is read and
computed in numpy, so that all of the host's side is tried where there is no GPU."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from wheeltapper.guard import fused, kernel
from wheeltapper.guard.outbox import LIMIT

DTYPES = {kind: dtype for dtype, kind in kernel.KINDS.items()}


def tensor_at(address: int, count: int, dtype: Any) -> Any:
    size = torch.tensor([], dtype=dtype).element_size()
    held = (ctypes.c_char * (count * size)).from_address(address)
    return torch.frombuffer(held, dtype=dtype, count=count)


def array_at(address: int, count: int, dtype: Any) -> Any:
    held = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(held, dtype=dtype, count=count)


class Driver:
    """`launched` names the kernels in their order."""

    def __init__(self) -> None:
        self.launched: list[str] = []

    def cuLaunchKernel(self, function: Any, blocks: int, *rest: Any) -> int:
        name, pointers = kernel.NAMES[function - 1], rest[7]
        self.launched.append(name)
        getattr(self, name)(blocks, list(pointers))
        return 0

    @staticmethod
    def word(pointer: int) -> int:
        return int(ctypes.c_uint64.from_address(pointer).value)

    def wheeltapper_sums(self, blocks: int, args: list[int]) -> None:
        table = array_at(args[0], kernel.TABLE, np.uint64)
        pieces = array_at(self.word(args[1]), blocks, fused.PIECES)
        sums = tensor_at(self.word(args[2]), blocks, torch.float64)
        for k, p in enumerate(pieces):
            start, dtype = int(table[p["tensor"]]), DTYPES[int(p["kind"])]
            sums[k] = 0.0
            if start:
                where = start + int(p["start"]) * torch.tensor([], dtype=dtype).element_size()
                sums[k] = tensor_at(where, int(p["count"]), dtype).double().square().sum()

    def wheeltapper_row(self, blocks: int, args: list[int]) -> None:
        sampled, groups = (int(ctypes.c_int.from_address(args[k]).value) for k in (4, 10))
        n = blocks - sampled
        self.moves(sampled, args)
        row = tensor_at(self.word(args[5]), 7 + groups + n, torch.float32)
        if n:
            first = array_at(self.word(args[6]), n + 1, np.int32)
            sums = tensor_at(self.word(args[7]), max(int(first[-1]), 1), torch.float64)
            squares = torch.stack([sums[a:b].sum() for a, b in pairwise(first)])
            row[7 + groups :] = squares.sqrt()
            bounds = array_at(self.word(args[9]), groups + 1, np.int32)
            row[7 : 7 + groups] = torch.stack([squares[a:b].sum() for a, b in pairwise(bounds)]).sqrt()
        if sampled:
            row[5:7] = tensor_at(self.word(args[3]), 2 * sampled, torch.float64).view(-1, 2).sum(0).sqrt()
        for k, arg in enumerate(args[12:]):
            if self.word(arg):
                row[k] = tensor_at(self.word(arg), 1, torch.float32)[0]

    def moves(self, sampled: int, args: list[int]) -> None:
        if not sampled:
            return
        table = array_at(args[0], kernel.TABLE, np.uint64)
        samples = array_at(self.word(args[1]), sampled, fused.SAMPLES)
        sums = tensor_at(self.word(args[3]), 2 * sampled, torch.float64)
        for k, s in enumerate(samples):
            count, run, gap = int(s["count"]), int(s["run"]), int(s["gap"])
            places = torch.arange(count)
            if run:
                places = (places // run) * gap + places % run
            data = tensor_at(int(table[s["tensor"]]), int(places.max()) + 1, DTYPES[int(s["kind"])])
            held = tensor_at(self.word(args[2]) + 4 * int(s["at"]), count, torch.float32)
            now = data[places].float()
            sums[2 * k] = float(s["weight"]) * now.double().square().sum()
            sums[2 * k + 1] = float(s["weight"]) * (now - held).double().square().sum()
            held.copy_(now)


class Kernels:
    def __init__(self) -> None:
        self.driver = Driver()
        self.functions = {name: k + 1 for k, name in enumerate(kernel.NAMES)}

    def mapped(self, host: int) -> int:
        return host


def start(_: Any, launch: Any, event: Any = None) -> None:
    launch(0)
    if event is not None:
        event.recorded += 1


class Event:
    """Of a ring in ordinary memory; done when the test says so."""

    done = True
    recorded = 0

    def query(self) -> bool:
        return type(self).done

    def synchronize(self) -> None:
        type(self).done = True


def with_a_ring(guard: Any) -> Any:
    """Rows are written to memory in turn, as to the pinned memory of a CUDA device."""
    box = guard._outbox
    Event.done = True
    box.kind, box.memory = "cuda", torch.zeros(LIMIT, len(guard._meter.row))
    box._ring = [(row, Event()) for row in box.memory.numpy()]
    box._events = [event for _, event in box._ring]
    return box


def on_the_cpu(monkeypatch: Any) -> Driver:
    """From now on guards on a CPU measure by the kernels, acted out."""
    kernels = Kernels()
    monkeypatch.setattr(fused.Fused, "_start", start)
    monkeypatch.setattr(fused, "build", lambda *args: fused.Fused(kernels, *args))
    return kernels.driver


def as_on_a_device(guard: Any) -> None:
    """The order of things that a guard on CUDA keeps under policy="watch"."""
    guard._once = guard.policy == "watch"
