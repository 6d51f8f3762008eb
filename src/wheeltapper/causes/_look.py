"""What several causes look for: series, settings and messages by how people spell them; how far a curve fell."""

from __future__ import annotations

import math
import re
from typing import Literal

import numpy as np

from wheeltapper.causes import Case
from wheeltapper.config.tree import Leaf
from wheeltapper.finding import Evidence, Finding
from wheeltapper.run.model import Event, Run, Series
from wheeltapper.run.onsets import began
from wheeltapper.signals.statistics import block_medians, noise_of
from wheeltapper.signals.weights import Weights

LIVING = 3  # evaluations, all finite and all different
OFF = (None, False, 0, 0.0, "", "none", "None", "null", "false", "False", "0")


def series_like(run: Run, pattern: str, least: int = 3) -> list[Series]:
    """Series whose logged name matches: for quantities that have no name in the table of names."""
    seek = re.compile(pattern, re.IGNORECASE)
    return [s for s in run.series.values() if seek.search(s.raw) and int(s.finite.sum()) >= least]


def settings_like(run: Run, pattern: str) -> list[Leaf]:
    """Settings whose dotted name matches, in every configuration of the run."""
    seek = re.compile(pattern, re.IGNORECASE)
    return [leaf for tree in run.configs for leaf in tree.leaves if seek.search(leaf.dotted)]


def messages_like(run: Run, pattern: str) -> list[Event]:
    seek = re.compile(pattern, re.IGNORECASE)
    return [event for event in run.events if seek.search(event.text)]


def ends(series: Series) -> tuple[float, float] | None:
    """The level of the first and of the last tenth; None where there are too few values for two levels."""
    x = series.values[series.finite]
    if len(x) < 8:
        return None
    k = max(1, len(x) // 10)
    return float(np.median(x[:k])), float(np.median(x[-k:]))


def fell(series: Series | None) -> float | None:
    """The share of its first level that a loss lost; negative where it rose."""
    levels = ends(series) if series is not None else None
    if levels is None or levels[0] == 0:
        return None
    return (levels[0] - levels[1]) / abs(levels[0])


def through(train: Series | None, onset: float | None) -> Literal["falls", "holds", ""]:
    """How the training loss goes through an onset (on its own clock) that others show: it falls on and never rises again,
    or holds its level. Then whatever harms the held-out scores does not harm the training. Else nothing can be said."""
    if train is None or onset is None:
        return ""
    before, after = (train.values[train.finite & side] for side in (train.at < onset, train.at >= onset))
    if len(after) < 8 or not np.all(np.isfinite(train.values)):
        return ""
    levels = block_medians(after, min(6, len(after) // 4))[1]
    # Two medians of n values differ by 1.25 sigma times the root of 2/n by chance.
    noise = 4 * noise_of(after).sigma * 1.25 * math.sqrt(2 * len(levels) / len(after))
    some = max(3, len(after) // len(levels))
    start = float(np.median(before[-some:] if len(before) >= 3 else after[:some]))
    fall = start - float(levels[-1])
    rise = float(np.max(levels - np.minimum.accumulate(np.minimum(levels, start))))  # the start may be that of the run
    if fall > max(noise, 0.02 * abs(start)) and rise < max(noise, 0.1 * fall):
        return "falls"
    return "holds" if rise < noise else ""


def same_on_every_batch(case: Case) -> Finding | None:
    """A training loss that repeats exactly, row for row: other items cost exactly the same, so the output does not depend
    on the input. Weights that merely stand still give each batch its own loss."""
    train: Series | None = case.get("train_loss")
    held = [f for f in case.found("constant-metric", severity="ill") if train is not None and f.series == train.name]
    alone = train is not None and train.window not in ("epoch", "running") and train.clock == "step"
    return held[0] if held and alone and held[0].numbers.get("rows", 0) >= 10 else None


def flat_from_start(series: Series | None, onset: float | None) -> bool:
    """A plateau that begins within the first fiftieth of the record: there was no fall before it."""
    if series is None or onset is None or len(series) < 8:
        return False
    first, last = float(series.at[0]), float(series.at[-1])
    lost = fell(series)
    return onset <= first + 0.02 * (last - first) and lost is not None and lost < 0.02


# A gradient that overflows fp16 at this scale is larger than 65504 / 2^-10 = 7e7.
LOWEST_SCALE = 2.0**-10


def at_any_scale(scale: Series | None, train: Series | None) -> str:
    """Why the gradients are not finite whatever the scale; nothing: the range of fp16 may be what they leave.

    A scaler that has gone far below 1 has tried every scale at which an honest gradient fits. If the loss is finite all
    the while, the forward pass is, too: what is left is a backward pass that divides by zero (the root of zero does).
    """
    if scale is None or train is None or not scale.finite.any() or not train.finite.any():
        return ""
    last = float(scale.values[scale.finite][-1])
    late = train.values[-max(3, len(train) // 10) :]
    if not 0 < last < LOWEST_SCALE or not np.all(np.isfinite(late)):
        return ""
    return (
        f"at a scale of {last:.2g} only gradients beyond {65504 / last:.1g} overflow, and the loss is finite: "
        "they are not finite at any scale, in bf16 neither"
    )


def scale_fell_first(case: Case) -> bool:
    """The loss scale had collapsed before anything else broke: what broke later is not what made it fall."""
    scale: Series | None = case.get("loss_scale")
    fell = case.since(scale.clock, "scale-collapse") if scale is not None else None
    train: Series | None = case.get("train_loss")
    if fell is not None and train is not None and scale is not None and train.clock == scale.clock:
        high = np.flatnonzero(scale.finite & (scale.at <= fell) & (scale.values >= 0.5 * np.nanmax(scale.values)))
        start = float(scale.at[min(int(high[-1]) + 1, len(scale) - 1)]) if len(high) else fell
        x = train.values[train.finite & (train.at <= start)]
        if len(x) >= 8 and float(x[-4:].max()) > 3 * float(np.median(x[:-4])) > 0:
            return False  # the loss had jumped by then: large gradients, and the scale with them
    others = [f for f in case.findings if f.severity == "ill" and f.id != "scale-collapse"]
    first = began(case.run, others, scale.clock) if scale is not None else []
    return fell is not None and bool(first) and fell < first[0][0]


def led_away(case: Case) -> str:
    """A score of pictures that loses a good part of its first value as training goes on, in words; else nothing. What measures something
    else than the model does not follow its training down. PSNR in decibels is left out: a tenth of one is little, and it may fall as
    pictures get sharper."""
    for f in case.found("collapsed", "declined-after-peak"):
        series = case.run.series.get(f.series or "")
        if series is None or series.quantity != "ssim" or not series.finite.any():
            continue
        x = series.values[series.finite]
        if float(np.median(x[-4:])) < 0.6 * float(x[0]):
            return f"{series.name} falls from {x[0]:.2g} to {np.median(x[-4:]):.2g} as training goes on"
    return ""


def as_share(series: Series) -> float:
    """What a score must be divided by to be a share between 0 and 1."""
    return 100.0 if series.unit == "%" else 1.0


def weight_norms(run: Run) -> dict[str, Series]:
    """Norms of weights by the part of the model they belong to, with ten rows or more."""
    found = series_like(run, r"(weight|param)s?[/_. ]*norm", least=10)
    return {_part_of(s.raw, "weight|param"): s for s in found}


def still_weights(run: Run) -> list[tuple[Series, Series | None]]:
    """Weight norms that repeat exactly, with the gradient norm of the same part where it is logged.

    Any optimizer step changes a norm in its last digits, so exact repeats mean that no step was taken.
    """
    grads = {_part_of(s.raw, "grad|gradient"): s for s in run.series.values() if s.quantity == "grad_norm"}
    norms = weight_norms(run)
    still = [part for part, s in norms.items() if float(np.ptp(s.values[s.finite])) == 0.0]
    return [(norms[part], grads.get(part)) for part in still]


def in_optimizer(case: Case) -> list[Evidence]:
    """Whether the weights that stand still were handed to the optimizer, by the number of parameters in its saved state."""
    found: Weights | None = case.get("weights")
    given = [v for c in case.run.checkpoints for k, v in c.values.items() if k.endswith(".params") and isinstance(v, int)]
    if found is None or not given:
        return []
    whole = found.of("raw")
    moved = sum(w.same < 1.0 for w in whole)
    if max(given) >= len(whole):
        return [Evidence(-5.0, f"the optimizer was given {max(given)} parameters, as many as the model has", "given")]
    if max(given) <= moved:
        return [Evidence(1.5, f"the optimizer was given {max(given)} of {len(whole)} parameters", "given")]
    return []


def _part_of(raw: str, what: str) -> str:
    """ "grad_norm/head" and "head.grad.norm" are both about "head"."""
    cut = re.split(rf"(?:{what})s?[/_. ]*norm", raw.lower(), maxsplit=1)
    return ".".join(piece for word in cut for piece in re.split(r"[/_. ]+", word) if piece)


def weights_live(case: Case) -> str:
    """A held-out loss that stays finite while the training loss is NaN to the end, in words; else nothing. Weights with a NaN in them
    give no finite loss to anything: then it is the training loss that is undefined, not the network that broke."""
    train: Series | None = case.get("train_loss")
    lost = [f for f in case.found("not-finite", severity="ill") if train is not None and f.series == train.name]
    if train is None or not lost or lost[0].end is not None or lost[0].onset is None:
        return ""
    for series in (case.get("val_loss"), *(case.get("val_metrics") or ())):
        at = series.on(train.clock) if series is not None else None
        if series is None or at is None:
            continue
        after = series.values[at > lost[0].onset]
        if len(after) >= LIVING and np.all(np.isfinite(after)) and len(np.unique(after)) == len(after):
            return f"{series.name} stays finite in {len(after)} evaluations after the training loss turned NaN: the weights are whole"
    return ""


def before_nan(train: Series | None, onset: float | None) -> list[Evidence]:
    """A NaN out of the blue speaks for one bad step or item; a loss that rose before it, for divergence."""
    if train is None or onset is None:
        return []
    before = train.values[(train.at < onset) & train.finite]
    if len(before) < 4:
        return []
    if len(before) < 6:  # too few for a level; but a loss that falls from row to row is not about to break
        falls = bool(np.all(np.diff(before) < 0))
        return [Evidence(1.0, "the loss fell from row to row up to the one before", "before")] if falls else []
    level, last = before[-12:-1], float(before[-1])
    jump = max((float(level[i] / np.median(level[:i])) for i in range(3, len(level))), default=1.0) if level.min() > 0 else 1.0
    if jump > 3:
        return [Evidence(-1.0, f"the loss had jumped to {jump:.2g} times its level within {len(level)} rows before it turned NaN", "before")]
    rise = (last - float(np.median(level))) / max(float(np.std(level)), 1e-12)
    if rise < 2:
        return [Evidence(1.0, "the loss was calm up to the row before", "before")]
    return [Evidence(-2.0, "the loss rose before it turned NaN", "before")] if rise > 4 else []
