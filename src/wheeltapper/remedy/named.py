"""Causes that the user names: they may be tried however small a share the judge gives them, since a trial decides."""

from __future__ import annotations

from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis, RankedCause
from wheeltapper.remedy.studied import study_of
from wheeltapper.rules.causes import Case, cause, remedies_of


def named_cause(diagnosis: Diagnosis, cause_id: str) -> RankedCause | None:
    """The cause of this id, as ranked or, where it is too unlikely to be shown, without a share. None: no such cause,
    or the run shows what it does not go with."""
    shown = next((c for c in diagnosis.causes if c.id == cause_id != SOMETHING_ELSE), None)
    known = cause(cause_id)
    if shown is not None or known is None or diagnosis.verdict == "sound" or any(r.id == cause_id for r in diagnosis.ruled_out):
        return shown
    ill = tuple(dict.fromkeys(f.id for f in diagnosis.findings if f.severity == "ill" and f.id in known.explains))
    remedies = remedies_of(known, Case(study_of(diagnosis), diagnosis.findings))
    return RankedCause(known.id, known.title, 0.0, "suspected", ill, remedies=remedies, trial=known.trial)
