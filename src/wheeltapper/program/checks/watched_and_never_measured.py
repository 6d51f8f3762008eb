"""What is watched is never measured.

What it sees
------------
A checkpoint or an early stop that follows a metric which no evaluation makes: a val_ metric without validation data,
a name that is never logged, the best model at the end without evaluations.

Why it matters
--------------
Nothing is ever kept or stopped by it, or the run fails at the first save.

How it decides
--------------
Keras: the callbacks of `fit` watch a name with val_, and fit gets no data for validation. Lightning: the name is not
among those that the module logs, where all of them are written out. Hugging Face: load_best_model_at_end with
evaluations switched off, or not at the times of saving.

When it is wrong
----------------
If a callback of the program's own puts the metric into the logs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, text_of
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "watched-and-never-measured"
CAUSE: str | None = "eval-broken"
DECIDES = True

WATCHERS = {"EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau"}
OF_LIGHTNING = {"epoch", "step"}


def check(code: Code) -> Iterator[Finding]:
    yield from [*_keras(code), *_lightning(code), *_arguments(code)][:1]


def _watchers(value: Val | None) -> list[tuple[Val, str]]:
    found = [v for v in made_of(value) if v.op == "call" and v.name in WATCHERS]
    return [(v, name) for v in found if (name := text_of(v.arg("monitor", 0 if v.name != "ModelCheckpoint" else None))) is not None]


def _keras(code: Code) -> Iterator[Finding]:
    for call in code.story.named("fit"):
        if {"validation_data", "validation_split", "**"} & call.kwargs.keys() or "callbacks" not in call.kwargs or len(call.args) > 7:
            continue
        for watcher, name in _watchers(call.kwargs["callbacks"]):
            if name.startswith("val_") and "keras" in watcher.origin:
                yield code.seen(ID, f"{watcher.name} watches {name}, and fit() has no data for validation.", call, watcher)


def _lightning(code: Code) -> Iterator[Finding]:
    modules = [c for c in code.program.classes.values() if "training_step" in c.methods and "LightningModule" in code.story.player.bases(c.name)]
    calls = [n for c in code.program.classes.values() for n in ast.walk(c.node) if isinstance(n, ast.Call) and callee(n) in ("log", "log_dict")]
    names = [str(n.args[0].value) if n.args and isinstance(n.args[0], ast.Constant) else None for n in calls]
    unseen = {b for m in modules for b in code.story.player.bases(m.name)} - {m.name for m in modules} - {"LightningModule"}
    if not modules or None in names or not names or unseen - set(code.program.classes):
        return
    logged = {f"{n}{end}" for n in names for end in ("", "_epoch", "_step", "/dataloader_idx_0")}
    for call in code.story.named("Trainer"):
        for watcher, name in _watchers(call.kwargs.get("callbacks")):
            if name not in logged | OF_LIGHTNING and "callbacks" in watcher.origin:
                yield code.seen(ID, f"{watcher.name} watches {name}, which the module never logs.", watcher, call)


def _arguments(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        best = call.kwargs.get("load_best_model_at_end")
        if call.op != "call" or best is None or best.data is not True or "**" in call.kwargs:
            continue
        when, saved = call.kwargs.get("eval_strategy") or call.kwargs.get("evaluation_strategy"), call.kwargs.get("save_strategy")
        evals, saves = text_of(when) if when is not None else "no", text_of(saved) if saved is not None else "steps"
        if evals == "no":
            yield code.seen(ID, "The best model is to be loaded at the end, and no evaluation is ever made.", when or best, call)
        elif evals is not None and saves not in (evals, "best", None):
            yield code.seen(ID, f"The best model is to be loaded, with evaluations by {evals} and saves by {saves}: the two must agree.", saved or when or best, call)
