"""Who calls whom in a framework: Lightning runs the steps of a module, the HF Trainer the loss of its subclass."""

from __future__ import annotations

import ast

from wheeltapper.program.objects import OPTIMIZERS, SCHEDULERS
from wheeltapper.program.play.evaluate import Evaluator
from wheeltapper.program.play.library import Args, Keywords
from wheeltapper.program.play.scene import Turn
from wheeltapper.program.play.value import Val, const

BY_FRAMEWORK = "framework"  # the origin of a call that a framework makes


def played_by_framework(scene: Evaluator, base: Val, name: str, args: Args, kwargs: Keywords, node: ast.AST) -> None:
    """What `trainer.fit(module)` and `trainer.train()` set off in the program's own classes."""
    module = kwargs.get("model") or (args[0] if args else None)
    if (
        name == "fit"
        and module is not None
        and module.op == "obj"
        and scene.program.method(module.name, "training_step")
    ):
        play_module(scene, module, args[1:], kwargs, node)
    elif name == "train" and base.op == "call" and (collator := base.kwargs.get("data_collator")) is not None:
        data = base.kwargs.get("train_dataset")
        if collator.op in ("func", "bound") and data is not None:
            scene.apply(collator, (Val("comp", args=(scene.record(data, node),), node=node),), {}, node)
    elif (
        name == "train" and base.op == "obj" and (method := scene.program.method(base.name, "compute_loss")) is not None
    ):
        network = base.kwargs.get("model") or Val("attr", "model", (base,), node=node)
        data = base.kwargs.get("train_dataset")
        inputs = scene.element(data, node) if data is not None else Val("param", "inputs", node=node)
        given = Val("call", "parameters", (network,), node=node, origin=".parameters")
        optimizer = scene.called("AdamW", (given,), {}, node, "torch.optim.AdamW")
        _turned(scene, node, data)
        result = scene.enter(method, (network, inputs), {}, node, base)
        scene.called(
            "backward",
            (scene.item(result, const(0), node) if result.op == "tuple" else result,),
            {},
            result.node or node,
            BY_FRAMEWORK,
        )
        scene.called("step", (optimizer,), {}, node, BY_FRAMEWORK)
        scene.called("zero_grad", (optimizer,), {}, node, BY_FRAMEWORK)
        scene.loops.pop()


def play_module(scene: Evaluator, module: Val, args: Args, kwargs: Keywords, node: ast.AST) -> None:
    """A LightningModule: its optimizers, its training step with what follows it, its validation step."""
    optimizers = _call(scene, module, "configure_optimizers", (), node)
    made = [v for v in _flat(optimizers) if v.op in ("call", "obj")]
    for kind, names in (("@optimizers", OPTIMIZERS), ("@schedulers", SCHEDULERS)):
        mine = [v for v in made if v.name in names]
        if mine:
            module.fields[kind] = mine[0] if len(mine) == 1 else Val("list", items=mine, node=node)
    by_hand = scene.attribute(module, "automatic_optimization", node)
    automatic = not (by_hand.op == "const" and by_hand.data is False)
    train, val = _loaders(scene, module, args, kwargs, node)
    _turned(scene, node, train)
    scene.called("train", (module,), {}, node, BY_FRAMEWORK)
    result = _call(scene, module, "training_step", (_batch(scene, train, node), Val("index", node=node)), node)
    if automatic:
        loss = result.fields["loss"] if result.op == "dict" and "loss" in result.fields else result
        where = loss.node or node
        for optimizer in made:
            scene.called("zero_grad", (optimizer,), {}, where, BY_FRAMEWORK)
        scene.called("backward", (loss,), {}, where, BY_FRAMEWORK)
        for optimizer in made:
            scene.called("step", (optimizer,), {}, where, BY_FRAMEWORK)
    _call(scene, module, "on_train_batch_end", (result, Val("param", "batch", node=node), Val("index", node=node)), node)
    scene.loops.pop()
    _call(scene, module, "on_train_epoch_end", (), node)
    for step in ("validation_step", "test_step"):
        if scene.program.method(module.name, step) is None:
            continue
        scene.called("eval", (module,), {}, node, BY_FRAMEWORK)
        scene.no_grad += 1
        _turned(scene, node, val)
        _call(scene, module, step, (_batch(scene, val, node), Val("index", node=node)), node)
        scene.loops.pop()
        if step == "validation_step":
            _call(scene, module, "on_validation_epoch_end", (), node)
        scene.no_grad -= 1


def _loaders(
    scene: Evaluator, module: Val, args: Args, kwargs: Keywords, node: ast.AST
) -> tuple[Val | None, Val | None]:
    holder = kwargs.get("datamodule") or next(
        (a for a in args if a.op == "obj" and scene.program.method(a.name, "train_dataloader")), module
    )
    if holder is not module:
        for name in ("prepare_data", "setup"):
            _call(scene, holder, name, (), node)
    train = kwargs.get("train_dataloaders") or (args[0] if args and args[0] is not holder else None)
    val = kwargs.get("val_dataloaders") or (args[1] if len(args) > 1 else None)
    if train is None and scene.program.method(holder.name, "train_dataloader"):
        train = _call(scene, holder, "train_dataloader", (), node)
    if val is None and scene.program.method(holder.name, "val_dataloader"):
        val = _call(scene, holder, "val_dataloader", (), node)
    return train, val


def _call(scene: Evaluator, thing: Val, name: str, args: Args, node: ast.AST) -> Val:
    method = scene.program.method(thing.name, name)
    if method is None:
        return const(None, node)
    return scene.enter(method, args[: len(method.params)], {}, method.node, thing)


def _batch(scene: Evaluator, loader: Val | None, node: ast.AST) -> Val:
    return (
        scene.element(loader, node)
        if loader is not None
        else Val("batch", args=(Val("param", "batch", node=node),), node=node)
    )


def _turned(scene: Evaluator, node: ast.AST, over: Val | None) -> None:
    scene.loops.append(Turn(node, over, scene.no_grad > 0))


def _flat(value: Val) -> list[Val]:
    inner = (
        [*(value.items or []), *value.args, *value.fields.values()]
        if value.op in ("tuple", "list", "dict", "phi")
        else []
    )
    return [value, *(v for i in inner for v in _flat(i))]
