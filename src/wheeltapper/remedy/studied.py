"""The study that a diagnosis was made from, so that nothing is computed twice."""

from __future__ import annotations

from wheeltapper.judge.model import Diagnosis
from wheeltapper.study import Study


def study_of(diagnosis: Diagnosis) -> Study:
    """The judge's own study; a new one where a diagnosis carries none, or one of another run."""
    held = diagnosis.study
    return held if held is not None and held.run is diagnosis.run else Study(diagnosis.run)
