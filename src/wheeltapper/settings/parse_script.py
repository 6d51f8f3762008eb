"""Settings that stand in a training script: options with their defaults, and literals in the calls that train.

`TrainingArguments(...)`, `Trainer(...)`, `model.compile`/`fit`, SB3 constructors, optimizers, schedulers, loaders, losses,
`clip_grad_norm_`, LoRA. By `ast` only; nothing is run. An option's default is marked: a command line may have set another.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any

from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree, Leaf

DEFAULT = "the default of an option; a command line may have set another"
MOST_NODES = 400_000
MOST_TEXT = 1_000_000

_OPTIMIZERS = re.compile(
    r"(?:Fused|Paged|Distributed)?(?:Adam|AdamW|SGD|RMSprop|Adagrad|Adadelta|Adamax|NAdam|RAdam|Lion|Lamb|LAMB|LARS|Lars"
    r"|Adafactor|AdaBelief|AdaBound|Sophia\w*|Muon|Ranger\w*|Adan|Prodigy|ASGD|LBFGS|AdamW8bit|Adam8bit|Novograd|Nadam)"
)
_SCHEDULERS = re.compile(
    r"\w*(?:LR|WarmRestarts|ReduceLROnPlateau|_schedule(?:_with_\w+)?|ExponentialDecay|CosineDecay)"
)
_ARGUMENTS = re.compile(
    r"(?:Seq2Seq)?TrainingArguments|(?:SFT|DPO|ORPO|KTO|CPO|GRPO|PPO|Reward|RLOO|GKD|SimPO)Config|TrainingConfig|TrainConfig"
)
_AGENTS = re.compile(r"(?:Maskable|Recurrent)?PPO\d?|DQN|SAC|TD3|A2C|DDPG|TQC|TRPO|QRDQN|ARS")
# The call -> the section its arguments stand in.
_SECTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_OPTIMIZERS, "optimizer"),
    (_SCHEDULERS, "scheduler"),
    (_ARGUMENTS, ""),
    (_AGENTS, ""),
    (re.compile(r"LoraConfig|get_peft_model"), "lora"),
    (re.compile(r"(?:Torch|Stateful)?DataLoader"), ""),
    (re.compile(r"(?:pl\.)?Trainer|fit|fit_generator"), ""),
    (
        re.compile(
            r"(?:CrossEntropy|NLL|BCEWithLogits|LabelSmoothing\w*|Focal|SupCon|NTXent|InfoNCE|Triplet\w*)Loss\w*"
        ),
        "loss",
    ),
    (re.compile(r"(?:\w*EMA|ExponentialMovingAverage|ModelEma\w*)"), "ema"),
    (re.compile(r"(?:GradScaler|EarlyStopping)"), ""),
    (re.compile(r"Dropout(?:2d|1d|3d)?"), "dropout"),
)
_TAKEN: dict[str, frozenset[str]] = {
    "dataloader": frozenset({"batch_size", "num_workers", "shuffle", "drop_last"}),
    "fit": frozenset({"epochs", "batch_size", "steps_per_epoch"}),
    "gradscaler": frozenset({"init_scale", "growth_interval"}),
    "earlystopping": frozenset({"patience", "mode", "min_delta"}),
}


def parse_script(text: str, file: str) -> ConfigTree:
    """The settings of a script as a configuration."""
    leaves: list[Leaf] = []
    if len(text) < MOST_TEXT:
        source = Source(text, file, 1)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
            for path, node, note in _found(tree):
                leaf = _leaf(source, path, node, note)
                if leaf is not None:
                    leaves.append(leaf)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return ConfigTree(file, "code", _once(leaves), kind="read from the code")


def _found(tree: ast.Module) -> Iterator[tuple[tuple[str, ...], ast.expr, str | None]]:
    constants = _constants(tree)
    for count, node in enumerate(ast.walk(tree)):
        if count > MOST_NODES:
            return
        if isinstance(node, ast.Call):
            for path, value, note in _of_call(node):
                told = constants.get(value.id) if isinstance(value, ast.Name) else value
                if told is not None:
                    yield path, told, note
        elif isinstance(node, ast.ClassDef) and _is_options(node):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
                    default = _default(line.value)
                    if default is not None:
                        yield (line.target.id,), default, DEFAULT
    for name, value in constants.items():
        if name.isupper() or len(name) > 1:
            yield (name,), value, None


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names bound once, at the top or in the main part, to a literal."""
    held: dict[str, ast.expr | None] = {}
    bodies = [tree.body] + [node.body for node in tree.body if isinstance(node, (ast.If, ast.FunctionDef))]
    for body in bodies:
        for line in body:
            if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
                name = line.targets[0].id
                held[name] = None if name in held else line.value
    return {name: value for name, value in held.items() if value is not None and literal_of(value) is not None}


def _is_options(node: ast.ClassDef) -> bool:
    names = [ast.unparse(one) for one in (*node.decorator_list, *node.bases)]
    return any("dataclass" in name or "BaseModel" in name or "NamedTuple" in name for name in names)


def _default(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Call) and _name(node.func) in ("field", "Field"):
        return next((k.value for k in node.keywords if k.arg == "default"), None)
    return node


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _of_call(node: ast.Call) -> Iterator[tuple[tuple[str, ...], ast.expr, str | None]]:
    name = _name(node.func)
    if name == "add_argument":
        yield from _option(node)
    elif name in ("clip_grad_norm_", "clip_grad_norm", "clip_by_global_norm"):
        limit = next((k.value for k in node.keywords if k.arg in ("max_norm", "clip_norm")), None)
        limit = limit or (node.args[-1] if 1 <= len(node.args) <= 2 and not node.keywords else None)
        if limit is not None:
            yield ("max_grad_norm",), limit, None
    elif name == "option" and node.args:  # click
        yield from _option(node)
    else:
        yield from _arguments(node, name)


def _arguments(node: ast.Call, name: str) -> Iterator[tuple[tuple[str, ...], ast.expr, str | None]]:
    section = next((section for pattern, section in _SECTIONS if pattern.fullmatch(name)), None)
    if section is None:
        return
    above = (section,) if section else ()
    if section in ("optimizer", "scheduler"):
        yield (section, "name"), ast.copy_location(ast.Constant(name), node), None
        if section == "optimizer" and len(node.args) == 2:
            yield (section, "lr"), node.args[1], None
    if section == "dropout":
        if len(node.args) == 1:
            yield ("dropout",), node.args[0], None
        return
    taken = _TAKEN.get(name.lower())
    for keyword in node.keywords:
        if keyword.arg is not None and (taken is None or keyword.arg in taken):
            yield (*above, keyword.arg), keyword.value, None


def _option(node: ast.Call) -> Iterator[tuple[tuple[str, ...], ast.expr, str | None]]:
    flags = [literal_of(a) for a in node.args]
    long = next((f for f in flags if isinstance(f, str) and f.startswith("--")), None)
    default = next((k.value for k in node.keywords if k.arg == "default"), None)
    if long is not None and default is not None:
        yield (long.lstrip("-").split("/")[0],), default, DEFAULT


def literal_of(node: ast.expr) -> Any:
    """A number, text or list of them; None for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Pow, ast.Div)):
            left, right = literal_of(node.left), literal_of(node.right)
            if (
                isinstance(left, (int, float))
                and isinstance(right, (int, float))
                and abs(left) < 1e9
                and abs(right) < 30
            ):
                try:
                    return {ast.Mult: left * right, ast.Pow: left**right, ast.Div: left / (right or 1)}[type(node.op)]
                except (ArithmeticError, KeyError):
                    return None
        return None
    return value if isinstance(value, (int, float, str, bool, list, tuple)) else None


def _leaf(source: Source, path: tuple[str, ...], node: ast.expr, note: str | None) -> Leaf | None:
    value = literal_of(node)
    if value is None or not hasattr(node, "lineno"):
        return None
    if isinstance(value, tuple):
        value = list(value)
    return Leaf(path, value, str(value), source.file, node.lineno, node.col_offset + 1, note=note)


def _once(leaves: list[Leaf]) -> tuple[Leaf, ...]:
    """One leaf a path. Two different values: neither is believed. Lists become items."""
    by_path: dict[tuple[Any, ...], list[Leaf]] = {}
    for leaf in leaves:
        by_path.setdefault(leaf.path, []).append(leaf)
    out: list[Leaf] = []
    for path, held in by_path.items():
        if len({repr(leaf.value) for leaf in held}) > 1:
            continue
        one = held[0]
        if isinstance(one.value, list):
            for at, item in enumerate(one.value[:100]):
                out.append(Leaf((*path, at), item, str(item), one.file, one.line, one.column, note=one.note))
        else:
            out.append(one)
    return tuple(out)
