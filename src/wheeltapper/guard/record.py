"""What the guard keeps: one StepRecord a step, one TensorRecord every `every` steps, an Incident when something is wrong.

Plain frozen data, so that a recorder, an adapter or a test can hold on to it while training goes on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One optimizer step, attempted or made. A number that was not measured is nan; nan and inf measured are kept."""

    step: int  # optimizer steps before this one; goes back on a rollback
    tick: int  # steps since the guard was made; only ever goes up
    time: float  # unix seconds at the end of the step
    loss: float  # mean over the micro-batches of the step
    micro: int  # micro-batches of the step
    grad_norm: float  # global, unscaled; of this rank's shards under FSDP
    group_norms: tuple[float, ...]  # the same for every parameter group
    before_clip: bool  # the norm was taken before clipping (guard.step called between backward and the clipping)
    lr: tuple[float, ...]  # of every parameter group, as the step used it
    update_ratio: float  # ‖Δw‖ / ‖w‖ on a fixed sample of the coordinates
    nonfinite: int  # parameters whose gradient is not finite
    worst: int  # index in guard.names of the first of them, -1 if none
    clipped: bool | None  # None if clip_norm is not known
    scale: float  # loss scale
    skipped: bool  # the optimizer did not move: an overflow under the scaler, or the guard's own skip
    loss_given: bool = False  # a loss was told: a nan is then the loss itself
    batch_id: Any = None
    data_s: float = float("nan")  # waiting for the batch, where guard.batches is used
    step_s: float = float("nan")  # since the end of the step before, on the host's clock
    memory: int = -1  # bytes allocated on the device (peak resident memory on a CPU); -1 between looks
    action: str | None = None  # what the guard did at this step

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """Per-parameter numbers of one step; every array is in the order of guard.names."""

    step: int
    tick: int
    weight_rms: Floats
    grad_rms: Floats  # nan: no gradient
    update_rms: Floats  # on the sample
    moved: Floats  # share of the sampled coordinates the step changed
    lag: Floats  # RMS of g / sqrt(second moment): near 1 when the moment is current; nan without one
    active: Floats  # share of the sampled coordinates whose gradient is not exactly zero
    ema_distance: float = float("nan")  # ‖w − ema‖ / ‖w‖ on the sample
    absent: tuple[int, ...] = ()  # parameters without a gradient; one that is nan is there
    ema_asked: bool = False  # an EMA was there to be measured
    buffers_broken: int = 0  # buffers that hold nan
    inputs: dict[str, Any] = field(default_factory=dict)
    targets: dict[str, Any] = field(default_factory=dict)
    # On request, of every module: kind, rms, zeros and saturated (shares), nonfinite (a count)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Incident:
    """Something the guard caught, or did. `facts` are the numbers behind the sentence."""

    kind: str  # nonfinite, norm-outlier, precursor, no-gradient, not-optimized, frozen, ranks-differ, input, scale, guard...
    step: int
    tick: int
    time: float
    text: str
    severity: str = "warning"  # note, early, warning, error
    onset: int | None = None  # the first step it shows in, where that is earlier
    action: str | None = None  # skip, cut, rollback, stop; None: watched only
    facts: dict[str, Any] = field(default_factory=dict)
    rank: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
