"""One run in several folders: where frameworks keep the parts of one run apart."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading.guard_journal import STEPS
from wheeltapper.reading.record import Points, Reading
from wheeltapper.run.apart import of_split

# Folders that belong to the run above them.
PART_OF_RUN = re.compile(
    r"^(checkpoint-\d+|checkpoints?(-meta)?|ckpts?|logs?|tb|tensorboard(_logs?)?|tb_logs?|tb_logger|events?|models?|weights|"
    r"training_states|resume_models|\.hydra|files|metrics|artifacts|state|states|global_step\d+|iter_\d+|attempt_\d+|params|tags|"
    r"incident-\d+(-rank\d+)?(\.\d+)?)$",
    re.IGNORECASE,
)
INCIDENT = re.compile(r"^incident-\d+(-rank\d+)?(\.\d+)?$")  # written by the guard (guard/recorder.py)
APART = {"tb_logger", "tensorboard", "tb_logs", "tb", "events"}  # where frameworks keep event files of all runs
WANDB_RUN = re.compile(r"(offline-)?run-\d{8}_\d{6}-\w+$")
SPLITS = {"train": "train", "validation": "val", "val": "val", "valid": "val", "eval": "val", "test": "test"}
EVENTS = "TensorBoard events"


def home_of(folder: Path, top: Path) -> Path:
    """The folder of the run that a folder belongs to, never above `top`."""
    while folder != top and PART_OF_RUN.match(folder.name):
        folder = folder.parent
    return folder


def guard_beside_log(readings: list[Reading]) -> list[Reading]:
    """The steps that the guard wrote before an incident stand in for a log where there is none; beside one they are left out,
    for they tell again, for a few steps and under the same names, what it tells from the start."""
    if not any(r.points for r in readings if r.format != STEPS):
        return readings
    return [replace(r, points=()) if r.format == STEPS else r for r in readings]


def rejoined(groups: dict[Path, list[Reading]], top: Path) -> dict[Path, list[Reading]]:
    """One run in two places. BasicSR keeps experiments/<name>/ and tb_logger/<name>/, known by its name; W&B keeps
    wandb/<time>-<id>/ for each launch inside the folder that the run logs to: launches of one id are one run, and
    where there is one id only, it is the run of the folder above. TensorBoard's writers, see `_writers`."""
    out = _writers(_writers(groups, top), top)  # the folders of add_scalars hold folders of splits
    for home in list(out):
        above = home.parent.parent
        if WANDB_RUN.match(home.name) and home.parent.name == "wandb":
            launches = [h for h in groups if h.parent == home.parent and WANDB_RUN.match(h.name)]
            ids = {h.name.rsplit("-", 1)[-1] for h in launches}
            same = sorted(h for h in launches if h.name.rsplit("-", 1)[-1] == home.name.rsplit("-", 1)[-1])
            if len(ids) == 1 and any(r.points for r in groups.get(above, [])):
                out[above] = [*out[above], *out.pop(home)]
            elif home != same[0]:
                out[same[0]] = [*out[same[0]], *out.pop(home)]
            continue
        if home.parent.name in APART:
            others = [h for h in out if h != home and h.name == home.name and h.parent.parent == home.parent.parent]
            if len(others) == 1:
                out[others[0]] = [*out[others[0]], *out.pop(home)]
    return out


def _writers(groups: dict[Path, list[Reading]], top: Path) -> dict[Path, list[Reading]]:
    """Folders of event files that are writers of the run above: Keras has train/ and validation/, an Estimator eval/ below
    its own events, and add_scalars("loss", {"train": ...}) of torch a folder loss_train/ with the tag `loss`."""
    out = dict(groups)
    events = {home for home, found in groups.items() if found and all(r.format == EVENTS for r in found)}
    splits: dict[Path, set[str]] = defaultdict(set)
    for home in events:
        if home.name.lower() in SPLITS:
            splits[home.parent].add(SPLITS[home.name.lower()])
    for home in sorted(events - {top}, key=lambda home: (-len(home.parts), home)):
        above = home_of(home.parent, top)
        split = SPLITS.get(home.name.lower())
        known = any(r.format == EVENTS for r in groups.get(above, []))
        if split and (known or len(splits[home.parent]) > 1):
            parts = [of_split(r, split) for r in out.pop(home)]
        elif known and (named := _of_add_scalars(home.name, out[home])):
            parts = named
            out.pop(home)
        elif known and {p.name.rsplit("/", 1)[-1] for r in out[home] for p in r.points} == {home.name}:
            parts = out.pop(home)  # tensorboardX: add_scalars("loss", ...) makes loss/train and loss/val
        else:
            continue
        out[above] = [*out.get(above, []), *parts]
    return out


def _of_add_scalars(folder: str, readings: list[Reading]) -> list[Reading]:
    """The readings with the key that the folder says behind its tag; nothing if the folder is not such a one."""
    tags = {p.name for r in readings for p in r.points}
    tag = tags.pop() if len(tags) == 1 else ""
    head = tag.replace("/", "_") + "_"
    if not tag or not folder.startswith(head) or folder == head:
        return []

    def named(p: Points) -> Points:
        return replace(p, name=f"{tag}_{folder.removeprefix(head)}")

    return [replace(r, points=tuple(map(named, r.points))) for r in readings]
