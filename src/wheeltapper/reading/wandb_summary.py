"""`wandb-summary.json`: the last value of everything a run logged, and when."""

from __future__ import annotations

import json
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import whole
from wheeltapper.reading._text import decode
from wheeltapper.reading.record import Note, Reading
from wheeltapper.reading.wandb_offline import summary_facts

FORMAT = "W&B summary"


def sniff(head: Head) -> float:
    if not head.data.lstrip().startswith(b"{"):
        return 0.0
    told = all(word in head.data for word in (b'"_step"', b'"_timestamp"', b'"_runtime"'))
    if head.name == "wandb-summary.json":
        return 0.97
    return 0.8 if told and head.data.count(b'"_step"') == 1 and b"}\n{" not in head.data else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    notes: list[Note] = []
    try:
        value = json.loads(decode(whole(path, notes))[0] or "{}")
    except (ValueError, RecursionError):
        return [Reading(file, FORMAT, notes=(*notes, Note("not valid JSON", file, level="lost")))]
    if not isinstance(value, dict):
        return [Reading(file, FORMAT, notes=(*notes, Note("not a JSON object", file, level="lost")))]
    facts = summary_facts(value, file)
    if not facts and not notes:
        notes.append(Note("it holds no values", file))
    return [Reading(file, FORMAT, facts=tuple(facts), notes=tuple(notes))]
