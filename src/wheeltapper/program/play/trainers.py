"""More of who calls whom: ignite's engines, Keras' own training steps, gradients of jax, what LightningCLI makes of a file.

Each brings the program to the same few events that a loop written by hand has: a batch, a network applied, a backward pass, a step.
"""

from __future__ import annotations

import ast

from wheeltapper.program.play.configs import PLACE, class_of, config_value
from wheeltapper.program.play.evaluate import Evaluator
from wheeltapper.program.play.frameworks import BY_FRAMEWORK, _turned, play_module
from wheeltapper.program.play.library import METHODS, SPECIAL, Args, Keywords, Library
from wheeltapper.program.play.scene import Env
from wheeltapper.program.play.value import Val, const, made_of

VARIABLES = {"trainable_variables", "trainable_weights", "weights", "variables"}
NOT_OF_THE_NETWORK = {"mutable", "rngs", "method", "capture_intermediates"}  # arguments of flax' apply itself
JAX = ("jax", "flax", "nnx", "equinox", "eqx", "haiku")
HANDLERS = "@handlers"


def played_by_trainer(scene: Evaluator, base: Val, name: str, args: Args, kwargs: Keywords, node: ast.AST) -> bool:
    """What a method of an engine or of a Keras model sets off; False where it is none."""
    if name == "run" and base.op == "call" and "ignite" in base.origin:
        play_engine(scene, base, kwargs.get("data") or (args[0] if args else None), node)
        return True
    if name == "fit" and base.op == "obj" and scene.program.method(base.name, "train_step"):
        play_train_step(scene, base, args, kwargs, node)
        return True
    return False


def applied_by_trainer(scene: Library, thing: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`value_and_grad(f)(x)` and `keras.Model(inputs, outputs)(x)`."""
    if thing.op == "call" and thing.name in ("value_and_grad", "grad"):
        return play_gradient(scene, thing, args, kwargs, node)
    return applied_model(scene, thing, args, kwargs, node) if thing.op == "call" else None


# -- one pass backwards, and a step, as a framework makes them ---------------------------------------------------


def stepped(scene: Library, loss: Val, parameters: Val, node: ast.AST) -> None:
    """A framework takes gradients of this loss and moves these parameters."""
    optimizer = scene.called("AdamW", (parameters,), {}, node, "torch.optim.AdamW")
    optimizer.loops = ()  # it was made before the loop
    scene.called("zero_grad", (optimizer,), {}, node, BY_FRAMEWORK)
    scene.called("backward", (loss,), {}, loss.node or node, BY_FRAMEWORK)
    scene.called("step", (optimizer,), {}, node, BY_FRAMEWORK)


def parameters_of(network: Val, node: ast.AST) -> Val:
    return Val("call", "parameters", (network,), node=node, origin=".parameters")


# -- ignite ------------------------------------------------------------------------------------------------------


def play_engine(scene: Evaluator, engine: Val, data: Val | None, node: ast.AST) -> None:
    """`Engine(step).run(loader)`: the step for a batch, then what was hung onto the engine's events."""
    if engine.fields.get("@running"):
        return
    engine.fields["@running"] = const(True)
    _turned(scene, node, data)
    batch = scene.element(data, node) if data is not None else Val("param", "batch", node=node)
    step = engine.args[0] if engine.args else engine.kwargs.get("process_function")
    if engine.name == "Engine" and step is not None and step.op in ("func", "bound"):
        begin = len(scene.calls)
        made = scene.apply(step, (engine, batch), {}, node)
        if not any(c.name == "backward" for c in scene.calls[begin:]):  # what an evaluation returns goes to the metrics
            scene.no_grad += 1
            scene.called("update", (engine, made), {}, node, BY_FRAMEWORK)
            scene.no_grad -= 1
    elif engine.name == "create_supervised_trainer" and len(engine.args) > 2:
        x, y = (scene.item(batch, const(i), node) for i in (0, 1))
        scene.called("train", (engine.args[0],), {}, node, BY_FRAMEWORK)
        loss = scene.apply(engine.args[2], (scene.apply(engine.args[0], (x,), {}, node), y), {}, node)
        scene.called("zero_grad", (engine.args[1],), {}, node, BY_FRAMEWORK)
        scene.called("backward", (loss,), {}, node, BY_FRAMEWORK)
        scene.called("step", (engine.args[1],), {}, node, BY_FRAMEWORK)
    _handle(scene, engine, "ITERATION", node)
    scene.loops.pop()
    _handle(scene, engine, "EPOCH", node)
    _handle(scene, engine, "COMPLETED", node)
    del engine.fields["@running"]


def _handle(scene: Evaluator, engine: Val, event: str, node: ast.AST) -> None:
    for when, handler in engine.fields.get(HANDLERS, Val("list")).data or []:
        if when.startswith(event) and handler.op in ("func", "bound"):
            scene.apply(handler, (engine,), {}, node)


def hang(engine: Val, event: Val | None, handler: Val) -> None:
    """Hang a handler onto an event of an engine: Events.EPOCH_COMPLETED, also with (every=2)."""
    names = [v.name for v in made_of(event) if v.op in ("lib", "attr") and v.name.isupper()] if event is not None else []
    names += [event.name] if event is not None and event.name.isupper() else []
    held = engine.fields.setdefault(HANDLERS, Val("list", data=[]))
    held.data.append((names[0] if names else "", handler))


def decorated(scene: Evaluator, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
    """`@trainer.on(Events.EPOCH_COMPLETED)` above a function hangs it onto the engine."""
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "on" and one.args:
            engine = scene.evaluate(one.func.value, env)
            if engine.op == "call":
                hang(engine, scene.evaluate(one.args[0], env), env.names[node.name])
                scene.called("add_event_handler", (engine, scene.evaluate(one.args[0], env), env.names[node.name]), {}, one, ".add_event_handler")


def _add_handler(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    if base.op == "call" and len(args) > 1:
        hang(base, args[0], args[1])
    return None


# -- Keras -------------------------------------------------------------------------------------------------------


def play_train_step(scene: Evaluator, model: Val, args: Args, kwargs: Keywords, node: ast.AST) -> None:
    """`fit` of a model with a train_step of its own, and of its test_step on the data for validation."""
    for name, data in (("train_step", args[0] if args else kwargs.get("x")), ("test_step", kwargs.get("validation_data"))):
        method = scene.program.method(model.name, name)
        if method is None:
            continue
        _turned(scene, node, data)
        scene.no_grad += name == "test_step"
        batch = scene.element(data, node) if data is not None else Val("param", "data", node=node)
        scene.enter(method, (batch,), {}, method.node, model)
        scene.no_grad -= name == "test_step"
        scene.loops.pop()


def _gradient(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`tape.gradient(loss, variables)`: a backward pass for the networks whose variables they are."""
    if base.op != "call" or base.name != "GradientTape" or len(args) < 2:
        return None
    stepped(scene, args[0], _as_parameters(args[1], node), node)
    return Val("call", "gradient", (base, *args), node=node, origin=".gradient")


def _as_parameters(variables: Val, node: ast.AST) -> Val:
    if variables.op == "attr" and variables.name in VARIABLES:
        return parameters_of(variables.args[0], node)
    if variables.op == "bin" and variables.name == "Add":
        return Val("bin", "Add", tuple(_as_parameters(a, node) for a in variables.args), node=node)
    if variables.items is not None:
        return Val("list", items=[_as_parameters(v, node) for v in variables.items], node=node)
    return variables


def applied_model(scene: Library, model: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`keras.Model(inputs, outputs)(x)`: its outputs."""
    outputs = model.arg("outputs", 1)
    if model.name not in ("Model", "Functional") or outputs is None or "keras" not in model.origin:
        return None
    value = scene.called("Model", (model, *args), kwargs, node, model.origin, op="net")
    value.data = outputs
    return value


# -- jax ---------------------------------------------------------------------------------------------------------


def play_gradient(scene: Library, maker: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`value_and_grad(f)(parameters, ...)`: f is played, and its result is a loss."""
    func = maker.args[0] if maker.args else maker.kwargs.get("fun")
    if func is None or func.op not in ("func", "bound") or not maker.origin.split(".")[0].startswith(JAX):
        return None
    assert isinstance(scene, Evaluator)
    begin = len(scene.calls)
    held, scene.no_grad = scene.no_grad, 0
    scene.gradients += 1
    result = scene.apply(func, args, kwargs, node)
    scene.gradients -= 1
    scene.no_grad = held
    aux = maker.kwargs.get("has_aux")
    loss = scene.item(result, const(0), node) if aux is not None and aux.data is True else result
    nets = {id(c.args[0]): c.args[0] for c in scene.calls[begin:] if c.op == "net" and c.args[0].op == "obj"}
    held_by = Val("list", items=[parameters_of(n, node) for n in nets.values()], node=node)
    stepped(scene, loss, held_by, node)
    grads = Val("call", "grads", (loss, *args[:1]), node=node, origin="jax.grad")
    return grads if maker.name == "grad" else Val("tuple", items=[result, grads], node=node)


def _flax_apply(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`net.apply({"params": p}, x, train=True)`: the network applied to x; with `mutable` its new state as well."""
    method = scene.program.method(base.name, "__call__") if base.op == "obj" else None
    if method is None or not scene.is_network(base) or len(args) < 2 or args[0].op in ("func", "bound"):
        return None
    given = {k: v for k, v in kwargs.items() if k not in NOT_OF_THE_NETWORK}
    value = scene.called(base.name, (base, *args[1:]), given, node, op="net")
    value.data = scene.enter(method, args[1:], given, node, base)
    value.no_grad = not scene.gradients
    mutable = kwargs.get("mutable")
    if mutable is None or mutable.data is False:
        return value
    return Val("tuple", items=[value, Val("call", "new_state", (base,), node=node, origin="flax")], node=node)


# -- LightningCLI ------------------------------------------------------------------------------------------------


def _lightning_cli(scene: Library, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`LightningCLI(Module, Data)` with the file that lies beside it: both are made as it says, and fitted."""
    assert isinstance(scene, Evaluator)
    sections = config_value(scene.config, node).fields if scene.config is not None else {}
    classes = {"model": kwargs.get("model_class") or (args[0] if args else None), "data": kwargs.get("datamodule_class") or (args[1] if len(args) > 1 else None)}
    made = {}
    for name, thing in classes.items():
        if thing is not None and thing.op == "class":
            section = sections.get(name, Val("dict"))
            section = section.fields.get("init_args", section) if class_of(section) else section
            made[name] = scene.instance(thing, (), {k: v for k, v in section.fields.items() if k != PLACE}, node)
    for name in ("optimizer", "lr_scheduler", "trainer"):
        if name in sections:
            configured(scene, sections[name], "Trainer" if name == "trainer" else None, node)
    if "model" in made:
        play_module(scene, made["model"], (), {"datamodule": made["data"]} if "data" in made else {}, node)
    return None


def configured(scene: Library, section: Val, default: str | None, node: ast.AST) -> Val | None:
    """What a section of a configuration makes: its class called with its arguments, and so for the sections in it."""
    path = class_of(section) or default
    if path is None or section.op != "dict":
        return None
    given = section.fields.get("init_args", section if default else Val("dict"))
    arguments = {k: v for k, v in given.fields.items() if not k.startswith("@")}
    for value in arguments.values():
        for one in value.items or ():
            configured(scene, one, None, node)
    origin = path if "." in path else f"lightning.{path}"
    return scene.called(path.rpartition(".")[2], (), arguments, node, origin)


# -- arguments that are parsed from a file -----------------------------------------------------------------------


def _parsed_file(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    """`HfArgumentParser((A, B)).parse_json_file(path)`: each class filled from the file."""
    classes = base.args[0] if base.op == "call" and base.args else None
    if classes is None or scene.config is None:
        return None
    fields = {k: v for k, v in config_value(scene.config, node).fields.items() if not k.startswith("@")}
    several = classes.items if classes.items is not None else [classes]
    mine: set[str] = set()
    made = []
    for one in sorted(several, key=lambda c: c.op != "class"):
        if one.op == "class":
            names = {f.target.id for f in one.data.fields if isinstance(f.target, ast.Name)}
            mine |= names
            made.append((one, scene.apply(one, (), {k: v for k, v in fields.items() if k in names}, node)))
        else:
            made.append((one, scene.apply(one, (), {k: v for k, v in fields.items() if k not in mine}, node)))
    return Val("tuple", items=[next(m for c, m in made if c is one) for one in several], node=node)


SPECIAL["LightningCLI"] = _lightning_cli
METHODS.update({"gradient": _gradient, "add_event_handler": _add_handler, "parse_json_file": _parsed_file, "parse_yaml_file": _parsed_file})
_to_modules = METHODS["apply"]


def _applied(scene: Library, base: Val, args: Args, kwargs: Keywords, node: ast.AST) -> Val | None:
    return _flax_apply(scene, base, args, kwargs, node) or _to_modules(scene, base, args, kwargs, node)


METHODS["apply"] = _applied
