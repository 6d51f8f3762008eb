"""Which trainings are made: a program with a real library, healthy and with one fault each.

A fault is a change of the program's text, as a person would make the mistake; nothing in the program says that it is there.
`causes` are the answers that are right; `setting` says whether an edit of a setting can heal it (else a line of code must).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    name: str
    changes: tuple[tuple[str, str], ...]  # text -> text, each of which must be there
    causes: frozenset[str]
    setting: bool = False


@dataclass(frozen=True)
class Program:
    name: str
    library: str  # what must be importable
    score: str  # the series that tells how good a run is
    up: bool  # whether more is better
    faults: tuple[Fault, ...] = ()
    entry: str = "train.py"
    needs: tuple[str, ...] = field(default=("torch",))


def fault(name: str, causes: str, *changes: tuple[str, str], setting: bool = False) -> Fault:
    return Fault(name, changes, frozenset(causes.split()), setting)


HIGH, LOW = "lr-too-high no-warmup setting-beyond-practice", "lr-too-low setting-beyond-practice"
SHUFFLED = "labels-shuffled labels-broken target-misaligned"
FROZEN = "frozen-parameters params-not-in-optimizer"
OVERFIT = "overfitting training-longer-than-useful"
OTHERWISE = "eval-normalisation-mismatch train-val-shift eval-broken"


def rates(text: str, high: str, low: str) -> tuple[Fault, Fault]:
    """The rate far too high and far too low, where the program writes it as `text` with {} for the number."""
    name, value = text.split("|")
    before = name.format(value)
    return (
        fault("rate-high", HIGH, (before, name.format(high)), setting=True),
        fault("rate-low", LOW, (before, name.format(low)), setting=True),
    )


PROGRAMS = (
    Program("plain", "torch", "val/accuracy", True, (
        *rates('"--lr", type=float, default={}|3e-3', "3.0", "1e-7"),
        fault("schedule-in-epochs", "schedule-unit-mismatch schedule-too-short schedule-restarted-on-resume", ("T_max=args.epochs * len(train)", "T_max=args.epochs")),
        fault("last-layer-only", FROZEN, ("AdamW(model.parameters()", "AdamW(model[-1].parameters()")),
        fault("labels-shuffled", SHUFFLED, ("points(args.train_size)\n", "points(args.train_size)\ny_train = y_train[torch.randperm(len(y_train))]\n")),
        fault("validation-scaled", OTHERWISE, ("points(1000)\n", "points(1000)\nx_val = x_val / 20\n")),
        fault("few-examples", OVERFIT, ("default=3000", "default=60"), ("default=20", "default=250")),
        fault("nan-batch", "nan-batch loss-not-finite", ("points(args.train_size)\n", "points(args.train_size)\nx_train[1234] = float('nan')\n")),
        fault("gradients-kept", "zero-grad-missing", ("            optimizer.zero_grad()\n", "")),
        fault("evaluated-in-train-mode", "eval-in-train-mode eval-broken", ("    model.eval()\n", "    model.train()\n"), ("Dropout(0.1)", "Dropout(0.6)")),
    )),
    Program("accelerate_loop", "accelerate", "val/accuracy", True, (
        *rates("LEARNING_RATE = {}|2e-3", "2.0", "1e-8"),
        fault("schedule-too-long", "warmup-longer-than-run schedule-never-decays schedule-unit-mismatch lr-too-low", ("total_steps + 1", "total_steps * 40")),
        fault("last-layer-only", FROZEN, ("AdamW(model.parameters()", "AdamW(model[-1].parameters()")),
        fault("labels-shuffled", SHUFFLED, ("points(3200)\n", "points(3200)\ntrain_y = train_y[torch.randperm(3200)]\n")),
        fault("few-examples", OVERFIT, ("points(3200)", "points(64)"), ("EPOCHS = 16", "EPOCHS = 300")),
    )),
    Program("hf_trainer", "transformers", "val/accuracy", True, (
        *rates("learning_rate={},|5e-4", "5e-2", "1e-8"),
        fault("warm-up-too-long", "warmup-longer-than-run lr-too-low", ("warmup_steps=20", "warmup_steps=5000"), setting=True),
        fault("encoder-frozen", FROZEN, ("Classification(config)\n", "Classification(config)\nfor parameter in model.bert.parameters():\n    parameter.requires_grad = False\n")),
        fault("labels-shuffled", SHUFFLED, ('"labels": int(y)} for w, y in zip(words, labels)', '"labels": int(y)} for w, y in zip(words, rng.permutation(labels))')),
        fault("few-examples", OVERFIT, ("sentences(2000, 1)", "sentences(100, 1)"), ("num_train_epochs=6", "num_train_epochs=60")),
    ), needs=("torch", "transformers", "accelerate")),
    Program("peft_lora", "peft", "val/loss", False, (
        *rates("learning_rate={},|3e-3", "1.0", "1e-8"),
        fault("warm-up-too-long", "warmup-longer-than-run lr-too-low", ("warmup_steps=10", "warmup_steps=8000"), setting=True),
        fault("adapter-frozen", FROZEN, ("get_peft_model(model, adapter)\n", 'get_peft_model(model, adapter)\nfor name, parameter in model.named_parameters():\n    parameter.requires_grad = name.endswith("lora_A.default.weight") and ".1." in name\n')),
    ), needs=("torch", "transformers", "accelerate", "peft")),
    Program("trl_sft", "trl", "val/loss", False, (
        *rates("learning_rate={},|1e-3", "0.5", "1e-8"),
        fault("warm-up-too-long", "warmup-longer-than-run lr-too-low", ("warmup_steps=10", "warmup_steps=5000"), setting=True),
    ), needs=("torch", "transformers", "accelerate", "trl", "datasets")),
    Program("lightning_fit", "lightning", "val/accuracy", True, (
        *rates("Classifier(lr={})|2e-3", "5.0", "1e-8"),
        fault("schedule-in-steps", "schedule-unit-mismatch schedule-too-short", ('"lr_scheduler": scheduler}', '"lr_scheduler": {"scheduler": scheduler, "interval": "step"}}'), ("CosineAnnealingLR(optimizer, T_max=10)", "StepLR(optimizer, step_size=3, gamma=0.3)")),
        fault("features-frozen", FROZEN, ("        self.head = nn", "        self.features.requires_grad_(False)\n        self.head = nn")),
        fault("labels-shuffled", SHUFFLED, ("train = DataLoader(pictures(2500)", "mixed = pictures(2500)\nmixed.tensors = (mixed.tensors[0], mixed.tensors[1][torch.randperm(2500)])\ntrain = DataLoader(mixed")),
        fault("validation-scaled", OTHERWISE, ("        x, y = batch\n        out", "        x, y = batch\n        x = x / 50\n        out")),
    ), needs=("torch", "lightning")),
    Program("keras_fit", "keras", "val/accuracy", True, (
        *rates("learning_rate={})|2e-3", "2.0", "1e-8"),
        fault("labels-shuffled", SHUFFLED, ("rows(3000)\n", "rows(3000)\ny_train = rng.permutation(y_train)\n")),
        fault("validation-scaled", OTHERWISE, ("rows(800)\n", "rows(800)\nx_val = x_val / 20\n")),
        fault("few-examples", OVERFIT, ("rows(3000)", "rows(60)"), ("epochs=15", "epochs=250")),
        fault("softmax-twice", "double-softmax output-activation-wrong", ('loss="sparse_categorical_crossentropy"', "loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)")),
    ), needs=("torch", "keras")),
    Program("timm_style", "torch", "val/accuracy", True, (
        *rates('"--lr", default={},|0.05', "80.0", "1e-8"),
        fault("decay-too-strong", "weight-decay-too-strong setting-beyond-practice", ('"--weight-decay", default=1e-4', '"--weight-decay", default=2.0'), setting=True),
        fault("momentum-too-high", "momentum-too-high setting-beyond-practice", ('"--momentum", default=0.9', '"--momentum", default=0.9999'), setting=True),
        fault("smoothing-too-strong", "label-smoothing-too-strong setting-beyond-practice", ('"--smoothing", default=0.1', '"--smoothing", default=0.95'), setting=True),
        fault("head-only", FROZEN, ("SGD(model.parameters()", "SGD(model[-1].parameters()")),
    ), needs=("torch", "yaml")),
    Program("hydra_app", "hydra", "val/accuracy", True, (
        *rates("lr: {}|2.0e-3", "2.0", "1.0e-8"),
    ), needs=("torch", "hydra")),
    Program("sb3_ppo", "stable_baselines3", "train/return", True, (
        *rates("learning_rate={},|1e-3", "1.0", "1e-9"),
        fault("discount-too-low", "gamma-too-low setting-beyond-practice", ("gamma=0.98", "gamma=0.1"), setting=True),
        fault("entropy-rules", "policy-collapse setting-beyond-practice loss-terms-conflict", ("ent_coef=0.0", "ent_coef=20.0"), setting=True),
    ), needs=("torch", "stable_baselines3", "gymnasium")),
    Program("sb3_dqn", "stable_baselines3", "train/return", True, (
        *rates("learning_rate={},|2.3e-3", "3.0", "1e-9"),
        fault("discount-too-low", "gamma-too-low setting-beyond-practice", ("gamma=0.99", "gamma=0.05"), setting=True),
    ), needs=("torch", "stable_baselines3", "gymnasium")),
)  # fmt: skip
# What CI travels, where the library is there: a healthy run and the rate of each, and one fault in the code.
IN_CI = ("plain:healthy", "plain:rate-high", "plain:last-layer-only", "keras_fit:rate-high", "hf_trainer:rate-high", "lightning_fit:rate-high")


def trips() -> list[tuple[Program, Fault | None]]:
    """Every program healthy and with each of its faults."""
    return [(program, one) for program in PROGRAMS for one in (None, *program.faults)]


def name_of(program: Program, one: Fault | None) -> str:
    return f"{program.name}:{one.name if one else 'healthy'}"
