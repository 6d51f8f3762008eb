"""Configuration files that lie beside a run: YAML, JSON, TOML, INI, properties, Python configs, launch scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading.record import Note, Reading
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import format_of, parse_file, parse_text

FORMAT = "config file"
MOST_BYTES = 4 << 20  # the largest configuration echoed in the corpus is 30 KB; beyond this it is data

_NAMED = re.compile(r"(config|^conf\b|cfg|args|params|hparams|hyper|option|setting|training_args|recipe)", re.IGNORECASE)
_TEXTS = re.compile(r"(?i)(^|[^a-z])(config|cfg|args|arguments|params|hparams|hyper\w*|options?|opts?|settings?|flags|cmd|command|argv)([^a-z]|$)")
_KEYED = {".ini", ".cfg", ".conf", ".properties", ".gin", ".env", ".prototxt", ".pbtxt", ".config"}
LEAST = 2  # settings by their meaning that make an object of any name a configuration


def sniff(head: Head) -> float:
    if head.size > MOST_BYTES or head.looks_binary or not head.size:
        return 0.0
    suffix = head.path.suffix.lower()
    if suffix in {".yaml", ".yml", ".toml"}:
        return 0.6
    if suffix == ".json" and (_NAMED.search(head.name) or _sets(head)):
        return 0.6
    if suffix in _KEYED:
        return 0.4 if format_of(head.name, head.text) else 0.0
    if suffix in {".txt", ""} and _TEXTS.search(head.path.stem) and format_of(head.name, head.text):
        return 0.25  # less than a log whose rows repeat
    if suffix == ".py" and _NAMED.search(head.name):
        return 0.4
    if suffix in {".sh", ".bash", ".slurm", ".sbatch"}:
        return 0.4
    return 0.0


def _sets(head: Head) -> bool:
    """One object under any name (adapter.json, hp.json) that sets more than it measures. A row of results does not."""
    if head.size > len(head.data) or not head.data.lstrip().startswith(b"{"):
        return False
    try:
        keys = _keys(json.loads(head.data))
    except (ValueError, RecursionError):
        return False
    measures = sum(names_measure(key) for key in keys)
    if not keys or "step" in keys or "global_step" in keys or 2 * measures > len(keys):
        return False
    knobs = read_knobs([parse_text(head.text, head.name, "json")], dialect="generic")
    return len({v.leaf.path for v in knobs.declared() if v.leaf}) >= LEAST + measures


def _keys(value: object) -> list[str]:
    return [key for key in value if isinstance(key, str)] if isinstance(value, dict) else []


def read(path: Path) -> list[Reading]:
    tree = parse_file(path)
    file = str(path)
    if tree is None or not len(tree):
        return [Reading(file, FORMAT, notes=(Note("no settings were found in it", file),))]
    notes = tuple(Note(problem, file, level="lost") for problem in tree.problems)
    return [Reading(file, FORMAT, configs=(tree,), notes=notes)]
