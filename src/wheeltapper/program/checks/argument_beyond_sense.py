"""An argument lies where it stops doing what it is for.

What it sees
------------
A rate, decay, epsilon, clip, discount, smoothing or length given to an optimizer or a framework that no training
works with.

Why it matters
--------------
Weights that do not move, leave every basin or shrink to nothing; targets without a right answer; inputs cut to a few
tokens.

How it decides
--------------
What the argument is worth is followed to a number: a literal, a constant, a key of the configuration file, the
default of an option. It is held against the working ranges of `settings/ranges.py` and, for networks that begin from
trained weights, against narrower ones. Only values beyond the end of sense are told.

When it is wrong
----------------
An experiment about that very value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import OPTIMIZERS
from wheeltapper.program.play.value import Val, choices, number
from wheeltapper.program.reading import Code
from wheeltapper.settings.ranges import ADAPTIVE, RANGES, UNNAMED, Range

ID = "argument-beyond-sense"
CAUSE: str | None = "setting-beyond-practice"
DECIDES = True

RL = {"PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "RecurrentPPO", "MaskablePPO"}
ARGUMENTS = re.compile(r"^(\w*TrainingArguments|(SFT|DPO|ORPO|KTO|GRPO|Reward|CPO|PPO|RLOO)Config)$")
PREFERENCES = re.compile(r"^(DPO|ORPO|KTO|GRPO|CPO|PPO|RLOO)Config$")
TUNING = {
    "learning_rate": "optimizer.lr", "weight_decay": "optimizer.weight_decay", "adam_epsilon": "optimizer.eps", "max_grad_norm": "clip.norm",
    "label_smoothing_factor": "loss.label_smoothing", "gradient_accumulation_steps": "batch.accumulation", "max_length": "tokens",
    "max_seq_length": "tokens", "beta": "dpo.beta",
}  # fmt: skip
AGENTS = {
    "learning_rate": "optimizer.lr", "gamma": "rl.gamma", "clip_range": "rl.clip_range", "ent_coef": "rl.entropy_coef",
    "vf_coef": "rl.value_coef", "buffer_size": "rl.buffer_size", "tau": "rl.tau", "max_grad_norm": "clip.norm", "gae_lambda": "rl.gamma",
}  # fmt: skip
STEPS = {"lr": "optimizer.lr", "learning_rate": "optimizer.lr", "weight_decay": "optimizer.weight_decay", "eps": "optimizer.eps", "epsilon": "optimizer.eps"}
TRAINERS = {"gradient_clip_val": "clip.norm", "accumulate_grad_batches": "batch.accumulation"}
LOSSES = {"label_smoothing": "loss.label_smoothing"}
SCHEDULES = re.compile(r"LR|lr_|[Ss]chedul|Warm|Noam|Finder")
DECAYS = {"StepLR", "MultiStepLR", "CosineAnnealingLR", "ExponentialLR", "ReduceLROnPlateau", "PolynomialLR", "LinearLR", "CosineAnnealingWarmRestarts"}
# Whose arguments mean what: the last name of what is called (None: by a rule below), and the arguments.
TABLE: dict[str, dict[str, str]] = {
    **dict.fromkeys(RL, AGENTS), "Trainer": TRAINERS, "CrossEntropyLoss": LOSSES, "cross_entropy": LOSSES, "CategoricalCrossentropy": LOSSES,
    "LabelSmoothingCrossEntropy": {"smoothing": "loss.label_smoothing"}, "clip_grad_norm_": {"max_norm": "clip.norm"}, "clip_by_global_norm": {"max_norm": "clip.norm"},
    "LoraConfig": {"lora_dropout": "lora.dropout"}, "SGDClassifier": {"alpha": "penalty"}, "SGDRegressor": {"alpha": "penalty"},
    "create_optimizer_v2": STEPS, "create_optimizer": STEPS, "Accelerator": {"gradient_accumulation_steps": "batch.accumulation"},
    "DataCollatorForLanguageModeling": {"mlm_probability": "mask.rate"},
}  # fmt: skip
POSITIONS = {"clip_grad_norm_": {"max_norm": 1}, "clip_by_global_norm": {"max_norm": 0}}
MORE = (
    Range("tokens", 64.0, 33.0, "setting-beyond-practice", "hardly anything of a text is left"),
    Range("penalty", 0.3, 3.0, "weight-decay-too-strong", "a penalty of this size drives every coefficient to zero"),
    Range("optimizer.eps", 1e-3, 5e-2, "adam-eps-too-large", "epsilon is larger than the root of the second moment"),
)
TUNED = Range("optimizer.lr", 1e-3, 1e-2, "lr-too-high", "trained weights are destroyed within the first steps")
PREFERRED = Range("optimizer.lr", 3e-5, 5e-4, "lr-too-high", "a policy that was trained before collapses within the first steps")
SLOW = Range("optimizer.lr", 1e-7, 1e-8, "lr-too-low", "the weights stay where they were")
SHORT = Range("tokens", 16.0, 9.0, "setting-beyond-practice", "hardly anything of a text is left")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    pretrained = any(story.is_network(c) for c in story.named("from_pretrained", "create_model"))
    adapters = bool(story.named("LoraConfig", "get_peft_model"))
    for call in story.calls:
        if call.op != "call" or call.origin.startswith("?"):
            continue
        for name, knob in _arguments(call).items():
            given = call.arg(name, POSITIONS.get(call.name, {}).get(name))
            worth = number(given)
            if given is None or worth is None or (knob == "optimizer.lr" and _is_scheduled(code, call)):
                continue
            for one in _ranges(call, knob, pretrained, adapters):
                if worth > 0 and one.steps(worth) >= 1:
                    yield code.seen(ID, f"{name} is {worth:g}: {one.why}.", given, call, grade="suspected", numbers={"value": worth})
                    return
    yield from _tokens(code)


def _is_scheduled(code: Code, optimizer: Val) -> bool:
    """A schedule of the program's own, or one that sets rates: the rate given first is only a factor, or a start."""
    given = [c for c in code.story.calls if any(v is optimizer for a in (*c.args, *c.kwargs.values()) for v in choices(a))]
    return any(SCHEDULES.search(c.name) and c.name not in DECAYS for c in given)


def _tokens(code: Code) -> Iterator[Finding]:
    """Texts that a tokenizer cuts to a few tokens."""
    for call in code.story.calls:
        cut = call.kwargs.get("truncation")
        given = call.kwargs.get("max_length")
        worth = number(given)
        if _are_labels(code, call):
            continue
        if cut is not None and cut.data is not False and given is not None and worth is not None and worth > 0 and SHORT.steps(worth) >= 1:
            yield code.seen(ID, f"Texts are cut to {worth:g} tokens: {SHORT.why}.", given, call, grade="suspected")
            return


def _are_labels(code: Code, call: Val) -> bool:
    """Answers of a word or two, by the name that the tokens are given."""
    up = code.program.parent(call.node) if call.node in code.program.script_of and call.node is not None else None
    return isinstance(up, ast.Assign) and bool(re.search("label|target|answer|class|output", ast.unparse(up.targets[0])))


def _arguments(call: Val) -> dict[str, str]:
    if ARGUMENTS.match(call.name):
        return TUNING
    if call.name in OPTIMIZERS and call.origin.startswith(("torch", "keras", "tensorflow", "optax", "transformers", "tf")):
        return STEPS
    return TABLE.get(call.name, {})


def _ranges(call: Val, knob: str, pretrained: bool, adapters: bool) -> list[Range]:
    if knob == "optimizer.lr" and ARGUMENTS.match(call.name):
        high = PREFERRED if PREFERENCES.match(call.name) and not adapters else TUNED
        return [high, SLOW] if pretrained and not adapters else [SLOW]
    own = [r for r in MORE if r.knob == knob]
    kind = "adamw" if ARGUMENTS.match(call.name) or call.name in RL else _kind(call)
    return own or [r for r in RANGES if r.knob == knob and (not r.optimizers or kind in r.optimizers)]


def _kind(call: Val) -> str:
    told = call.kwargs.get("opt")
    name = (str(told.data) if told is not None else call.name).lower()
    return name if name in (*ADAPTIVE, "sgd", "lion", "lars") else UNNAMED
