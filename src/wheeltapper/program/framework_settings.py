"""Settings that a program hands to a framework: `TrainingArguments(learning_rate=...)`, `Trainer(max_epochs=...)`, `fit(epochs=...)`.

The play of the program knows what each argument is worth: a literal, a constant, a field of a configuration, the default of an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wheeltapper.program.objects import OPTIMIZERS, SCHEDULERS
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, is_sure, number

# Whose arguments are settings, all of them. The key is the last name of what is called.
TAKES_SETTINGS = {
    "TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "ORPOConfig", "KTOConfig", "GRPOConfig", "RewardConfig",
    "PPOConfig", "Trainer", "Fabric", "Accelerator", "PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "RecurrentPPO",
}  # fmt: skip
# Whose arguments are settings under a name of their own.
RENAMED = {
    "LoraConfig": {"r": "lora_r", "lora_alpha": "lora_alpha", "lora_dropout": "lora_dropout"},
    "fit": {"epochs": "epochs", "batch_size": "batch_size", "validation_split": "validation_split"},
    "learn": {"total_timesteps": "total_timesteps"},
    "train": {"epochs": "epochs", "batch": "batch_size", "imgsz": "imgsz", "lr0": "lr0", "lrf": "lrf", "optimizer": "optimizer"},
    "fit_one_cycle": {"lr_max": "lr_max"},
    "fine_tune": {"base_lr": "base_lr"},
    "DataCollatorForLanguageModeling": {"mlm": "mlm", "mlm_probability": "mlm_probability"},
    "EarlyStopping": {"patience": "early_stopping_patience", "mode": "early_stopping_mode", "monitor": "early_stopping_monitor"},
    "EarlyStoppingCallback": {"early_stopping_patience": "early_stopping_patience"},
    "ReduceLROnPlateau": {"mode": "plateau_mode", "patience": "plateau_patience", "factor": "plateau_factor"},
    "CosineAnnealingLR": {"T_max": "t_max", "eta_min": "eta_min"},
    "StepLR": {"step_size": "step_size", "gamma": "lr_gamma"},
    "OneCycleLR": {"max_lr": "max_lr", "total_steps": "total_steps", "pct_start": "pct_start"},
    "CrossEntropyLoss": {"label_smoothing": "label_smoothing", "ignore_index": "ignore_index"},
}  # fmt: skip
OF_KERAS = {"learning_rate", "weight_decay", "momentum", "clipnorm", "clipvalue", "beta_1", "beta_2", "epsilon"}


@dataclass(frozen=True, slots=True)
class Told:
    """One setting: its name, its value, whether nothing can have changed it, and the value of the play that it is."""

    name: str
    value: Any
    sure: bool
    at: Val


def framework_settings(story: Story) -> Iterator[Told]:
    """Every setting that a framework, a scheduler or a training loader is given; of several, the first."""
    for call in story.calls:
        if call.op != "call" or not story.complete:
            continue
        if call.name in TAKES_SETTINGS and not call.origin.startswith("?"):
            yield from _told(call, {name: name for name in call.kwargs})
        elif call.name in RENAMED:
            yield from _told(call, RENAMED[call.name])
        elif call.name in OPTIMIZERS and "keras" in call.origin:
            yield Told("optimizer", call.name, not call.guards, call)
            yield from _told(call, {name: name for name in OF_KERAS})
        if call.name in SCHEDULERS and not call.origin.startswith("?"):
            yield Told("lr_scheduler", call.name, not call.guards, call)
    if len(story.optimizers) == 1:
        optimizer = story.optimizers[0]
        kwargs = dict(optimizer.kwargs)
        if (rate := optimizer.arg("lr", 1)) is not None:
            kwargs["lr"] = rate
        made = Val("call", optimizer.name, kwargs=kwargs, node=optimizer.node, guards=optimizer.guards)
        yield from _told(made, {name: name for name in ("lr", "weight_decay", "momentum", "eps")})
    yield from _of_loaders(story)


def _told(call: Val, names: dict[str, str]) -> Iterator[Told]:
    for given, name in names.items():
        value = call.kwargs.get(given)
        worth = _worth(value)
        if value is not None and worth is not None:
            yield Told(name, worth, is_sure(value) and not call.guards, value)


def _worth(value: Val | None) -> Any:
    if value is None:
        return None
    if value.op == "const" and isinstance(value.data, bool | str):
        return value.data
    return number(value)


def _of_loaders(story: Story) -> Iterator[Told]:
    """The batch of the loader that the training loop goes over."""
    for call, _ in story.backwards:
        for turn in call.loops:
            loaders = [v for v in _near(turn.over) if v.op == "call" and v.name == "DataLoader"]
            size = loaders[0].arg("batch_size", 1) if loaders else None
            if size is not None and (worth := number(size)) is not None:
                yield Told("batch_size", worth, is_sure(size) and not loaders[0].guards, size)
                return


def _near(value: Val | None) -> list[Val]:
    return [] if value is None else [value, *value.args]
