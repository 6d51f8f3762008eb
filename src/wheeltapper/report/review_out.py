"""What a review says: in the terminal, as Markdown, and as JSON (schema/review.json; the claims alone: schema/claims.json)."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wheeltapper.finding import Place
from wheeltapper.report.json_out import VERSION
from wheeltapper.report.text import clean, plural
from wheeltapper.review.model import MEANING, Answer, Review, Verdict

SCHEMA = "wheeltapper/review"
ORDER: tuple[Verdict, ...] = ("contradicted", "supported", "undecided", "not-in-record", "no-claim")
MARKS: dict[Verdict, tuple[str, str]] = {
    "supported": ("✓", "green"),
    "contradicted": ("✗", "red"),
    "undecided": ("?", "yellow"),
    "not-in-record": ("–", "dim"),
    "no-claim": ("·", "dim"),
}
WORDS: dict[Verdict, str] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "undecided": "cannot be decided",
    "not-in-record": "not in this record",
    "no-claim": "not a claim about this run",
}


def review_object(review: Review) -> dict[str, Any]:
    """The object that schema/review.json describes."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "document": review.document,
        "run": review.run,
        "counts": {**{verdict: review.count(verdict) for verdict in ORDER}, "unread": len(review.unread)},
        "answers": [answer_object(answer) for answer in review.answers],
        "unread": [{"line": u.line, "text": u.text} for u in review.unread],
    }


def answer_object(answer: Answer) -> dict[str, Any]:
    """A claim as it was read, the answer and its places; the claim may be given back as JSON and is read the same."""
    claim = msgspec.to_builtins(answer.claim)
    return {
        "line": answer.claim.line,
        "text": clean(answer.claim.text, 300),
        "verdict": answer.verdict,
        "why": clean(answer.why, 600),
        "places": [str(place) for place in answer.places[:3]],
        "claim": {
            key: value
            for key, value in claim.items()
            if value not in (None, [], "", ()) and key not in ("text", "line")
        },
    }


def summary_of(review: Review) -> str:
    parts = [f"{review.count(verdict)} {WORDS[verdict]}" for verdict in ORDER if review.count(verdict)]
    if review.unread:
        parts.append(f"{len(review.unread)} unread")
    return ", ".join(parts) or "no claim was found"


def print_review(review: Review, out: Console, *, everything: bool = False) -> None:
    """Contradictions first, then what holds; what cannot be answered is counted unless all is asked for."""
    out.print(Text(f"{clean(review.document, 120) or 'the text'} against {clean(review.run, 80)}", style="bold"))
    out.print(Text(f"{plural(len(review.answers), 'claim')}: {summary_of(review)}", style="dim"))
    shown = ORDER if everything else ORDER[:2]
    for verdict in shown:
        chosen = [a for a in review.answers if a.verdict == verdict]
        if chosen:
            out.print(Text(f"\n{WORDS[verdict].capitalize()} ({MEANING[verdict]})", style="bold"))
        for answer in chosen:
            _print_answer(answer, out)
    if everything and review.unread:
        out.print(Text("\nUnread (not understood, so not judged)", style="bold"))
        for unread in review.unread:
            out.print(Text(f"  {unread.line:>4}  {clean(unread.text, 200)}", style="dim"))
    elif not everything:
        out.print(
            Text(
                "\n--all shows what cannot be decided, what is not in this record, and what was not read.", style="dim"
            )
        )


def _print_answer(answer: Answer, out: Console) -> None:
    mark, style = MARKS[answer.verdict]
    table = Table.grid(padding=(0, 1))
    table.add_column(width=6, no_wrap=True)
    table.add_column()
    table.add_row(Text(f"{mark} {answer.claim.line:>4}", style=style), Text(clean(answer.claim.text, 200)))
    if answer.why:
        spot = f"  {_near(answer.places[0])}" if answer.places else ""
        table.add_row(Text(""), Text(f"{clean(answer.why, 400)}{spot}", style="dim"))
    out.print(table)


def _near(place: Place) -> str:
    """A place by the end of its path: the whole one is in the JSON."""
    return str(place).rsplit("/", 1)[-1]


def review_markdown(review: Review) -> str:
    """A table to paste under the text that was reviewed."""
    lines = [
        f"**Review of {clean(review.document, 120) or 'the text'} against `{clean(review.run, 80)}`**: {summary_of(review)}.",
        "",
    ]
    lines += ["| line | claim | answer | why |", "| --- | --- | --- | --- |"]
    for verdict in ORDER[:3]:
        for a in review.answers:
            if a.verdict == verdict:
                cells = [
                    str(a.claim.line),
                    clean(a.claim.text, 160),
                    f"{MARKS[verdict][0]} {WORDS[verdict]}",
                    clean(a.why, 300),
                ]
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
