"""Statements of a played program: both branches of every condition, every loop once, own functions entered where called."""

from __future__ import annotations

import ast
from typing import Any

from wheeltapper.program.play.evaluate import Evaluator
from wheeltapper.program.play.frameworks import play_module, played_by_framework
from wheeltapper.program.play.library import Args, Keywords
from wheeltapper.program.play.scene import MAX_ENTERED, Env, Frame, Guard, Turn
from wheeltapper.program.play.trainers import applied_by_trainer, decorated, played_by_trainer
from wheeltapper.program.play.value import Val, const, number, phi, text_of
from wheeltapper.program.program import Class, Func
from wheeltapper.program.scripts import Script, children

QUIET = {"no_grad", "inference_mode"}
DRAWS = {
    "rand",
    "randn",
    "randint",
    "normal",
    "uniform",
    "random",
    "choice",
    "integers",
    "standard_normal",
    "sample",
    "randperm",
}
SEEDS = {"manual_seed", "seed", "default_rng", "RandomState", "seed_everything", "set_seed", "Random"}
UNROLLED = 6  # elements of a written list that a loop is played for, one by one


class Player(Evaluator):
    def method_call(self, base: Val, name: str, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        made = super().method_call(base, name, args, kwargs, node)
        if not played_by_trainer(self, base, name, args, kwargs, node):
            played_by_framework(self, base, name, args, kwargs, node)
        return made

    def applied(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        return applied_by_trainer(self, thing, args, kwargs, node) or super().applied(thing, args, kwargs, node)

    def play(self) -> None:
        entry = self.program.entry
        self.module_env(entry)
        if not any(c.name in ("backward", "fit", "train", "learn", "manual_backward") for c in self.calls):
            self._play_uncalled(entry)

    def _play_uncalled(self, entry: Script) -> None:
        """Nothing trains from the top: a command of an app, or a library whose functions others call."""
        env = self.modules[entry.name]
        self.uncalled = not _has_main(entry)
        for value in list(env.names.values()):
            if value.op == "func" and value.data[0].scope not in self.entered and value.node is not None:
                self.enter(value.data[0], (), {}, value.node, None, env)
        for cls in [v for v in list(env.names.values()) if v.op == "class"]:
            if self.program.method(cls.name, "training_step") is not None and cls.node is not None:
                play_module(self, self.instance(cls, (), {}, cls.node), (), {}, cls.node)
                continue
            methods = [m for m in self.program.classes[cls.name].methods.values() if m.scope not in self.entered]
            if (
                any(
                    m.name in ("train", "fit", "train_step", "training_step", "train_epoch", "learn", "update")
                    for m in methods
                )
                and cls.node
            ):
                thing = self.instance(cls, (), {}, cls.node)
                for method in methods:
                    if method.scope not in self.entered and not method.name.startswith("__"):
                        self.enter(method, (), {}, method.node, thing)

    def module_env(self, script: object) -> Env:
        assert isinstance(script, Script)
        if script.name not in self.modules:
            env = Env(script)
            self.modules[script.name] = env
            held = self.loops, self.guards, self.frames, self.no_grad
            self.loops, self.guards, self.frames, self.no_grad = [], [], [Frame(None)], 0
            self.block(script.tree.body, env)
            self.loops, self.guards, self.frames, self.no_grad = held
        return self.modules[script.name]

    # -- functions and classes ------------------------------------------------------------------

    def enter(
        self, func: Func, args: Args, kwargs: Keywords, node: ast.AST, me: Val | None = None, env: Env | None = None
    ) -> Val:  # fmt: skip
        busy = any(frame.func is func for frame in self.frames)
        if busy or len(self.frames) > MAX_ENTERED or self.left < 0:
            return self.called(func.name, args if me is None else (me, *args), kwargs, node, "?" + func.name)
        self.entered.add(func.scope)
        outer = env or self.module_env(func.script)
        inner = Env(func.script, outer)
        static = any(getattr(d, "id", "") == "staticmethod" for d in getattr(func.node, "decorator_list", []))
        frame = Frame(func, me, node)
        self._bind(func, () if me is None or static else (me,), args, kwargs, inner, outer)
        frame.params = {k: v for k, v in inner.names.items() if v is not me}
        quiet = any(any(q in ast.unparse(d) for q in QUIET) for d in getattr(func.node, "decorator_list", []))
        self.frames.append(frame)
        self.no_grad += quiet
        if isinstance(func.node, ast.Lambda):
            frame.returns.append(self.evaluate(func.node.body, inner))
        else:
            self.block(func.node.body, inner)
        self.no_grad -= quiet
        self.frames.pop()
        if frame.yields:
            told = {f"@{i}": v for i, v in enumerate(args)}
            return Val("gen", func.name, (phi(frame.yields, node),), node=node, fields=told)
        return phi(frame.returns, node) if frame.returns else const(None, node)

    def _bind(self, func: Func, me: Args, args: Args, kwargs: Keywords, inner: Env, outer: Env) -> None:
        spec = func.node.args
        names = [p.arg for p in (*spec.posonlyargs, *spec.args)]
        if not me and func.owner is not None and names and len(args) < len(names) and names[0] in ("self", "cls"):
            me = (Val("param", names[0], node=func.node),)
        given = (*me, *args)
        defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
        defaults.update({p.arg: d for p, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
        for place, name in enumerate([*names, *(p.arg for p in spec.kwonlyargs)]):
            if place < len(given) and place < len(names):
                inner.names[name] = given[place]
            elif name in kwargs:
                inner.names[name] = kwargs[name]
            elif name in defaults:
                inner.names[name] = self.evaluate(defaults[name], outer)
            else:
                inner.names[name] = Val("param", name, node=func.node)
        if spec.vararg is not None:
            inner.names[spec.vararg.arg] = Val("tuple", items=list(given[len(names) :]), node=func.node)
        if spec.kwarg is not None:
            rest = {k: v for k, v in kwargs.items() if k not in inner.names}
            inner.names[spec.kwarg.arg] = Val("dict", fields=rest, node=func.node)

    def instance(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        cls: Class = thing.data
        made = Val("obj", cls.name, kwargs=kwargs, node=node, data=cls)
        made.loops = tuple(self.loops)
        made.fields["@args"] = Val("tuple", items=list(args), node=node)
        begin = len(self.calls)
        init = self.program.method(cls.name, "__init__")
        if init is not None:
            self.enter(init, args, kwargs, node, made)
        else:
            self._fill(cls, made, args, kwargs)
        made.fields["@span"] = const((begin, len(self.calls)), node)
        own = self.calls[begin:]
        if any(c.op == "call" and c.name in DRAWS and c.origin.count(".") for c in own) and not any(
            c.name in SEEDS for c in own
        ):
            made.fields["@draws"] = const(True, node)
        self.called(cls.name, (made, *args), kwargs, node, "?" + cls.name)
        return made

    def _fill(self, cls: Class, made: Val, args: Args, kwargs: Keywords) -> None:
        """A dataclass (or a plain box): its fields, as given or by default."""
        env = self.module_env(cls.script)
        line = [c for name in self.bases(cls.name) if (c := self.program.classes.get(name)) is not None]
        fields = [f for c in reversed(line) for f in c.fields]
        for place, one in enumerate(fields):
            assert isinstance(one.target, ast.Name)
            name = one.target.id
            if place < len(args):
                made.fields[name] = args[place]
            elif name in kwargs:
                made.fields[name] = kwargs[name]
            elif one.value is not None:
                made.fields[name] = self._default(one.value, name, env)
        made.fields.update({k: v for k, v in kwargs.items() if k not in made.fields})

    def _default(self, node: ast.expr, name: str, env: Env) -> Val:
        value = self.evaluate(node, env)
        if value.op == "call" and value.name == "field":
            factory = value.kwargs.get("default_factory")
            value = value.kwargs.get("default") or (
                self.apply(factory, (), {}, node) if factory is not None else Val("free", name, node=node)
            )
        return const(self.given[name], node) if name in self.given else value

    # -- statements -----------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], env: Env) -> bool:
        """Play statements; True if what follows them cannot be reached."""
        return any(self.statement(one, env) for one in body)

    def statement(self, node: ast.stmt, env: Env) -> bool:
        if self.left < 0:
            self.complete = False
            return True
        handler = getattr(self, "do_" + type(node).__name__, None)
        if handler is not None:
            return bool(handler(node, env))
        for child in children(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, env)
        return isinstance(node, ast.Raise | ast.Break | ast.Continue)

    def do_Import(self, node: ast.Import, env: Env) -> None:
        for alias in node.names:
            head = alias.name if alias.asname else alias.name.split(".")[0]
            env.bind(alias.asname or head, self._imported(head, node))

    def do_ImportFrom(self, node: ast.ImportFrom, env: Env) -> None:
        base = node.module or ""
        script = self.by_tail.get(base) if base else None
        for alias in node.names:
            if alias.name == "*":
                if script is not None and script is not env.script:
                    env.names.update({k: v for k, v in self.module_env(script).names.items() if not k.startswith("_")})
                continue
            value = (
                self.module_env(script).names.get(alias.name)
                if script is not None and script is not env.script
                else None
            )
            if value is None:
                value = self._imported(f"{base}.{alias.name}".strip("."), node)
            env.bind(alias.asname or alias.name, value)

    def _imported(self, origin: str, node: ast.AST) -> Val:
        script = self.by_tail.get(origin)
        value = self.library_name(origin, node)
        if script is not None and origin.split(".")[0] not in ("torch", "numpy", "transformers"):
            value.fields = self.module_env(script).names
        return value

    def do_FunctionDef(self, node: ast.FunctionDef, env: Env) -> None:
        env.bind(node.name, self.function_value(node, env))
        decorated(self, node, env)

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef, env: Env) -> None:
        cls = self.program.classes.get(node.name)
        value = Val("class", node.name, node=node, data=cls) if cls is not None else Val("free", node.name, node=node)
        env.bind(node.name, value)

    def do_Global(self, node: ast.Global, env: Env) -> None:
        env.free.update(node.names)

    do_Nonlocal = do_Global

    def do_Return(self, node: ast.Return, env: Env) -> bool:
        self.frames[-1].returns.append(self.evaluate(node.value, env))
        return True

    def do_Expr(self, node: ast.Expr, env: Env) -> None:
        value = self.evaluate(node.value, env)
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                method.endswith("_") and value.op == "call"
            ):
                env.bind(name, value)  # in place: the name now holds the changed tensor

    def do_Assign(self, node: ast.Assign, env: Env) -> None:
        value = self.evaluate(node.value, env)
        for target in node.targets:
            self.assign(target, value, env)

    def do_AnnAssign(self, node: ast.AnnAssign, env: Env) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, env), env)

    def do_AugAssign(self, node: ast.AugAssign, env: Env) -> None:
        read = ast.copy_location(_loaded(node.target), node.target)
        before = self.evaluate(read, env)
        value = Val(
            "bin", type(node.op).__name__, (before, self.evaluate(node.value, env)), node=node, no_grad=self.no_grad > 0,
            guards=tuple(self.guards),
        )  # fmt: skip
        if before.items is not None and isinstance(node.op, ast.Add):
            more = value.args[1].items or []
            before.items.extend(more[: max(0, 64 - len(before.items))])
            self.called("append", (before, *more[:1]), {}, node, ".append")
            return
        value.data = "aug"
        if isinstance(node.target, ast.Attribute) and number(value) is not None:
            value = Val(
                "index", node.target.attr, node=node
            )  # a counter that an object keeps: another number at every call
            self.called("augment", (before, value), {}, node, "+=")
            self.assign(node.target, value, env)
            return
        self.called("augment", (before, value.args[1]), {}, node, "+=")
        self.assign(node.target, value, env)

    def assign(self, target: ast.expr, value: Val, env: Env) -> None:
        match target:
            case ast.Name(id=name):
                env.bind(name, value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(parts, value, env)
            case ast.Starred(value=inner):
                self.assign(inner, value, env)
            case ast.Attribute(value=holder, attr=name):
                base = self.evaluate(holder, env)
                self.called("setattr", (base, const(name), value), {}, target, "=")
                self._set(base, name, value)
            case ast.Subscript(value=holder, slice=index):
                base, place = self.evaluate(holder, env), self.evaluate(index, env)
                key = text_of(place)
                made = self.called("setitem", (base, place, value), {}, target, "[]=")
                if key is not None and base.op in ("dict", "space"):
                    self._set(base, key, value)
                elif isinstance(holder, ast.Name | ast.Attribute) and base.op not in ("dict", "list", "obj", "lib"):
                    self.assign(holder, made, env) if isinstance(holder, ast.Name) else self._set_quietly(
                        holder, made, env
                    )

    def _set_quietly(self, holder: ast.Attribute, made: Val, env: Env) -> None:
        base = self.evaluate(holder.value, env)
        if base.op == "obj":
            base.fields[holder.attr] = made

    def _set(self, base: Val, name: str, value: Val) -> None:
        for one in base.args if base.op == "phi" else (base,):
            before = one.fields.get(name)
            one.fields[name] = (
                phi([before, value]) if before is not None and self.guards and before.op != "const" else value
            )

    def _unpack(self, parts: list[ast.expr], value: Val, env: Env) -> None:
        star = next((i for i, p in enumerate(parts) if isinstance(p, ast.Starred)), None)
        for place, part in enumerate(parts):
            if star is not None and place >= star:
                self.assign(part, Val("free", args=(value,), node=part), env)
                continue
            self.assign(part, self.item(value, const(place), part), env)

    # -- conditions and loops -------------------------------------------------------------------

    def do_If(self, node: ast.If, env: Env) -> bool:
        test = self.evaluate(node.test, env)
        known = self.truth(test) if not (self.loops and self.flips(node.test)) else None
        if known is not None:
            return self.block(node.body if known else node.orelse, env)
        before = dict(env.names)
        ended = self._guarded(Guard(test, True, node, len(self.loops)), node.body, env)
        one = env.names
        env.names = dict(before)
        other_ended = self._guarded(Guard(test, False, node, len(self.loops)), node.orelse, env)
        other = env.names
        if ended and other_ended:
            return True
        env.names = other if ended else one if other_ended else _merged(one, other, node)
        return False

    def _guarded(self, guard: Guard, body: list[ast.stmt], env: Env) -> bool:
        self.guards.append(guard)
        ended = self.block(body, env)
        self.guards.pop()
        return ended

    def do_For(self, node: ast.For, env: Env) -> None:
        over = self.evaluate(node.iter, env)
        unrolled = over.items if over.op in ("list", "tuple") and over.items and len(over.items) <= UNROLLED else None
        if unrolled is not None and not any(isinstance(n, ast.Break) for s in node.body for n in ast.walk(s)):
            for one in list(unrolled):
                self.assign(node.target, one, env)
                self.block(node.body, env)
        else:
            self._turn(node, over, node.target, env)
        self.block(node.orelse, env)

    do_AsyncFor = do_For

    def _turn(self, node: ast.For | ast.While, over: Val | None, target: ast.expr | None, env: Env) -> None:
        before = dict(env.names)
        for name in self.counters(node):
            if number(before.get(name)) is not None:
                env.bind(name, Val("index", name, node=node))  # another number at every turn
        self.loops.append(Turn(node, over, self.no_grad > 0))
        if target is not None and over is not None:
            self.assign(target, self.element(over, node), env)
        if isinstance(node, ast.While):
            self.evaluate(node.test, env)
        self.block(node.body, env)
        self.loops.pop()
        env.names = _merged(before, env.names, node)

    def do_While(self, node: ast.While, env: Env) -> None:
        self._turn(node, None, None, env)
        self.block(node.orelse, env)

    def do_With(self, node: ast.With, env: Env) -> bool:
        quiet = 0
        for item in node.items:
            value = self.evaluate(item.context_expr, env)
            off = (
                value.op == "call"
                and value.name == "set_grad_enabled"
                and bool(value.args)
                and self.truth(value.args[0]) is False
            )
            quiet += (value.op == "call" and value.name in QUIET) or off
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, env)
        self.no_grad += quiet
        ended = self.block(node.body, env)
        self.no_grad -= quiet
        return ended

    do_AsyncWith = do_With

    def do_Try(self, node: ast.Try, env: Env) -> bool:
        ended = self.block(node.body, env)
        test = Val("free", node=node)
        for handler in node.handlers:
            before = dict(env.names)
            self._guarded(Guard(test, True, node, len(self.loops)), handler.body, env)
            env.names = _merged(before, env.names, node)
        ended = self.block(node.orelse, env) or ended
        return self.block(node.finalbody, env) or (ended and not node.handlers)

    def do_Match(self, node: ast.Match, env: Env) -> None:
        test = self.evaluate(node.subject, env)
        for case in node.cases:
            before = dict(env.names)
            self._guarded(Guard(test, True, node, len(self.loops)), case.body, env)
            env.names = _merged(before, env.names, node)


def _has_main(script: Script) -> bool:
    """Whether a script is started: it has a main part, or calls something of its own for its effect."""
    body = script.tree.body
    return any(isinstance(n, ast.If) and "__name__" in ast.unparse(n.test) for n in body) or any(
        isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and isinstance(n.value.func, ast.Name) for n in body
    )


def _merged(one: dict[str, Val], other: dict[str, Val], node: ast.AST) -> dict[str, Val]:
    out = dict(other)
    for name, value in one.items():
        also = other.get(name)
        out[name] = value if also is None or also is value else phi([value, also], node)
    return out


def _loaded(target: Any) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target if isinstance(target, ast.expr) else ast.Constant(None)
