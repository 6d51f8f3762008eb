"""Loader workers are counted per process, and there are more than the machine has CPUs.

What it sees
------------
A number of loader workers that every training process starts for itself, so many that all processes together
exceed the CPUs the launch script speaks of; or a comment that counts them per GPU by dividing the very number given.

Why it matters
--------------
24 workers in each of 8 processes are 192. They compete for CPUs and memory, and the loader gets slower, not faster.

How it decides
--------------
num_workers is known and is not divided by the world size; the number of processes is known from the launcher, the
code or the machine's name; the CPUs are stated in the launch script (a comment, an instance type, --cpus-per-task).
Without a stated number of CPUs nothing is said.

When it is wrong
----------------
If the CPUs stated are those of another machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding, Place
from wheeltapper.program.checks.lr_scaled_twice import WORLD
from wheeltapper.program.conditions import mentions
from wheeltapper.program.launch import MACHINES, cpus_of
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code
from wheeltapper.program.scripts import Launch

ID = "workers-per-process"
CAUSE = "slow-data-loader"
DECIDES = False
PER_GPU = re.compile(r"(\d+)\s+workers?\s+(?:per|/)\s*(?:GPU|process|rank)", re.I)
GPUS = re.compile(r"(\d+)\s*[x×]\s*(?:NVIDIA\s+)?[AHVLB]\d{2,3}\b|(\d+)\s+GPUs", re.I)


def check(code: Code) -> Iterator[Finding]:
    workers = workers_of(code)
    if workers is None:
        return
    count, node = workers
    for launch in code.program.launches:
        said = _said_per_gpu(launch)
        world, cpus = processes_of(code, launch), cpus_of(launch)
        total = count * world if world is not None else None
        place = code.given["num_workers"].place if "num_workers" in code.given else None
        spots: list[ast.AST | Place] = [*([place] if place else []), node]
        if cpus is not None and cpus[2] and count > cpus[0]:
            yield code.finding(
                ID, f"{count:g} loader workers per process, and each process has {cpus[0]} CPUs.", *spots,
                Place(launch.name, cpus[1]), severity="watch", numbers={"workers": count, "cpus": cpus[0]},
            )  # fmt: skip
        elif cpus is not None and not cpus[2] and total is not None and total > cpus[0]:
            yield code.finding(
                ID,
                f"{count:g} loader workers are started by each of {world} processes: {total:g} in all, on {cpus[0]} CPUs.",
                *spots,
                Place(launch.name, cpus[1]),
                severity="watch",
                numbers={"workers": count, "processes": world or 0, "total": total, "cpus": cpus[0]},
            )
        elif said is not None and world and world > 1 and said[0] * world == count:
            yield code.finding(
                ID,
                f"{count:g} loader workers are started by each of {world} processes, {count * world:g} in all; the launch script "
                f"counts {said[0]} per GPU.",
                *spots,
                Place(launch.name, said[1]),
                severity="watch",
                numbers={"workers": count, "processes": world, "total": count * world},
            )
        else:
            continue
        return


def workers_of(code: Code) -> tuple[float, ast.expr] | None:
    """Loader workers that each process starts, and where the number stands; None if not known."""
    for part in code.made("loader"):
        node = argument(part.call, "num_workers", 5 if part.made_by == "DataLoader" else None)
        value = code.values.number(node) if node is not None else None
        if node is not None and value is not None and value > 1 and not mentions(code.program, node, WORLD):
            return value, node
    return None


def _said_per_gpu(launch: Launch) -> tuple[int, int] | None:
    match = PER_GPU.search(launch.text)
    return (int(match[1]), launch.text[: match.start()].count("\n") + 1) if match else None


def processes_of(code: Code, launch: Launch) -> int | None:
    """Processes on one machine, as the launcher, an option or the machine's name tell."""
    if "__processes__" in code.given:
        return int(code.given["__processes__"].value)
    value = code.values.option("world_size")
    if isinstance(value, int) and value > 0:
        return value
    if any(name in launch.text for name in MACHINES):
        return 8  # every machine in the table carries 8 GPUs
    match = GPUS.search(launch.text)
    return int(match[1] or match[2]) if match and code.calls_any("spawn", "init_process_group") else None
