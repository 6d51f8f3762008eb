"""The command lines that start a program, from the launch scripts beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from wheeltapper.finding import Place
from wheeltapper.program.scripts import Launch, Script
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import ConfigTree, Leaf

# `tmux send-keys -t name "` ... `" C-m`: the command is a quoted string to the shell, and a command all the same.
SENT = re.compile(r'^([ \t]*(?:tmux\s+send-keys|screen\s+\S.*?-X\s+stuff|ssh)[^"\n]*")([^"]*)("[^\n]*)$', re.M)
CPUS_STATED = re.compile(r"(\d{1,4})\s*(?:v?CPUs?\b|vcpus?\b|(?:CPU )?cores\b)", re.I)
CPUS_PER_TASK = re.compile(r"^#SBATCH\s+(?:--cpus-per-task|-c)[= ]\s*(\d+)", re.M)
# vCPUs of the cloud machines people name in launch scripts (vendors' pages).
MACHINES = {
    "p3.16xlarge": 64,
    "p4d.24xlarge": 96,
    "p4de.24xlarge": 96,
    "p5.48xlarge": 192,
    "a2-highgpu-8g": 96,
    "a3-highgpu-8g": 208,
    "g5.48xlarge": 192,
}


@dataclass(frozen=True)
class Given:
    """A value given for an option outside the code, and where it is written."""

    value: Any
    place: Place


def launch_tree(launch: Launch) -> ConfigTree:
    tree = parse_text(launch.text, launch.name, "shell")
    if tree.kind is None and SENT.search(launch.text):
        # Same length, so that every position stays true.
        opened = SENT.sub(lambda m: " " * len(m[1]) + m[2].replace("\\\\\n", " \\\n") + " " * len(m[3]), launch.text)
        return parse_text(opened, launch.name, "shell")
    return tree


def given_by(launch: Launch, entry: Script) -> dict[str, Given] | None:
    """The options a launch script starts `entry` with; None when it starts something else."""
    tree = launch_tree(launch)
    script = tree.leaf("script")
    module = tree.leaf("module")
    stem = PurePath(entry.name).stem
    started = (
        (script is not None and PurePath(str(script.value).split()[-1]).stem == stem)
        or (module is not None and str(module.value).split(".")[-1] == stem)
    )  # fmt: skip
    if not started:
        return None
    out: dict[str, Given] = {}
    for leaf in tree:
        if len(leaf.path) == 1 and leaf.path[0] not in ("script", "module", "program") and known(leaf):
            out[str(leaf.path[0])] = Given(leaf.value, Place(leaf.file, leaf.line, leaf.column))
    count = processes(tree)
    if count is not None:
        out["__processes__"] = count
    return out


def processes(tree: ConfigTree) -> Given | None:
    """How many training processes the launcher starts, by its own options, over all nodes."""
    per_node = nodes = None
    for leaf in tree:
        if leaf.path[0] != "launcher" or not known(leaf):
            continue
        name = str(leaf.path[-1])
        if name in ("nproc_per_node", "num_processes", "num_gpus") and isinstance(leaf.value, int):
            per_node = leaf
        elif name in ("nnodes", "num_nodes") and isinstance(leaf.value, int):
            nodes = leaf
    if per_node is None:
        return None
    count = per_node.value * (nodes.value if nodes is not None else 1)
    return Given(count, Place(per_node.file, per_node.line, per_node.column))


def cpus_of(launch: Launch) -> tuple[int, int, bool] | None:
    """CPUs a launch script says the machine has: (count, line, whether that is per process)."""
    match = CPUS_PER_TASK.search(launch.text)
    if match:
        return int(match[1]), launch.text[: match.start()].count("\n") + 1, True
    for number, line in enumerate(launch.text.splitlines(), 1):
        for name, count in MACHINES.items():
            if name in line:
                return count, number, False
        match = CPUS_STATED.search(line)
        if match and int(match[1]) > 1:
            return int(match[1]), number, False
    return None


def known(leaf: Leaf) -> bool:
    """Whether the shell would pass this very value: nothing in it is computed or set under a condition."""
    return not (leaf.note and ("an expression" in leaf.note or "under a condition" in leaf.note))
