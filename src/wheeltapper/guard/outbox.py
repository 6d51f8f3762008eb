"""Small tensors on their way from the device to the host, without waiting for the device.

`send` starts an asynchronous copy into pinned memory and marks its end with an event; a row that a kernel writes there
itself ends with a mark, which the host finds in its own memory without asking the driver. `arrived` hands out, in
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
MARKS = 1 << 23  # whole numbers that a float32 holds


class Outbox:
    """A queue of (tensor on its way, whatever belongs to it). `length`: of the rows that come every step; their pinned
    memory is made once and used in turn."""

    def __init__(self, device: torch.device, length: int = 0) -> None:
        self.kind = "cuda" if device.type == "cuda" else "cpu" if device.type == "cpu" else "other"
        self.device = device
        self.memory: Any = None  # the pinned rows, on CUDA
        self.dropped = 0
        self._waiting: deque[tuple[Any, Any, Any]] = deque()  # the numbers, an event or a mark, what belongs to them
        self._ring: list[Any] = []
        self._events: dict[int, Any] = {}
        self._sent = 0
        self.resize(length)

    def __len__(self) -> int:
        return len(self._waiting)

    def __del__(self) -> None:
        # A kernel that is on its way to write a row must not find the memory in other hands.
        with contextlib.suppress(Exception):
            if self.kind == "cuda" and self._waiting:
                self.wait()

    def resize(self, length: int) -> None:
        """Rows have another length from now on. Those on their way hold the memory that they are written to."""
        if self.kind == "cuda" and length:
            self.memory = torch.zeros(LIMIT, length, pin_memory=True)
            self._ring = list(self.memory.numpy())

    def wait(self) -> None:
        """Until the device has done all."""
        torch.cuda.synchronize(self.device)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= LIMIT * (1 if self.kind == "cuda" else 16)

    def send(self, tensor: Any, what: Any, row: bool = False) -> None:
        """Start a copy. A `row` may be overwritten by its owner as soon as this returns, on the same stream."""
        if self.full:
            self.dropped += 1
            return
        if self.kind != "cuda":
            self._waiting.append((tensor.clone() if row else tensor, None, what))
            return
        if row:
            at = self._next()
            host, done = self._ring[at], self._events.setdefault(at, torch.cuda.Event())
            self.memory[at].copy_(tensor, non_blocking=True)
        else:
            # torch keeps freed pinned blocks for reuse, guarded by events of its own: this allocates only at first.
            place, done = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True), torch.cuda.Event()
            place.copy_(tensor, non_blocking=True)
            host = place.numpy()
        done.record(torch.cuda.current_stream(tensor.device))
        self._waiting.append((host, done, what))

    def take(self, what: Any) -> tuple[int, float] | None:
        """For one who writes a row to `memory` himself: which, and the mark to end it with; None if too many are on
        their way."""
        if self.full:
            self.dropped += 1
            return None
        at = self._next()
        mark = float(self._sent % MARKS)  # not that of the row before in the same place
        self._waiting.append((self._ring[at], mark, what))
        return at, mark

    def untake(self) -> None:
        """Nothing was written to the one taken last."""
        self._waiting.pop()
        self._sent -= 1

    def _next(self) -> int:
        # No more than LIMIT are on their way, so the one taken now has been read.
        at = self._sent % LIMIT
        self._sent += 1
        return at

    def arrived(self, wait: bool = False) -> Iterator[tuple[Any, Any]]:
        """What has come, in order. The device ends things in the order they were sent: the newest that has come vouches
        for those before it, and asking for an event costs the host more than anything else here."""
        ready = len(self._waiting)
        if wait and ready and self.kind == "cuda":
            self.wait()
        elif self.kind == "cuda":
            while ready and not ended(*self._waiting[ready - 1][:2]):
                ready -= 1
        if self.kind == "other" and not wait:
            return
        for _ in range(ready):
            host, done, what = self._waiting.popleft()
            yield host if done is not None else host.cpu().numpy(), what


def ended(host: Any, done: Any) -> bool:
    return bool(host[-1] == done) if isinstance(done, float) else bool(done.query())
