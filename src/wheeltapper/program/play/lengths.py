"""Lengths as products: `epochs * len(data) // batch` is a number times what is not known, and two of them may cancel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from wheeltapper.program.play.lineage import LOOPERS, key
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, number

WRAPS = {"int", "ceil", "floor", "round", "float", "max"}
MAX_DEPTH = 12


@dataclass(frozen=True)
class Product:
    """A known number times lengths that are not known, each with its power."""

    number: float = 1.0
    lengths: Counter[str] = field(default_factory=Counter)

    def times(self, other: Product, power: int = 1) -> Product:
        lengths = Counter(self.lengths)
        for name, count in other.lengths.items():
            lengths[name] += power * count
        worth = self.number * other.number**power if other.number or power > 0 else self.number
        return Product(worth, Counter({k: v for k, v in lengths.items() if v}))

    def over(self, other: Product) -> float | None:
        """How many times the other this is; None where they do not count the same things, or one is not known."""
        ratio = self.times(other, -1)
        return ratio.number if not ratio.lengths and self.known and other.known else None

    @property
    def known(self) -> bool:
        return not any(name.startswith("?") for name in self.lengths)


def product(value: Val | None, depth: int = 0) -> Product:
    """A value as a product. What is not understood is a length of its own."""
    worth = number(value)
    if worth is not None and worth > 0:
        return Product(float(worth))
    if value is None or depth > MAX_DEPTH:
        return Product(1.0, Counter({f"?{id(value)}": 1}))
    if value.op == "bin" and value.name in ("Mult", "Div", "FloorDiv"):
        return product(value.args[0], depth + 1).times(product(value.args[1], depth + 1), 1 if value.name == "Mult" else -1)
    if value.op == "call" and value.name in WRAPS and value.args:
        return product(value.args[0], depth + 1)
    if value.op == "call" and value.name == "len" and value.args:
        return length_of(value.args[0])
    return Product(1.0, Counter({str(key(value)): 1}))


def length_of(data: Val) -> Product:
    """The length of data or of a loader, by what it is: `len(loader)` is `len(dataset) / batch`."""
    while data.op == "call" and data.name in LOOPERS and data.args:
        data = data.args[0]
    if data.op == "call" and data.name == "DataLoader" and (size := number(data.arg("batch_size", 1))) is not None:
        inner = data.arg("dataset", 0)
        if inner is not None:
            return length_of(inner).times(Product(float(size)), -1)
    while data.op == "bin" or (data.op == "call" and data.name in ("astype", "copy", "to_numpy", "shuffle", "with_transform")):
        data = data.args[0]  # scaled, moved: as many rows
    return Product(1.0, Counter({f"len {key(data)}": 1}))


def run_of_loops(story: Story, call: Val) -> Product:
    """How often a call happens: the turns of all loops around it, a step of many batches counted once."""
    out = Product()
    for turn in call.loops:
        over = turn.over
        while over is not None and over.op == "call" and over.name in LOOPERS and over.args:
            over = over.args[0]
        if over is None:
            return Product(1.0, Counter({"?": 1}))
        if over.op == "call" and over.name in ("range", "trange") and over.args:
            bounds = list(over.args[:2])
            if len(over.args) > 2:
                return Product(1.0, Counter({"?": 1}))
            if len(bounds) == 2 and number(bounds[0]) not in (0, 1):
                return Product(1.0, Counter({"?": 1}))
            last = bounds[-1]
            if len(bounds) == 2 and number(bounds[0]) == 1 and last.op == "bin" and last.name == "Add" and number(last.args[1]) == 1:
                last = last.args[0]  # range(1, n + 1): n turns
            out = out.times(product(last))
        else:
            out = out.times(length_of(over))
    several = accumulated(story, call)
    return out.times(Product(several), -1) if several else Product(1.0, Counter({"?": 1}))


def accumulated(story: Story, call: Val) -> float | None:
    """How many batches make one such call: 1, the accumulation of an accelerator, None where another condition decides."""
    tests = [g.test for g in call.guards if g.taken]
    told = [number(c.kwargs.get("gradient_accumulation_steps")) for c in story.named("Accelerator")]
    several = told[0] if told and told[0] is not None else 1.0
    prepared = any(a is call.args[0] for p in story.named("prepare") for a in p.args[1:]) if call.args else False
    if not tests:  # what an accelerator has prepared steps only with the optimizer
        return several if prepared and not any("step_scheduler_with_optimizer" in c.kwargs for c in story.named("Accelerator")) else 1.0
    return several if all(t.op == "attr" and t.name == "sync_gradients" for t in tests) else None


def steps_per_epoch(fit: Val) -> Product:
    """The batches of an epoch of Keras' fit, where its data is an array."""
    told = fit.kwargs.get("steps_per_epoch")
    if told is not None:
        return product(told)
    size = number(fit.kwargs.get("batch_size")) or 32.0
    if len(fit.args) < 3:
        return Product(1.0, Counter({"?": 1}))
    return length_of(fit.args[1]).times(Product(size), -1)
