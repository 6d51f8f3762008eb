"""Findings as SARIF 2.1.0, so that GitHub shows them on the lines of a pull request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wheeltapper import __version__
from wheeltapper.finding import Finding, Place
from wheeltapper.report.pages import Page, pages
from wheeltapper.report.text import clean

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"ill": "error", "watch": "warning", "note": "note"}


def sarif_object(findings: Iterable[Finding], *, root: Path | None = None) -> dict[str, Any]:
    """One SARIF log. Paths are relative to `root` (default: the working directory), as GitHub wants them."""
    base = (root or Path.cwd()).resolve()
    found = list(findings)
    known = {page.id: page for page in reversed(pages())}
    rules = {finding.id: _rule(finding, known.get(finding.id)) for finding in found}
    order = list(rules)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "wheeltapper", "version": __version__, "rules": list(rules.values())}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, order.index(finding.id), base) for finding in found],
            }
        ],
    }


def _rule(finding: Finding, page: Page | None) -> dict[str, Any]:
    title = page.title if page is not None else finding.id.replace("-", " ").capitalize() + "."
    rule: dict[str, Any] = {
        "id": finding.id,
        "shortDescription": {"text": clean(title)},
        "defaultConfiguration": {"level": LEVELS[finding.severity]},
    }
    if page is not None:
        text = "\n\n".join(f"{heading}\n{body}" for heading, body in page.sections)
        rule["help"] = {"text": text or title, "markdown": page.markdown()}
    return rule


def _result(finding: Finding, rule_index: int, base: Path) -> dict[str, Any]:
    places = [place for place in finding.places if place.file]
    locations = [_location(place, base) for place in places]
    first = locations[0]["physicalLocation"]["artifactLocation"]["uri"] if locations else ""
    # The line may move; what is wrong, and where it is said, does not.
    mark = hashlib.sha256(f"{finding.id}\0{first}\0{finding.summary}".encode("utf-8", "replace")).hexdigest()
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": LEVELS[finding.severity],
        "message": {"text": clean(finding.summary, 1000)},
        "locations": locations[:1],
        "partialFingerprints": {"wheeltapper/v1": mark[:32]},
        "properties": {"grade": finding.grade},
    }
    if len(locations) > 1:
        result["relatedLocations"] = [{"id": i, **location} for i, location in enumerate(locations[1:], start=1)]
    return result


def _location(place: Place, base: Path) -> dict[str, Any]:
    assert place.file is not None
    region: dict[str, int] = {"startLine": max(1, place.line or 1)}
    if place.column is not None and place.column >= 1:
        region["startColumn"] = place.column
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file, base)}, "region": region}}


def _uri(file: str, base: Path) -> str:
    """
    >>> _uri("/repo/a b/c.py", Path("/repo")), _uri("/etc/x", Path("/repo"))
    ('a%20b/c.py', 'file:///etc/x')
    """
    path = Path(file) if Path(file).is_absolute() else base / file
    if path.is_relative_to(base):
        return quote(path.relative_to(base).as_posix())
    return path.as_uri()
