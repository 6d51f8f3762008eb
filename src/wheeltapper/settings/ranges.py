"""Working ranges: between which values a setting is known to train, and from where on it cannot.

`usual` bounds what recipes use; `sense` is where the setting stops doing what it is for: nine in ten units dropped, a discount
that sees three steps ahead, an epsilon larger than any second moment. How far a value lies beyond its usual range is counted in
steps from `usual` to `sense` on a logarithmic scale: 0 inside, 1 where it stops to make sense. A table of knowledge, each line with its
reason; practice (what people run) is counted elsewhere. No line speaks of the size of a project.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wheeltapper.settings.practice.features import numbers_of, optimizer_class

PLAIN, NEAR_ONE = "plain", "near-one"  # what the steps count: the value, or its distance from 1
DECAY = "optimizer.weight_decay"  # apart from the gradient or not: only the name of the optimizer tells
UNNAMED = "unnamed"  # the optimizer is not known
ADAPTIVE = ("adamw", "adam", "adamax", "nadam", "radam", "rmsprop", "adafactor", "lamb", "adan", "sophia")


@dataclass(frozen=True, slots=True)
class Range:
    """One side of one setting: the end of the usual range, where sense ends, and the cause that it would be."""

    knob: str
    usual: float
    sense: float
    cause: str
    why: str
    scale: str = PLAIN
    optimizers: tuple[str, ...] = ()  # empty: any
    tuned: bool | None = None  # only for a pretrained network, only from scratch; None: both

    def steps(self, value: float) -> float:
        """How far beyond the usual range, in steps to the end of sense; 0 and below: inside."""
        usual, sense, value = (
            (1 - x if self.scale == NEAR_ONE else x) for x in (self.usual, self.sense, value)
        )
        if value <= 0:
            return 2.0 if sense < usual else -1.0
        return math.log(value / usual) / math.log(sense / usual)


@dataclass(frozen=True, slots=True)
class Beyond:
    """A setting of a run outside its usual range."""

    range: Range
    value: float
    steps: float

    def sentence(self) -> str:
        return f"`{self.range.knob}` is {self.value:g}; recipes stay {'below' if self.high else 'above'} {self.range.usual:g}: {self.range.why}"

    @property
    def high(self) -> bool:
        return self.range.sense > self.range.usual


RANGES = (
    Range("optimizer.lr", 2e-2, 0.15, "lr-too-high", "an adaptive optimizer moves every weight by about the rate in each step", optimizers=ADAPTIVE),
    Range("optimizer.lr", 1e-5, 2e-7, "lr-too-low", "an adaptive optimizer moves every weight by about the rate in each step", optimizers=ADAPTIVE, tuned=False),
    Range("optimizer.lr", 1e-7, 1e-9, "lr-too-low", "an adaptive optimizer moves every weight by about the rate in each step", optimizers=ADAPTIVE, tuned=True),
    Range("optimizer.lr", 2.0, 15.0, "lr-too-high", "plain gradient steps of this size leave every basin", optimizers=("sgd",)),
    Range("optimizer.lr", 15.0, 60.0, "lr-too-high", "layer-wise scaling does not bear steps of this size", optimizers=("lars",)),
    Range("optimizer.lr", 1e-4, 2e-6, "lr-too-low", "plain gradient steps of this size go nowhere", optimizers=("sgd",)),
    Range("optimizer.lr", 2e-3, 2e-2, "lr-too-high", "the sign of the gradient moves every weight by the rate", optimizers=("lion",)),
    Range("optimizer.lr", 2.0, 15.0, "lr-too-high", "no optimizer is run at such a rate", optimizers=(UNNAMED,)),
    Range("optimizer.lr", 1e-6, 1e-8, "lr-too-low", "no optimizer is run at such a rate", optimizers=(UNNAMED,)),
    Range("optimizer.lr_g", 2e-2, 0.15, "lr-too-high", "an adaptive optimizer moves every weight by about the rate in each step"),
    Range("optimizer.lr_g", 1e-5, 1e-6, "lr-too-low", "the generator hardly moves"),
    Range("optimizer.lr_d", 2e-2, 0.15, "lr-too-high", "an adaptive optimizer moves every weight by about the rate in each step"),
    Range("optimizer.lr_d", 1e-5, 1e-6, "lr-too-low", "the discriminator hardly moves"),
    Range("optimizer.d_over_g", 20.0, 200.0, "discriminator-wins", "the discriminator learns that many times faster"),
    Range("optimizer.d_over_g", 0.05, 0.005, "discriminator-wins", "the discriminator learns that many times slower"),
    Range("optimizer.momentum", 0.985, 0.996, "momentum-too-high", "the velocity remembers 1 / (1 - momentum) steps", NEAR_ONE),
    Range("optimizer.beta1", 0.98, 0.997, "momentum-too-high", "the first moment remembers 1 / (1 - beta1) steps", NEAR_ONE),
    Range("optimizer.beta2", 0.99995, 0.999999, "setting-beyond-practice", "the second moment is not known within the run", NEAR_ONE),
    Range("optimizer.beta2", 0.8, 0.2, "setting-beyond-practice", "the second moment is that of the last batch"),
    Range("optimizer.eps", 1e-2, 0.9, "adam-eps-too-large", "epsilon is larger than the root of the second moment, and the step shrinks by as much"),
    Range("optimizer.weight_decay", 0.5, 5.0, "weight-decay-too-strong", "decoupled decay pulls every weight to zero by rate times decay a step", optimizers=("adamw", "lamb", "adan", "sophia")),
    Range("optimizer.weight_decay", 6.0, 30.0, "weight-decay-too-strong", "decoupled decay pulls every weight to zero by rate times decay a step", optimizers=("lion", "muon")),
    Range("optimizer.weight_decay", 0.02, 0.3, "weight-decay-too-strong", "an L2 term of this size outweighs most losses", optimizers=("sgd", "adam", "rmsprop")),
    Range("optimizer.weight_decay", 1.0, 10.0, "weight-decay-too-strong", "decay of this size outweighs most losses", optimizers=(UNNAMED,)),
    Range("clip.norm", 0.02, 5e-4, "clip-too-small", "gradients are shortened to almost nothing"),
    Range("clip.value", 1e-3, 2e-5, "clip-too-small", "gradients are cut to almost nothing"),
    Range("loss.label_smoothing", 0.3, 0.6, "label-smoothing-too-strong", "the right answer keeps less than half of its target"),
    Range("augment.dropout", 0.7, 0.85, "dropout-too-high", "what is left of a layer carries too little"),
    Range("augment.drop_path", 0.6, 0.85, "dropout-too-high", "most layers are skipped in every step"),
    Range("lora.dropout", 0.5, 0.8, "dropout-too-high", "what is left of the adapter carries too little"),
    Range("loss.temperature", 4.5, 15.0, "temperature-too-high", "similarities lie between -1 and 1: all answers look alike"),
    Range("loss.temperature", 8e-3, 5e-4, "setting-beyond-practice", "only the hardest pair counts, and its gradient explodes"),
    Range("distill.temperature", 25.0, 100.0, "temperature-too-high", "the teacher's answers are all alike"),
    Range("loss.kl_weight", 50.0, 500.0, "kl-collapse", "the KL term outweighs the reconstruction"),
    Range("loss.margin", 10.0, 100.0, "setting-beyond-practice", "no pair of embeddings can keep that distance"),
    Range("loss.focal_gamma", 6.0, 12.0, "setting-beyond-practice", "only the very worst samples count"),
    Range("lora.alpha_over_rank", 16.0, 64.0, "lr-too-high", "the adapter's scale multiplies its rate"),
    Range("lora.alpha_over_rank", 0.1, 0.01, "lr-too-low", "the adapter's output is scaled to almost nothing"),
    Range("dpo.beta", 1.5, 10.0, "setting-beyond-practice", "the reference holds the policy where it is"),
    Range("dpo.beta", 5e-3, 2e-4, "lr-too-low", "preferences pull with this weight alone"),
    Range("rl.gamma", 0.85, 0.5, "gamma-too-low", "rewards beyond 1 / (1 - gamma) steps do not count"),
    Range("rl.clip_range", 0.03, 2e-3, "clip-too-small", "the policy may hardly move"),
    Range("rl.clip_range", 0.6, 3.0, "policy-collapse", "nothing holds the policy near the one that acted"),
    Range("rl.entropy_coef", 0.2, 1.0, "loss-terms-conflict", "the entropy bonus is worth more than the reward"),
    Range("rl.value_coef", 10.0, 200.0, "loss-terms-conflict", "the value loss drowns the policy's"),
    Range("rl.update_epochs", 40.0, 150.0, "policy-collapse", "one rollout is learned by heart"),
    Range("rl.buffer_size", 500.0, 64.0, "setting-beyond-practice", "the replay buffer holds less than a few batches"),
    Range("rl.tau", 5e-4, 1e-5, "setting-beyond-practice", "the target network does not follow within the run"),
    Range("rl.epsilon_end", 0.25, 0.6, "setting-beyond-practice", "most actions stay random"),
    Range("rl.epsilon_decay_share", 1.5, 5.0, "setting-beyond-practice", "exploration hardly falls within the run"),
    Range("rl.target_update_share", 0.25, 1.0, "setting-beyond-practice", "the target network is hardly ever updated"),
    Range("rl.learning_starts_share", 0.5, 1.0, "too-few-updates", "learning begins when the run ends"),
    Range("rl.kl_coef", 1.0, 10.0, "setting-beyond-practice", "the reference holds the policy where it is"),
    Range("mask.rate", 0.85, 0.95, "setting-beyond-practice", "too little is left to predict from"),
    Range("mask.rate", 0.04, 0.008, "setting-beyond-practice", "hardly anything is to be predicted"),
    Range("diffusion.steps", 8.0, 2.0, "setting-beyond-practice", "the noise goes in leaps"),
    Range("diffusion.beta_end", 1e-3, 1e-4, "sigma-mismatch", "the last noise level is not noise yet"),
    Range("moe.balance_weight", 0.5, 5.0, "loss-terms-conflict", "balance is worth more than the task"),
    Range("moe.capacity", 0.7, 0.25, "setting-beyond-practice", "most tokens are dropped"),
    Range("gan.n_critic", 15.0, 60.0, "discriminator-wins", "the discriminator gets that many updates for one"),
    Range("gan.gp_weight", 100.0, 1000.0, "discriminator-wins", "the penalty holds the discriminator flat"),
    Range("loss.weights_ratio", 1e3, 1e5, "loss-terms-conflict", "the smallest term has no say against the largest"),
    Range("schedule.warmup_share", 0.4, 1.0, "warmup-longer-than-run", "the rate never arrives"),
    Range("schedule.end_share", 0.6, 0.2, "schedule-too-short", "the schedule is over long before the run"),
    Range("schedule.end_share", 2.5, 10.0, "schedule-never-decays", "the run ends where the schedule has hardly begun"),
    Range("schedule.first_milestone", 0.08, 0.02, "schedule-too-short", "the rate is cut before anything is learned"),
    Range("batch.accumulation", 128.0, 1024.0, "too-few-updates", "that many batches make one update"),
    Range("optimizer.layer_decay", 0.5, 0.2, "lr-too-low", "the lower layers hardly move"),
)  # fmt: skip


PLACES = {
    "lora.alpha_over_rank": "lora.alpha", "optimizer.beta1": "optimizer.betas", "optimizer.beta2": "optimizer.betas", "optimizer.d_over_g": "optimizer.lr_d",
    "schedule.warmup_share": "schedule.warmup", "schedule.end_share": "schedule.total", "schedule.first_milestone": "schedule.milestones",
    "loss.weights_ratio": "loss.weights", "rl.epsilon_decay_share": "rl.epsilon_decay", "rl.target_update_share": "rl.target_update",
    "rl.learning_starts_share": "rl.learning_starts",
}  # fmt: skip


def place_knob(id_: str) -> str:
    """The setting that a derived number is read from first: where it can be looked up and changed."""
    return PLACES.get(id_, id_)


def settings_beyond(knobs: Mapping[str, Any], *, tuned: bool = False, factor: bool = False, optimizer: str | None = None) -> list[Beyond]:
    """Settings outside their usual range, farthest first; one for each setting. `tuned`: the run starts from a pretrained network.
    `factor`: the rate that is set is a factor of a schedule (Noam's), not a rate. `optimizer`: where the knobs do not name one."""
    numbers = _with_shares(numbers_of(knobs), knobs)
    if factor:
        numbers.pop("optimizer.lr", None)
    optimizer = (_optimizer(knobs) if "optimizer.name" in knobs else None) or optimizer or _optimizer(knobs)
    named = "optimizer.name" in knobs and _optimizer(knobs) is not None
    ranges = [*_of(optimizer)] if named else [r for r in _of(optimizer) if r.knob != DECAY] + [r for r in _of(None) if r.knob == DECAY]
    found = [beyond for range_ in ranges if range_.tuned in (None, tuned) for beyond in _beyond(range_, numbers)]
    return sorted(found, key=lambda beyond: -beyond.steps)


def _optimizer(knobs: Mapping[str, Any]) -> str | None:
    """As named; else as its own settings tell it: momentum is SGD's, betas are Adam's."""
    name = knobs.get("optimizer.name")
    dialect = getattr(getattr(knobs, "dialect", None), "NAME", "")
    if dialect in ("megatron", "hf") and (name is None or name.default or str(name.value).lower() == "adam"):
        return "adamw"  # what they call Adam decays the weights apart from the gradient
    if name is not None and (known := optimizer_class(str(name.value))) is not None:
        return known
    told = [id_ for id_ in ("optimizer.betas", "optimizer.momentum", "optimizer.nesterov") if id_ in knobs and not knobs[id_].default]
    return None if not told else "adam" if told[0] == "optimizer.betas" else "sgd"


def _of(optimizer: str | None) -> Iterator[Range]:
    """The ranges that hold for this optimizer."""
    for range_ in RANGES:
        if not range_.optimizers or (optimizer or UNNAMED) in range_.optimizers:
            yield range_


def _beyond(range_: Range, numbers: Mapping[str, float]) -> Iterator[Beyond]:
    value = numbers.get(range_.knob)
    if value is None or (value == 0 and range_.sense < range_.usual):  # zero switches most things off
        return
    steps = range_.steps(value)
    if steps > 0:
        yield Beyond(range_, value, steps)


def _with_shares(numbers: dict[str, float], knobs: Mapping[str, Any]) -> dict[str, float]:
    """Further numbers that follow from several settings."""
    total = numbers.get("run.total_steps")
    weights = knobs.get("loss.weights")
    values = weights.value if weights is not None else None
    listed = list(values.values()) if isinstance(values, dict) else values if isinstance(values, list) else []
    above = [float(w) for w in listed if isinstance(w, int | float) and not isinstance(w, bool) and w > 0]
    if len(above) > 1:
        numbers["loss.weights_ratio"] = max(above) / min(above)
    for id_ in ("rl.target_update", "rl.learning_starts"):
        if total and numbers.get(id_):
            numbers[f"{id_}_share"] = numbers[id_] / total
    return numbers
