"""What several frameworks hand straight to torch: optimizer and scheduler arguments."""

from __future__ import annotations

from typing import Literal

from wheeltapper.finding import Place
from wheeltapper.settings.dialects.schema import Problem, View, as_number, place_of
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.parse_yaml import safe_float

# Signatures as of torch 2.13; `last_epoch` and `verbose` (gone since 2.7) are accepted besides.
SCHEDULERS: dict[str, tuple[str, str]] = {  # required arguments, optional arguments
    "StepLR": ("step_size", "gamma"),
    "MultiStepLR": ("milestones", "gamma"),
    "ConstantLR": ("", "factor total_iters"),
    "LinearLR": ("", "start_factor end_factor total_iters"),
    "ExponentialLR": ("gamma", ""),
    "PolynomialLR": ("", "total_iters power"),
    "CosineAnnealingLR": ("T_max", "eta_min"),
    "CosineAnnealingWarmRestarts": ("T_0", "T_mult eta_min"),
    "OneCycleLR": (
        "max_lr",
        "total_steps epochs steps_per_epoch pct_start anneal_strategy cycle_momentum base_momentum max_momentum "
        "div_factor final_div_factor three_phase",
    ),
    "CyclicLR": (
        "base_lr max_lr",
        "step_size_up step_size_down mode gamma scale_fn scale_mode cycle_momentum base_momentum max_momentum",
    ),
    "ReduceLROnPlateau": ("", "mode factor patience threshold threshold_mode cooldown min_lr eps"),
}
_ALWAYS = {"type", "last_epoch", "verbose"}
_KNOB_ARGUMENTS = {  # argument -> knob; positions are in the schedule's own unit
    "milestones": "schedule.milestones",
    "gamma": "schedule.gamma",
    "step_size": "schedule.step_size",
    "T_max": "schedule.t_max",
    "T_0": "schedule.t_max",
    "eta_min": "schedule.min_lr",
    "min_lr": "schedule.min_lr",
    "max_lr": "schedule.max_lr",
    "total_steps": "schedule.total",
    "total_iters": "schedule.total",
    "pct_start": "schedule.pct_start",
    "div_factor": "schedule.div_factor",
    "final_div_factor": "schedule.final_div_factor",
    "power": "schedule.power",
    "patience": "schedule.patience",
    "factor": "schedule.gamma",
}
_LENGTHS = {"schedule.milestones", "schedule.step_size", "schedule.t_max", "schedule.total", "schedule.patience"}


def scheduler_knobs(view: View, found: Found, section: str, unit: str) -> None:
    """Knobs of a block `{type: MultiStepLR, milestones: [...], gamma: 0.5}`."""
    found.take("schedule.name", view, f"{section}.type")
    for argument, knob in _KNOB_ARGUMENTS.items():
        found.take(knob, view, f"{section}.{argument}", unit=unit if knob in _LENGTHS else None)
    # These two are torch's own defaults (0.1 and 0), used when the block leaves them out.
    name = str(found.known("schedule.name") or "").lower()
    if name in ("multisteplr", "steplr") and "schedule.gamma" not in found:
        found.give("schedule.gamma", 0.1, default=True)
    if name == "cosineannealinglr" and "schedule.min_lr" not in found:
        found.give("schedule.min_lr", 0.0, default=True)


def optimizer_knobs(view: View, found: Found, section: str) -> None:
    """Knobs of a block `{type: AdamW, lr: 2e-4, betas: [0.9, 0.99]}`."""
    found.take("optimizer.name", view, f"{section}.type")
    found.take("optimizer.lr", view, f"{section}.lr")
    found.take("optimizer.weight_decay", view, f"{section}.weight_decay")
    found.take("optimizer.betas", view, f"{section}.betas")
    found.take("optimizer.eps", view, f"{section}.eps")
    found.take("optimizer.momentum", view, f"{section}.momentum")


def check_scheduler(view: View, section: str) -> list[Problem]:
    """Arguments that the named torch scheduler does not take, lacks, or cannot compute with."""
    name_leaf = view.leaf(f"{section}.type")
    if name_leaf is None or not isinstance(name_leaf.value, str):
        return []
    by_lower = {name.lower(): name for name in SCHEDULERS}
    name = by_lower.get(name_leaf.value.lower())
    if name is None:  # the framework's own, or one we do not know
        return []
    required, optional = (set(text.split()) for text in SCHEDULERS[name])
    prefix = tuple(section.split("."))
    given = {path[len(prefix)]: leaf for path, leaf in view.index.items() if path[: len(prefix)] == prefix}
    out = []
    for argument, leaf in given.items():
        if argument not in required | optional | _ALWAYS:
            text = f"{name} takes no argument `{argument}`: building the schedule fails"
            options = ", ".join(sorted(required | optional))
            hint = f"It takes {options}."
            out.append(Problem("unknown-key", text, place_of(leaf), "is", hint, f"{section}.{argument}"))
        elif argument not in _ALWAYS and isinstance(leaf.value, str) and as_number(leaf.value) is not None:
            out.append(string_number(leaf.value, f"{section}.{argument}", place_of(leaf), "is", name))
    for argument in sorted(required - set(given)):
        text = f"{name} needs `{argument}`: building the schedule fails"
        out.append(Problem("missing", text, place_of(name_leaf), "is", None, f"{section}.{argument}"))
    return out


def check_optimizer(view: View, section: str) -> list[Problem]:
    """Numbers of an optimizer block that are strings: torch compares them with 0.0 and stops."""
    out = []
    for argument in ("lr", "weight_decay", "eps", "momentum", "betas.0", "betas.1"):
        leaf = view.leaf(f"{section}.{argument}")
        if leaf is not None and isinstance(leaf.value, str) and as_number(leaf.value) is not None:
            out.append(string_number(leaf.value, f"{section}.{argument}", place_of(leaf), "is", "the optimizer"))
    return out


def string_number(raw: str, key: str, place: Place, grade: Literal["is", "suspected"], who: str) -> Problem:
    """A number that YAML 1.1 reads as text, in a place that computes with it."""
    text = (
        f"`{key}` is the string {raw!r}, not a number (YAML 1.1 needs a dot and a signed exponent): {who} cannot use it"
    )
    return Problem("string-number", text, place, grade, f"Write {safe_float(raw)}.", key)
