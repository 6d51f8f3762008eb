"""What a played program does, in the words of training: losses, optimizers, the networks they move, evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wheeltapper.program.objects import OPTIMIZERS
from wheeltapper.program.play.frameworks import BY_FRAMEWORK
from wheeltapper.program.play.player import Player
from wheeltapper.program.play.terms import Term, terms_of
from wheeltapper.program.play.value import Val, breaks_graph, choices, made_of, number, plain, text_of
from wheeltapper.program.program import Program
from wheeltapper.settings.tree import ConfigTree

CLASS_LOSSES = {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "ctc_loss"}
NUMBER_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "poisson_nll_loss"}
OTHER_LOSSES = {"kl_div", "triplet_margin_loss", "cosine_embedding_loss", "margin_ranking_loss", "hinge_embedding_loss"}
LOSSES = CLASS_LOSSES | NUMBER_LOSSES | OTHER_LOSSES
RANDOM = {
    "rand", "randn", "randint", "rand_like", "randn_like", "randperm", "permutation", "choice", "sample", "bernoulli", "uniform",
    "normal", "shuffle", "random", "randrange", "multinomial", "integers", "standard_normal", "bernoulli_", "uniform_", "normal_", "dropout",
}  # fmt: skip
METRICS = {
    "accuracy_score",
    "f1_score",
    "roc_auc_score",
    "average_precision_score",
    "mean_squared_error",
    "mean_absolute_error",
    "r2_score",
    "update",
    "compute",
}
SCORES = LOSSES | METRICS | {"item", "append", "augment", "sum", "mean", "log", "print", "setitem", "any", "all"}


@dataclass(eq=False)
class Story:
    player: Player
    program: Program
    _trained: dict[int, bool] = field(default_factory=dict)

    @property
    def calls(self) -> list[Val]:
        return self.player.calls

    @property
    def complete(self) -> bool:
        return self.player.complete

    @property
    def uncalled(self) -> bool:
        return self.player.uncalled

    def named(self, *names: str) -> list[Val]:
        return [c for name in names for c in self._by_name.get(name, [])]

    @cached_property
    def _by_name(self) -> dict[str, list[Val]]:
        out: dict[str, list[Val]] = {}
        for call in self.calls:
            out.setdefault(call.name, []).append(call)
        return out

    # -- losses ---------------------------------------------------------------------------------

    @cached_property
    def backwards(self) -> list[tuple[Val, Val]]:
        """Every backward pass: the call, and the loss it starts from."""
        out = []
        for call in sorted(self.named("backward", "manual_backward"), key=lambda c: c.order):
            if not call.args:
                continue
            loss = call.args[0]
            if (
                call.origin != BY_FRAMEWORK
                and (call.name == "manual_backward" or self._engine(loss))
                and len(call.args) > 1
            ):
                loss = call.args[1]
            out.append((call, _unscaled(loss)))
        stepped = [pair for pair in out if self._is_stepped(pair[0])]
        return stepped or out  # gradients that are only looked at (a picture of them, a receptive field) train nothing

    def _is_stepped(self, backward: Val) -> bool:
        """Whether an optimizer steps in the loop of this backward pass, or around it."""
        inner = backward.loops[-1:]
        return backward.origin == BY_FRAMEWORK or any(
            step.loops == backward.loops
            or (inner and inner[0] in step.loops)
            or (step.loops and step.loops[-1] in backward.loops)
            for step in self.named("step")
        )

    def _engine(self, value: Val) -> bool:
        return value.op in ("call", "obj", "item", "attr", "free", "param") and (
            value.name in ("Accelerator", "Fabric", "initialize")
            or not any(v.op in ("net", "bin") for v in made_of(value))
        )

    @cached_property
    def losses(self) -> list[Val]:
        return [loss for _, loss in self.backwards]

    @cached_property
    def loss_calls(self) -> list[Val]:
        """Calls of known loss functions that a backward pass starts from."""
        found: dict[int, Val] = {}
        for loss in self.losses:
            for value in made_of(loss):
                if value.op == "call" and value.name in LOSSES:
                    found[id(value)] = value
                elif (squared := self.squared(value)) is not None:
                    found[id(value)] = squared
        return list(found.values())

    def squared(self, value: Val) -> Val | None:
        """`(prediction - target) ** 2`, `abs(prediction - target)`: a loss written out."""
        name = "mse_loss"
        if value.op == "bin" and value.name == "Pow" and number(value.args[1]) == 2:
            inner = value.args[0]
        elif value.op == "call" and value.name in ("pow", "square", "abs") and value.args:
            inner, name = value.args[0], "l1_loss" if value.name == "abs" else name
        else:
            return None
        if inner.op != "bin" or inner.name != "Sub":
            return None
        sides = sorted(
            inner.args, key=lambda a: not any(v.op == "net" and not v.no_grad for v in made_of(a, deep=False))
        )
        if not any(v.op == "net" for v in made_of(sides[0], deep=False)):
            return None
        return Val(
            "call", name, tuple(sides), node=value.node, loops=value.loops, guards=value.guards, origin="written out"
        )

    def terms(self, loss: Val) -> list[Term]:
        return list(terms_of(loss, 1, 1.0, 0))

    @cached_property
    def dicts(self) -> list[Val]:
        """Dictionaries with keys that the program wrote out."""
        return self.player.dicts

    @cached_property
    def skipped(self) -> list[Val]:
        """What a loop over outputs leaves out: the other side of `if x != blank` under which something is appended."""
        out = []
        for call in self.named("append"):
            for guard in call.guards:
                tests = guard.test.args if guard.test.op == "bool" else (guard.test,)
                out += [
                    t.args[1]
                    for t in tests
                    if t.op == "cmp" and t.name == "NotEq" and t.args[1].op != "phi" and guard.taken
                ]
        return [v for v in out if v.op in ("const", "bin", "call")]

    # -- loops ----------------------------------------------------------------------------------

    @cached_property
    def training_loops(self) -> list[Any]:
        """The innermost loop around each backward pass."""
        return list(dict.fromkeys(call.loops[-1] for call, _ in self.backwards if call.loops))

    def in_training(self, call: Val) -> bool:
        return any(loop in call.loops for loop in self.training_loops)

    # -- optimizers -----------------------------------------------------------------------------

    @cached_property
    def optimizers(self) -> list[Val]:
        return [c for c in self.calls if c.op == "call" and is_optimizer(c)]

    def steps_of(self, optimizer: Val) -> list[Val]:
        return [c for c in self.named("step") if any(optimizer in choices(a) for a in c.args[:2])]

    def clears_of(self, optimizer: Val) -> list[Val]:
        nets = self.moved_by(optimizer)
        return [
            c
            for c in self.named("zero_grad")
            if any(one is optimizer or any(one is n for n in nets) for one in choices(c.args[0]))
        ]

    def moved_by(self, optimizer: Val) -> list[Val]:
        """The networks (or parts, or parameters) that an optimizer was given."""
        given = optimizer.arg("params", 0)
        return _holders(given) if given is not None else []

    @cached_property
    def trained(self) -> list[Val]:
        return list({id(n): n for o in self.optimizers if not self._is_idle(o) for n in self.moved_by(o)}.values())

    def _is_idle(self, optimizer: Val) -> bool:
        """One that a class makes for each of its objects, of which this one never steps and another does: a target network."""
        twins = [o for o in self.optimizers if o is not optimizer and o.node is optimizer.node]
        return any(self.steps_of(o) for o in twins) and not self.steps_of(optimizer)

    def is_network(self, value: Val) -> bool:
        return self.player.is_network(value)

    def parts_of(self, network: Val, depth: int = 0) -> list[Val]:
        """A network with the networks it holds."""
        out = [network]
        if depth > 5:
            return out
        held = [v for k, v in network.fields.items() if not k.startswith("@") and k != "batch"]
        held += network.args if network.op == "call" and network.name != "deepcopy" else ()
        for value in held:
            for one in _spread(value):
                if one is not network and (one.op in ("obj", "call")) and self.player.is_network(one):
                    out += self.parts_of(one, depth + 1)
        return out

    def holds(self, network: Val, part: Val) -> bool:
        return any(p is part for p in self.parts_of(network))

    # -- evaluation -----------------------------------------------------------------------------

    @cached_property
    def applications(self) -> list[Val]:
        """Networks applied by the program itself, not inside another network."""
        return [c for c in self.calls if c.op == "net" and not _inside_forward(c)]

    @cached_property
    def evaluations(self) -> list[Val]:
        """Applications of a trained network, with gradients off, to what a training loop does not use for its loss."""
        used = {v.order for loss in self.losses for v in made_of(loss) if v.op == "net"}
        return [
            c for c in self.applications if c.no_grad and c.order not in used and self._comes_of_training(c.args[0]) and c.loops
        ]

    def _comes_of_training(self, network: Val) -> bool:
        """A trained network, or a copy of one: its average, what it was at its best."""
        copied = network.fields.get("@copy")
        return self.is_trained(network) or (copied is not None and self.is_trained(copied))

    @cached_property
    def scored(self) -> set[int]:
        """The applications whose output is compared with something: by a loss, by equality, by a metric."""
        out: set[int] = set()
        for call in self.calls:
            if not call.no_grad or call.name not in SCORES:
                continue
            parts = list(made_of(call))
            if call.name in LOSSES or call.name in METRICS or any(_compares(v) for v in parts):
                out |= {v.order for v in parts if v.op == "net"}
        return out | self._measured

    @property
    def _measured(self) -> set[int]:
        """Outputs that go with a part of the batch into a measure that is not known, or are collected beside one."""
        out: set[int] = set()
        for call in self.calls:
            if not call.no_grad or call.op != "call" or len(call.args) < 2 or call.name == "append":
                continue
            nets = [{v.order for v in made_of(a, deep=False) if v.op == "net"} for a in call.args]
            data = [any(v.op in ("batch", "elem") for v in made_of(a, deep=False)) for a in call.args]
            if any(nets) and any(d and not n for d, n in zip(data, nets, strict=True)):
                out.update(*nets)
        collected = [c for c in self.named("append") if c.no_grad and len(c.args) > 1 and c.loops]
        for call in collected:
            mine = {v.order for v in made_of(call.args[1], deep=False) if v.op == "net"}
            beside = any(
                c.loops == call.loops and plain(c.args[1]).op in ("batch", "elem", "item")
                for c in collected
                if c is not call
            )
            out |= mine if beside else set()
        return out

    def is_trained(self, network: Val) -> bool:
        """Whether an optimizer moves this network, a part of it, or one that it is a part of."""
        if id(network) not in self._trained:
            mine = {id(p) for n in self.trained for one in _chain(n) for p in self.parts_of(one)}
            self._trained[id(network)] = id(network) in mine or any(id(p) in mine for p in self.parts_of(network))
        return self._trained[id(network)]

    def runs(self, value: Val) -> bool:
        """Whether nothing known, defaults of options included, keeps this call from happening."""
        self.player.trusting = True
        told = [self.player.truth(g.test) for g in value.guards]
        self.player.trusting = False
        return all(known is None or known == guard.taken for known, guard in zip(told, value.guards, strict=True))


def story_of(program: Program, given: dict[str, Any], config: ConfigTree | None) -> Story:
    player = Player(program, given, config)
    player.play()
    return Story(player, program)


def _compares(value: Val) -> bool:
    if value.op == "call":
        return value.name in LOSSES or value.name in METRICS
    return (
        value.op == "cmp"
        or (value.op == "bin" and value.name in ("Pow", "Sub"))
        or (value.op == "attr" and value.name == "loss")
    )


def is_optimizer(call: Val) -> bool:
    return call.name in OPTIMIZERS and (call.origin.split(".")[0] != "?") and not call.origin.startswith("?")


def _inside_forward(call: Val) -> bool:
    return any(name in ("forward", "call") for name in call.inside)


def _unscaled(loss: Val) -> Val:
    while loss.op == "call" and loss.name == "scale" and len(loss.args) > 1:
        loss = loss.args[1]
    return loss


def _spread(value: Val) -> Iterator[Val]:
    if value.op in ("list", "tuple", "phi", "comp", "gen"):
        several = [*(value.items or []), *(value.args if value.op == "phi" else value.args[:1])]
        for one in several:
            yield from _spread(one)
    elif value.op == "dict":
        for one in value.fields.values():
            yield from _spread(one)
    elif value.op == "call" and value.name in ("OrderedDict", "ModuleDict", "list", "tuple", "reversed"):
        for one in value.args:
            yield from _spread(one)
    else:
        yield value


def _holders(value: Val, depth: int = 0) -> list[Val]:
    """What `.parameters()` was called on, through lists, filters, groups and sums of them."""
    if depth > 8:
        return []
    if value.op == "call" and value.name in ("parameters", "named_parameters") and value.args:
        return [_owner(one) for one in _spread(value.args[0])]
    inner = [*(value.items or []), *value.args]
    if value.op == "dict":
        inner += [v for k, v in value.fields.items() if k == "params"]
    if value.op in ("list", "tuple", "comp", "phi", "dict", "bin", "gen", "elem", "item") or (
        value.op == "call"
        and value.name
        in ("list", "filter", "chain", "sum", "tuple", "extend", "sorted", "set", "values", "items", "iter")
    ):
        return list({id(h): h for v in inner for h in _holders(v, depth + 1)}.values())
    if value.op == "attr" and value.name in ("weight", "bias") and value.args:
        return [value.args[0]]
    if value.op in ("attr", "obj", "call") and depth == 0:
        return [value]
    return []


def _chain(network: Val) -> list[Val]:
    """A network with those it is a named part of: `model.head`, model."""
    out = [network]
    while out[-1].op in ("attr", "item") and out[-1].args and len(out) < 8:
        out.append(out[-1].args[0])
    return out


def _owner(value: Val) -> Val:
    """The network that one of its modules, found by going over them, belongs to."""
    for _ in range(4):
        if value.op not in ("elem", "item") or not value.args or value.args[0].op not in ("call", "elem"):
            return value
        above = value.args[0]
        value = above.args[0] if above.name in ("modules", "named_modules", "children") and above.args else above
    return value


def with_gradient(value: Val) -> Iterator[Val]:
    """What a value is made of as far as gradients go back."""
    for one in made_of(value, stop=breaks_graph):
        if not breaks_graph(one):
            yield one


__all__ = ["Story", "Term", "plain", "story_of", "text_of", "with_gradient"]
