"""What in a record is an alarm. Facts (not finite, no gradient, ranks that differ) need no threshold; outliers are
judged against the run's own quiet steps, with a stated false rate.

The threshold: residuals from a running median; their upper tail beyond the 95 % quantile is taken as exponential and
its scale at the upper 99 % confidence limit, so that the level exceeded once in 1/RATE looks can be computed from a
few hundred steps. For Gaussian residuals it lies at 8 standard deviations; for heavier tails further out. On a log
scale an exponential tail is a power law of the gradient norm, so heavy tails are allowed for (KNOWLEDGE ST-06: a
fixed number of sigmas is wrong in both directions). LOG.md has the measured false rate.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from wheeltapper.guard.early import SOLVED, Early
from wheeltapper.guard.record import StepRecord, TensorRecord

RATE = 1e-6  # false alarms per look that a threshold is computed for
QUIET = 256  # steps before outliers are judged: the tail then has 13 points
POOL = 1024  # residuals kept
NEAR = 64  # steps of the running median; a trend over fewer is not a step's own doing
TAIL = 0.05
# BLOOM's norms before its loss spikes were 8 and 20 times the quiet level, its quiet ones within 2 (PRG-06). Under 4
# times, an outlier is real but clipping and the second moment absorb it; nothing is to be done.
FACTOR = 4.0
# A rare kind of sample makes an outlier of its own batch, and two such batches in a row are chance; weights that move
# away show in every batch, and further each time (BLOOM's norms: 9 times the one before). So a precursor is three in a
# row, or two of which the second is FACTOR times the first. Of 277 healthy trainings (3.9 million steps) two in a row
# were told 4 times and these once; of 16 GPTs whose rate climbed until they broke the same 12 had both (LOG.md).
NORM_RUN = 3
LOSS_RUN = 5  # a loss has left its band when five in a row have
SKIP_RUN = 5  # outliers in a row after which they are no longer outliers but where the run has gone
HOLLOW_RUN = 3  # one such step may be one batch, two a coincidence
MOVED_ON = 64  # outliers in a row: the level has changed, learn it anew
# A bias in front of a batch norm has no gradient but rounding noise, a millionth of the others' and less.
FAINT = 1e-3
# A schedule that ends at nothing takes the rate through the size at which a step is lost in the rounding of fp32: of 706
# healthy trainings 4 had a "frozen" tensor in the last twentieth of a cosine (LOG.md). Below this share of the highest rate
# that a group has had, standing still is what was asked for.
ANNEALED = 0.01
# Of these an output that is zero everywhere is a dead layer; elsewhere (gates, adapters) it may be meant.
RECTIFIERS = frozenset({"ReLU", "ReLU6", "LeakyReLU", "GELU", "SiLU", "Mish", "ELU", "Hardswish", "PReLU", "Softplus"})
SIGMAS = 8.0  # where tail_level puts the level of Gaussian noise


class Band:
    """A running median and the level above it that a quiet step exceeds once in 1/RATE looks."""

    def __init__(self) -> None:
        self._near: deque[float] = deque()  # the last NEAR quiet values, and the same in order
        self._ordered: list[float] = []
        self._last: deque[float] = deque(maxlen=NEAR)  # all values
        self._pool: deque[float] = deque(maxlen=POOL)
        self._since = 0
        self.median = math.nan
        self.level = math.inf
        self.run = 0  # outliers in a row

    @property
    def ready(self) -> bool:
        return math.isfinite(self.level)

    def above(self, value: float, least: float = 0.0) -> bool:
        """Whether `value` is an outlier; a quiet one is learned from."""
        self._last.append(value)
        if self.ready and value - self.median > max(self.level, least) and value - self.median > SIGMAS * self._noise():
            self.run += 1
            if self.run >= MOVED_ON:
                self.__init__()  # type: ignore[misc]
                return False
            return True
        self.run = 0
        if self._near:
            self._pool.append(value - self.median)
        self._near.append(value)
        insort(self._ordered, value)
        if len(self._near) > NEAR:
            del self._ordered[bisect_left(self._ordered, self._near.popleft())]
        self.median = self._ordered[len(self._ordered) // 2]
        self._since += 1
        if len(self._pool) >= QUIET and (self._since >= 32 or not self.ready):
            self._since = 0
            self.level = tail_level(np.fromiter(self._pool, dtype=np.float64), RATE)
        return False

    def _noise(self) -> float:
        """The noise of the last steps, outliers among them, by their median absolute deviation: where a run has grown
        noisier (it left a plateau, the rate went up) the tail of its quieter past is not the measure."""
        last = np.fromiter(self._last, dtype=np.float64)
        return 1.4826 * float(np.median(np.abs(last - np.median(last))))


def tail_level(residuals: np.ndarray[Any, np.dtype[np.float64]], rate: float) -> float:
    """The residual exceeded with probability `rate`, by an exponential tail at its upper 99 % confidence limit.

    >>> round(tail_level(np.random.default_rng(0).standard_normal(1024), 1e-6), 1)
    8.3
    """
    ordered = np.sort(residuals)
    k = max(int(TAIL * len(ordered)), 1)
    u = ordered[-k - 1]
    excess = float(np.mean(ordered[-k:] - u))
    # The mean of k exponentials is Gamma(k): the true scale is below this in 99 of 100 samples (Wilson–Hilferty).
    upper = k / (k * (1 - 1 / (9 * k) - 2.326 / (3 * math.sqrt(k))) ** 3)
    return float(u + upper * excess * math.log(k / len(ordered) / rate))


@dataclass(frozen=True, slots=True)
class Alarm:
    """What was seen; the guard makes an Incident of it and asks the policy."""

    kind: str
    text: str
    severity: str
    onset: int
    facts: dict[str, Any] = field(default_factory=dict)


class Judge:
    """Holds what a verdict needs to remember. `names` are the parameters' names; `early`: also warn early."""

    def __init__(self, names: tuple[str, ...], early: bool = True) -> None:
        self.names = names
        self.early = Early() if early else None
        self.norms = Band()
        self.losses = Band()
        self.factors = Band()  # of the loss, on a log scale
        self._high = 0  # losses in a row beyond both
        self._first: list[float] = []  # the losses of the start
        self._start = math.nan  # and their median
        self.sound = True  # the last step's loss and gradients were finite
        self._still: dict[str, int] = {}
        self._peaks: tuple[float, ...] = ()  # the highest rate of every group at a look
        self._outlier: float | None = None  # the last norm, if it was beyond the band
        self._warned = False  # of the present run of outliers
        self._hollow = 0  # steps in a row without a loss that the scaler skipped

    def step(self, r: StepRecord) -> Iterator[Alarm]:
        scaled = math.isfinite(r.scale)
        self.sound = not r.nonfinite and (math.isfinite(r.loss) or not r.loss_given)
        if scaled and r.scale < 1:
            # torch's own documentation: a scale below 1 means that something is wrong (AMP-01, AMP-04).
            yield Alarm(
                "scale",
                f"The loss scale has fallen to {r.scale:.3g}: overflows persist.",
                "error",
                r.step,
                {"scale": r.scale},
            )
        overflow = scaled and r.skipped  # the scaler's own work (AMP-05)
        if not math.isfinite(r.loss) and r.loss_given and not overflow:
            yield Alarm("nonfinite-loss", f"The loss is {r.loss}.", "error", r.step, {"loss": r.loss})
        self._hollow = self._hollow + 1 if overflow and r.loss_given and not math.isfinite(r.loss) else 0
        if self._hollow in (1, HOLLOW_RUN):
            # The loss is not multiplied by the scale, so no smaller scale mends it; but the weights were spared.
            often = "" if self._hollow == 1 else f", {HOLLOW_RUN} steps in a row: no smaller scale mends that"
            text = f"The loss is {r.loss} and the scaler skipped the step{often}."
            severity = "note" if self._hollow == 1 else "warning"
            yield Alarm("loss-skipped", text, severity, r.step, {"loss": r.loss, "batch": r.batch_id})
        if r.nonfinite and not overflow:
            name = self.names[r.worst] if 0 <= r.worst < len(self.names) else "?"
            text = f"{r.nonfinite} of {len(self.names)} gradients are not finite, first {name}."
            yield Alarm("nonfinite", text, "error", r.step, {"count": r.nonfinite, "first": name, "batch": r.batch_id})
        if not r.nonfinite and math.isfinite(r.grad_norm) and r.grad_norm > 0 and not overflow:
            yield from self._norm(r)
        if len(self._first) < NEAR and math.isfinite(r.loss):
            self._first.append(r.loss)
            self._start = float(np.median(self._first))
        self._high = self._high + 1 if math.isfinite(r.loss) and self._loss_is_high(r.loss) else 0
        if self._high == LOSS_RUN:
            facts = {"loss": r.loss, "median": self.losses.median, "level": self.losses.median + self.losses.level}
            text = (
                f"The loss has been above its band for {LOSS_RUN} steps: {r.loss:.4g}, median {self.losses.median:.4g}."
            )
            yield Alarm("loss-left-band", text, "error", r.step - LOSS_RUN + 1, facts)
            if self.early is not None:  # nothing is early from here on, until the run has shown its new level
                self.early = Early()
        if self.early is not None and (warning := self.early.step(r, SOLVED * max(self._start, 0.0))) is not None:
            yield Alarm("early", warning.text, "early", warning.onset, warning.facts)

    def _loss_is_high(self, loss: float) -> bool:
        """Beyond its band by amount and by factor. Near zero a loss varies by factors, and a ripple there is far beyond
        what its amounts have been; elsewhere the two are the same. Where the task is solved a loss is high when half of what was
        learned is gone."""
        beyond = self.losses.above(loss)
        if loss > 0:
            beyond = self.factors.above(math.log(loss)) and beyond
        return beyond and not (self.solved and loss < self._start / 2)

    def _norm(self, r: StepRecord) -> Iterator[Alarm]:
        before, self._outlier = self._outlier, None
        if not self.norms.above(math.log(r.grad_norm), math.log(FACTOR)):
            self._warned = False
            return
        if self.solved:
            return
        self._outlier = r.grad_norm
        run, times = self.norms.run, r.grad_norm / math.exp(self.norms.median)
        facts = {
            "norm": r.grad_norm,
            "times": times,
            "level": math.exp(self.norms.level),
            "rate": RATE,
            "batch": r.batch_id,
        }
        if run == 1:
            yield Alarm("norm-outlier", f"The gradient norm is {times:.3g} times its median.", "note", r.step, facts)
        grown = run == 2 and before is not None and r.grad_norm > FACTOR * before
        if (grown or run >= NORM_RUN) and not self._warned:
            self._warned = True
            text = f"The gradient norm is {times:.3g} times its median, {run} steps in a row: the training may be breaking."
            yield Alarm("precursor", text, "warning", r.step - run + 1, facts)

    @property
    def solved(self) -> bool:
        """Whether the loss is next to nothing beside that of the start. Its gradients are then rounding noise between
        bursts that mend by themselves, and to stand still is right: of 14 false alarms in 3 million looks at healthy trainings
        12 were of such (LOG.md)."""
        return self._start > 0 and self.losses.median <= SOLVED * self._start

    def calm(self) -> bool:
        """Whether the last step was inside its bands: a state worth keeping."""
        return self.norms.run == 0 and self.losses.run == 0 and self.sound

    def norm_limit(self) -> float:
        """The gradient norm above which a step is a proven outlier; inf before the run has shown its quiet band."""
        if not self.norms.ready or self.norms.run >= SKIP_RUN:
            return math.inf
        return math.exp(min(self.norms.median + max(self.norms.level, math.log(FACTOR)), 700.0))

    def tensors(self, r: TensorRecord, lr: tuple[float, ...], group_of: Any) -> Iterator[Alarm]:
        names = self.names
        broken = np.flatnonzero(~np.isfinite(r.weight_rms))
        if len(broken):
            yield Alarm("weights", f"{listed(names, broken)}: the weights are not finite.", "error", r.step)
        elif math.isinf(r.ema_distance) or (math.isnan(r.ema_distance) and r.ema_asked):
            yield Alarm(
                "ema",
                "The averaged weights are not finite, the model's are: the average does not heal.",
                "error",
                r.step,
            )
        if r.buffers_broken and not len(broken):
            # A skipped step does not mend them, and only evaluation shows it.
            text = f"{r.buffers_broken} buffers (running statistics) hold nan: no sound batch mends them."
            yield Alarm("weights", text, "error", r.step, {"buffers": r.buffers_broken})
        absent = np.zeros(len(names), dtype=bool)
        absent[list(r.absent)] = True
        yield from self._twice(
            r, "no-gradient", absent, "no gradient reaches them; the optimizer leaves them as they are"
        )
        self._peaks = tuple(max(pair) for pair in zip_longest(lr, self._peaks, fillvalue=0.0))
        judged = [rate if rate > ANNEALED * peak else 0.0 for rate, peak in zip(lr, self._peaks, strict=False)]
        rates = np.array([judged[g] if g < len(lr) else math.nan for g in group_of]) if lr else np.zeros(len(names))
        known = r.grad_rms[np.isfinite(r.grad_rms) & (r.grad_rms > 0)]
        enough = FAINT * float(np.median(known)) if len(known) else math.inf
        pushed = (rates > 0) & (r.active > 0) & np.isfinite(r.update_rms) & (r.grad_rms > enough) & (not self.solved)
        frozen = pushed & (r.moved == 0)
        yield from self._twice(r, "frozen", frozen, "they have a gradient and a learning rate, and do not move")
        # A step in fp32 changes nearly every coordinate it pushes; in bf16 an update under |w|/512 is lost (AMP-11).
        stagnant = pushed & ~frozen & (r.moved < 0.1 * r.active)
        yield from self._twice(
            r, "stagnant", stagnant, "fewer than one in ten of the coordinates they push change: lost in rounding"
        )
        for kind, facts in (("inputs", r.inputs), ("targets", r.targets)):
            if facts.get("nonfinite"):
                yield Alarm(
                    f"{kind}-nonfinite",
                    f"{facts['nonfinite']} values of the {kind} are not finite.",
                    "error",
                    r.step,
                    facts,
                )
        yield from self._outputs(r)
        constant = r.inputs.get("constant_channels")
        flags = np.zeros(max(constant, default=-1) + 1, dtype=bool) if constant else np.zeros(0, dtype=bool)
        flags[constant or []] = True
        channels = tuple(f"channel {i}" for i in range(len(flags)))
        yield from self._twice(r, "constant-input", flags, "the same value in every item of the batch", channels)

    def _outputs(self, r: TensorRecord) -> Iterator[Alarm]:
        """Activations, where they were asked for."""
        bad = [name for name, facts in r.outputs.items() if facts["nonfinite"]]
        if bad:
            text = f"{listed(bad, range(len(bad)))}: what they put out is not finite, first {bad[0]}."
            yield Alarm("activations", text, "error", r.step, {"names": bad[:64], **r.outputs[bad[0]]})
        dead = np.array([f["kind"] in RECTIFIERS and f["zeros"] == 1 for f in r.outputs.values()], dtype=bool)
        yield from self._twice(r, "dead-output", dead, "they put out nothing but zeros", tuple(r.outputs))

    def _twice(
        self, r: TensorRecord, kind: str, flags: Any, text: str, names: tuple[str, ...] | None = None
    ) -> Iterator[Alarm]:
        """Told once, when the same things show at two looks in a row: one look can be a rare branch of the model."""
        names = self.names if names is None else names
        now = {f"{kind} {names[i]}" for i in np.flatnonzero(flags)}
        told = []
        for key in [k for k in self._still if k.startswith(f"{kind} ") and k not in now and self._still[k] == 1]:
            del self._still[key]
        for key in sorted(now):
            self._still[key] = self._still.get(key, 0) + 1
            if self._still[key] == 2:
                told.append(key.removeprefix(f"{kind} "))
        if told:
            yield Alarm(kind, f"{listed(told, range(len(told)))}: {text}.", "warning", r.step, {"names": told[:64]})


def listed(names: Any, which: Any) -> str:
    """The first few names and how many there are."""
    which = list(which)
    head = ", ".join(str(names[i]) for i in which[:4])
    return head if len(which) <= 4 else f"{head} and {len(which) - 4} more"
