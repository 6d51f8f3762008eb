"""A program: one entry script and the modules of the repository it imports, indexed for following values.

A repository holds several training scripts; an option of one that is read only by another is still
never used. So everything is asked of one entry and its import closure, never of the whole folder.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from wheeltapper.finding import Place
from wheeltapper.program.scripts import Launch, Script

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
# Where a value can rest: a variable of a function ("v", scope, name), any attribute, key or field of that
# name ("f", name), what functions of that name return ("r", name), an instance of a class ("i", name).
# Fields are merged by name over the whole program: it can only make more of a value look used.
Rest = tuple[str, ...]
MANY = 24  # methods of one name (forward, reset) beyond which a call of an unknown object is any object's


@dataclass(eq=False)
class Func:
    """A function or method of the program."""

    node: Function
    script: Script
    name: str
    scope: str
    owner: str | None  # the class it is a method of

    @cached_property
    def params(self) -> list[str]:
        a = self.node.args
        names = [p.arg for p in (*a.posonlyargs, *a.args)]
        static = any(getattr(d, "id", "") == "staticmethod" for d in getattr(self.node, "decorator_list", []))
        return names[1:] if self.owner and names and not static else names

    @property
    def body(self) -> list[ast.stmt]:
        """Its statements; a lambda has none."""
        return self.node.body if isinstance(self.node.body, list) else []

    @property
    def keyword_only(self) -> list[str]:
        return [p.arg for p in self.node.args.kwonlyargs]


@dataclass(eq=False)
class Class:
    node: ast.ClassDef
    script: Script
    name: str
    bases: tuple[str, ...]  # last component of each base
    methods: dict[str, Func] = field(default_factory=dict)

    @property
    def is_dataclass(self) -> bool:
        return any("dataclass" in ast.unparse(d) or "attr" in ast.unparse(d) for d in self.node.decorator_list)

    @property
    def fields(self) -> list[ast.AnnAssign]:
        return [s for s in self.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


@dataclass(eq=False)
class Program:
    """The index. Built once by `index.program_of`; every check reads it and none changes it."""

    entry: Script
    scripts: tuple[Script, ...]
    launches: tuple[Launch, ...] = ()
    functions: dict[str, list[Func]] = field(default_factory=lambda: defaultdict(list))
    classes: dict[str, Class] = field(default_factory=dict)
    calls: dict[str, list[ast.Call]] = field(default_factory=lambda: defaultdict(list))
    opaque: set[Rest] = field(default_factory=set)  # also written in ways we do not follow (loops, with, +=)
    reads: dict[Rest, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[Rest, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    written_on: dict[ast.expr, str] = field(default_factory=dict, repr=False)  # value -> x of `x.name = value`
    script_of: dict[ast.AST, Script] = field(default_factory=dict, repr=False)
    func_of: dict[ast.AST, Func | None] = field(default_factory=dict, repr=False)
    locals_of: dict[str, set[str]] = field(default_factory=dict, repr=False)
    scopes: dict[str, Func] = field(default_factory=dict, repr=False)
    reachable: set[str] = field(default_factory=set, repr=False)  # scopes of functions the entry can come to
    accessors: set[str] = field(default_factory=set)  # functions that look up a name they are given
    live: list[list[ast.AST]] = field(default_factory=list, repr=False)  # nodes the entry can come to, by function
    mentions: dict[str, set[str]] = field(default_factory=dict, repr=False)  # scope -> names that stand in it
    imported: dict[str, dict[str, str]] = field(default_factory=dict)  # script -> local name -> dotted origin
    modules: set[str] = field(default_factory=set)  # every tail of every module path: "train", "pkg.train"

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.script_of[node].parents.get(node)

    def place(self, node: ast.AST) -> Place:
        return Place(self.script_of[node].name, getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)

    def variable(self, name: str, node: ast.AST) -> Rest:
        """The variable a name means at `node`: the innermost function that binds it, else the globals."""
        func = self.func_of[node]
        while func is not None:
            if name in self.locals_of[func.scope]:
                return ("v", func.scope, name)
            func = self.func_of.get(func.node)
        return ("v", "", name)

    def rest_of(self, node: ast.expr) -> Rest | None:
        """Where the object an expression names rests, if it names one."""
        match node:
            case ast.Name(id=name):
                return self.variable(name, node)
            case ast.Attribute(attr=name):
                return ("f", name)
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                return ("f", name)
            case ast.Call() if (cls := self.class_called(node)) is not None:
                return ("i", cls.name)
        return None

    def origin(self, node: ast.expr) -> str:
        """The dotted name of a callee with import aliases undone: `optim.SGD` -> `torch.optim.SGD`."""
        dotted = dotted_name(node)
        head, _, tail = dotted.partition(".")
        whole = self.imported.get(self.script_of[node].name, {}).get(head, head)
        return f"{whole}.{tail}" if tail else whole

    def is_ours(self, name: str, node: ast.AST) -> bool:
        """Whether a bare name at `node` is defined in the program rather than imported from outside."""
        origin = self.imported.get(self.script_of[node].name, {}).get(name)
        if origin is None:
            return True
        whole = origin.lstrip(".")
        return whole in self.modules or whole.rpartition(".")[0] in self.modules

    def real_name(self, call: ast.Call) -> str:
        """The name that what is called was defined under: `from x import A as B` makes `B()` a call of A."""
        name = callee(call)
        if not isinstance(call.func, ast.Name):
            return name
        return self.imported.get(self.script_of[call].name, {}).get(name, name).rpartition(".")[2]

    def class_called(self, call: ast.Call) -> Class | None:
        found = self.classes.get(self.real_name(call))
        if found is None or (isinstance(call.func, ast.Name) and not self.is_ours(callee(call), call)):
            return None
        return found

    def targets(self, call: ast.Call) -> tuple[list[Func], bool]:
        """The functions of the program a call may enter, and whether it may also enter code we cannot see."""
        cls = self.class_called(call)
        if cls is not None:
            init = self.method(cls.name, "__init__")
            return ([init], False) if init else ([], not cls.is_dataclass)
        name = callee(call)
        ours = self.functions.get(self.real_name(call), [])
        if isinstance(call.func, ast.Name):
            called = self._called_instance(call.func) if not ours else None
            if called is not None:
                return [called], False
            made = self._made_functions(call.func) if not ours else []
            if made:
                return made, True
            local = [f for f in ours if f.owner is None]
            if not local or not self.is_ours(name, call):
                return [], True
            origin = self.imported.get(self.script_of[call].name, {}).get(name)
            home = origin.lstrip(".").rpartition(".")[0] if origin is not None else None
            return self._of_module(local, home, call), False
        if not ours:
            named = self._named_functions(call.func)
            return named, not named
        if not isinstance(call.func, ast.Attribute):
            return [], True
        owner = self.class_of(call.func.value)
        if owner is not None:
            method = self.method(owner, name)
            return ([method], False) if method else ([], True)
        if self._is_module(call.func.value):
            local = [f for f in ours if f.owner is None]
            home = self.origin(call.func.value).lstrip(".")
            return (self._of_module(local, home, call), False) if local else ([], True)
        if isinstance(call.func.value, ast.Call) and callee(call.func.value) == "super":
            return [], True  # of a class from outside
        methods = [f for f in ours if f.owner]
        return (methods if len(methods) <= MANY else []), True

    def _of_module(self, funcs: list[Func], home: str | None, call: ast.Call) -> list[Func]:
        """Of functions of one name, those of the module meant (None: where the call stands); all, if none lies there."""
        here = self.script_of[call]
        if home is None:
            near = [f for f in funcs if f.script is here]
        else:
            near = [f for f in funcs if ("." + ".".join(f.script.module)).endswith("." + home)]
        return near or funcs

    def _called_instance(self, node: ast.expr) -> Func | None:
        """The `__call__` of the program's own class that an object called like a function is of."""
        owner = self.class_of(node)
        return self.method(owner, "__call__") if owner is not None else None

    def _made_functions(self, node: ast.expr, depth: int = 0) -> list[Func]:
        """Functions that functions of the program make and return: `step_fn = get_step_fn(...)`, also handed on by name."""
        rest = self.rest_of(node)
        if rest is None or rest[0] != "v" or rest in self.opaque or depth > 3:
            return []
        found: list[Func] = []
        for value in self.writes.get(rest, []):
            if isinstance(value, ast.Name):
                found += self._made_functions(value, depth + 1)
            elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name | ast.Attribute):
                makers = [f for f in self.functions.get(self.real_name(value), []) if f.owner is None]
                found += [inner for maker in makers if len(makers) == 1 for inner in self._returned_by(maker)]
        return list(dict.fromkeys(found))

    @cached_property
    def _defined_in(self) -> dict[str, list[Func]]:
        """The functions that each function defines inside itself."""
        out: dict[str, list[Func]] = defaultdict(list)
        for func in self.scopes.values():
            outer = self.func_of.get(func.node)
            if outer is not None and func.name != "<lambda>":
                out[outer.scope].append(func)
        return out

    def _returned_by(self, maker: Func) -> list[Func]:
        """Functions defined inside another that it returns by name."""
        inside = self._defined_in.get(maker.scope, [])
        if not inside:
            return []
        names = {
            n.value.id for n in ast.walk(maker.node) if isinstance(n, ast.Return) and isinstance(n.value, ast.Name)
        }
        return [f for f in inside if f.name in names]

    def _is_module(self, node: ast.expr) -> bool:
        """Whether an expression names an imported module of the program (and not a variable of that name)."""
        head = dotted_name(node).split(".")[0]
        imported = head in self.imported.get(self.script_of[node].name, {})
        return imported and self.origin(node).lstrip(".") in self.modules

    def _named_functions(self, node: ast.expr) -> list[Func]:
        """Functions called through a table: `args.func(...)` after set_defaults, `MODES[mode](...)`."""
        if isinstance(node, ast.Attribute):
            values: list[ast.expr] = self.writes.get(("f", node.attr), [])
        elif isinstance(node, ast.Subscript):
            table = node.value
            rest = self.rest_of(table)
            tables = [table] if isinstance(table, ast.Dict) else self.writes.get(rest, []) if rest else []
            values = [v for t in tables if isinstance(t, ast.Dict) for v in t.values]
        else:
            return []
        if not values or not all(isinstance(v, ast.Name) and self.functions.get(v.id) for v in values):
            return []
        return [f for v in values if isinstance(v, ast.Name) for f in self.functions[v.id]]

    def method(self, owner: str, name: str, depth: int = 0) -> Func | None:
        cls = self.classes.get(owner)
        if cls is None or depth > 8:
            return None
        if name in cls.methods:
            return cls.methods[name]
        for base in cls.bases:
            found = self.method(base, name, depth + 1)
            if found:
                return found
        return None

    def class_of(self, node: ast.expr, depth: int = 0) -> str | None:
        """The program's class an expression is an instance of, where plain assignments and arguments say so."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            func = self.func_of[node]
            cls = self.classes.get(func.owner or "") if func else None
            return next((b for b in cls.bases if b in self.classes), None) if cls else None
        if isinstance(node, ast.Call):
            cls = self.class_called(node)
            return cls.name if cls else None
        if isinstance(node, ast.Name) and node.id in ("self", "cls"):
            func = self.func_of[node]
            while func is not None and func.owner is None:
                func = self.func_of.get(func.node)
            return func.owner if func else None
        rest = self.rest_of(node)
        if rest is None or rest in self.opaque:
            return None
        made: set[str | None] = set()
        for value in self.writes.get(rest, []):
            if isinstance(value, ast.Call):
                cls = self.class_called(value)
                made.add(cls.name if cls else None)
            elif isinstance(value, ast.Name) and depth < 4:
                made.add(self.class_of(value, depth + 1))
            elif not (isinstance(value, ast.Constant) and value.value is None):
                made.add(None)
            if None in made:
                return None
        return made.pop() if len(made) == 1 else None

    def live_nodes(self) -> Iterator[ast.AST]:
        """Every node of code that starting the entry can come to."""
        for nodes in self.live:
            yield from nodes

    @cached_property
    def live_by_type(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in self.live_nodes():
            found[type(node)].append(node)
        return found

    def buried(self) -> set[str]:
        """Scopes of functions that starting the entry cannot come to, and of all that is defined inside them."""
        dead = {s for s, f in self.scopes.items() if s not in self.reachable and f.name != "<lambda>"}
        return {s for s, f in self.scopes.items() if s in dead or self._inside(f, dead)}

    def _inside(self, func: Func, dead: set[str]) -> bool:
        outer = self.func_of.get(func.node)
        while outer is not None:
            if outer.scope in dead:
                return True
            outer = self.func_of.get(outer.node)
        return False

    def all_calls(self) -> Iterator[ast.Call]:
        for calls in self.calls.values():
            yield from calls


def callee(call: ast.Call) -> str:
    """The last name of what is called: `torch.optim.SGD(...)` -> "SGD"; "" where it has no name."""
    func = call.func
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else ""


def dotted_name(node: ast.expr) -> str:
    """`self.opt.step` -> "self.opt.step"; calls and subscripts inside are dropped."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            head = dotted_name(value)
            return f"{head}.{attr}" if head else attr
        case ast.Call(func=func):
            return dotted_name(func)
        case ast.Subscript(value=value):
            return dotted_name(value)
    return ""


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The expression given for a parameter, by keyword or by position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and len(call.args) > position:
        given = call.args[: position + 1]
        return None if any(isinstance(a, ast.Starred) for a in given) else given[position]
    return None


def constant_text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
