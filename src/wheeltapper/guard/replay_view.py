"""An incident on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from wheeltapper.guard.replay import Replay, incidents
from wheeltapper.report.text import clean, num

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    ("loss", "loss"), ("grad_norm", "grad norm"), ("update_ratio", "update/weight"), ("lr", "lr"), ("scale", "scale"),
)  # fmt: skip


def print_incident(replay: Replay, out: Console, *, steps: int) -> None:
    from rich.table import Table
    from rich.text import Text

    caught = replay.incident
    kind = clean(caught.get("kind", "?"), 60)
    out.print(Text(f"{kind} at step {replay.step:,}", style="bold"))
    _line(out, clean(caught.get("text", ""), 1000))
    for other in replay.also[:5]:
        _line(out, "also: " + clean(other.get("text", ""), 400))
    onset = caught.get("onset")
    if isinstance(onset, int | float) and onset != replay.step:
        _line(out, f"it began at step {num(onset)}")
    action = caught.get("action")
    _line(out, f"what the guard did: {clean(action, 60) if action else 'nothing in this step'}")
    _facts(caught.get("facts"), out)
    if replay.tensors:
        names = ", ".join(clean(t, 100) for t in replay.tensors[:12])
        more = f" and {len(replay.tensors) - 12} more" if len(replay.tensors) > 12 else ""
        _line(out, f"tensors to look at: {names}{more}")
    rows = replay.steps[-steps:]
    if rows:
        out.print()
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("step", justify="right")
        shown = [(key, title) for key, title in COLUMNS if any(_value(r, key) is not None for r in rows)]
        for _, title in shown:
            table.add_column(title, justify="right")
        for title in ("batch", ""):
            table.add_column(title)
        for row in rows:
            bad = not _fine(row)
            cells = [num(row.get("step")), *(num(_value(row, key)) for key, _ in shown)]
            cells += [clean(_batch(row.get("batch_id")), 24), clean(_remark(row), 60)]
            table.add_row(*(Text(c) for c in cells), style="red" if bad else None)
        out.print(table)
    _where(replay, out)


def _line(out: Console, text: str) -> None:
    """Set in by two, also where it wraps."""
    from rich.padding import Padding
    from rich.text import Text

    out.print(Padding(Text(text), (0, 0, 0, 2), expand=False))


def _facts(facts: Any, out: Console) -> None:
    from rich.text import Text

    if not isinstance(facts, dict):
        return
    for key, value in list(facts.items())[:20]:
        if isinstance(value, list):
            for item in value[:8]:
                out.print(Text(f"    {clean(item, 200)}"))
        else:
            shown = num(value) if isinstance(value, int | float) and not isinstance(value, bool) else clean(value, 300)
            _line(out, f"{clean(key, 40)}: {shown}")


def _where(replay: Replay, out: Console) -> None:

    where, model = replay.where, replay.model
    out.print()
    parts = [
        model.get("class"),
        f"{num(model.get('parameters'))} parameters",
        model.get("optimizer"),
        where.get("device"),
    ]
    _line(out, ", ".join(clean(p, 80) for p in parts if p))
    has = [name for name, file in (("random states", "random.pt"), ("batches", "batch.pt")) if file in replay.files]
    _line(out, f"kept: {len(replay.steps)} steps" + "".join(f", {name}" for name in has))
    for note in replay.notes[:5]:
        _line(out, f"note: {clean(note, 200)}")
    others = [clean(p.name, 60) for p in incidents(replay.folder.resolve().parent) if p != replay.folder.resolve()]
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        _line(out, f"beside it, oldest first: {', '.join(others[:5])}{more}")


def _value(row: Any, key: str) -> float | None:
    value = row.get(key)
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, int | float):
        return None
    # Not measured is nan too; a loss scale or an update of nan says no more than an empty cell.
    return None if math.isnan(value) and key in ("scale", "update_ratio") else float(value)


def _fine(row: Any) -> bool:
    loss, norm = _value(row, "loss"), _value(row, "grad_norm")
    return all(v is None or math.isfinite(v) for v in (loss, norm)) and not row.get("nonfinite")


def _remark(row: Any) -> str:
    words = []
    if row.get("nonfinite"):
        words.append(f"{row['nonfinite']} gradients not finite")
    if row.get("skipped"):
        words.append("skipped")
    if row.get("clipped"):
        words.append("clipped")
    if row.get("action"):
        words.append(str(row["action"]))
    return ", ".join(words)


def _batch(value: Any) -> str:
    return "" if value is None else str(value)
