"""Processes that should work together do not.

What it sees
------------
A network wrapped for distributed training whose inner `.module` is called in the loss; a score that each process
computes on its own share of the data and that nothing adds up; an optimizer that `prepare()` was not given; a
`DistributedSampler` that no loader gets.

Why it matters
--------------
Gradients are not shared, or the score is that of one share of the data, or every process goes through all of it.
Nothing stops with an error.

How it decides
--------------
`DistributedDataParallel` (or an accelerator) wraps the network of that name, and the loss applies `name.module(...)`.
The evaluated loader has a `DistributedSampler` and the evaluating function calls nothing that gathers. `prepare()` is
given the network and not the optimizer that steps in the loop.

When it is wrong
----------------
If the results are joined by code that is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "ranks-apart"
CAUSE: str | None = None
DECIDES = True

WRAPPERS = {"DistributedDataParallel", "DDP"}
JOINS = {
    "all_reduce", "all_gather", "reduce", "gather", "gather_for_metrics", "all_gather_object", "gather_object", "all_gather_into_tensor",
    "reduce_tensor", "reduce_dict", "synchronize_between_processes", "sync", "reduce_mean", "all_gather_for_metrics", "reduce_value",
}  # fmt: skip


def check(code: Code) -> Iterator[Finding]:
    yield from _bypassed(code)
    yield from _one_share(code)
    yield from _not_prepared(code)
    yield from _sampler_unused(code)


def _bypassed(code: Code) -> Iterator[Finding]:
    story = code.story
    wrapped = {id(c.args[0]) for c in story.named(*WRAPPERS) if c.args}
    used = {v.order for loss in story.losses for v in made_of(loss) if v.op == "net"}
    inside = [c for c in story.named("module") if c.op == "call" and c.args and id(c.args[0]) in wrapped]
    for call in inside:
        if not call.no_grad and any(v is call for loss in story.losses for v in made_of(loss)):
            yield code.seen(ID, "The loss calls the network inside its wrapper: gradients are not shared between the processes.", call)
            return
    for call in story.applications:
        node = call.node
        inner = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "module"
        if inner and id(call.args[0]) in wrapped and call.order in used and not call.no_grad:
            yield code.seen(ID, "The loss calls the network inside its wrapper: gradients are not shared between the processes.", call)
            return


def _one_share(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.evaluations:
        loader = next((t.over for t in reversed(call.loops) if t.over is not None), None)
        shared = [v for v in made_of(loader, deep=False) if v.op == "call" and v.name == "DistributedSampler"] if loader is not None else []
        if not shared or not call.inside or _joined(code, call):
            continue
        text = "Each process evaluates its share of the data, and nothing adds the results up."
        yield code.seen(ID, text, call, *_results(code, call))
        return


def _results(code: Code, call: Val) -> list[Val]:
    """What the evaluating function gives back."""
    funcs = [f for f in code.program.functions.get(call.inside[-1], []) if not isinstance(f.node, ast.Lambda)]
    return [Val("const", node=n) for f in funcs[:1] for n in ast.walk(f.node) if isinstance(n, ast.Return)][:1]


def _joined(code: Code, call: Val) -> bool:
    """Whether the function that evaluates, or what it calls, or who uses its result right away, gathers."""
    name = call.inside[-1]
    if any(name in c.inside for c in code.story.calls if c.name in JOINS):
        return True
    given = [v for c in code.story.calls if c.name in JOINS for a in c.args for v in made_of(a)]
    return any(v.op == "net" and v.order == call.order for v in given) or bool(set(code.program.calls) & JOINS and len(call.inside) < 2)


def _not_prepared(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.uncalled:
        return
    prepared = [v for c in story.named("prepare") for v in c.args[1:]]
    for optimizer in story.optimizers:
        nets = story.moved_by(optimizer)
        mine = [c for c in story.named("prepare") if any(v is n for v in c.args[1:] for n in nets)]
        if mine and not any(v is optimizer for v in prepared) and story.steps_of(optimizer):
            yield code.seen(ID, "The network is prepared and its optimizer is not: it steps on its own, at every batch.", mine[0], optimizer)
            return


def _sampler_unused(code: Code) -> Iterator[Finding]:
    story = code.story
    used = {id(v) for c in story.calls for k, v in c.kwargs.items() if k in ("sampler", "batch_sampler")}
    used |= {id(v) for c in story.calls if c.name not in ("set_epoch", "DistributedSampler") for v in c.args}
    for sampler in story.named("DistributedSampler"):
        if id(sampler) not in used and not any(id(v) in used for v in story.calls if any(a is sampler for a in v.args)):
            loaders = [c for c in story.named("DataLoader") if not {"sampler", "batch_sampler", "**"} & set(c.kwargs)]
            beside = [c for c in loaders if "shuffle" in c.kwargs and sampler.args and c.arg("dataset", 0) is sampler.args[0]]
            if beside:
                text = "No loader gets this sampler: every process goes through all of the data."
                yield code.seen(ID, text, sampler, *beside[:1])
                return
