"""What the checkpoints themselves say: which weights moved between the first and the last of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from wheeltapper.reading.checkpoint_file import TensorStart, tensor_starts
from wheeltapper.run.model import Checkpoint, Run
from wheeltapper.study import Absent, derived

MOST = 4096  # elements of a tensor: a share of 1 % is known to 0.2 %, and a model of 10,000 tensors is 160 MB at most
ALL = 1 << 23  # elements of a file
_STATE = re.compile(r"optim|sched|scaler|rng|(^|_)amp$", re.IGNORECASE)
_EMA = re.compile(r"(^|[_.\-])ema($|[_.\-\d])|averaged?_model|shadow_params", re.IGNORECASE)
_LED = re.compile(r"^(?:ema|ema_model|model_ema|averaged?_model|shadow_params)\.", re.IGNORECASE)
_WRAP = re.compile(r"^(?:module|_orig_mod|state_dict|model|shadow)\.")
BUFFER = re.compile(r"(^|\.)(running_mean|running_var|num_batches_tracked)$")


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor in two checkpoints."""

    name: str  # without the name of the dictionary it lies in
    part: Literal["raw", "ema"]
    group: str  # the dictionary or the file's part it lies in
    first: TensorStart
    last: TensorStart
    resumable: bool = False  # both files hold an optimizer: this is the state that training goes on from, not a copy for others

    @property
    def size(self) -> int:
        return math.prod(self.last.shape)

    @property
    def same(self) -> float:
        """The share of the elements looked at that have the same bits in both."""
        return float(np.mean(self.first.bits == self.last.bits))


@dataclass(frozen=True, slots=True)
class Weights:
    clock: str
    since: float
    until: float
    files: tuple[Checkpoint, ...]  # the first and the last that hold the weights themselves
    tensors: tuple[Weight, ...]

    def of(self, part: str, *, buffers: bool = False) -> tuple[Weight, ...]:
        return tuple(w for w in self.tensors if w.part == part and bool(BUFFER.search(w.name)) == buffers)

    @property
    def span(self) -> str:
        return f"{self.clock} {self.since:,.10g} and {self.until:,.10g}"


@derived
def weights(run: Run) -> Weights:
    """The weights of the first and the last checkpoint, as far as both hold them."""
    files = [c for c in run.checkpoints if c.exists and c.tensors and {"raw", "ema"} & set(c.kinds)]
    clock = "step" if sum(c.step is not None for c in files) >= sum(c.epoch is not None for c in files) else "epoch"
    timed = sorted(((at, c) for c in files if (at := getattr(c, clock)) is not None), key=lambda pair: pair[0])
    with_raw = [at for at, c in timed if "raw" in c.kinds]
    if len(with_raw) < 2 or with_raw[0] == with_raw[-1]:
        raise Absent("there are no two checkpoints of different times to compare", ("an early and a late checkpoint",))
    since, until = with_raw[0], with_raw[-1]
    early, late = (_read(c for at, c in timed if at == when) for when in (since, until))
    tensors = [
        Weight(name, part, group, early[key][0], start, early[key][1] and state)
        for key, (start, state) in late.items()
        for part, group, name in [key]
        if key in early and early[key][0].shape == start.shape and early[key][0].dtype == start.dtype
    ]
    if not any(w.part == "raw" for w in tensors):
        raise Absent("the first and the last checkpoint have no weights in common that can be read")
    ends = (next(c for at, c in timed if at == when and "raw" in c.kinds) for when in (since, until))
    return Weights(clock, since, until, tuple(ends), tuple(tensors))


_Key = tuple[Literal["raw", "ema"], str, str]


def _read(files: Iterable[Checkpoint]) -> dict[_Key, tuple[TensorStart, bool]]:
    """Every weight of some files of one time, and whether an optimizer lies beside it. The same one may lie in two files; the fuller
    file is read first and wins."""
    out: dict[_Key, tuple[TensorStart, bool]] = {}
    for file in sorted(files, key=lambda c: (-len(c.kinds), c.path))[:4]:
        keys = {t.name: key for t in file.tensors if (key := _key(t.name, file)) is not None}
        try:
            starts = tensor_starts(Path(file.path), keys, max(64, min(MOST, ALL // max(len(keys), 1))))
        except (OSError, ValueError):  # gone or cut off since it was listed
            continue
        for name, start in starts.items():
            part, group, bare = keys[name]
            if not any(part == p and bare == b for p, _, b in out) or group in {g for p, g, _ in out if p == part}:
                out.setdefault((part, group, bare), (start, "optimizer" in file.kinds))
    return out


def _key(name: str, file: Checkpoint) -> _Key | None:
    group = next((k for k in file.keys if name.startswith(f"{k}.")), "")
    if _STATE.search(group):
        return None
    bare = name[len(group) + 1 :] if group else name
    ema = file.kinds == ("ema",) or bool(_EMA.search(group) or _EMA.search(bare.split(".")[0]))
    if ema:
        bare = _LED.sub("", bare)
    while wrapped := _WRAP.match(bare):
        bare = bare[wrapped.end() :]
    return ("ema" if ema else "raw"), group, bare


def fresh(weight: Weight) -> bool:
    """Whether a matrix still has exactly the law by which frameworks draw it at first: uniform within 1/sqrt(fan in) or
    Xavier's bound, or normal with the deviation of Kaiming, Xavier or 0.02. A trained one has neither its bound nor its tails:
    within five standard errors of both the second and the fourth moment is the rule.
    """
    shape, x = weight.last.shape, weight.last.values()
    if len(shape) < 2 or len(x) < 64 or not np.all(np.isfinite(x)):
        return False
    window = math.prod(shape[2:])
    fan_in, fan_out, n = shape[1] * window, shape[0] * window, len(x)
    if not 0 < float(np.abs(x).max()) < 1e6:  # no law draws that, and fourth powers overflow
        return False
    second, fourth = float(np.mean(x**2)), float(np.mean(x**4))
    if second == 0:
        return False
    bounds = (1 / math.sqrt(fan_in), math.sqrt(6 / (fan_in + fan_out)), math.sqrt(6 / fan_in))
    peak = float(np.abs(x).max())
    for bound in bounds:
        # Of a uniform law the variance is b^2/3, and that of its square 4 b^4/45.
        if 0.9 * bound < peak <= bound * (1 + 1e-5) and abs(second / (bound**2 / 3) - 1) < 5 * math.sqrt(0.8 / n):
            return True
    deviations = (math.sqrt(2 / fan_in), math.sqrt(2 / fan_out), math.sqrt(1 / fan_in), math.sqrt(2 / (fan_in + fan_out)), 0.02)
    normal = abs(fourth / second**2 - 3) < 5 * math.sqrt(24 / n)
    return normal and any(abs(second / s**2 - 1) < 5 * math.sqrt(2 / n) for s in deviations)
