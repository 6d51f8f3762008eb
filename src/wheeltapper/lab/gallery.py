"""A page that shows each fault once: its curve, what is true, what the diagnosis says, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from wheeltapper.api import diagnose
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.judge.model import SOMETHING_ELSE
from wheeltapper.lab.faults import find
from wheeltapper.lab.truth import Truth, load_all
from wheeltapper.report.html import page
from wheeltapper.report.spark import spark
from wheeltapper.report.view import RunView, view_of
from wheeltapper.study import Study

TITLE = """\
# Gallery of faults

Every fault and every benign oddity of the lab once, at size test: the training loss and the main score over the run, what is
true, what it did to the run against its healthy twin, what the diagnosis says of what the run left, and the remedy it offers. "sound" beside a
harm means that the record does not show it. Written by `wheeltapper lab gallery DIR -o docs/gallery.md` from a corpus."""
CHARTS = 2  # a gallery of a hundred runs with all charts of each would be no page but a book


def gallery(out: Path, say: Callable[[str], None] = lambda _line: None) -> str:
    """One HTML text over a labelled set: every fault and oddity with its curves and its diagnosis."""
    views = []
    for truth in shown(out):
        say(f"{truth.system} {truth.fault}")
        views.append(view(truth, out))
    return page([one for one in views if one is not None])


def shown(out: Path) -> list[Truth]:
    """Of each fault and oddity one run: one that was harmed, with its script, if there is one."""
    best: dict[tuple[str, str], Truth] = {}
    for truth in load_all(out):
        if truth.fault is None:
            continue
        known = best.get((truth.system, truth.fault))
        if known is None or (truth.manifested, truth.script) > (known.manifested, known.script):
            best[truth.system, truth.fault] = truth
    if not best:
        raise InputError(f"{out} holds no faulty lab runs", do=f"Make some with: wheeltapper lab corpus -o {out}")
    return [truth for _, truth in sorted(best.items())]


def gallery_text(out: Path, say: Callable[[str], None] = lambda _line: None) -> str:
    """The same as one Markdown page, small enough for the documentation: a row a run."""
    lines = [TITLE]
    system = ""
    for truth in shown(out):
        say(f"{truth.system} {truth.fault}")
        if truth.system != system:
            system = truth.system
            lines += [f"\n## {system}\n", "| fault | curve | true cause | what it did | what is said | what to do |"]
            lines += ["| --- | --- | --- | --- | --- | --- |"]
        lines.append(row(truth, out))
    return "\n".join(lines) + "\n"


def row(truth: Truth, out: Path) -> str:
    what = find(truth.system, str(truth.fault)).text
    try:
        said = max(diagnose(out / "runs" / truth.run), key=lambda d: len(d.run.series))
    except WheeltapperError:
        return f"| **{truth.fault}**: {what} | | {truth.cause or 'none'} | {truth.measured} | cannot be read | |"
    train, score = said.run.series.get("train/loss"), Study(said.run).maybe("main_metric")
    curves = "<br>".join(f"`{spark(s.values, 20)}` {s.name}" for s in (train, score) if s is not None and len(s) > 1)
    first = next((c for c in said.causes if c.id != SOMETHING_ELSE), None)
    verdict = said.verdict + (f"; {first.id} {first.probability:.0%}" if first is not None else "")
    do = first.remedies[0].text if first is not None and first.remedies else ""
    cells = (f"**{truth.fault}**: {what}", curves, truth.cause or "none (benign)", truth.measured, verdict, do)
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"


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
