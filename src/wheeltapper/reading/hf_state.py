"""Hugging Face `trainer_state.json`: the log history that every checkpoint of a Trainer run carries.

The history is scanned entry by entry, so that each value knows its line and a cut or damaged file gives
all entries that are whole. NaN losses may be missing from it: by default the Trainer replaces them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import CONFLICT, whole
from wheeltapper.reading._clocks import said_positions
from wheeltapper.reading._jsonl import add_row
from wheeltapper.reading._table import Stated, TableBuilder
from wheeltapper.reading._text import decode
from wheeltapper.reading.record import Checkpoint, ClockName, Fact, Floats, Note, Reading
from wheeltapper.settings.parse_json import parse_json
from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree

FORMAT = "HF trainer_state.json"

_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
_NEXT = re.compile(r"\}\s*,?\s*(?=\{)|\n\s*(?=\{)")
_SCALAR = re.compile(r'^[ \t]*"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,\[{"]+)\s*,?\s*$', re.MULTILINE)
_decoder = json.JSONDecoder()

# What the trainer was told, as opposed to what happened.
SETTINGS = ("max_steps", "num_train_epochs", "logging_steps", "eval_steps", "save_steps", "train_batch_size")
FACTS = {
    "max_steps": "total_steps",
    "num_train_epochs": "total_epochs",
    "global_step": "global_step",
    "best_metric": "best_metric",
    "best_global_step": "best_step",
    "best_model_checkpoint": "best_checkpoint",
    "train_batch_size": "train_batch_size",
    "num_input_tokens_seen": "tokens_seen",
    "total_flos": "total_flos",
}
# The Trainer logs these at the step itself; `loss` is the mean over the logging steps before it.
AT_THE_STEP = {"learning_rate", "grad_norm", "lr"}


def sniff(head: Head) -> float:
    if b'"log_history"' in head.data and b'"global_step"' in head.data:
        return 0.97
    return 0.5 if head.name.endswith("trainer_state.json") and head.data.lstrip().startswith(b"{") else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    data = whole(path, notes)
    if not data:
        return [Reading(file, FORMAT, notes=tuple(notes))]
    text, repairs = decode(data)
    notes += [Note(repair, file, level="repaired") for repair in repairs]
    text = _without_conflicts(text, file, notes)
    builder = TableBuilder(file)
    summary: dict[str, Any] = {}
    started = _HISTORY.search(text)
    end = len(text)
    if started is None:
        notes.append(Note("no `log_history` in it", file, level="lost"))
    else:
        end = _scan(text, started.end(), builder, summary)
    state = _state(text, started.end() if started else 0, end, builder)
    table = builder.table()
    step = said_positions(table.columns["step"]) if "step" in table.columns else None
    epoch = said_positions(table.columns["epoch"]) if "epoch" in table.columns else None
    clock: ClockName = "step" if step is not None else "epoch" if epoch is not None else "row"
    at = step if step is not None else epoch if epoch is not None else table.lines.astype(float)
    others: dict[ClockName, Floats] = {"epoch": epoch} if epoch is not None and clock == "step" else {}
    points = table.points(clock, at, others, skip={"step", "epoch"}, stated=_stated)
    facts = [
        Fact(name, state[key], file) for key, name in FACTS.items() if state.get(key) not in (None, 0, -1, "")
    ]
    facts += [Fact(f"summary/{key}", value, file) for key, value in summary.items()]
    facts += _per_epoch(state, file)
    reading = table.reading(FORMAT, points, facts=facts, configs=_settings(state, text, file), notes=notes)
    best = state.get("best_model_checkpoint")
    if not isinstance(best, str) or not best:
        return [reading]
    found = re.search(r"checkpoint-(\d+)", best)
    kept = Checkpoint(best, step=float(found[1]) if found else None, exists=False, note="best_model_checkpoint")
    return [Reading(file, FORMAT, points, reading.configs, reading.facts, reading.events, (kept,), reading.notes)]


def _scan(text: str, at: int, builder: TableBuilder, summary: dict[str, Any]) -> int:
    """Read the entries of the history; returns the offset behind it."""
    line = text.count("\n", 0, at) + 1
    counted = at
    one_line = "\n" not in text[at : at + 4096]  # dumped without indent: entries are numbered instead
    number = 0
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        line += text.count("\n", counted, at)
        counted = at
        if at >= len(text):
            builder.count("the file ends in the middle of the history", line)
            return at
        if text[at] == "]":
            return at + 1
        number += 1
        try:
            entry, at_next = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            following = _NEXT.search(text, at + 1)
            if following is None:
                builder.count("the history is cut in the middle of an entry", line)
                return len(text)
            builder.count("{n} damaged entries of the history left out", line)
            at = following.end()
            continue
        at = at_next
        if not isinstance(entry, dict):
            builder.count("{n} entries of the history are not objects", line)
        elif "train_runtime" in entry:  # the end of train(): means over the whole training, not points of a curve
            summary.update((k, v) for k, v in entry.items() if k not in ("step", "epoch"))
        else:
            add_row(builder, number if one_line else line, entry)


def _state(text: str, start: int, end: int, builder: TableBuilder) -> dict[str, Any]:
    """The scalars beside the history."""
    around = text[:start] + "]" + text[end:] if start else text
    try:
        value = json.loads(around)
        return value if isinstance(value, dict) else {}
    except (ValueError, RecursionError):
        builder.count("what stands beside the history is cut or damaged", text.count("\n", 0, end) + 1)
        found: dict[str, Any] = {}
        for key, raw in _SCALAR.findall(around[:100_000]):
            try:
                found.setdefault(key, json.loads(raw))
            except ValueError:
                continue
        return found


def _per_epoch(state: dict[str, Any], file: str) -> list[Fact]:
    step, epoch = state.get("global_step"), state.get("epoch")
    if not isinstance(step, int) or not isinstance(epoch, (int, float)) or not 0 < epoch < 1e9 or step <= 0:
        return []
    ratio = step / epoch
    total, epochs = state.get("max_steps"), state.get("num_train_epochs")
    if isinstance(total, int) and isinstance(epochs, int) and epochs > 0 and abs(total / epochs - ratio) < 1:
        how = f"{file}: max_steps {total} over {epochs} epochs"
        return [Fact("steps_per_epoch", total // epochs, how, derived=True)] if total % epochs == 0 else []
    how = f"{file}: global_step {step} at epoch {epoch:.6g}"
    return [Fact("steps_per_epoch", round(ratio), how, derived=True)] if ratio >= 0.5 else []


def _settings(state: dict[str, Any], text: str, file: str) -> list[ConfigTree]:
    told = {key: state[key] for key in SETTINGS if isinstance(state.get(key), (int, float))}
    if not told:
        return []
    line = {key: text.count("\n", 0, text.rfind(f'"{key}"')) + 1 for key in told}
    leaves = tuple(
        leaf for key in told for leaf in parse_json(Source(json.dumps({key: told[key]}), file, line[key]))
    )
    return [ConfigTree(file, "state", leaves, kind="trainer state")]


def _stated(name: str) -> Stated:
    if name.startswith("eval_"):
        return Stated(window="eval", split="val")
    if name.startswith(("test_", "predict_")):
        return Stated(window="eval", split="test")
    if name == "loss":
        return Stated(window="window", split="train")
    return Stated(window="batch") if name in AT_THE_STEP else Stated()


def _without_conflicts(text: str, file: str, notes: list[Note]) -> str:
    if "<<<<<<< " not in text:
        return text
    lines = text.split("\n")
    marks = [i for i, line in enumerate(lines) if CONFLICT.match(line.encode("utf-8", "replace"))]
    for i in marks:
        lines[i] = ""
    if marks:
        said = f"{len(marks)} merge-conflict marks left out; both sides are kept where they can be read"
        notes.append(Note(said, file, marks[0] + 1, "repaired"))
    return "\n".join(lines)
