"""The state of every random generator that a training draws from, as plain values and tensors.

What `capture` returns holds only dicts, lists, numbers, strings and tensors, so that it survives
torch.save and torch.load(weights_only=True).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

State = dict[str, Any]


def capture(*, devices: bool = True) -> State:
    """Python's, numpy's (where it is loaded) and torch's global generators. `devices` False leaves out the
    accelerators: reading a CUDA generator does not synchronise, but copies 16 bytes per device."""
    return plain(*raw(devices=devices))


def raw(*, devices: bool = True) -> tuple[Any, ...]:
    """The same as the libraries hand it out, for a call at every step."""
    gpu = devices and torch.cuda.is_available() and torch.cuda.is_initialized()
    return (
        random.getstate(),
        sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None,
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if gpu else None,
    )


def plain(python: Any, numpy: Any, cpu: Any, cuda: Any) -> State:
    """What `raw` returned, as plain values."""
    version, words, gauss = python
    state: State = {"python": [version, list(words), gauss], "torch": cpu}
    if numpy is not None:
        name, keys, position, has_gauss, cached = numpy
        state["numpy"] = [str(name), [int(k) for k in keys], int(position), int(has_gauss), float(cached)]
    if cuda is not None:
        state["cuda"] = list(cuda)
    return state


def restore(state: State) -> None:
    """Set every generator back to where `capture` found it."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"].cpu())
    if "numpy" in state:
        import numpy as np

        name, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((name, np.asarray(keys, dtype=np.uint32), position, has_gauss, cached))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"][: torch.cuda.device_count()]])


@contextmanager
def kept() -> Iterator[State]:
    """Whatever is drawn inside leaves no trace outside."""
    state = capture()
    try:
        yield state
    finally:
        restore(state)
