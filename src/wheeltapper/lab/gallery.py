"""A page that shows each fault once: its curve, what is true, what the diagnosis says, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from wheeltapper.api import diagnose
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.lab.faults import find
from wheeltapper.lab.truth import Truth, load_all
from wheeltapper.report.html import page
from wheeltapper.report.view import RunView, view_of

CHARTS = 2  # a gallery of a hundred runs with all charts of each would be no page but a book


def gallery(out: Path, say: Callable[[str], None] = lambda _line: None) -> str:
    """One HTML text over a labelled set: of each fault the run that was harmed, or one that was not."""
    best: dict[tuple[str, str], Truth] = {}
    for truth in load_all(out):
        if truth.fault is None:
            continue
        known = best.get((truth.system, truth.fault))
        if known is None or (truth.manifested, truth.script) > (known.manifested, known.script):
            best[truth.system, truth.fault] = truth
    if not best:
        raise InputError(f"{out} holds no faulty lab runs", do=f"Make some with: wheeltapper lab corpus -o {out}")
    views = []
    for (system, fault), truth in sorted(best.items()):
        say(f"{system} {fault}")
        views.append(view(truth, out))
    return page([one for one in views if one is not None])


def view(truth: Truth, out: Path) -> RunView | None:
    try:
        said = diagnose(out / "runs" / truth.run)
    except WheeltapperError:
        return None
    shown = view_of(max(said, key=lambda d: len(d.run.series)), charts=True)
    what = find(truth.system, str(truth.fault)).text
    kind = f"true cause: {truth.cause}" if truth.kind == "fault" else "benign"
    since = f" since {truth.unit} {truth.onset:g}" if truth.onset else ""
    return replace(
        shown,
        name=f"{truth.system}, {truth.fault}: {what}",
        root=truth.run,
        progress=f"{kind}{since}; {truth.measured}",
        charts=shown.charts[:CHARTS],
    )
