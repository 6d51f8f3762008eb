"""A diagnosis as Markdown to paste into an issue. Text from the run cannot become markup, a link or a mention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from wheeltapper.report.text import plural
from wheeltapper.report.view import CauseView, Row, RunView, SignView

_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}
SIGNS = {"sound": "✅", "ill": "❌", "cannot-tell": "❔"}


def esc(text: str) -> str:
    """
    >>> esc("<b> a_b @me |")
    '&lt;b&gt; a\\\\_b &#64;me \\\\|'
    """
    return _SPECIAL.sub(r"\\\1", "".join(_ENTITIES.get(c, c) for c in text))


def code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`" if text else ""


def render(views: Sequence[RunView]) -> str:
    parts = []
    if len(views) > 1:
        parts.append("| verdict | run | |\n| --- | --- | --- |")
        parts[0] += "".join(
            f"\n| {SIGNS[v.verdict]} {v.verdict_words} {esc(v.chance)} | {esc(v.name)} | {esc(v.headline)} |"
            for v in views
        )
    parts += [_run(view) for view in views]
    return "\n\n".join(parts) + "\n"


def _run(view: RunView) -> str:
    parts = [
        f"### {SIGNS[view.verdict]} {view.verdict_words} {esc(view.chance)}: {esc(view.name)}",
        f"**{esc(view.headline)}**",
    ]
    under = " · ".join(esc(part) for part in (view.progress, view.formats) if part)
    if under:
        parts.append(f"<sub>{under}</sub>")
    if view.suspicion is not None:
        why = f": {esc(view.suspicion.why)}" if view.suspicion.why else ""
        parts.append(f"**Leading suspicion:** {esc(view.suspicion.value)}{why}")
    if view.why:
        parts.append(_bullets(view.why))
    if view.todo:
        parts.append("**What to do**\n\n" + "\n".join(f"{i}. {esc(t)}" for i, t in enumerate(view.todo, 1)))
    if view.best is not None:
        why = f": {esc(view.best.why)}" if view.best.why else ""
        parts.append(f"**Checkpoint to keep:** {code(view.best.name)} {esc(view.best.value)}{why}")
    if view.curves:
        width = max(len(c.name) for c in view.curves)
        rows = [f"{c.name:<{width}} {c.better or ' '} {c.picture:<24} {c.numbers}" for c in view.curves]
        parts.append("```text\n" + "\n".join(row.replace("`", "'") for row in rows) + "\n```")
    if view.signs:
        parts.append("#### Signs\n\n" + "\n".join(_sign(s) for s in view.signs))
    if view.causes:
        parts.append("#### Causes, by probability\n\n" + "\n\n".join(_cause(c) for c in view.causes))
    tables = (
        ("Are the numbers reliable?", view.validity, False),
        ("Ruled out", view.ruled_out, True),
        ("Looks odd, is normal here", view.expected, True),
        ("What to collect next, most decisive first", view.missing, False),
    )
    parts += [f"#### {title}\n\n{_rows(rows, by_value)}" for title, rows, by_value in tables if rows]
    if view.prognosis:
        parts.append("#### Where it is going\n\n" + _bullets(view.prognosis))
    parts += _folded(view)
    return "\n\n".join(parts)


def _sign(sign: SignView) -> str:
    mark = {"ill": "❌", "watch": "⚠️", "note": "·"}[sign.severity]
    about = ", ".join(esc(part) for part in (sign.series, sign.when) if part)
    places = ", ".join(code(p) for p in sign.places)
    tail = f" <sub>{esc(sign.grade_words)}{'; ' + places if places else ''}</sub>"
    return f"- {mark} **{esc(sign.id)}**{' (' + about + ')' if about else ''}: {esc(sign.summary)}{tail}"


def _cause(cause: CauseView) -> str:
    lines = [f"**{cause.share} {esc(cause.title)}**" + (f" ({code(cause.id)})" if cause.known else "")]
    if cause.known:
        lines[0] += f" <sub>{esc(cause.grade_words)}</sub>"
    if cause.summary:
        lines.append(esc(cause.summary))
    items = []
    for words, told in cause.speaks:
        for e in told:
            places = ", ".join(code(p) for p in e.places)
            items.append(f"- {words} it, {e.bits} bits: {esc(e.text)}{' (' + places + ')' if places else ''}")
    for remedy in cause.remedies:
        edits = "".join(f" {code(edit)}" for edit in remedy.edits)
        then = f" Then: {esc(remedy.predicts)}." if remedy.predicts else ""
        items.append(f"- remedy ({remedy.safety}): {esc(remedy.text)}{edits}{then}")
    if cause.trial:
        items.append(f"- trial: {esc(cause.trial)}")
    if items:
        lines.append("\n" + "\n".join(items))
    return "\n".join(lines)


def _rows(rows: Iterable[Row], by_value: bool) -> str:
    out = []
    for row in rows:
        head = f"**{esc(row.value)}**" if by_value else f"**{esc(row.name)}**"
        if not by_value and row.value:
            head += f", {esc(row.value)}"
        out.append(f"- {head}" + (f": {esc(row.why)}" if row.why else ""))
    return "\n".join(out)


def _folded(view: RunView) -> list[str]:
    parts = []
    if view.facts:
        rows = "".join(f"\n| {esc(f.name)} | {esc(f.value)} | {esc(f.why)} |" for f in view.facts)
        parts.append(_fold("Facts", f"| fact | value | known from |\n| --- | --- | --- |{rows}"))
    if view.outside:
        parts.append(_fold("Numbers outside their healthy band", _rows(view.outside, False)))
    if view.unknown or view.looked or view.inside:
        lines = [f"{plural(view.inside, 'number')} inside the healthy band."] if view.inside else []
        lines += [f"{plural(view.looked, 'sign')} looked for and not there."] if view.looked else []
        lines += [f"- could not look for {esc(u.name)}: {esc(u.why)}" for u in view.unknown]
        parts.append(_fold("What was looked for", "\n".join(lines)))
    if view.notes:
        parts.append(_fold("Notes from reading", _bullets(view.notes[:40])))
    return parts


def _fold(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {esc(line)}" for line in lines)
