"""Expressions of a played program: each gives a value that knows what it is made of."""

from __future__ import annotations

import ast
import builtins

from wheeltapper.program.play.library import MODES, Args, Keywords, Library
from wheeltapper.program.play.scene import Env, Turn
from wheeltapper.program.play.value import Val, const, number, phi, text_of
from wheeltapper.program.program import Func

BUILTINS = frozenset(dir(builtins))
UNROLLED = 8  # known elements of a comprehension that are played one by one


class Evaluator(Library):
    def evaluate(self, node: ast.expr | None, env: Env) -> Val:
        if node is None:
            return const(None)
        self.left -= 1
        if self.left < 0:
            self.complete = False
            return Val("free", node=node)
        handler = getattr(self, "on_" + type(node).__name__, None)
        made = handler(node, env) if handler is not None else None
        if made is None:
            parts = [self.evaluate(c, env) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
            return Val("free", args=tuple(parts), node=node)
        assert isinstance(made, Val)
        return made

    # -- leaves ---------------------------------------------------------------------------------

    def on_Constant(self, node: ast.Constant, _: Env) -> Val:
        return const(node.value, node)

    def on_Name(self, node: ast.Name, env: Env) -> Val:
        holder = env.holder(node.id)
        if holder is not None:
            return holder.names[node.id]
        if node.id == "__name__":
            return const("__main__" if env.script is self.program.entry else env.script.name)
        if node.id in BUILTINS:
            return Val("lib", node.id, origin="builtins." + node.id, node=node)
        return Val("free", node.id, node=node)

    def on_JoinedStr(self, node: ast.JoinedStr, env: Env) -> Val:
        parts = [self.evaluate(v.value, env) for v in node.values if isinstance(v, ast.FormattedValue)]
        return Val("text", args=tuple(parts), node=node)

    def on_Lambda(self, node: ast.Lambda, env: Env) -> Val:
        return self.function_value(node, env)

    def function_value(self, node: ast.AST, env: Env) -> Val:
        func = next((f for f in (self._func_at(node),) if f is not None), None)
        if func is None:
            return Val("free", node=node)
        return Val("func", func.name, node=node, data=(func, env))

    def _func_at(self, node: ast.AST) -> Func | None:
        script = self.program.script_of.get(node)
        if script is None:
            return None
        name = getattr(node, "name", "<lambda>")
        return self.program.scopes.get(f"{script.name}:{node.lineno}:{node.col_offset}:{name}")  # type: ignore[attr-defined]

    # -- containers -----------------------------------------------------------------------------

    def _elements(self, nodes: list[ast.expr], env: Env) -> list[Val]:
        out: list[Val] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                value = self.evaluate(one.value, env)
                known = value.op in ("list", "tuple") and value.items is not None
                several = value.data.items if value.op == "net" and isinstance(value.data, Val) and value.data.op == "tuple" else None
                if several:  # the outputs of a network, one by one
                    out += [self.item(value, const(place), one) for place in range(len(several))]
                else:
                    out += (value.items or []) if known else [self.element(value, one)]
            else:
                out.append(self.evaluate(one, env))
        return out

    def on_Tuple(self, node: ast.Tuple, env: Env) -> Val:
        return Val("tuple", items=self._elements(node.elts, env), node=node)

    def on_List(self, node: ast.List, env: Env) -> Val:
        return Val("list", items=self._elements(node.elts, env), node=node)

    def on_Dict(self, node: ast.Dict, env: Env) -> Val:
        fields: dict[str, Val] = {}
        others: list[Val] = []
        for key, value in zip(node.keys, node.values, strict=True):
            made = self.evaluate(value, env)
            if key is None:
                fields.update(made.fields if made.op in ("dict", "space") else {})
                continue
            found = self.evaluate(key, env)
            if found.op == "const":
                fields[str(found.data)] = made
            else:
                others += [found, made]
        made = Val("dict", fields=fields, args=tuple(others), node=node, guards=tuple(self.guards))
        self.dicts.append(made)
        return made

    def _comprehension(
        self, node: ast.AST, generators: list[ast.comprehension], parts: list[ast.expr], env: Env
    ) -> Val:
        inner = Env(env.script, env)
        depth = len(self.loops)
        overs = []
        for generator in generators:
            over = self.evaluate(generator.iter, inner)
            overs.append(over)
            self.loops.append(Turn(node, over, self.no_grad > 0))
            self.assign(generator.target, self.element(over, generator.iter), inner)
            overs += [self.evaluate(test, inner) for test in generator.ifs]
        made = [self.evaluate(p, inner) for p in parts]
        del self.loops[depth:]
        known = self.known_elements(overs[0])
        if known and len(generators) == 1 and len(known) <= UNROLLED and not generators[0].ifs:
            each = []
            for one in known:
                self.assign(generators[0].target, one, inner)
                each.append([self.evaluate(p, inner) for p in parts])
            if isinstance(node, ast.ListComp | ast.GeneratorExp):
                return Val("list", items=[made[0] for made in each], node=node)
            if isinstance(node, ast.DictComp) and all(text_of(key) is not None for key, _ in each):
                return Val("dict", fields={str(key.data): value for key, value in each}, node=node)
        return Val("comp", args=(made[-1], *overs), node=node)

    def on_ListComp(self, node: ast.ListComp, env: Env) -> Val:
        return self._comprehension(node, node.generators, [node.elt], env)

    def on_SetComp(self, node: ast.SetComp, env: Env) -> Val:
        return self._comprehension(node, node.generators, [node.elt], env)

    def on_GeneratorExp(self, node: ast.GeneratorExp, env: Env) -> Val:
        return self._comprehension(node, node.generators, [node.elt], env)

    def on_DictComp(self, node: ast.DictComp, env: Env) -> Val:
        return self._comprehension(node, node.generators, [node.key, node.value], env)

    # -- operators ------------------------------------------------------------------------------

    def on_BinOp(self, node: ast.BinOp, env: Env) -> Val:
        a, b = self.evaluate(node.left, env), self.evaluate(node.right, env)
        if isinstance(node.op, ast.Add) and a.items is not None and b.items is not None:
            return Val(a.op, items=[*a.items, *b.items][:64], node=node)
        if isinstance(node.op, ast.BitOr) and a.op == b.op == "dict":
            return Val("dict", fields={**a.fields, **b.fields}, node=node)
        made = Val("bin", type(node.op).__name__, (a, b), node=node, no_grad=self.no_grad > 0, guards=tuple(self.guards))
        if made.name == "Div":
            self.quotients.append(made)
        if made.name == "Sub" and made.no_grad:
            self.subtractions.append(made)
        return made

    def on_UnaryOp(self, node: ast.UnaryOp, env: Env) -> Val:
        return Val("unary", type(node.op).__name__, (self.evaluate(node.operand, env),), node=node)

    def on_Compare(self, node: ast.Compare, env: Env) -> Val:
        parts = [self.evaluate(n, env) for n in (node.left, *node.comparators)]
        return Val("cmp", type(node.ops[0]).__name__, tuple(parts), node=node)

    def on_BoolOp(self, node: ast.BoolOp, env: Env) -> Val:
        return Val("bool", type(node.op).__name__, tuple(self.evaluate(n, env) for n in node.values), node=node)

    def on_IfExp(self, node: ast.IfExp, env: Env) -> Val:
        known = self.truth(self.evaluate(node.test, env))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse, env)
        return phi([self.evaluate(node.body, env), self.evaluate(node.orelse, env)], node)

    def on_NamedExpr(self, node: ast.NamedExpr, env: Env) -> Val:
        value = self.evaluate(node.value, env)
        env.bind(node.target.id, value)
        return value

    def on_Await(self, node: ast.Await, env: Env) -> Val:
        return self.evaluate(node.value, env)

    def on_Starred(self, node: ast.Starred, env: Env) -> Val:
        return self.evaluate(node.value, env)

    def on_Yield(self, node: ast.Yield, env: Env) -> Val:
        self.frames[-1].yields.append(self.evaluate(node.value, env))
        return Val("free", node=node)

    def on_YieldFrom(self, node: ast.YieldFrom, env: Env) -> Val:
        self.frames[-1].yields.append(self.element(self.evaluate(node.value, env), node))
        return Val("free", node=node)

    # -- fields and items -----------------------------------------------------------------------

    def on_Attribute(self, node: ast.Attribute, env: Env) -> Val:
        return self.attribute(self.evaluate(node.value, env), node.attr, node)

    def attribute(self, base: Val, name: str, node: ast.AST) -> Val:
        if name in base.fields:
            return base.fields[name]
        match base.op:
            case "lib":
                return self.library_name(f"{base.origin}.{name}", node)
            case "obj":
                return self._of_instance(base, name, node)
            case "super":
                return self._of_super(base, name, node)
            case "phi" if any(v.op in ("obj", "space", "dict") for v in base.args):
                return phi([self.attribute(v, name, node) for v in base.args], node)
            case "class":
                method = self.program.method(base.name, name)
                return (
                    Val("func", name, node=node, data=(method, None))
                    if method is not None
                    else self.class_field(base.name, name, node)
                )
        if name in ("module", "_orig_mod") and base.op in ("call", "attr", "item"):
            return base
        return Val("attr", name, (base,), node=node)

    def library_name(self, origin: str, node: ast.AST) -> Val:
        return Val("lib", origin.rpartition(".")[2], origin=origin, node=node)

    def _of_instance(self, base: Val, name: str, node: ast.AST) -> Val:
        if name in ("module", "_orig_mod"):
            return base
        method = self.program.method(base.name, name)
        if method is None:
            found = self.class_field(base.name, name, node)
            return found if found.op != "free" else Val("attr", name, (base,), node=node)
        decorators = [ast.unparse(d) for d in getattr(method.node, "decorator_list", [])]
        if any(d.endswith("property") for d in decorators):
            return self.enter(method, (), {}, node, base)
        return Val("bound", name, (base,), node=node, data=method)

    def _of_super(self, base: Val, name: str, node: ast.AST) -> Val:
        cls = self.program.classes.get(base.name)
        me = base.args[0]
        for above in cls.bases if cls is not None else ():
            method = self.program.method(above, name)
            if method is not None:
                return Val("bound", name, (me,), node=node, data=method)
        return Val("attr", name, (Val("libself", args=(me,), node=node),), node=node)

    def class_field(self, owner: str, name: str, node: ast.AST) -> Val:
        """A field that the body of a class sets."""
        for one in self.bases(owner):
            cls = self.program.classes.get(one)
            for statement in cls.node.body if cls is not None else ():
                match statement:
                    case (
                        ast.Assign(targets=[ast.Name(id=target)], value=value)
                        | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
                    ) if target == name and cls is not None:
                        return self.evaluate(value, self.module_env(cls.script))
        return Val("free", name, node=node)

    def module_env(self, script: object) -> Env:
        raise NotImplementedError

    def on_Slice(self, node: ast.Slice, env: Env) -> Val:
        parts = [self.evaluate(p, env) for p in (node.lower, node.upper, node.step)]
        return Val("slice", args=tuple(parts), node=node)

    def on_Subscript(self, node: ast.Subscript, env: Env) -> Val:
        return self.item(self.evaluate(node.value, env), self.evaluate(node.slice, env), node)

    def item(self, base: Val, index: Val, node: ast.AST) -> Val:
        key = text_of(index)
        if key is not None and key in base.fields:
            return base.fields[key]
        place = number(index)
        if (
            base.op in ("list", "tuple")
            and base.items is not None
            and isinstance(place, int)
            and -len(base.items) <= place < len(base.items)
        ):
            return base.items[place]
        if base.op == "net" and isinstance(base.data, Val) and (key is not None or isinstance(place, int)):
            return self._output(base, index, node)
        if base.op == "phi" and (key is not None or isinstance(place, int)):
            return phi([self.item(v, index, node) for v in base.args], node)
        if base.op == "obj" and (method := self.program.method(base.name, "__getitem__")) is not None:
            return self.enter(method, (index,), {}, node, base)
        if (
            base.op == "call"
            and base.name == "ModuleDict"
            and key is not None
            and base.args
            and key in base.args[0].fields
        ):
            return base.args[0].fields[key]
        if (
            base.op == "call"
            and base.name in ("Sequential", "ModuleList")
            and isinstance(place, int)
            and -len(base.args) <= place < len(base.args)
        ):
            return base.args[place]
        made = Val("item", args=(base, index), node=node, data=key if key is not None else place)
        if isinstance(place, int) or key is not None:  # the same item is the same value
            made = base.fields.setdefault(f"[{made.data}]", made) if base.op not in ("free", "lib") else made
        return made

    def _output(self, net: Val, index: Val, node: ast.AST) -> Val:
        """One of several outputs of a network: the same application, of which only that output is looked at."""
        slot = f"[{index.data}]"
        if slot not in net.fields:
            inner = self.item(net.data, index, node)
            net.fields[slot] = Val(
                "net", net.name, net.args, net.kwargs, node, net.origin, inner, loops=net.loops, guards=net.guards,
                no_grad=net.no_grad, order=net.order, inside=net.inside,
            )  # fmt: skip
        return net.fields[slot]

    # -- calls ----------------------------------------------------------------------------------

    def on_Call(self, node: ast.Call, env: Env) -> Val:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            frame = self.frames[-1]
            owner = frame.func.owner if frame.func is not None else None
            return Val("super", owner or "", (frame.me or Val("free", node=node),), node=node)
        func = self.evaluate(node.func, env)
        args = tuple(self._elements(node.args, env))
        kwargs: Keywords = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, env)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif value.op in ("dict", "space"):
                kwargs.update(value.fields)
            else:
                kwargs["**"] = value
        return self.apply(func, args, kwargs, node)

    def apply(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        match thing.op:
            case "func":
                func, env = thing.data
                return self.enter(func, args, kwargs, node, None, env)
            case "bound":
                if thing.name in MODES and len(args) <= 1 and self.is_network(thing.args[0]):
                    self.called(thing.name, (thing.args[0], *args, *kwargs.values()), {}, node, "." + thing.name)
                if self._is_own_forward(thing):
                    return self._apply_object(thing.args[0], args, kwargs, node)
                return self.enter(thing.data, args, kwargs, node, thing.args[0])
            case "class":
                return self.instance(thing, args, kwargs, node)
            case "lib":
                if thing.name in ("getattr", "setattr") and len(args) > 1 and (name := text_of(args[1])) is not None:
                    return self._by_name(thing.name, name, args, node)
                return self.library_call(thing, args, kwargs, node)
            case "obj":
                return self._apply_object(thing, args, kwargs, node)
            case "attr":
                return self.method_call(thing.args[0], thing.name, args, kwargs, node)
            case "phi" if any(v.op in ("func", "bound", "class", "obj", "call", "attr") for v in thing.args):
                return phi([self.apply(v, args, kwargs, node) for v in thing.args[:3]], node)
        return self.applied(thing, args, kwargs, node)

    def _by_name(self, what: str, name: str, args: Args, node: ast.AST) -> Val:
        if what == "getattr":
            found = self.attribute(args[0], name, node)
            return phi([found, args[2]]) if len(args) > 2 and found.op == "attr" else found
        args[0].fields[name] = args[-1]
        return const(None, node)

    def _is_own_forward(self, thing: Val) -> bool:
        """`net.forward(x)` is the network applied; `super().forward(x)`, of a class it is built on, is a part of that."""
        net = thing.args[0]
        return (
            thing.name == "forward"
            and net.op == "obj"
            and self.is_network(net)
            and thing.data is self.program.method(net.name, "forward")
            and not any(frame.func is thing.data and frame.me is net for frame in self.frames)
        )

    def _apply_object(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        if self.is_network(thing):
            method = self.program.method(thing.name, "forward") or self.program.method(thing.name, "call")
            value = self.called(thing.name, (thing, *args), kwargs, node, op="net")
            if method is not None:
                value.data = self.enter(method, args, kwargs, node, thing)
            return value
        method = self.program.method(thing.name, "__call__")
        if method is not None:
            return self.enter(method, args, kwargs, node, thing)
        return self.called(thing.name, (thing, *args), kwargs, node)

    def instance(self, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Val, env: Env) -> None:
        raise NotImplementedError
