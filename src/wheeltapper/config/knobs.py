"""Settings by their meaning. One table; a dialect says which of its keys is which knob.

>>> from wheeltapper.config.parse import parse_text
>>> knobs = read_knobs([parse_text("base_lr: 0.6\\nepochs: 400\\n", "args.txt", "keyvalue")])
>>> knobs.value("optimizer.lr"), knobs["run.epochs"].unit, str(knobs.place("optimizer.lr"))
(0.6, 'epochs', 'args.txt:1:10')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from wheeltapper.config.dialects import dialect_named, recognise_dialect
from wheeltapper.config.dialects.schema import UNSET, Key, View, as_bool, as_number, place_of, unresolved
from wheeltapper.config.tree import ConfigTree, Leaf
from wheeltapper.finding import Place

Kind = Literal["number", "count", "bool", "name", "list", "any"]


@dataclass(frozen=True, slots=True)
class Knob:
    id: str
    meaning: str
    unit: str | None  # the usual one; a KnobValue carries its own: steps micro_steps epochs samples fraction
    kind: Kind


def _table(text: str) -> dict[str, Knob]:
    out = {}
    for line in text.strip().splitlines():
        id_, kind, unit, meaning = line.split(None, 3)
        out[id_] = Knob(id_, meaning, None if unit == "-" else unit, kind)  # type: ignore[arg-type]
    return out


KNOBS = _table("""
optimizer.name            name   -        which optimizer
optimizer.lr              number -        peak (nominal) learning rate of the main network
optimizer.lr_base         number -        learning rate per reference batch; the real one is scaled by the batch
optimizer.lr_base_size    count  samples  the reference batch of lr_base
optimizer.lr_d            number -        learning rate of the discriminator
optimizer.momentum        number -        momentum of SGD
optimizer.nesterov        bool   -        Nesterov momentum
optimizer.betas           list   -        Adam's decay rates
optimizer.eps             number -        Adam's epsilon
optimizer.weight_decay    number -        weight decay
optimizer.layer_decay     number -        learning rate factor from layer to layer
schedule.name             name   -        how the learning rate changes
schedule.total            count  steps    length the schedule is laid out for
schedule.warmup           number steps    length of the rise at the start
schedule.warmup_start     number -        learning rate at the very start of the warm-up
schedule.cooldown         number steps    length at the lowest rate after the schedule
schedule.milestones       list   steps    where the rate is cut
schedule.gamma            number -        factor of each cut
schedule.step_size        number steps    distance between cuts
schedule.t_max            number steps    half period of a cosine
schedule.min_lr           number -        lowest learning rate
schedule.min_lr_ratio     number -        lowest learning rate as a fraction of the peak
schedule.max_lr           number -        top of a one-cycle schedule
schedule.pct_start        number fraction part of a one-cycle schedule that rises
schedule.div_factor       number -        one-cycle: peak over first rate
schedule.final_div_factor number -        one-cycle: first over last rate
schedule.power            number -        exponent of a polynomial schedule
schedule.cycles           number -        cycles of a cosine with restarts
schedule.patience         number epochs   evaluations without progress before a plateau schedule cuts
schedule.interval         name   -        what the schedule counts: steps or epochs
schedule.restart          bool   -        on resume, follow the file instead of the saved schedule
batch.per_device          count  samples  samples per device and micro-step
batch.global              count  samples  samples per optimizer update over all devices
batch.accumulation        count  micro_steps micro-steps per optimizer update
batch.nominal             count  samples  batch that the framework accumulates up to
world_size                count  -        processes that train together
run.epochs                number epochs   length of the run in epochs
run.total_steps           count  steps    length of the run in optimizer updates
run.total_samples         number samples  length of the run in samples
run.seed                  count  -        random seed
run.deterministic         bool   -        deterministic kernels
run.early_stop            number epochs   stop after this long without progress
clip.norm                 number -        gradients are clipped to this norm
clip.value                number -        gradients are clipped element by element
clip.mode                 name   -        norm, value or agc
clip.enabled              bool   -        whether gradients are clipped at all
ema.enabled               bool   -        whether an average of the weights is kept
ema.decay                 number -        weight of the OLD average in each update (near 1)
ema.every                 count  steps    steps between updates of the average
ema.warmup_power          number -        exponent of ema-pytorch's rising decay
ema.start                 count  steps    first step of the average
ema.halflife              number samples  half-life of the average
ema.impl                  name   -        which implementation keeps it
precision                 name   -        fp32, fp16, bf16 or tf32
amp.enabled               bool   -        mixed precision is on
amp.scaler                bool   -        whether a gradient scaler is used
amp.init_scale            number -        first loss scale
amp.growth_interval       count  steps    clean steps before the scale doubles
amp.static_scale          number -        fixed loss scale
loss.name                 any    -        which loss
loss.weights              any    -        weights of several losses
loss.label_smoothing      number -        label smoothing
loss.dynamic_weights      bool   -        loss weights that change during training
augment.mixup             number -        mixup strength
augment.cutmix            number -        cutmix strength
augment.mixup_prob        number fraction probability of mixing a batch
augment.dropout           number -        dropout
augment.drop_path         number -        stochastic depth
augment.random_erasing    number fraction probability of random erasing
augment.progressive       bool   -        image size grows during training
model.name                name   -        which network
model.classes             count  -        number of classes
model.params              number -        number of parameters
model.image_size          any    -        input resolution
model.lora_rank           count  -        rank of a LoRA adapter
model.compile             bool   -        torch.compile
model.checkpointing       bool   -        activation checkpointing
vocab_size                count  -        size of the vocabulary
seq_len                   count  -        tokens per sequence
data.name                 any    -        data set
data.train_size           count  samples  training samples
data.workers              count  -        loader processes, per training process
data.shuffle              bool   -        shuffled
data.drop_last            bool   -        last short batch dropped
data.enlarge              any    -        times the data set is repeated in an epoch
eval.every                number steps    distance between evaluations
eval.batch                count  samples  batch of the evaluation
checkpoint.every          number steps    distance between checkpoints
checkpoint.keep           count  -        how many checkpoints are kept
log.every                 number steps    distance between log lines
resume.from               any    -        checkpoint the run continues
resume.auto               bool   -        continue from the newest checkpoint found
finetune.from             any    -        pretrained weights the run starts from
diffusion.sigma_min       number -        smallest noise
diffusion.sigma_max       number -        largest noise
diffusion.sigma_data      number -        standard deviation of the data, as assumed
diffusion.P_mean          number -        mean of the log noise level
diffusion.P_std           number -        spread of the log noise level
diffusion.noise           name   -        noise schedule
diffusion.precond         name   -        preconditioning
diffusion.graph           name   -        what tokens turn into: a mask (absorb) or any token (uniform)
curriculum.enabled        bool   -        difficulty rises during training
curriculum.steps          count  steps    length of the rise
curriculum.ramp           name   -        shape of the rise
sr.scale                  count  -        super-resolution factor
sr.patch                  count  -        low-resolution patch size
gan.enabled               bool   -        an adversarial loss is used
logging.nan_filter        bool   -        the logger replaces non-finite losses
""")


@dataclass(frozen=True, slots=True)
class KnobValue:
    """One knob as this run sets it, or (`default`) as its framework would."""

    id: str
    value: Any
    unit: str | None = None
    leaf: Leaf | None = None
    dialect: str = "generic"
    default: bool = False
    note: str | None = None  # e.g. that the number is written as a string


class Knobs(Mapping[str, KnobValue]):
    """Knobs by id. Absent means unknown, never "off"."""

    def __init__(self, values: Mapping[str, KnobValue], dialect: ModuleType) -> None:
        self._values = dict(values)
        self.dialect = dialect

    def __getitem__(self, id: str) -> KnobValue:
        return self._values[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        inner = ", ".join(f"{v.id}={v.value!r}" for v in self._values.values() if not v.default)
        return f"Knobs[{self.dialect.NAME}]({inner})"

    def value(self, id: str, default: Any = None) -> Any:
        found = self._values.get(id)
        return default if found is None else found.value

    def place(self, id: str) -> Place:
        found = self._values.get(id)
        return Place() if found is None or found.leaf is None else place_of(found.leaf)

    def declared(self) -> list[KnobValue]:
        """Knobs that some source really sets."""
        return [value for value in self._values.values() if not value.default]


class Found(dict[str, KnobValue]):
    """Knobs being collected; what a dialect's `knobs()` fills."""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self.dialect = dialect

    def give(
        self,
        id: str,
        value: Any,
        leaf: Leaf | None = None,
        *,
        unit: str | None = None,
        default: bool = False,
        note: str | None = None,
    ) -> None:
        """Set a knob, cast by its kind. A value that cannot be cast is left out: unknown is not a number."""
        knob = KNOBS[id]
        cast = cast_value(knob.kind, value)
        if cast is None:
            return
        if note is None and isinstance(value, str) and knob.kind in ("number", "count"):
            note = f"written as the string {value!r}"
        self[id] = KnobValue(id, cast, unit or knob.unit, leaf, self.dialect, default, note)

    def take(self, id: str, view: View, *paths: str, unit: str | None = None) -> Leaf | None:
        """Set a knob from the first of several keys that is present; the leaf used."""
        leaf = view.first(*paths)
        if leaf is not None:
            self.give(id, leaf.value, leaf, unit=unit)
            return leaf
        for path in paths:
            items = view.items(path)
            if items:
                self.give(id, [item.value for item in items], items[0], unit=unit)
                return items[0]
        return None

    def drop(self, *ids: str) -> None:
        for id_ in ids:
            self.pop(id_, None)

    def known(self, id: str) -> Any:
        found = self.get(id)
        return None if found is None else found.value


def cast_value(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind == "number":
        return as_number(value)
    if kind == "count":
        number = as_number(value)
        if number is None or number != number or number in (float("inf"), float("-inf")):
            return None
        return int(number) if float(number).is_integer() else number
    if kind == "bool":
        return as_bool(value)
    if kind == "name":
        return value if isinstance(value, str) and value else None
    if kind == "list":
        items = value if isinstance(value, (list, tuple)) else _split(value)
        numbers = [as_number(item) for item in items]
        return None if not numbers or None in numbers else numbers
    return value


def _split(value: Any) -> list[Any]:
    return value.strip("[]() ").split(",") if isinstance(value, str) else [value]


def read_knobs(
    trees: Sequence[ConfigTree], *, dialect: ModuleType | str | None = None, run_formats: Sequence[str] = ()
) -> Knobs:
    """What these sources set, by meaning. The command line overrides files; the run's own print, both."""
    if isinstance(dialect, str):
        dialect = dialect_named(dialect)
    module = dialect or recognise_dialect(trees, run_formats) or dialect_named("generic")
    view = View(trees)
    found = Found(module.NAME)
    for key in module.KEYS.values():
        if key.knob is not None and "*" not in key.path:
            _read_key(key, view, found)
    if hasattr(module, "knobs"):
        module.knobs(view, found)
    _read_launcher(view, found)
    return Knobs(found, module)


def _read_key(key: Key, view: View, found: Found) -> None:
    assert key.knob is not None
    present = view.has(key.path)
    leaf = view.leaf(key.path)
    if leaf is not None and not unresolved(leaf):
        found.give(key.knob, leaf.value, leaf, unit=key.unit)
    elif view.items(key.path):
        items = view.items(key.path)
        found.give(key.knob, [item.value for item in items], items[0], unit=key.unit)
    elif not present and key.default is not UNSET and key.knob not in found:
        found.give(key.knob, key.default, unit=key.unit, default=True)


def _read_launcher(view: View, found: Found) -> None:
    """World size as the launcher was told."""
    if "world_size" in found and not found["world_size"].default:
        return
    leaf = view.first("launcher.nproc_per_node", "launcher.num_processes", "launcher.num_gpus")
    if leaf is None:
        return
    each = as_number(leaf.value)
    if each is None:
        return
    nodes: float | None = 1.0
    if leaf.dotted != "launcher.num_processes":  # accelerate's num_processes counts all nodes already
        said = view.first("launcher.nnodes", "launcher.num_nodes")
        nodes = 1.0 if said is None else as_number(said.value)
    if nodes is not None:  # torchrun's elastic `1:4` says no number
        found.give("world_size", each * nodes, leaf)
