"""Findings that the author of a script has put aside: `# wheeltapper: ignore[id]` on the line, or on the line above it."""

from __future__ import annotations

import re

from wheeltapper.finding import Finding
from wheeltapper.program.program import Program

MARK = re.compile(r"#\s*wheeltapper:\s*ignore(?:\[([\w\s,-]*)\])?")


def is_ignored(program: Program, finding: Finding) -> bool:
    """Whether the line of the finding's first place says so; without brackets, every finding of the line is meant."""
    place = finding.places[0] if finding.places else None
    if place is None or place.line is None:
        return False
    script = next((s for s in program.scripts if s.name == place.file), None)
    if script is None or "wheeltapper:" not in script.text:
        return False
    near = [place.line - 1, *([place.line - 2] if _alone(script.lines, place.line - 2) else [])]
    for index in near:
        match = MARK.search(script.lines[index]) if 0 <= index < len(script.lines) else None
        if match is not None and (match[1] is None or finding.id in re.split(r"[\s,]+", match[1])):
            return True
    return False


def _alone(lines: list[str], index: int) -> bool:
    """Whether a line holds nothing but a comment."""
    return 0 <= index < len(lines) and lines[index].lstrip().startswith("#")
