"""Small tensors on their way from the device to the host, without waiting for the device.

`send` starts an asynchronous copy into pinned memory and marks its end with an event; `arrived` hands out, in
order, what the device has finished. On a CPU everything has arrived at once. On another accelerator (no events we
have tested) a copy would wait for the device, so there the tensors are kept and read only when `arrived` is
called with wait=True, at the guard's cadence.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

# The host cannot be further ahead than the launch queue (1024 kernels) lets it, a handful of steps. If it ever is,
# rows are dropped and counted: memory stays bounded and nothing waits.
LIMIT = 64


class Outbox:
    """A queue of (tensor on its way, whatever belongs to it). `length`: of the rows that come every step; their pinned
    memory and events are made once and used in turn."""

    def __init__(self, device: torch.device, length: int = 0) -> None:
        self.kind = "cuda" if device.type == "cuda" else "cpu" if device.type == "cpu" else "other"
        self.device = device
        self.memory: Any = None  # the pinned rows, on CUDA
        self.dropped = 0
        self._waiting: deque[tuple[Any, Any, Any]] = deque()
        self._ring: list[tuple[Any, Any]] = []
        self._events: list[int] = []
        self._sent = 0
        self.resize(length)

    def __len__(self) -> int:
        return len(self._waiting)

    def __del__(self) -> None:
        # A kernel that is on its way to write a row must not find the memory in other hands.
        with contextlib.suppress(Exception):
            if self.kind == "cuda" and self._waiting:
                self._waiting[-1][1].synchronize()

    def resize(self, length: int) -> None:
        """Rows have another length from now on."""
        if self.kind == "cuda" and length:
            self.memory = torch.empty(LIMIT, length, pin_memory=True)
            self._ring = [(row, torch.cuda.Event()) for row in self.memory.numpy()]
            stream = torch.cuda.current_stream(self.device)
            for _, event in self._ring:
                event.record(stream)  # before that it has no handle
            self._events = [event.cuda_event for _, event in self._ring]

    def send(self, tensor: Any, what: Any, row: bool = False) -> None:
        """Start a copy. A `row` may be overwritten by its owner as soon as this returns, on the same stream."""
        if len(self._waiting) >= LIMIT * (1 if self.kind == "cuda" else 16):
            self.dropped += 1
            return
        if self.kind != "cuda":
            self._waiting.append((tensor.clone() if row else tensor, None, what))
            return
        if row:
            at, _ = self._next(what)
            self.memory[at].copy_(tensor, non_blocking=True)
            self._ring[at][1].record(torch.cuda.current_stream(tensor.device))
            return
        # torch keeps freed pinned blocks for reuse, guarded by events of its own: this allocates only at first.
        host, done = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True), torch.cuda.Event()
        host.copy_(tensor, non_blocking=True)
        done.record(torch.cuda.current_stream(tensor.device))
        self._waiting.append((host.numpy(), done, what))

    def take(self, what: Any) -> tuple[int, int] | None:
        """For one who writes a row to `memory` himself: which, and the event to record right after; None if too many
        are on their way."""
        if len(self._waiting) >= LIMIT:
            self.dropped += 1
            return None
        return self._next(what)

    def _next(self, what: Any) -> tuple[int, int]:
        # No more than LIMIT are on their way, so the one taken now has been read.
        at = self._sent % LIMIT
        self._sent += 1
        self._waiting.append((*self._ring[at], what))
        return at, self._events[at]

    def arrived(self, wait: bool = False) -> Iterator[tuple[Any, Any]]:
        """What has come, in order. The device ends things in the order they were sent: the newest that has come vouches
        for those before it, and asking costs the host more than anything else here."""
        ready = len(self._waiting)
        while self.kind == "cuda" and not wait and ready and not self._waiting[ready - 1][1].query():
            ready -= 1
        if wait and ready and self.kind == "cuda":
            self._waiting[-1][1].synchronize()
        if self.kind == "other" and not wait:
            return
        for _ in range(ready):
            host, done, what = self._waiting.popleft()
            yield host if done is not None else host.cpu().numpy(), what
