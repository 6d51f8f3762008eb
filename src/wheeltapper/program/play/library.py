"""What calls of libraries do to values: a table of effects. What is not in it makes a new value of its arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from wheeltapper.program.play.configs import loaded
from wheeltapper.program.play.elements import Elements
from wheeltapper.program.play.names import loss_name
from wheeltapper.program.play.value import Val, const, text_of

Args = tuple[Val, ...]
Keywords = dict[str, Val]
# Modules that are their function: applying them is calling it.
FUNCTIONAL = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "MSELoss": "mse_loss", "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "CTCLoss": "ctc_loss",
    "TripletMarginLoss": "triplet_margin_loss", "CosineEmbeddingLoss": "cosine_embedding_loss", "GaussianNLLLoss": "gaussian_nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss", "MarginRankingLoss": "margin_ranking_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "HingeEmbeddingLoss": "hinge_embedding_loss",
    "Softmax": "softmax", "Softmax2d": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid", "LogSigmoid": "logsigmoid",
    "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu", "LeakyReLU": "leaky_relu", "ELU": "elu", "Softplus": "softplus",
    "Flatten": "flatten", "Unflatten": "unflatten",
}  # fmt: skip
# Give back what they are given: the same thing, elsewhere or wrapped.
WRAPS = {
    "compile", "DistributedDataParallel", "DDP", "DataParallel", "FullyShardedDataParallel", "FSDP", "script", "cast", "fully_shard",
    "prepare_model_for_kbit_training", "convert_sync_batchnorm", "spectral_norm", "weight_norm", "setup_module", "checkpoint_wrapper",
    "jit", "pmap", "remat",
}  # fmt: skip
MOVES = {
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "contiguous", "clone", "long", "int", "bool", "type",
    "share_memory", "to_device", "xpu", "pin_memory", "requires_grad_", "retain_grad", "type_as", "unwrap",
}  # fmt: skip
MODES = {"eval", "train"}
NAMESPACES = {
    "SimpleNamespace",
    "Namespace",
    "EasyDict",
    "edict",
    "AttrDict",
    "DotDict",
    "Munch",
    "Box",
    "ConfigDict",
    "DotMap",
    "create",
}
CONFIG_LOADERS = {"safe_load", "full_load", "load", "loads", "unsafe_load"}
NETWORK_MAKERS = {
    "from_pretrained", "create_model", "get_peft_model", "from_config", "AveragedModel", "LoraModel", "PeftModel", "resnet18", "resnet50",
}  # fmt: skip
NO_NETWORKS = ("Tokenizer", "Processor", "Config", "FeatureExtractor", "Dataset")


class Library(Elements):
    def is_network(self, value: Val) -> bool:
        """Whether a value is a network: of a class built on one, of torch's layers, or made by what makes networks."""
        if value.op == "obj":
            cls = self.program.classes.get(value.name)
            return cls is not None and self.is_network_class(cls)
        if value.op == "phi":
            return all(self.is_network(v) for v in value.args)
        if value.op in ("item", "attr", "elem") and value.fields.get("@net"):
            return True
        if value.op != "call":
            return False
        if "@net" in value.fields:
            return True
        if value.name == "from_pretrained":
            return not any(word in value.origin for word in NO_NETWORKS)
        layers = value.origin.startswith("torch.nn.") and value.name[:1].isupper()
        keras = "keras" in value.origin and (value.name in ("Model", "Sequential") or ".applications" in value.origin)
        known = keras or value.name in NETWORK_MAKERS or value.origin.startswith(("torchvision.models", "timm.models"))
        return known or (
            layers
            and value.name not in FUNCTIONAL
            and not value.origin.startswith(("torch.nn.utils", "torch.nn.init"))
            and value.name != "Parameter"
        )

    # -- functions ------------------------------------------------------------------------------

    def library_call(self, target: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        name = target.name
        special = SPECIAL.get(name)
        if special is not None:
            made = special(self, args, kwargs, node)
            if made is not None:
                return made
        if name in CONFIG_LOADERS and (made := loaded(self.config, target.origin, node)) is not None:
            self.called(name, args, kwargs, node, target.origin)
            return made
        named = loss_name(name, target.origin) if len(args) > 1 else None
        if named is not None:
            return self.called(named[0], (args[1], args[0], *args[2:]) if named[1] else args, kwargs, node, target.origin)
        if name in WRAPS and args and args[0].op != "const":
            self.called(name, args, kwargs, node, target.origin)
            return args[0]
        if name in NAMESPACES or (name == "dict" and not args):
            return self._space(args, kwargs, node, "dict" if name == "dict" else "space")
        return self.called(name, args, kwargs, node, target.origin)

    def _space(self, args: Args, kwargs: Keywords, node: ast.AST, op: str) -> Val:
        fields = dict(args[0].fields) if args and args[0].op in ("dict", "space") else {}
        return Val(op, fields={**fields, **kwargs}, node=node)

    # -- objects of a library, called -----------------------------------------------------------

    def applied(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        """`layer(x)`, `criterion(a, b)`, `partial(f)(x)`."""
        if thing.op == "call" and thing.name in FUNCTIONAL:
            return self.called(FUNCTIONAL[thing.name], args, {**thing.kwargs, **kwargs}, node, thing.origin)
        if thing.op == "call" and thing.name == "Identity" and args:
            return args[0]
        if thing.op == "call" and thing.name == "partial" and thing.args:
            return self.apply(thing.args[0], (*thing.args[1:], *args), {**thing.kwargs, **kwargs}, node)
        if thing.op == "call" and thing.name == "Sequential" and thing.origin.startswith("torch") and args:
            return self._through(thing, args[0], node)
        if thing.op == "call" and thing.name == "deepcopy" and thing.args:
            inner = self.apply(thing.args[0], args, kwargs, node)
            made = inner.data if inner.op == "net" else inner
            value = self.called("", (thing, *args), kwargs, node, op="net")
            value.data = made
            return value
        if thing.op in ("call", "attr", "item", "elem", "net"):
            return self.called(thing.name, (thing, *args), kwargs, node, thing.origin, op="net")
        return self.called(thing.name, args, kwargs, node, thing.origin)

    def _through(self, sequential: Val, given: Val, node: ast.AST) -> Val:
        layers = list(sequential.args)
        if len(layers) == 1 and layers[0].op == "call" and layers[0].name == "OrderedDict" and layers[0].args:
            pairs = layers[0].args[0].items or []
            layers = [p.items[1] for p in pairs if p.items is not None and len(p.items) == 2]
        value = given
        self.through += 1
        for layer in layers:
            value = self.apply(layer, (value,), {}, layer.node or node)
        self.through -= 1
        outer = self.called("Sequential", (sequential, given), {}, node, sequential.origin, op="net")
        outer.data = value if layers else None  # None: of layers that are not known
        return outer

    # -- methods --------------------------------------------------------------------------------

    def method_call(self, base: Val, name: str, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        if name in MOVES:
            if name in ("requires_grad_", "type"):
                self.called(name, (base, *args), kwargs, node, "." + name)
            return base
        if (
            name in MODES
            and len(args) <= 1
            and not kwargs
            and base.op in ("obj", "call", "attr", "item", "phi", "param", "free")
        ):
            self.called(name, (base, *args), kwargs, node, "." + name)
            return base if base.op != "call" or base.name not in ("Trainer",) else Val("free", node=node)
        if name in ("parameters", "named_parameters", "state_dict", "load_state_dict") and base.op in (
            "call",
            "item",
            "attr",
        ):
            base.fields.setdefault("@net", const(True))
        special = METHODS.get(name)
        if special is not None:
            made = special(self, base, args, kwargs, node)
            if made is not None:
                return made
        return self.called(name, (base, *args), kwargs, node, "." + name)

    def parsed(self, base: Val, node: ast.AST) -> Val:
        """`parse_args()`: the options that were added, with their defaults."""
        space = Val("space", node=node, data="options")
        for call in self.calls:
            if call.name != "add_argument":
                continue
            flags = [t for a in call.args[1:] if (t := text_of(a)) is not None]
            long = next((f for f in flags if f.startswith("--")), flags[0] if flags else None)
            named = text_of(call.kwargs.get("dest")) or (long.lstrip("-").replace("-", "_") if long else None)
            if named is None:
                continue
            default = call.kwargs.get("default")
            action = text_of(call.kwargs.get("action")) or ""
            if default is None:
                default = const({"store_true": False, "store_false": True}.get(action), call.node)
            space.fields[named] = self.option(named, default, call.node or node)
        return space


# -- the tables ---------------------------------------------------------------------------------------------------


def _next(scene: Library, args: Args, _: Keywords, node: ast.AST) -> Val | None:
    return scene.element(args[0], node) if args else None


def _vars(_: Library, args: Args, __: Keywords, node: ast.AST) -> Val | None:
    return Val("dict", fields=args[0].fields, node=node) if args and args[0].op in ("space", "obj", "dict") else None


def _deepcopy(scene: Library, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    if not args or not (args[0].op == "obj" or scene.is_network(args[0])):
        return None
    scene.called("deepcopy", args, kwargs, node, "copy.deepcopy")
    copied = _copy(args[0], {}, node)
    copied.fields["@copy"] = args[0]
    return copied


def _copy(value: Val, done: dict[int, Val], node: ast.AST) -> Val:
    """A network made anew, with all it holds."""
    if id(value) in done:
        return done[id(value)]
    if value.op not in ("obj", "call", "list", "tuple", "comp", "dict") or len(done) > 400:
        return value
    made = replace(value, node=node if not done else value.node, fields={}, items=None)
    done[id(value)] = made
    made.fields = {k: v if k.startswith("@") else _copy(v, done, node) for k, v in value.fields.items()}
    made.fields["@copied"] = value
    made.items = [_copy(v, done, node) for v in value.items] if value.items is not None else None
    made.args = tuple(_copy(v, done, node) for v in value.args) if value.op != "obj" else value.args
    return made


def _list(scene: Library, args: Args, _: Keywords, node: ast.AST) -> Val | None:
    if not args:
        return Val("list", items=[], node=node)
    if args[0].op in ("list", "tuple") and args[0].items is not None:
        return Val("list", args[0].name, items=list(args[0].items), kwargs=args[0].kwargs, node=node)
    return None


def _deque(_: Library, __: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    return Val("list", "deque", items=[], kwargs=kwargs, node=node)


def _split(scene: Library, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`train_test_split(x, y)`: two parts of each."""
    if not args:
        return None
    scene.called("train_test_split", args, kwargs, node, "sklearn.model_selection.train_test_split")
    return Val(
        "tuple", items=[Val("split", which, (a,), node=node) for a in args for which in ("train", "test")], node=node
    )


def _mapped(scene: Library, args: Args, _: Keywords, node: ast.AST) -> Val | None:
    """`map(f, several)`: f of each, where they are known."""
    if len(args) != 2:
        return None
    if args[1].op in ("list", "tuple") and args[1].items and len(args[1].items) <= 8:
        return Val("tuple", items=[scene.apply(args[0], (one,), {}, node) for one in args[1].items], node=node)
    return None


def _from_class(scene: Library, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`tyro.cli(Options)`: the options that a class lists, with their defaults, which a command line may change."""
    wanted = args[0] if args else kwargs.get("config_class")
    if wanted is None or wanted.op != "class":
        return None
    made = scene.apply(wanted, (), {}, node)
    for name, value in list(made.fields.items()):
        if value.op == "const":
            made.fields[name] = replace(value, sure=False)
    return made


SPECIAL: dict[str, Callable[[Library, Args, Keywords, ast.AST], Val | None]] = {
    "next": _next, "vars": _vars, "asdict": _vars, "deepcopy": _deepcopy, "list": _list, "deque": _deque, "train_test_split": _split,
    "map": _mapped, "cli": _from_class,
}  # fmt: skip


def _parse_args(scene: Library, base: Val, _: Args, __: Keywords, node: ast.AST) -> Val | None:
    return scene.parsed(base, node)


def _parse_known(scene: Library, base: Val, _: Args, __: Keywords, node: ast.AST) -> Val | None:
    return Val("tuple", items=[scene.parsed(base, node), Val("free", node=node)], node=node)


def _grow(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    if base.items is None or not args:
        return None
    if len(base.items) < 64:
        base.items.append(args[-1])
    return scene.called("append", (base, *args), kwargs, node, ".append")


def _extend(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    if base.items is None or not args:
        return None
    more = args[0].items or [scene.element(args[0], node)]
    base.items.extend(more[: max(0, 64 - len(base.items))])
    return scene.called("extend", (base, *args), kwargs, node, ".extend")


def _get(_: Library, base: Val, args: Args, __: Keywords, node: ast.AST) -> Val | None:
    key = text_of(args[0]) if args else None
    if key is None or base.op not in ("dict", "space"):
        return None
    return base.fields.get(key, args[1] if len(args) > 1 else const(None, node))


def _update(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    if base.op in ("dict", "space"):
        base.fields.update(args[0].fields if args and args[0].op in ("dict", "space") else {})
        base.fields.update(kwargs)
    return None


def _prepare(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    scene.called("prepare", (base, *args), kwargs, node, ".prepare")
    if not args:
        return None
    return args[0] if len(args) == 1 else Val("tuple", items=list(args), node=node)


def _hyperparameters(scene: Library, base: Val, args: Args, __: Keywords, node: ast.AST) -> Val | None:
    if base.op == "obj":
        base.fields["hparams"] = Val("space", fields=dict(scene.frames[-1].params), node=node)
    return None


def _buffer(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`register_buffer("mask", tensor)`: a field of the network."""
    name, value = (text_of(args[0]) if args else None), kwargs.get("tensor") or (args[1] if len(args) > 1 else None)
    if base.op == "obj" and name is not None and value is not None:
        base.fields[name] = value
    return None


def _handed_out(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`self.optimizers()` of a LightningModule: those that configure_optimizers made."""
    return base.fields.get("@optimizers") if base.op == "obj" else None


def _handed_schedulers(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`self.lr_schedulers()` of a LightningModule: those that configure_optimizers made."""
    return base.fields.get("@schedulers") if base.op == "obj" else None


def _step(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    for given in (*args, *kwargs.values()):  # a closure: LBFGS, SAM
        if given.op in ("func", "bound"):
            scene.apply(given, (), {}, node)
    return None


def _map(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`dataset.map(f)`: a dataset of what f makes of each element."""
    if not args or args[0].op not in ("func", "bound"):
        return None
    one = scene.element(base, node)
    func = args[0].data[0] if args[0].op == "func" else args[0].data
    spread = one.items if one.op == "tuple" and one.items and len(func.params) == len(one.items) > 1 else None
    made = scene.apply(args[0], tuple(spread or (one,)), {}, node)
    return Val("gen", "map", (made, base), node=node)


def _to_modules(scene: Library, base: Val, args: Args, _: Keywords, node: ast.AST) -> Val | None:
    """`net.apply(f)`: f of every module."""
    if not args or args[0].op not in ("func", "bound") or not scene.is_network(base):
        return None
    modules = Val("call", "modules", (base,), node=node, origin=".modules")
    scene.apply(args[0], (Val("elem", args=(modules,), node=node),), {}, node)
    scene.called("apply", (base, *args), {}, node, ".apply")
    return base


def _start(scene: Library, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`spawn(f, args=(...))`, `Process(target=f)`, `app.run(f)`, `vmap(f)`: f is played."""
    target = kwargs.get("target") or (args[0] if args else None)
    if target is not None and target.op in ("func", "bound"):
        given = kwargs["args"].items if "args" in kwargs else None
        scene.apply(target, tuple(given or ()), {}, node)
    return None


SPECIAL.update({"spawn": _start, "Process": _start, "run": _start, "launch": _start})
METHODS: dict[str, Callable[[Library, Val, Args, Keywords, ast.AST], Val | None]] = {
    "parse_args": _parse_args, "parse_known_args": _parse_known, "append": _grow, "insert": _grow, "extend": _extend, "get": _get,
    "pop": _get, "update": _update, "prepare": _prepare, "setup": _prepare, "setup_dataloaders": _prepare,
    "save_hyperparameters": _hyperparameters, "step": _step, "map": _map, "register_buffer": _buffer, "optimizers": _handed_out, "lr_schedulers": _handed_schedulers, "with_transform": _map,
    "apply": _to_modules,
}  # fmt: skip
