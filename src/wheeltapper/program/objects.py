"""The parts of a training run that a program builds: optimizers, schedulers, scalers, averages, loaders.

Each object knows the call that made it and every name it goes by (`scheduler`, `self.sched`, the
parameter of a function it is handed to), so that a later `.step()` can be told to be its own.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

from wheeltapper.program.by_name import made_by_name
from wheeltapper.program.flow import Flow
from wheeltapper.program.program import Program, callee
from wheeltapper.program.trace import Trace
from wheeltapper.program.values import Values

Kind = Literal["optimizer", "scheduler", "scaler", "ema", "sampler", "loader", "engine"]

OPTIMIZERS = {
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "SparseAdam",
    "Adafactor", "Lion", "LAMB", "Lamb", "LARS", "FusedAdam", "FusedLAMB", "AdamW8bit", "Adam8bit", "PagedAdamW8bit", "Muon",
    "LBFGS", "Sophia", "SophiaG", "Adan", "ScheduleFreeAdamW", "AdamWScheduleFree", "SGDScheduleFree", "SAM", "AdaBelief",
}  # fmt: skip
SCHEDULERS = {
    "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "PolynomialLR", "LambdaLR", "MultiplicativeLR", "CyclicLR", "OneCycleLR", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler",
    "get_cosine_schedule_with_warmup", "get_linear_schedule_with_warmup", "get_constant_schedule_with_warmup", "get_constant_schedule",
    "get_cosine_with_hard_restarts_schedule_with_warmup", "get_polynomial_decay_schedule_with_warmup", "get_inverse_sqrt_schedule",
    "get_scheduler", "CosineLRScheduler", "StepLRScheduler", "PlateauLRScheduler", "MultiStepLRScheduler", "PolyLRScheduler",
    "LinearWarmupCosineAnnealingLR", "CosineAnnealingWarmupRestarts", "WarmupCosineLR", "WarmupLR", "GradualWarmupScheduler",
    "WarmupCosineSchedule", "WarmupLinearSchedule",
}  # fmt: skip
EMAS = {
    "AveragedModel", "ModelEma", "ModelEmaV2", "ModelEmaV3", "ModelEMA", "EMA", "EMAModel", "ExponentialMovingAverage", "LitEma",
    "EMAHelper", "PostHocEMA", "WeightEMA",
}  # fmt: skip
KINDS: dict[str, Kind] = {
    **dict.fromkeys(OPTIMIZERS, "optimizer"),
    **dict.fromkeys(SCHEDULERS, "scheduler"),
    **dict.fromkeys(EMAS, "ema"),
    "GradScaler": "scaler",
    "ShardedGradScaler": "scaler",
    "DistributedSampler": "sampler",
    "DataLoader": "loader",
    "Loader": "loader",
    "Accelerator": "engine",
    "Fabric": "engine",
}
NAMES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("scheduler", re.compile(r"sched|^lrs?$|lr_policy|^warmup_lr$", re.I)),
    ("scaler", re.compile(r"scaler$", re.I)),
    ("ema", re.compile(r"(^|_)ema(_|$)|ema_model|swa_model", re.I)),
    ("optimizer", re.compile(r"optim|^opt(_?\w{1,8})?$|_opt$", re.I)),
    ("engine", re.compile(r"accelerator|fabric|engine|^ds_model$", re.I)),
    ("sampler", re.compile(r"sampler", re.I)),
    ("loader", re.compile(r"loader|dataloader|(^|_)dl$|_iter$", re.I)),
)
FRAMEWORKS = {
    "LightningModule", "Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer", "LightningCLI", "Runner", "Learner", "vision_learner",
    "create_supervised_trainer", "GRPOTrainer", "RewardTrainer",
}  # fmt: skip
LIBRARY_FITS = (
    ({"keras", "tensorflow", "tf_keras"}, {"fit", "fit_generator"}),
    ({"stable_baselines3", "sb3_contrib"}, {"learn"}),
    ({"ultralytics"}, {"train"}),
    ({"fastai"}, {"fit", "fine_tune", "fit_one_cycle"}),
    ({"skorch"}, {"fit", "partial_fit"}),
    ({"sklearn"}, {"MLPClassifier", "MLPRegressor"}),
    ({"lightgbm", "xgboost", "catboost"}, {"train", "fit"}),
)
PREDICTS = re.compile(r"(Classifier|Regressor|Regression|SVC|SVR|Ridge|RidgeCV|Lasso|ElasticNet|NB|Perceptron)$")
# What a part is called that was made by a name we cannot read.
BY_NAME: dict[Kind, str] = {"optimizer": "an optimizer by name", "scheduler": "a scheduler by name"}
STATE = frozenset({"state_dict", "load_state_dict"})
INERT = {
    "scheduler": frozenset(
        {"state_dict", "load_state_dict", "get_last_lr", "get_lr", "print_lr", "last_epoch", "base_lrs", "__class__"}
    ),
    "ema": frozenset({"update", "update_parameters", "to", "cuda", "requires_grad_", "eval", "train", "register"}),
}


@dataclass(frozen=True, eq=False)
class Part:
    """One object and the call that made it."""

    kind: Kind
    made_by: str  # "OneCycleLR"
    call: ast.Call
    names: frozenset[str]  # last component of every name it rests under
    trace: Trace


def parts_of(program: Program, flow: Flow, values: Values) -> list[Part]:
    out = []

    def add(kind: Kind, name: str, call: ast.Call) -> None:
        trace = flow.trace([(call, "value")], inert=INERT.get(kind, STATE))
        names = frozenset(rest[1] if rest[0] == "o" else rest[-1] for rest in trace.rests if rest[0] in "vfo")
        out.append(Part(kind, name, call, names, trace))

    for name, kind in KINDS.items():
        for call in program.calls.get(name, []):
            if name in program.classes and name not in EMAS | SCHEDULERS:
                continue
            if name == "Loader" and "ffcv" not in program.origin(call.func) and "yaml" in program.origin(call.func):
                continue
            add(kind, name, call)
    looked_up: dict[str, str] = {n: k for n, k in KINDS.items() if k in ("optimizer", "scheduler")}
    for call, made in made_by_name(program, values, looked_up):
        kind = "optimizer" if made.kind == "optimizer" else "scheduler"
        add(kind, made.name or BY_NAME[kind], call)
    return out


def is_known_optimizer(program: Program, part: Part) -> bool:
    """One of torch's or a well-known library's, so that what its step() does is known; none of the program's own."""
    return part.made_by not in program.classes and (part.made_by in OPTIMIZERS or part.made_by == BY_NAME["optimizer"])


def kind_of(name: str, parts: list[Part]) -> Kind | None:
    """What a name stands for: by how it was made, else by what it is called."""
    made = {part.kind for part in parts if name in part.names}
    if len(made) == 1:
        return made.pop()
    for kind, pattern in NAMES:
        if pattern.search(name):
            return kind
    return None


def class_bases(program: Program) -> set[str]:
    return {base for cls in program.classes.values() for base in cls.bases}


def run_by_framework(program: Program) -> bool:
    """Whether a framework is used that steps optimizers and schedulers itself."""
    names = class_bases(program) | set(program.calls)
    if fits_by_library(program):
        return True
    return bool(names & FRAMEWORKS) and not any(name in program.classes for name in ("Trainer", "Runner", "Learner"))


def fits_by_library(program: Program) -> bool:
    """Keras, stable-baselines3, ultralytics, fastai: one call trains."""
    heads = {origin.lstrip(".").split(".")[0] for table in program.imported.values() for origin in table.values()}
    return any(heads & libraries and not calls.isdisjoint(program.calls) for libraries, calls in LIBRARY_FITS)


def trains(program: Program) -> bool:
    """Whether the program trains anything: a backward pass, or a framework that does one."""
    known = "backward" in program.calls or "manual_backward" in program.calls or run_by_framework(program)
    return known or by_gradients(program) or fits_estimators(program) or configures_a_runner(program)


def fits_estimators(program: Program) -> bool:
    """sklearn: an estimator that learns to predict is made and fitted."""
    heads = {origin.lstrip(".").split(".")[0] for table in program.imported.values() for origin in table.values()}
    return "sklearn" in heads and bool({"fit", "partial_fit"} & program.calls.keys()) and any(PREDICTS.search(n) for n in program.calls)


def configures_a_runner(program: Program) -> bool:
    """A configuration of the mm libraries, written in Python: data, model and optimizer as dictionaries."""
    names = {t.id for n in program.entry.tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return bool(names & {"train_dataloader", "train_pipeline", "data"}) and bool(names & {"optim_wrapper", "optimizer"}) and "dict" in program.calls


def by_gradients(program: Program) -> bool:
    """Gradients as values: jax, or derived by hand, in a function that is named for them and called."""
    if program.calls.keys() & {"value_and_grad", "apply_updates", "apply_gradients"}:
        return True
    return any("grad" in name and name in program.calls for name in program.functions) or _steps_by_hand(program)


def _steps_by_hand(program: Program) -> bool:
    """numpy: a variable named for gradients, and weights that a loop changes in place."""
    heads = {origin.lstrip(".").split(".")[0] for table in program.imported.values() for origin in table.values()}
    if "numpy" not in heads or heads & {"torch", "tensorflow", "keras", "jax", "sklearn", "xgboost", "lightgbm"}:
        return False
    named = any(isinstance(n, ast.Name) and n.id.startswith("grad") and isinstance(n.ctx, ast.Store) for n in program.live_nodes())
    return named and any(isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add | ast.Sub) for n in program.live_nodes())


def made_kind(call: ast.Call) -> Kind | None:
    return KINDS.get(callee(call))
