"""Parts of a runner's configuration contradict each other.

What it sees
------------
A configuration of the mm libraries: the number of classes of the head against the names, the annotations of evaluator
and data, milestones or warm-up against the length, names under a key that is not read.

Why it matters
--------------
The head does not fit the labels; predictions are scored against other pictures; the rate never changes, or never
arrives.

How it decides
--------------
The dictionaries of one file are read as values: `metainfo` and `num_classes`, `ann_file` of val_dataloader and
val_evaluator, `param_scheduler` and the epochs of train_cfg, each in the same unit.

When it is wrong
----------------
If a base file that is not there changes one of the sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import configures_a_runner
from wheeltapper.program.play.value import Val, number, text_of
from wheeltapper.program.reading import Code

ID = "runner-config-contradicts"
CAUSE: str | None = "setting-beyond-practice"
DECIDES = True

Told = tuple[str, Val]


def check(code: Code) -> Iterator[Finding]:
    if not configures_a_runner(code.program):
        return
    names = code.story.player.modules[code.program.entry.name].names
    for told, at in (*_classes(names), *_annotations(names), *_schedule(names)):
        yield code.seen(ID, told, at)
        return


def _inside(value: Val, depth: int = 0) -> Iterator[Val]:
    """Every dictionary in a configuration."""
    if depth > 8:
        return
    if value.op == "dict":
        yield value
        for key, inner in value.fields.items():
            if not key.startswith("@"):
                yield from _inside(inner, depth + 1)
    for inner in value.items or ():
        yield from _inside(inner, depth + 1)


def _classes(names: dict[str, Val]) -> Iterator[Told]:
    metas = [d.fields["metainfo"] for n in names.values() for d in _inside(n) if "metainfo" in d.fields]
    metas += [names["metainfo"]] if "metainfo" in names else []
    for meta in metas:
        old = next((k for k in meta.fields if k in ("CLASSES", "PALETTE")), None)
        if old is not None and "val_dataloader" in names:
            yield f"metainfo has {old}: this version reads {old.lower()}.", meta
    known = [m.fields["classes"] for m in metas if "classes" in m.fields]
    many = len(known[0].items) if known and known[0].items else None
    model = names.get("model")
    heads = [d.fields["num_classes"] for d in _inside(model) if "num_classes" in d.fields] if model is not None else []
    for head in heads:
        worth = number(head)
        if many is not None and worth is not None and worth != many and _is_detector(model):
            yield f"The head has {worth:g} classes and the data names {many}.", head


def _is_detector(model: Val | None) -> bool:
    """Detection counts no background since version 2; segmentation may."""
    return model is not None and any(k in d.fields for d in _inside(model) for k in ("bbox_head", "rpn_head", "roi_head"))


def _annotations(names: dict[str, Val]) -> Iterator[Told]:
    for part in ("val", "test"):
        loader, evaluator = names.get(f"{part}_dataloader"), names.get(f"{part}_evaluator")
        if loader is None or evaluator is None:
            continue
        read, others = _files(loader), [f for name, one in names.items() if one is not loader and name.endswith("_dataloader") for f in _files(one)]
        for judged in _inside(evaluator):
            mine = _path(judged.fields.get("ann_file"))
            if mine is not None and read and not any(mine.endswith(r) for r in read) and any(mine.endswith(o) for o in others):
                yield f"Predictions on {read[0]} are scored against {mine}.", judged.fields["ann_file"]


def _files(loader: Val) -> list[str]:
    return [t for d in _inside(loader) if (t := _path(d.fields.get("ann_file"))) is not None]


def _path(value: Val | None) -> str | None:
    """The end of a path: `root + "annotations/val.json"`."""
    if value is None:
        return None
    return text_of(value) or (_path(value.args[1]) if value.op == "bin" and value.name == "Add" else None)


def _schedule(names: dict[str, Val]) -> Iterator[Told]:
    length = names.get("train_cfg")
    epochs = number(length.fields.get("max_epochs")) if length is not None else None
    steps = number(length.fields.get("max_iters")) if length is not None else None
    for one in _inside(names.get("param_scheduler", Val("free"))):
        per_epoch = one.fields.get("by_epoch")
        total = epochs if per_epoch is None or per_epoch.data is True else steps
        if total is None:
            continue
        miles = one.fields.get("milestones")
        worth = [n for m in (miles.items or [] if miles is not None else []) if (n := number(m)) is not None]
        if miles is not None and worth and min(worth) >= total:
            yield f"The first milestone is {min(worth):g} and the run has {total:g}: the rate never changes.", miles
        end = number(one.fields.get("end"))
        kind = text_of(one.fields.get("type")) or ""
        if end is not None and end > 2 * total and "Linear" in kind and "start_factor" in one.fields:
            yield f"The warm-up ends at {end:g} and the run has {total:g}: the rate never arrives.", one.fields["end"]
