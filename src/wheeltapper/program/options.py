"""The options a program declares: argparse, dataclasses, click and typer, keys of a config dictionary.

An option is a promise to the person who sets it. `options_of` finds the promises with their place and
default; `Usage` says what becomes of each.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any, Literal

from wheeltapper.program import vocabulary as words
from wheeltapper.program.flow import Flow
from wheeltapper.program.program import Class, Func, Program, Rest, argument, callee, constant_text
from wheeltapper.program.trace import Trace

Kind = Literal["argparse", "dataclass", "click", "dict"]
PARSES = {"parse_args", "parse_known_args", "parse_intermixed_args"}
DATACLASS_PARSERS = {
    "HfArgumentParser", "ArgumentParser", "cli", "parse", "wrap", "CLI", "TypedArgumentParser", "Tap", "parse_args_into_dataclasses",
}  # fmt: skip
CONFIG_CLASS = re.compile(r"(config|args|arguments|options|hparams|hyperparams|params|settings|cfg)$", re.I)
ABSENT = object()
MAKES_OBJECTS = (words.BOXES | {"setattr", "create", "structured"}) - {
    "vars",
    "dict",
    "copy",
    "deepcopy",
    "asdict",
    "OrderedDict",
    "Dict",
}


@dataclass(frozen=True, eq=False)
class Option:
    """One declared option. `name` is the attribute or key the program reads it by."""

    name: str
    flag: str  # as the user writes it: --lr, lr
    kind: Kind
    node: ast.AST
    default: Any = ABSENT  # a literal; ABSENT where there is none or it is computed
    numeric: bool = False
    rest: Rest = ("f", "")
    holder: ast.AST | None = None  # the dictionary or class it is a member of


@dataclass(frozen=True)
class Usage:
    """What becomes of an option. `why` says what kept us from judging, when something did."""

    option: Option
    trace: Trace
    reads: int
    escapes: tuple[tuple[ast.AST, str], ...] = ()

    @property
    def acts(self) -> bool:
        if self.trace.acts or self.escapes or (self.trace.named and not self.option.numeric):
            return True
        # Deciding whether a line is printed is all that a log interval is for, and nothing for a clip norm.
        return bool(self.trace.decides_shows) and not words.CORE.match(self.option.name)


def options_of(program: Program) -> list[Option]:
    found = [*_argparse(program), *_click(program), *_dataclasses(program), *_dict_keys(program)]
    ranks = {"argparse": 0, "click": 0, "dataclass": 1, "dict": 2}  # the user's own words first
    return sorted(found, key=lambda o: (ranks[o.kind], program.script_of[o.node].name, getattr(o.node, "lineno", 0)))


def usages_of(program: Program, flow: Flow, options: list[Option]) -> list[Usage]:
    """Follow every option. Boxes first: a configuration that leaves the program takes all its options along."""
    roots = _argparse_roots(program)
    whole = flow.trace([(node, "box") for node in roots])
    flow.boxes |= whole.rests
    escapes = (*whole.acts, *evaluated(program))
    out = []
    traces: dict[Rest, Trace] = {}  # several parsers of one program declare the same names
    held: dict[ast.AST, tuple[tuple[ast.AST, str], ...]] = {}
    for option in options:
        if option.rest not in traces:
            traces[option.rest] = flow.trace([], [(option.rest, "value")], to_first_act=True)
        trace = traces[option.rest]
        left: tuple[tuple[ast.AST, str], ...] = ()
        if option.kind == "argparse":
            left = escapes if roots else ((option.node, "the parser's result was not found"),)
        elif option.kind == "dataclass":
            assert isinstance(option.holder, ast.ClassDef)
            if option.holder not in held:
                held[option.holder] = tuple(_class_escapes(program, flow, option.holder.name))
            left = held[option.holder]
        elif option.kind == "dict":
            assert isinstance(option.holder, ast.Dict)
            if option.holder not in held:
                held[option.holder] = tuple(flow.trace([(option.holder, "box")]).acts)
            left = held[option.holder]
        reads = len(program.reads.get(option.rest, []))
        out.append(Usage(option, trace, reads, left))
    return out


def evaluated(program: Program) -> list[tuple[ast.AST, str]]:
    """Text made at run time and evaluated: `eval(f"args.{name}")` reads any option."""
    calls = [c for name in ("eval", "exec") for c in program.calls.get(name, []) if isinstance(c.func, ast.Name)]
    return [(call, "evaluates text") for call in calls if call.args and not isinstance(call.args[0], ast.Constant)]


# -- argparse -----------------------------------------------------------------------------------------


def _argparse(program: Program) -> list[Option]:
    out = []
    for call in program.calls.get("add_argument", []):
        flags = [text for a in call.args if (text := constant_text(a)) is not None]
        if not flags or (constant := constant_text(argument(call, "action"))) in ("help", "version"):
            continue
        long = next((f for f in flags if f.startswith("--")), flags[0])
        dest = constant_text(argument(call, "dest")) or long.lstrip("-").replace("-", "_")
        given = argument(call, "type")
        kind = given.id if isinstance(given, ast.Name) else ""
        default = literal(argument(call, "default"))
        if default is ABSENT and constant in ("store_true", "store_false"):
            default = constant == "store_false"
        numeric = kind in ("int", "float") or (isinstance(default, int | float) and not isinstance(default, bool))
        out.append(Option(dest, long, "argparse", call, default, numeric, ("f", dest)))
    return out


def _argparse_roots(program: Program) -> list[ast.expr]:
    """The namespaces: what parse_args() returns (the first half of what parse_known_args() does)."""
    roots: list[ast.expr] = []
    for name in PARSES:
        for call in program.calls.get(name, []):
            if program.targets(call)[0]:
                continue  # a function of the program that happens to be called parse_args
            up = program.parent(call)
            if name == "parse_known_args" and isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Tuple):
                first = up.targets[0].elts[0]
                rest = program.rest_of(first)
                roots += program.reads.get(rest, []) if rest else []
            elif name == "parse_known_args" and isinstance(up, ast.Subscript):
                roots.append(up)
            else:
                roots.append(call)
    return roots


# -- click, typer -------------------------------------------------------------------------------------


def _click(program: Program) -> list[Option]:
    out = []
    for funcs in program.functions.values():
        for func in funcs:
            for decorator in getattr(func.node, "decorator_list", []):
                if (
                    isinstance(decorator, ast.Call)
                    and program.origin(decorator.func).startswith("click.")
                    and callee(decorator) == "option"
                ):
                    option = _click_option(program, func, decorator)
                    if option is not None:
                        out.append(option)
    return out


def _click_option(program: Program, func: Func, decorator: ast.Call) -> Option | None:
    texts = [t for a in decorator.args if (t := constant_text(a)) is not None]
    plain = [t for t in texts if not t.startswith("-")]
    long = next((t for t in texts if t.startswith("--")), None)
    if long is None:
        return None
    name = plain[0] if plain else long.split("/")[0].lstrip("-").replace("-", "_")
    if name not in func.params and name not in func.keyword_only:
        return None  # taken by **kwargs: not followed
    default = literal(argument(decorator, "default"))
    numeric = isinstance(default, int | float) and not isinstance(default, bool)
    return Option(
        name, long, "click", decorator, default, numeric, ("v", func.scope, name), program.script_of[decorator].tree
    )


# -- dataclasses --------------------------------------------------------------------------------------


def _dataclasses(program: Program) -> list[Option]:
    out = []
    for cls in program.classes.values():
        if not cls.is_dataclass or not set(cls.bases) <= {"object"} | set(program.classes):
            continue
        parsed = _is_parsed(program, cls)
        if not parsed and not (CONFIG_CLASS.search(cls.name) and program.calls.get(cls.name)):
            continue  # not a config class, or one that this program never makes
        for item in cls.fields:
            assert isinstance(item.target, ast.Name)
            name = item.target.id
            if name.startswith("_") or (not parsed and not words.KNOB.search(name)):
                continue
            default = literal(item.value) if item.value is not None else ABSENT
            numeric = ast.unparse(item.annotation) in ("int", "float")
            flag = f"--{name}" if parsed else f"{cls.name}.{name}"
            out.append(Option(name, flag, "dataclass", item, default, numeric, ("f", name), cls.node))
    return out


def _is_parsed(program: Program, cls: Class) -> bool:
    for name in DATACLASS_PARSERS:
        for call in program.calls.get(name, []):
            inside = {
                n.id
                for a in (*call.args, *(k.value for k in call.keywords))
                for n in ast.walk(a)
                if isinstance(n, ast.Name)
            }
            if cls.name in inside:
                return True
    return False


def _class_escapes(program: Program, flow: Flow, name: str) -> list[tuple[ast.AST, str]]:
    """Ways an instance of a config class leaves the program, however it was made."""
    starts: list[ast.expr] = list(program.reads.get(("v", "", name), []))
    annotated = [rest for rest, text in flow.annotations if name in text]
    trace = flow.trace([], [*((rest, "box") for rest in annotated), (("i", name), "box")])
    escapes = list(trace.acts)
    parsed = False
    for node in starts:
        up = program.parent(node)
        if isinstance(up, ast.Call) and up.func is node:
            continue
        parsed = parsed or isinstance(up, ast.Call | ast.Tuple | ast.List)
    if parsed:
        position = None
        for call in program.calls.get("HfArgumentParser", []):
            classes = (
                call.args[0].elts if call.args and isinstance(call.args[0], ast.Tuple | ast.List) else call.args[:1]
            )
            names = [c.id for c in classes if isinstance(c, ast.Name)]
            position = names.index(name) if name in names else position
        results = _parse_results(program, position)
        if not results:
            return [*escapes, (program.classes[name].node, "filled by a parser whose result was not found")]
        escapes += flow.trace([(r, "box") for r in results]).acts
    return escapes


def _parse_results(program: Program, position: int | None) -> list[ast.expr]:
    found: list[ast.expr] = []
    for method in (
        "parse_args_into_dataclasses",
        "parse_json_file",
        "parse_yaml_file",
        "parse_dict",
        "cli",
        "parse",
        "parse_args",
    ):
        for call in program.calls.get(method, []):
            up = program.parent(call)
            if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Tuple) and position is not None:
                parts = up.targets[0].elts
                rest = program.rest_of(parts[position]) if position < len(parts) else None
                found += program.reads.get(rest, []) if rest else [call]
            else:
                found.append(call)
    return found


# -- config dictionaries ------------------------------------------------------------------------------


def _dict_keys(program: Program) -> list[Option]:
    """Training knobs among the keys of a dictionary that the program keeps as its configuration.

    Only where another key of the same dictionary is read by name somewhere: then the dictionary is what
    the program is steered by, and not a record made for a logger.
    """
    out = []
    for node in program.live_nodes():
        if not isinstance(node, ast.Dict) or len(node.keys) < 3 or not _is_config_dict(program, node):
            continue
        keys = [(k, t) for k in node.keys if (t := constant_text(k)) is not None]
        read = [t for _, t in keys if any(_reads_key(program, r) for r in program.reads.get(("f", t), []))]
        if len(read) < 2:
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            text = constant_text(key)
            if key is None or text is None or not words.KNOB.search(text):
                continue
            fallback = (
                value.args[1]
                if isinstance(value, ast.Call) and callee(value) == "get" and len(value.args) == 2
                else value
            )
            number = literal(fallback)
            numeric = isinstance(number, int | float) and not isinstance(number, bool)
            out.append(Option(text, text, "dict", key, number, numeric, ("f", text), node))
    return out


def _is_config_dict(program: Program, node: ast.Dict) -> bool:
    up = program.parent(node)
    if isinstance(up, ast.Assign) and len(up.targets) == 1:
        rest = program.rest_of(up.targets[0])
        return rest is not None and bool(words.CONFIG_NAMES.match(rest[-1])) and rest[-1] not in ("kwargs", "params")
    if isinstance(up, ast.Return):
        func = program.func_of[node]
        return func is not None and bool(re.search(r"config|cfg|hparams|settings", func.name, re.I))
    return False


def _reads_key(program: Program, node: ast.expr) -> bool:
    """A read by key (`c["x"]`, `c.get("x")`) that is not itself only copied into a dictionary under the same name.

    A read by attribute is one of a dictionary only where the program makes objects of dictionaries.
    """
    if isinstance(node, ast.Attribute) and not any(name in program.calls for name in MAKES_OBJECTS):
        return False
    return isinstance(node, ast.Subscript | ast.Call | ast.Attribute) and not isinstance(program.parent(node), ast.Dict)


def literal(node: ast.expr | None) -> Any:
    """The value of a literal expression, or ABSENT."""
    if node is None:
        return ABSENT
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ABSENT
