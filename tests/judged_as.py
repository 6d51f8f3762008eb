"""A judge whose tables do not matter, for tests of what is done with a diagnosis.

Which cause leads, and how surely, is fitted anew whenever the tables are. A test module about fixes, plans or trials
says JUDGED_AS = "lr-too-high": then a run that shows an ill sign is called ill, with that cause leading. A run
without one is sound where it learned something. All else (findings, remedies, the checkpoint to keep) is as the real
judge says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from wheeltapper import api
from wheeltapper.finding import Evidence
from wheeltapper.judge.diagnose import diagnose_run
from wheeltapper.judge.evidence import gather
from wheeltapper.judge.model import Diagnosis, Lines, RankedCause
from wheeltapper.run.model import Run
from wheeltapper.study import Study

SHARE = 0.55  # likelier than all others together, and not sure
BY_HAND = "set by the test"
ALWAYS = Lines(0.0, -1.0)  # whatever its probability, the run is ill
CALM = Lines(0.9, 0.5)


def judged_ill(run: Run, *leads: str, **given: Any) -> Diagnosis:
    """The diagnosis of a run that shows an ill sign or a proved defect, with these causes leading;
    of any other run, the real one with much room to be sound."""
    study = Study(run)
    evidence = gather(study, given.get("audit", ()), live=given.get("live", False))
    if not any(f.severity == "ill" for f in evidence.findings) and not any(p.grade == "proof" for p in evidence.pointers):
        return diagnose_run(run, study=study, **{**given, "lines": CALM})
    trials: Sequence[tuple[str, Evidence]] = given.pop("trials", ())
    pushed = [*trials, *((lead, Evidence(60.0, BY_HAND, "trial")) for lead in leads)]
    found = diagnose_run(run, study=study, **{**given, "lines": ALWAYS, "trials": pushed})
    rest = [c for c in found.causes if c.id not in leads]
    total = sum(c.probability for c in rest) or 1.0
    causes = [_pushed(c, SHARE / len(leads)) for lead in leads for c in found.causes if c.id == lead]
    assert len(causes) == len(leads), f"the judge knows no such cause: {leads}"
    causes += [replace(c, probability=c.probability / total * (1 - SHARE)) for c in rest]
    return replace(found, p_ill=max(found.p_ill, 0.95), causes=tuple(causes))


def _pushed(cause: RankedCause, share: float) -> RankedCause:
    """What the config or the code proves stays proved."""
    evidence = tuple(e for e in cause.evidence if e.text != BY_HAND)
    proved = any(e.group == "proof" for e in evidence)
    return replace(cause, probability=share, grade="is" if proved else "suspected", evidence=evidence)


@contextmanager
def judging_as(*leads: str) -> Iterator[None]:
    def by_hand(run: Run, **given: Any) -> Diagnosis:
        return judged_ill(run, *leads, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "diagnose_run", by_hand)
        yield


@pytest.fixture(autouse=True, scope="module")
def judged_as(request: pytest.FixtureRequest) -> Iterator[None]:
    cause = getattr(request.module, "JUDGED_AS", None)
    if cause is None:
        yield
        return
    with judging_as(cause):
        yield
