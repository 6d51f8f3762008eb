"""The learning rate that a configuration plans, if it says enough to know it exactly.

The same words mean different curves in different frameworks, so the plan is built only for a framework whose
schedule we have read; a bare "cosine" in somebody's script is Unknown. Where versions of a framework differ
only at the start, the plan says from when on it may be compared (`Plan.loose_until`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.finding import Unknown
from wheeltapper.limits import Failure, guarded
from wheeltapper.reading.record import Fact
from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.schedules import SHAPES, TORCH, simulate
from wheeltapper.simulate.settings import Settings, Undetermined

SECONDS = 30.0  # CPU time; the longest plan that may be drawn takes five

Build = Callable[[Settings], Plan]


def planned_lr(
    knobs: Knobs,
    facts: Mapping[str, Fact] | None = None,
    n_updates: int | None = None,
    steps_per_epoch: int | None = None,
    trees: Sequence[ConfigTree] = (),
) -> Plan | Unknown:
    """The LR that these settings plan for `n_updates` updates (the run's own length by default).

    `trees` are the same sources as read; they tell the settings that are no knobs. The plan counts updates,
    or epochs where the framework changes the LR once an epoch.
    """
    known = {name: fact.value for name, fact in (facts or {}).items()}
    per_epoch = steps_per_epoch or _whole(known.get("steps_per_epoch"))
    total = n_updates or _whole(known.get("total_steps"))
    settings = Settings(knobs, trees, per_epoch, total)
    build = BUILDERS.get(knobs.dialect.NAME, _by_torch_name)

    def built() -> Plan | Unknown:
        try:
            return build(settings)
        except Undetermined as missing:
            return missing.unknown
        except InputError as error:  # the framework itself would refuse these values
            return Unknown(f"the schedule cannot be built: {error.what}", ("schedule.name",))

    plan = guarded(built, seconds=SECONDS)
    if isinstance(plan, Failure):  # words for numbers, numbers beyond all bounds
        return Unknown(f"the schedule cannot be built from these values: {plan.text}", ("schedule.name",))
    return plan


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and value > 0 and float(value).is_integer() else None


def _name(s: Settings) -> str:
    return str(s.need("schedule.name")).strip()


def _hf(s: Settings) -> Plan:
    name = _name(s)
    extra = s.block("lr_scheduler_kwargs")
    kwargs = dict(extra) if isinstance(extra, dict) else {}
    total = s.total()
    warmup = math.ceil(s.length("schedule.warmup", 0.0))
    renamed = {"reduce_lr_on_plateau": None, "greedy": None, "cosine_warmup_with_min_lr": "cosine_warmup_with_min_lr"}
    key = f"hf.{renamed.get(name, name)}"
    if key not in SHAPES:
        raise Undetermined(f"the schedule {name!r} of transformers depends on more than its settings", "the metric")
    params: dict[str, Any] = {"num_training_steps": total, "num_warmup_steps": warmup, **kwargs}
    if name == "constant":
        params = {}
    elif name in ("constant_with_warmup", "inverse_sqrt"):
        params.pop("num_training_steps")
    return simulate(key, s.n, lr=s.lr, **params)


def _timm(s: Settings) -> Plan:
    if s.other("lr_noise") is not None:
        raise Undetermined("timm adds random noise to this LR (lr_noise)")
    name = _name(s)
    on_updates = s.get("schedule.interval") == "steps"
    factor = s.epoch if on_updates else 1
    epochs = int(s.need("run.epochs"))

    def ticks(id: str, default: float = 0.0) -> int:
        return round(float(s.get(id, default) or 0.0) * factor)

    params: dict[str, Any] = {
        "warmup_t": ticks("schedule.warmup"),
        "warmup_lr_init": float(s.get("schedule.warmup_start", 1e-5)),
        "warmup_prefix": bool(s.other("warmup_prefix", False)),
    }
    if name in ("cosine", "tanh", "poly"):
        params |= {
            "t_initial": epochs * factor,
            "lr_min": float(s.get("schedule.min_lr", 0.0)),
            "cycle_mul": float(s.other("lr_cycle_mul", 1.0)),
            "cycle_decay": float(s.other("lr_cycle_decay", 0.1)),
            "cycle_limit": int(s.other("lr_cycle_limit", 1)),
        }
        if name != "tanh":
            params["k_decay"] = float(s.other("lr_k_decay", 1.0))
        if name == "poly":
            params["power"] = float(s.other("decay_rate", 0.1))
    elif name == "step":
        params |= {
            "decay_t": float(s.need("schedule.step_size")) * factor,
            "decay_rate": float(s.need("schedule.gamma")),
        }
    elif name == "multistep":
        cuts = [round(float(m) * factor) for m in s.need("schedule.milestones")]
        params |= {"decay_t": cuts, "decay_rate": float(s.need("schedule.gamma"))}
    else:
        raise Undetermined(f"timm's schedule {name!r} depends on the metric", "the metric")
    if on_updates:
        return simulate(f"timm.{name}", s.n, lr=_timm_lr(s), **params)
    # timm trains on for the cool-down after the schedule; the LR stays at its minimum there.
    seen = math.ceil(s.given_total / s.per_epoch) if s.given_total and s.per_epoch else 0
    length = max(seen, epochs + ticks("schedule.cooldown"))
    return simulate(f"timm.{name}", length, lr=_timm_lr(s), unit="epochs", **params)


def _timm_lr(s: Settings) -> float:
    if "optimizer.lr" in s.knobs:
        return s.lr
    base, size = float(s.need("optimizer.lr_base")), float(s.need("optimizer.lr_base_size"))
    ratio = s.global_batch / size
    scale = s.other("lr_base_scale")
    name = str(s.need("optimizer.name")).lower()
    if scale == "sqrt" or (not scale and any(word in name for word in ("ada", "lamb"))):
        ratio = ratio**0.5
    return base * ratio


def _nanogpt(s: Settings) -> Plan:
    if _name(s) == "constant":
        return simulate("hf.constant", s.n, lr=s.lr)
    warm, total = round(s.length("schedule.warmup")), round(s.length("schedule.total"))
    plan = simulate(
        "nanogpt", s.n, lr=s.lr, warmup_iters=warm, lr_decay_iters=total, min_lr=float(s.need("schedule.min_lr"))
    )
    # Older versions warm up as it/w, newer ones as (it+1)/(w+1).
    return replace(plan, loose_until=float(warm))


def _megatron(s: Settings) -> Plan:
    total = s.length("schedule.total") if "schedule.total" in s.knobs else float(s.total())
    warmup = s.knobs.get("schedule.warmup")
    # A fraction of the warm-up is one of the decay's length.
    warm = 0.0 if warmup is None else warmup.value * total if warmup.unit == "fraction" else s.length("schedule.warmup")
    return simulate(
        "megatron",
        s.n,
        lr=s.lr,
        lr_decay_steps=total,
        lr_warmup_steps=warm,
        lr_decay_style=_name(s),
        min_lr=float(s.get("schedule.min_lr", 0.0)),
    )


def _ultralytics(s: Settings) -> Plan:
    batch, nominal = s.get("batch.global"), s.get("batch.nominal", 64)
    lr = s.lr  # `optimizer: auto` chooses it: asked for first, since nothing else can help then
    plan = simulate(
        "ultralytics",
        s.n,
        lr=lr,
        epochs=int(s.need("run.epochs")),
        steps_per_epoch=s.epoch,
        lrf=float(s.get("schedule.min_lr_ratio", 0.01)),
        cos_lr=_name(s) == "cosine",
        warmup_epochs=float(s.get("schedule.warmup", 3.0)),
    )
    note = "counts batches, not updates: several batches make one update" if batch and nominal > batch else ""
    return replace(plan, unit="micro_steps", notes=(note,) if note else ())


def _mm(s: Settings) -> Plan:
    if s.accumulation != 1:
        raise Undetermined("mmcv and mmengine count iterations, of which several make an update here")
    schedulers = s.block("param_scheduler")
    if schedulers is not None:
        parts = schedulers if isinstance(schedulers, list) else [schedulers]
        return simulate("mmengine", s.n, lr=s.lr, schedulers=parts, steps_per_epoch=s.epoch)
    config = s.block("lr_config")
    if not isinstance(config, dict):
        raise Undetermined("the whole schedule section is needed", "lr_config", "param_scheduler")
    known = (
        "by_epoch",
        "warmup",
        "warmup_iters",
        "warmup_ratio",
        "warmup_by_epoch",
        "step",
        "gamma",
        "power",
        "min_lr",
        "min_lr_ratio",
    )
    params = {key: config[key] for key in known if key in config}
    return simulate(
        "mmcv",
        s.n,
        lr=s.lr,
        policy=str(config.get("policy", "fixed")),
        steps_per_epoch=s.epoch if config.get("by_epoch", True) or config.get("warmup_by_epoch") else 1,
        max_epochs=int(s.get("run.epochs", 0)) or None,
        max_iters=s.total(),
        **params,
    )


def _edm(s: Settings) -> Plan:
    if _name(s) != "constant":
        raise Undetermined("EDM2's reference batches come from its preset", "ref_batches")
    ramp = float(s.other("lr_rampup_kimg", float(s.need("schedule.warmup")) / 1000))
    return simulate("edm", s.n, lr=s.lr, batch_size=int(s.global_batch), lr_rampup_kimg=ramp)


def _sedd(s: Settings) -> Plan:
    if _name(s) != "warmup-constant":
        raise Undetermined("this fork computes its schedule in code", "the training script")
    return simulate("sedd", s.n, lr=s.lr, warmup=round(s.length("schedule.warmup", 0.0)))


def _restoration(after_update: bool) -> Build:
    """BasicSR and its descendants: a torch scheduler by name, with their warm-up written over it."""

    def build(s: Settings) -> Plan:
        name, params = _torch_params(s, s.length, s.lengths)
        warm = round(s.length("schedule.warmup", -1.0))
        plan = simulate(f"basicsr.{name}", s.n, lr=s.lr, warmup_iter=warm, after_update=after_update, **params)
        # neosr and older traiNNer differ in when the first step is taken: one tick, only at the start.
        return replace(plan, loose_until=1.0)

    return build


def _by_torch_name(s: Settings) -> Plan:
    """Other frameworks: only torch's own classes, and only if it is known what they count."""
    if (
        "schedule.name" in s.knobs
        and _name(s).lower() in ("none", "constant", "fixed")
        and not s.get("schedule.warmup")
    ):
        return simulate("hf.constant", s.n, lr=s.lr)
    if s.get("schedule.warmup"):
        raise Undetermined("how the warm-up joins the schedule is written in the code", "the training script")
    if not any(id.startswith("schedule.") and not knob.default for id, knob in s.knobs.items()):
        raise Undetermined(
            f"the settings name no schedule: the learning rate stays at {s.lr:g}, unless the code changes it",
            "the training script",
        )
    interval = s.knobs.get("schedule.interval")
    if interval is None or interval.default:
        raise Undetermined("whether the scheduler steps per update or per epoch is not known", "schedule.interval")

    def plain(id: str, default: float | None = None) -> float:
        return float(s.need(id)) if default is None or id in s.knobs else default

    name, params = _torch_params(s, plain, lambda id: [int(v) for v in s.need(id)])
    per_epoch = interval.value == "epochs"
    length = math.ceil(s.n / s.epoch) if per_epoch else s.n
    return simulate(name, length, lr=s.lr, unit="epochs" if per_epoch else "steps", **params)


def _torch_params(
    s: Settings, length: Callable[..., float], lengths: Callable[[str], list[int]]
) -> tuple[str, dict[str, Any]]:
    """The torch class and its arguments, where the knobs hold all that matters."""
    by_lower = {name.lower(): name for name in (*TORCH, "MultiStepRestartLR")}
    name = by_lower.get(_name(s).lower(), "")
    gamma = float(s.get("schedule.gamma", 0.1))
    if name in ("MultiStepLR", "MultiStepRestartLR"):
        return name, {"milestones": lengths("schedule.milestones"), "gamma": gamma}
    if name == "StepLR":
        return name, {"step_size": round(length("schedule.step_size")), "gamma": gamma}
    if name == "ExponentialLR":
        return name, {"gamma": float(s.need("schedule.gamma"))}
    if name == "CosineAnnealingLR":
        return name, {"T_max": round(length("schedule.t_max")), "eta_min": float(s.get("schedule.min_lr", 0.0))}
    if name == "PolynomialLR":
        return name, {"total_iters": round(length("schedule.total", 5)), "power": float(s.get("schedule.power", 1.0))}
    if name == "OneCycleLR":
        given = {"pct_start": "schedule.pct_start", "div_factor": "schedule.div_factor"}
        given["final_div_factor"] = "schedule.final_div_factor"
        extra = {key: float(s.need(id)) for key, id in given.items() if id in s.knobs}
        return name, {
            "max_lr": float(s.need("schedule.max_lr")),
            "total_steps": round(length("schedule.total")),
            **extra,
        }
    raise Undetermined(f"the schedule {_name(s)!r} cannot be worked out from these settings", "the training script")


BUILDERS: dict[str, Build] = {
    "hf": _hf,
    "timm": _timm,
    "nanogpt": _nanogpt,
    "megatron": _megatron,
    "ultralytics": _ultralytics,
    "mmengine": _mm,
    "edm": _edm,
    "sedd": _sedd,
    "trainner": _restoration(after_update=True),
    "basicsr": _restoration(after_update=False),
    "neosr": _restoration(after_update=False),
}
