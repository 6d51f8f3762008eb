"""What the content of a checkpoint says: which parts it holds, its step, its scalars, its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from wheeltapper.reading._pickle import Name
from wheeltapper.reading._torch_objects import Budget, TensorRef, meaning, walk
from wheeltapper.settings.tree import ConfigTree, Leaf

_STEP_KEYS = (
    "global_step", "step", "iter", "iteration", "iter_num", "num_updates", "current_iter", "n_iter", "it", "steps",
    "global_steps", "iterations", "train_step", "current_step", "niter", "optimizer_step", "total_it",
)  # fmt: skip
_EPOCH_KEYS = ("epoch", "current_epoch", "start_epoch", "epochs_run", "last_epoch_completed")
_SCORE_KEYS = (
    "best_metric", "metric", "best_acc", "best_acc1", "best_prec1", "best_fitness", "best_val_loss", "best_loss",
    "best_score", "best_map", "best_psnr", "best_fid", "best_miou", "best_model_score",
)  # fmt: skip
_CONFIG_KEYS = re.compile(
    r"^(config|cfg|args|opts?|hyper_parameters|hparams|hyperparameters|train_args|training_args|model_args|model_config"
    r"|settings|options|datamodule_hyper_parameters|yaml)$",
    re.I,
)
_OPTIMIZER = re.compile(r"optim", re.I)
_SCHEDULER = re.compile(r"sched", re.I)
_SCALER = re.compile(r"scaler|^amp$", re.I)
_RNG = re.compile(r"(^|_)rng(_|$)|random_states?|rng_state", re.I)
_EMA = re.compile(r"(^|[_.\-])ema($|[_.\-\d])|averaged?_model|shadow_params", re.I)
_MAX_PARTS = 100_000
_MAX_VALUES = 400
_MAX_TEXT = 300
_MAX_LEAVES = 5000


@dataclass(slots=True)
class Content:
    tensors: list[tuple[str, TensorRef]] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    keys: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    step: float | None = None
    epoch: float | None = None
    metric: tuple[str, float] | None = None
    configs: list[ConfigTree] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)


def content_of(root: Any, file: str) -> Content:
    """Everything a checkpoint says without its tensors' numbers."""
    out = Content()
    top = meaning(root)
    if isinstance(top, TensorRef):
        out.tensors.append(("", top))
        return out
    whole = _kind_of_part("", top)
    if not isinstance(top, dict):
        top = {str(i): item for i, item in enumerate(top[:_MAX_PARTS])} if isinstance(top, list | tuple) else {}
    out.keys = tuple(str(key)[:_MAX_TEXT] for key in islice(top, 1000))
    if _is_object(root) and not _holds_tensors(top, out.budget):
        _config(root, file, str(root.of), out)
    for key, part in islice(top.items(), _MAX_PARTS):
        name = str(key)
        kind = whole or _kind_of_part(name, meaning(part))
        if kind == "config" or (kind is None and _CONFIG_KEYS.match(name)):
            if _config(part, file, name, out):
                out.kinds.add("config")
                continue
            kind = None
        _part(name, part, kind, out)
    if whole:
        out.kinds.add(whole)
    _positions(top, out)
    return out


def _is_object(root: Any) -> bool:
    return hasattr(root, "of") and isinstance(root.of, Name)


def _holds_tensors(top: Mapping[Any, Any], budget: Budget) -> bool:
    return any(isinstance(item, TensorRef) for _, item in walk(dict(islice(top.items(), 50)), budget))


def _kind_of_part(name: str, part: Any) -> str | None:
    """By structure first: {"state", "param_groups"} is an optimizer whatever it is called."""
    if isinstance(part, list | tuple) and part:
        part = meaning(part[0])
    if isinstance(part, dict):
        keys = part.keys()  # never copied: thousands of parts may be the same large one
        if {"state", "param_groups"} <= keys:
            return "optimizer"
        if {"growth_factor", "backoff_factor"} <= keys:
            return "scaler"
        if "last_epoch" in keys and any(key in keys for key in ("_step_count", "_last_lr", "base_lrs")):
            return "scheduler"
        if len(keys) < 12 and len({"python", "numpy", "cpu", "cuda", "torch", "random_state"} & keys) >= 2:
            return "rng"
    for kind, pattern in (("optimizer", _OPTIMIZER), ("scheduler", _SCHEDULER), ("scaler", _SCALER), ("rng", _RNG)):
        if name and pattern.search(name) and not isinstance(part, int | float | str | None):
            return kind
    return None


def _part(name: str, part: Any, kind: str | None, out: Content) -> None:
    """One top-level entry: its tensors, and the plain numbers worth keeping."""
    if kind is not None:
        out.kinds.add(kind)
    ema = bool(_EMA.search(name))
    for path, item in walk(part, out.budget):
        full = ".".join((name, *path))
        out.budget.left -= len(full) >> 7  # a name of kilobytes counts for many
        if isinstance(item, TensorRef):
            out.tensors.append((full, item))
            if kind is None:
                inner = path[0] if path else ""
                out.kinds.add("ema" if ema or _EMA.search(inner.split(".")[0]) else "raw")
        elif kind == "optimizer" and path[-1:] == ("step",) and isinstance(item, int | float):
            note_optimizer_step(full, item, out)
        elif kind == "optimizer" and path[-2:-1] == ("params",):  # how many parameters it was given, not which
            out.values[f"{name}.params"] = out.values.get(f"{name}.params", 0) + 1
        elif item is None or len(out.values) >= _MAX_VALUES:
            continue
        elif isinstance(item, bool | int | float | str) and len(path) <= 4 and not _is_bulk(path):
            out.values[full] = item[:_MAX_TEXT] if isinstance(item, str) else item


def note_optimizer_step(name: str, step: float, out: Content) -> None:
    """The count of updates that Adam and its kin keep for every parameter: one number, the largest."""
    key = name.split(".state.")[0] + ".step" if ".state." in name else "optimizer.step"
    out.values[key] = max(step, out.values.get(key, step))


def _is_bulk(path: tuple[str, ...]) -> bool:
    """Parameter indices and per-parameter state: thousands of numbers that say nothing by themselves."""
    return "params" in path or ("state" in path[:2] and len(path) > 1)


def _config(part: Any, file: str, name: str, out: Content) -> bool:
    """Settings stored in a checkpoint become a configuration tree."""
    leaves: list[Leaf] = []
    for path, item in walk(part, out.budget):
        if isinstance(item, TensorRef):
            return False
        if isinstance(item, Name):
            item = str(item)
        if (item is None or isinstance(item, bool | int | float | str)) and path and len(leaves) < _MAX_LEAVES:
            leaves.append(Leaf(tuple(int(p) if p.isdecimal() else p for p in path), item, str(item), file, 1))
    if leaves:
        out.configs.append(ConfigTree(file, "state", tuple(leaves), kind=name))
    return bool(leaves)


def _positions(top: Mapping[Any, Any], out: Content) -> None:
    """Step, epoch and score: at the top level, or in `meta` (mmcv), `extra_state` and the like."""
    places = [
        top,
        *(meaning(top[key]) for key in ("meta", "extra_state", "trainer_state", "state", "info") if key in top),
    ]
    for place in places:
        if not isinstance(place, dict):
            continue
        if out.step is None:
            out.step = _number(place, _STEP_KEYS)
        if out.epoch is None:
            out.epoch = _number(place, _EPOCH_KEYS)
        for key in _SCORE_KEYS:
            if out.metric is None and (value := _number(place, (key,), negative=True)) is not None:
                out.metric = (key, value)


def _number(place: Mapping[Any, Any], keys: tuple[str, ...], *, negative: bool = False) -> float | None:
    for key in keys:
        value = meaning(place.get(key))
        if isinstance(value, int | float) and not isinstance(value, bool) and (negative or 0 <= value < 1e15):
            return float(value)
    return None
