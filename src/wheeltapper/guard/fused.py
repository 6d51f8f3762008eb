"""The numbers of a step on a CUDA device by a kernel of our own: one or two launches a step, and hardly anything else.

The kernel reads tensors by their addresses. What an address means (dtype, device, one piece of memory) is checked when
it is new; a step whose addresses were all met before costs a comparison. Whatever does not fit (sparse gradients, shards,
tensors of other kinds) is left to the calls of torch in `measure` and `sample`, which give the same numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
from array import array
from collections.abc import Callable, Sequence
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
PIECES = np.dtype([("tensor", "i4"), ("kind", "i4"), ("count", "i4"), ("whole", "i4"), ("start", "i8")])
SAMPLES = np.dtype(
    [
        ("data", "u8"),
        *((n, "i4") for n in ("kind", "count", "run", "unused")),
        ("gap", "i8"),
        ("at", "i8"),
        ("weight", "f8"),
    ]
)


class Unfit(Exception):  # noqa: N818
    """These tensors are not for the kernel."""


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
    every group, the norm of every parameter, and a mark that says that it is there."""

    def __init__(self, kernels: Any, params: Sequence[Any], group_of: Sequence[int], row: Any, head: int) -> None:
        self.kernels, self.row, self.device = kernels, row, row.device
        self.count, self._length = len(params), len(row)
        self._kinds = [p.dtype for p in params]
        self._strides = [p.stride() for p in params]
        fit(params, self._kinds, self.device)
        self._alike: Callable[..., bool] | None = None
        self._tries = 4
        self.now: list[int] = []
        self._index = self.device.index if self.device.type == "cuda" else -1
        pieces: list[tuple[int, int, int, int, int]] = []
        first, ends = [0], []
        for i, p in enumerate(params):
            n, kind = p.numel(), KINDS[p.dtype]
            pieces += [(i % TABLE, kind, min(PIECE, n - at), i, at) for at in range(0, n, PIECE)]
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
            torch.zeros(self.count + 1, dtype=torch.int32, device=self.device),
            uploaded(groups.astype(np.int32), self.device),
        ]
        self._cells = list(map(address, self._held))
        whole, word = ctypes.c_int, ctypes.c_uint64
        self._ended = [whole(0), self._cells[5], whole(len(groups) - 1), whole(self.count)]
        self._goal = self._ended[0]
        self._into, self._back, self._mark = word(0), word(0), ctypes.c_float(0)
        self._scalars = [word(0) for _ in range(head - 2)]
        self.loss = self._scalars[0]
        self._aimed = False
        self._spans = [(a, b - a) for a, b in pairwise([0, *ends])]
        self._summed = sum(a < b for a, b in pairwise(first))  # tensors that have pieces
        self._tables = [Addresses() for _ in self._spans]
        self._ring: tuple[Any, int] = (None, 0)
        self.sample((), None)
        self.gather()  # of nothing: what cannot be launched fails here
        self.norms()

    def sample(self, params: Sequence[Any], layout: Layout | None) -> Moves:
        """From now on these parameters are sampled."""
        self.moves = Moves(self, params, layout)
        where, sums, first, squares, ended, _ = self._cells

        def launch(table: Any, begun: int, parts: int) -> Launch:
            args = [table, where, sums, ctypes.c_int(begun), ctypes.c_int(parts), *self.moves.args]
            args += [first, squares, ended, *self._ended, self._into, self._back, self._mark, *self._scalars]
            return Launch(self.kernels, parts, args)

        self.launches = [launch(t, *span) for t, span in zip(self._tables, self._spans, strict=True) if span[1]]
        self._tail = launch(self._tables[0], 0, 0)
        return self.moves

    def _start(self, launch: Launch) -> None:
        """Launch on the current stream. Stream 0 is that of the current device."""
        index, of = self._index, torch._C
        if of._cuda_getDevice() == index:
            launch(of._cuda_getCurrentRawStream(index))
        else:
            with torch.cuda.device(index):
                launch(of._cuda_getCurrentRawStream(index))

    def place(self, grads: list[Any]) -> None:
        """Where these gradients lie; None where there is none. Raises for such as the kernel cannot read."""
        try:
            now = list(map(ADDRESS, grads))
        except TypeError:  # one is None
            self._place_some(grads)
            return
        if now == self.now:
            return
        # A gradient lies in memory as its parameter does, unless somebody put it there.
        if self._alike is None or not self._alike(*grads):
            self.now = []
            if not alike(grads, self._kinds, self._strides, self._index):
                fit(grads, self._kinds, self.device)
                self._strides = list(map(STRIDE, grads))  # a dimension of one may have any
            if self._tries:  # it may also have been made under another mode, such as autocast
                self._tries -= 1
                self._alike = quick_check(grads)
        self._write(now)

    def _place_some(self, grads: list[Any]) -> None:
        here = [i for i, g in enumerate(grads) if g is not None]
        there, kinds, strides = [[known[i] for i in here] for known in (grads, self._kinds, self._strides)]
        if not alike(there, kinds, strides, self._index):
            fit(there, kinds, self.device)
        now = [0] * len(grads)
        for i, g in zip(here, there, strict=True):
            now[i] = g.data_ptr()
        self._write(now)

    def _write(self, now: list[int]) -> None:
        packed = array("Q", now).tobytes()
        for k, table in enumerate(self._tables):
            part = packed[8 * TABLE * k : 8 * TABLE * (k + 1)]
            ctypes.memmove(table, part, len(part))
        self.now = now

    def gradients(self, grads: list[Any]) -> None:
        """Sum the squares of these gradients; None where there is none. Raises for such as the kernel cannot read."""
        self.place(grads)
        self.go(True, False)

    def gather(self) -> None:
        """Take the sample of the weights."""
        self.go(False, True)

    def norms(self) -> Any:
        """The norms of the gradients summed last, in a tensor of the device; 0 where there is none."""
        self.go(False, False, self.row.data_ptr())
        return self.row[-1 - self.count : -1].clone()

    def go(
        self, summed: bool, moved: bool, row: int = 0, scalars: Sequence[Any] = NONE, back: int = 0, mark: float = 0.0
    ) -> None:
        """Launch: sum the gradients that were placed, compare the sample of the weights and keep it, write a row, and the
        move to a row which may be another one, with its mark. `scalars` are float32 on the device, or None."""
        self._aimed = False
        for place, scalar in zip(self._scalars, scalars, strict=True):
            place.value = 0 if scalar is None else scalar.data_ptr()
        sampled = len(self.moves) if moved else 0
        self.moves.sampled.value, self._into.value, self._back.value, self._mark.value = sampled, row, back, mark
        if not summed or not self.launches:
            self._tail.blocks = self._goal.value = sampled or 1
            self._start(self._tail)
            return
        self._goal.value = self._summed + sampled
        *others, last = self.launches
        for launch in others:
            self._start(launch)
        last.blocks = last.args[4].value + sampled
        self._start(last)

    def aim(self, row: int, back: int, mark: float) -> None:
        """As `go(True, True, ...)`, for one who places the gradients and the loss and launches himself."""
        if not self._aimed:
            for cell in self._scalars:
                cell.value = 0
            self.moves.sampled.value = len(self.moves)
            self._goal.value = self._summed + len(self.moves)
            self._aimed = True
        self.now = []  # the table is written by another
        self._into.value, self._back.value, self._mark.value = row, back, mark

    def stream(self) -> int | None:
        """The current stream; None if another device is the current one."""
        index, of = self._index, torch._C
        return of._cuda_getCurrentRawStream(index) if of._cuda_getDevice() == index else None

    def slot(self, outbox: Outbox, at: int) -> int:
        """Where the device finds a row of the host's pinned memory."""
        if self._ring[0] is not outbox.memory:
            self._ring = (outbox.memory, self.kernels.mapped(outbox.memory.data_ptr()))
        return self._ring[1] + at * 4 * self._length

    def send(self, scalars: list[Any], moved: bool, outbox: Outbox, what: Any) -> bool:
        """Write the row of a step and send it off; whether the move of the weights is in it. Scalars are float32 on the
        device, or None."""
        moved = moved and self.moves.there()
        if outbox.memory is None:
            row = self.row.data_ptr()
            self.go(False, moved, row, scalars, row)
            outbox.send(self.row, what, row=True)
            return moved
        at = outbox.take(what)
        if at is None:
            if moved:
                self.gather()
            return moved
        # Straight into the host's pinned memory: no copy is to be asked for.
        row = self.slot(outbox, at[0])
        self.go(False, moved, row, scalars, row, at[1])
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


def alike(tensors: list[Any], kinds: list[Any], strides: list[Any], index: int) -> bool:
    """Whether all are plain tensors of these dtypes and strides on the device: quicker than `fit`, and as sure."""
    return (
        list(map(STRIDE, tensors)) == strides
        and list(map(KIND, tensors)) == kinds
        and set(map(PLACE, tensors)) == {index}
        and set(map(type, tensors)) == {torch.Tensor}
    )


def quick_check(tensors: list[Any]) -> Callable[..., bool] | None:
    """What tells in one call whether as many tensors are of the same kind as these: dtype, device, layout, type, sizes
    and strides. It is what torch.compile asks before it uses what it has compiled; None where there is none."""
    with contextlib.suppress(Exception):
        from torch._C._dynamo import guards

        made: Any = guards.TensorGuards
        sizes, strides = [list(t.shape) for t in tensors], [list(t.stride()) for t in tensors]
        check: Callable[..., bool] = made(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        # Trusted only where it sees what it must see.
        k = next(k for k, t in enumerate(tensors) if t.numel() > 1)
        t = tensors[k]
        odd = [
            torch.empty_strided(t.shape, t.stride(), dtype=torch.int16, device=t.device),
            torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta"),
            t.new_empty(1).expand(t.shape),
            t.new_empty(0),
            None,
        ]
        if check(*tensors) and not any(check(*tensors[:k], other, *tensors[k + 1 :]) for other in odd):
            return check
    return None


class Moves:
    """As `sample.Moves`, with the sample gathered, compared and kept by the kernel that writes the row."""

    weights_first = True

    def __init__(self, fused: Fused, params: Sequence[Any], layout: Layout | None) -> None:
        order = layout.order if layout is not None else []
        self._fused = fused
        self.params = [params[i] for i in order]
        self._kinds = [p.dtype for p in self.params]
        self._sizes = [p.numel() for p in self.params]
        self.at: list[int] = []
        self.versions: list[int] = []  # of the weights when the sample was taken, or since which nobody else wrote
        self._rows = np.zeros(max(len(order), 1), dtype=SAMPLES)
        at = 0
        for k, (size, kind) in enumerate(zip(self._sizes, self._kinds, strict=True)):
            assert layout is not None
            count, large = layout.counts[k], size > RUNS * layout.run
            run, gap = (layout.run, (size - layout.run) // (RUNS - 1)) if large else (0, 0)
            self._rows[k] = (0, KINDS[kind], count, run, 0, gap, at, size / count)
            at += count
        self._held = [
            uploaded(self._rows, fused.device),
            torch.zeros(at + 1, device=fused.device),
            torch.zeros(2 * len(order) + 2, dtype=torch.float64, device=fused.device),
        ]
        self.sampled = ctypes.c_int(0)
        self.args = [*map(address, self._held), self.sampled]

    def __len__(self) -> int:
        return len(self.params)

    def read(self) -> list[int]:
        """How often each of the weights was written to: by an optimizer, `load_state_dict`, any change in place."""
        return list(map(VERSION, self.params))

    def before(self) -> None:
        """Before a step: take the sample, unless nobody wrote to the weights since the last one."""
        if self.versions == self.read() or not self._place():
            return
        self._fused.gather()
        self.versions = [-1]  # there is a sample

    def _place(self) -> bool:
        """Where the weights lie now. If they are of another kind too, the next look makes the sample anew."""
        now = list(map(ADDRESS, self.params))
        if now == self.at:
            return True
        self.versions, self.at = [], []
        try:
            fit(self.params, self._kinds, self._fused.device)
        except Unfit:
            return False
        if [p.numel() for p in self.params] != self._sizes:
            return False
        self.at = now
        self._rows["data"][: len(now)] = now
        self._held[0] = uploaded(self._rows, self._fused.device)
        self.args[0].value = self._held[0].data_ptr()
        return True

    def after(self) -> Any:
        """After it: whether there is a sample of the weights before. The kernel is launched with the row."""
        if not self.versions:
            return None
        self.versions = self.read()
        return True

    def there(self) -> bool:
        """Whether the weights still lie where they did: an address that was left must not be read."""
        if self.at and list(map(ADDRESS, self.params)) == self.at:
            return True
        self.versions, self.at = [], []
        return False
