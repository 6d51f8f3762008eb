"""SARIF: what GitHub needs is there, and hostile paths stay inert."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.finding import Finding, Place
from wheeltapper.report.json_out import dumps
from wheeltapper.report.sarif import sarif_object

FINDINGS = [
    Finding(
        "clip-after-step",
        "clipped\x1b[31m too late",
        "ill",
        "is",
        places=(Place("train.py", 12, 5), Place("a b.py", 3)),
    ),
    Finding("not-a-known-check", "odd", "watch", "suspected", places=(Place("/elsewhere/x.yaml"),)),
    Finding("clip-after-step", "again", "note", "is", places=(Place("/repo/src/train.py", 40),)),
    Finding("no-place", "nowhere", "note", "is"),
]


def test_sarif_has_what_github_reads() -> None:
    log = sarif_object(FINDINGS, root=Path("/repo"))
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["clip-after-step", "not-a-known-check", "no-place"]
    assert "How it decides" in run["tool"]["driver"]["rules"][0]["help"]["markdown"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
    first, elsewhere, absolute, nowhere = run["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert place["region"] == {"startLine": 12, "startColumn": 5}
    assert first["level"] == "error"
    assert "\x1b" not in first["message"]["text"]
    assert first["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    assert elsewhere["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///elsewhere/x.yaml"
    assert absolute["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/train.py"
    assert nowhere["locations"] == []


def test_a_moved_line_keeps_its_fingerprint() -> None:
    def mark(line: int) -> str:
        finding = Finding("x", "same words", "ill", "is", places=(Place("a.py", line),))
        return sarif_object([finding])["runs"][0]["results"][0]["partialFingerprints"]["wheeltapper/v1"]

    assert mark(3) == mark(90)


def test_no_finding_is_a_valid_log_too() -> None:
    assert '"results": []' in dumps(sarif_object([]))
