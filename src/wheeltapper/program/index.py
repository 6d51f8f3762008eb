"""Build a Program: which functions and classes there are, and where every name is read and written."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from functools import cache

from wheeltapper.program import vocabulary as words
from wheeltapper.program.outline import DOTTED, OF_CONFIG, Outline, outline_of, texts_of
from wheeltapper.program.program import Func, Program, Rest, callee, dotted_name
from wheeltapper.program.scripts import Launch, Script, Sources

QUIET_DECORATORS = {
    "property", "staticmethod", "classmethod", "dataclass", "no_grad", "inference_mode", "abstractmethod", "contextmanager",
    "lru_cache", "cache", "cached_property", "wraps", "setter", "overload", "override", "final", "total_ordering", "compile", "jit",
}  # fmt: skip
MAY_TRAIN = re.compile(
    r"backward\(|Trainer\b|LightningModule|\.fit(?:_generator|_one_cycle)?\(|Learner\b|Runner\b|\.learn\(|fine_tune\(|YOLO\(|(?:lgb|xgb|xgboost|lightgbm)\.train\(|value_and_grad|_grad\("
    r"|partial_fit\(|optim_wrapper\s*=\s*dict|^optimizer\s*=\s*dict|LightningCLI\(|Engine\(|supervised_trainer\(|\bgrads?\w*\s*=",
    re.M,
)  # cheap; objects.trains decides
OF_A_RUNNER = re.compile(r"^(optim_wrapper|optimizer)\s*=\s*dict\(", re.M)  # a configuration of the mm libraries is a program of its own
MAY_TRAIN_BY_NAME = re.compile(
    r"backward$|Trainer$|LightningModule$|^fit(_generator|_one_cycle)?$|Learner$|Runner$|^learn$|^fine_tune$|^YOLO$|^train$|_grad$|^grads?$|^partial_fit$|^LightningCLI$|^Engine$|supervised_trainer$"
)
# A script without any of these (layers of a model, reading of pictures) is not followed in a large program: it is then code that cannot be seen,
# into which a value goes as it goes into a library. The names in it count as mentioned.
_BOXES = (
    "args",
    "opt",
    "opts",
    "options",
    "cfg",
    "conf",
    "config",
    "hparams",
    "hps",
    "hyp",
    "params",
    "settings",
    "FLAGS",
)
TELLING = (
    "backward(", "Trainer", "LightningModule", ".fit(", "Learner", "Runner", "optim", "zero_grad", "ched", "clip_grad", "autocast",
    "GradScaler", "add_argument", "click", "DataLoader", "Sampler", "seed", "accum", "warmup", "learning_rate", "lerp", "mul_(",
    "load(", "loads(", "dataclass", "hydra", "subprocess", "setattr", "exec(", "globals(", "vars(",
    *(box + mark for box in _BOXES for mark in ".["),  # a configuration may be changed there
)  # fmt: skip
TELLING_WORDS = {"lr", "lrs", "weight_decay", "ema", "EMA", "Ema", "eval"}
_WORD = re.compile(r"[A-Za-z_]\w*")
NO_ENTRY = re.compile(r"^(test_.*|.*_test|conftest|setup|__init__)$")
TRAINS_BY_NAME = re.compile(r"train|finetune|fit|^main", re.I)
# Nodes of all programs together, a script counted once for each. 100,000 take about a second (LOG.md), so that a folder
# with a whole framework in it is told about within half a minute.
MAX_WORK = 2_500_000
MAX_FOLLOWED = 60_000  # nodes of one program, up to which scripts without a telling word are read too: half a second
Outlines = dict[Script, Outline]


def programs_of(sources: Sources) -> tuple[list[Program], int]:
    """One program for each entry script that may train: one that runs when started, or that nothing else imports; and
    how many such scripts there were too many."""
    by_tail = defaultdict(list)
    for script in sources.scripts:
        for cut in range(len(script.module)):
            by_tail[".".join(script.module[cut:])].append(script)
    uses: dict[str, list[Script]] = {}
    for script in sources.scripts:
        found = [s for wanted in _imported_modules(script) for s in _nearest(script, by_tail.get(wanted, []))]
        uses[script.name] = list({s.name: s for s in found}.values())
    imported = {s.name for found in uses.values() for s in found}
    columns = zip(*(s.module[:-1] for s in sources.scripts), strict=False)
    common = len(list(itertools.takewhile(lambda column: len(set(column)) == 1, columns)))
    entries = [s for s in sources.scripts if (starts(s) or s.name not in imported) and _may_enter(s, common)]
    closures: dict[Script, tuple[Script, ...]] = {}
    for entry in entries:
        closure = {entry.name: entry}
        queue = [entry]
        while queue:
            for other in uses[queue.pop().name]:
                if other.name not in closure:
                    closure[other.name] = other
                    queue.append(other)
        if any(MAY_TRAIN.search(script.text) for script in closure.values()):
            closures[entry] = tuple(closure.values())
    every = {s for found in closures.values() for s in found}
    quiet = {s: names for s in every if not any(word in s.text for word in TELLING) and not _tells(names := _names(s))}
    followed = {e: _followed(e, found, set(quiet)) for e, found in closures.items()}
    unseen = {e: [quiet[s] for s in found if s not in followed[e]] for e, found in closures.items()}
    outlines: Outlines = {}
    chosen, left = within_budget(followed)
    programs = []
    for entry, scripts in followed.items():
        if entry in chosen:
            mentioned = set().union(*unseen[entry])
            programs.append(program_of(entry, scripts, sources.launches, outlines, mentioned))
    return [p for p in programs if p is not None], left


def _followed(entry: Script, closure: tuple[Script, ...], quiet: set[Script]) -> tuple[Script, ...]:
    """The scripts of a program that are read: those that tell something of its training, and of the others (layers, the
    reading of data) as many as the budget allows, smallest first."""
    telling = [s for s in closure if s is entry or s not in quiet]
    work = sum(len(s.parents) for s in telling)
    more = set()
    for script in sorted((s for s in closure if s not in telling), key=lambda s: len(s.parents)):
        work += len(script.parents)
        if work > MAX_FOLLOWED:
            break
        more.add(script)
    return tuple(s for s in closure if s in more or s is entry or s not in quiet)


def _may_enter(script: Script, common: int) -> bool:
    """Whether a script can be what a person starts to train: no test, no setup, and something happens when it runs.
    `common` parts of the path belong to all scripts and say nothing of this one."""
    parts = script.module[common:]
    if NO_ENTRY.match(parts[-1] if parts else "") or any(part in ("tests", "test", "docs") for part in parts[:-1]):
        return False
    if starts(script) or "backward(" in script.text or "LightningModule" in script.text or OF_A_RUNNER.search(script.text):
        return True
    defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    return any(not isinstance(n, defined) and _does(n) for n in script.tree.body)


def _does(statement: ast.stmt) -> bool:
    """A statement at the top of a script that calls something for what it does."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        return _trains(callee(statement.value))  # history = model.fit(...)
    return any(isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) for n in ast.walk(statement)) or (
        isinstance(statement, ast.For | ast.While)
    )


def within_budget(closures: dict[Script, tuple[Script, ...]]) -> tuple[set[Script], int]:
    """The entries that are read, and how many are left out: those named for training first, as long as the work lasts."""
    work = 0
    chosen: set[Script] = set()
    for entry in sorted(closures, key=lambda s: not TRAINS_BY_NAME.search(s.module[-1] if s.module else "")):
        work += sum(len(script.parents) for script in closures[entry])
        if chosen and work > MAX_WORK:
            break
        chosen.add(entry)
    return chosen, len(closures) - len(chosen)


def _nearest(script: Script, candidates: list[Script]) -> list[Script]:
    """Of several modules of one name, those that share most of their path with the importer."""

    def shared(other: Script) -> int:
        pairs = zip(script.module[:-1], other.module[:-1], strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(script.module), len(other.module)) - 1)

    others = [c for c in candidates if c is not script]
    best = max(map(shared, others), default=0)
    return [c for c in others if shared(c) == best]


def program_of(
    entry: Script,
    scripts: tuple[Script, ...],
    launches: tuple[Launch, ...] = (),
    outlines: Outlines | None = None,
    mentioned: set[str] | None = None,
) -> Program | None:
    """Put the outlines of the scripts together, and of what is written in them only what the entry can come to.

    `mentioned` are names in scripts that are not followed. None if nothing the entry can come to may train: that is
    asked before the dear parts.
    """
    outlines = {} if outlines is None else outlines
    program = Program(entry, scripts, launches)
    parts = []
    for script in scripts:
        if script not in outlines:
            outlines[script] = outline_of(script)
        part = outlines[script]
        parts.append(part)
        alone = part.alone
        program.modules.update(".".join(script.module[cut:]) for cut in range(len(script.module)))
        program.imported[script.name] = alone.imported[script.name]
        program.script_of.update(alone.script_of)
        program.func_of.update(alone.func_of)
        program.locals_of.update(alone.locals_of)
        program.scopes.update(alone.scopes)
        program.written_on.update(part.written_on)
        for name, funcs in alone.functions.items():
            program.functions[name] += funcs
        for cls in part.classes:
            program.classes.setdefault(cls.name, cls)
    program.reachable = _reachable(program, parts, mentioned or set())
    if not _may_train(program, parts):
        return None
    looking = {scope for part in parts for scope in part.lookups}
    program.accessors = {n for n, funcs in program.functions.items() if all(f.scope in looking for f in funcs)}
    _gather(program, parts)
    for call in dict.fromkeys(program.all_calls()):
        _bind(program, call)
    return program


def _names(script: Script) -> frozenset[str]:
    return frozenset(_WORD.findall(script.text))


def _tells(names: frozenset[str]) -> bool:
    return not TELLING_WORDS.isdisjoint(names) or any("_ema" in name or name.startswith("ema_") for name in names)


@cache
def _trains(name: str) -> bool:
    return MAY_TRAIN_BY_NAME.search(name) is not None


def _may_train(program: Program, parts: list[Outline]) -> bool:
    """Does anything that the entry can come to have a name of training in it?"""
    buried = program.buried()
    return OF_A_RUNNER.search(program.entry.text) is not None or any(
        _trains(name)
        for part in parts
        for scope, notes in part.notes.items()
        if scope not in buried
        for name in notes.mentions
    )


def _gather(program: Program, parts: list[Outline]) -> None:
    buried = program.buried()
    for part in parts:
        for scope, notes in part.notes.items():
            if scope in buried:
                continue
            program.live.append(notes.nodes)
            if scope is not None:
                program.mentions[scope] = notes.mentions
            for rest, node in notes.reads:
                program.reads[rest].append(node)
            for rest, value in notes.writes:
                program.writes[rest].append(value)
            program.opaque.update(notes.opaque)
            for name, call in notes.calls:
                program.calls[name].append(call)
    for name, calls in list(program.calls.items()):
        for call in calls:
            real = program.real_name(call)
            if real != name and (real in program.classes or real in program.functions) and program.is_ours(name, call):
                program.calls[real].append(call)
    for name in program.accessors:
        for call in program.calls.get(name, []):
            for text in texts_of(call):
                if DOTTED.match(text):
                    for word in text.split("."):
                        program.reads["f", word].append(call)


def starts(script: Script) -> bool:
    return any(isinstance(n, ast.If) and "__name__" in ast.unparse(n.test) for n in script.tree.body)


def _imported_modules(script: Script) -> set[str]:
    names: set[str] = set()
    for node in script.parents:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names.add(base)
            names.update(f"{base}.{alias.name}" if base else alias.name for alias in node.names)
    return names - {""}


def _reachable(program: Program, parts: list[Outline], elsewhere: set[str]) -> set[str]:
    """Scopes of the functions that starting the entry can come to, by the names its code mentions.

    An entry imports a package for one of its functions; what the others of that package read is no use
    of this program's options. A function counts as soon as its name stands anywhere in reachable code,
    a method as soon as its class does too. A class built on one from outside may have any of its methods
    called from there. Names made at run time, or no start to begin from, make everything reachable.
    """
    every = {f.scope for funcs in program.functions.values() for f in funcs}
    if not starts(program.entry):
        return every
    inside = {scope: notes.mentions for part in parts for scope, notes in part.notes.items() if scope is not None}
    mentioned = {name for part in parts for name in part.notes[None].mentions} | elsewhere
    families = _families(program)
    reached: set[str] = set()
    while True:
        fresh = {s for s in every - reached if _is_mentioned(program, program.scopes[s], mentioned, reached, families)}
        if not fresh:
            return reached
        reached |= fresh
        for scope in fresh:
            mentioned |= inside.get(scope, set())


def _families(program: Program) -> dict[str, set[str]]:
    """Each class with those built right on it."""
    families: dict[str, set[str]] = defaultdict(set)
    for cls in program.classes.values():
        families[cls.name].add(cls.name)
        for base in cls.bases:
            families[base].add(cls.name)
    return families


def _is_mentioned(
    program: Program, func: Func, mentioned: set[str], reached: set[str], families: dict[str, set[str]]
) -> bool:
    outer = program.func_of[func.node]
    if outer is not None and outer.scope not in reached:
        return False
    if any(registers(d) for d in getattr(func.node, "decorator_list", [])):
        return True
    if func.owner is None:
        return func.name in mentioned
    cls = program.classes.get(func.owner)
    if cls is None or any(registers(d) for d in cls.node.decorator_list):
        return True
    if not families[func.owner] & mentioned:
        return False
    outside = any(base not in program.classes and base not in words.INERT_BASES for base in cls.bases)
    if outside or func.name in mentioned or func.name.startswith("__") or func.name == "forward":
        return True
    return OF_CONFIG + func.name in mentioned and bool(getattr(func.node, "decorator_list", []))


def registers(decorator: ast.expr) -> bool:
    """A decorator that may hand the function or class to something else; the common ones do not."""
    return dotted_name(decorator).split(".")[-1] not in QUIET_DECORATORS


def _bind(program: Program, call: ast.Call) -> None:
    """Arguments are writes of the parameters they are given for."""
    funcs, _ = program.targets(call)
    for func in funcs:
        params = func.params
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        for position, value in enumerate(() if starred else call.args):
            if position < len(params):
                program.writes["v", func.scope, params[position]].append(value)
        for keyword in call.keywords:
            if keyword.arg is not None:
                program.writes["v", func.scope, keyword.arg].append(keyword.value)
        if starred or any(k.arg is None for k in call.keywords):
            for name in (*params, *func.keyword_only):
                program.opaque.add(("v", func.scope, name))


def parameter_default(func: Func, name: str) -> ast.expr | None:
    """The default of a parameter, as written."""
    a = func.node.args
    positional = [*a.posonlyargs, *a.args]
    for param, default in zip(reversed(positional), reversed(a.defaults), strict=False):
        if param.arg == name:
            return default
    for param, value in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if param.arg == name:
            return value
    return None


__all__ = ["Rest", "parameter_default", "program_of", "programs_of"]
