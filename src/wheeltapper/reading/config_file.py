"""Configuration files that lie beside a run: YAML, JSON, TOML, Python configs, launch scripts."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading.record import Note, Reading
from wheeltapper.settings.parse import parse_file

FORMAT = "config file"
MOST_BYTES = 4 << 20  # the largest configuration echoed in the corpus is 30 KB; beyond this it is data

_NAMED = re.compile(r"(config|args|params|hparams|hyper|option|setting|training_args|recipe)", re.IGNORECASE)


def sniff(head: Head) -> float:
    if head.size > MOST_BYTES or head.looks_binary or not head.size:
        return 0.0
    suffix = head.path.suffix.lower()
    if suffix in {".yaml", ".yml", ".toml"}:
        return 0.6
    if suffix == ".json" and _NAMED.search(head.name):
        return 0.6
    if suffix == ".py" and _NAMED.search(head.name):
        return 0.4
    if suffix in {".sh", ".bash", ".slurm", ".sbatch"}:
        return 0.4
    return 0.0


def read(path: Path) -> list[Reading]:
    tree = parse_file(path)
    file = str(path)
    if tree is None or not len(tree):
        return [Reading(file, FORMAT, notes=(Note("no settings were found in it", file),))]
    notes = tuple(Note(problem, file, level="lost") for problem in tree.problems)
    return [Reading(file, FORMAT, configs=(tree,), notes=notes)]
