"""One run -> its diagnosis: signs, validity, causes, the checkpoint to keep, what to collect next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from wheeltapper.causes import Case, Excluded, causes, remedies_of, weighed
from wheeltapper.causes._weights import Weights
from wheeltapper.diagnosis import folk, wording
from wheeltapper.diagnosis.best import best_checkpoint
from wheeltapper.diagnosis.echo import without_echoes
from wheeltapper.diagnosis.missing import what_is_missing
from wheeltapper.diagnosis.model import (
    SOMETHING_ELSE,
    Diagnosis,
    Expected,
    MetricVerdict,
    Progress,
    RankedCause,
    RuledOut,
    Verdict,
)
from wheeltapper.diagnosis.rank import Candidate, grade_of, ill_signs_of, probabilities
from wheeltapper.diagnosis.validity import judge_metrics
from wheeltapper.errors import WheeltapperError
from wheeltapper.finding import Answer, Clear, Evidence, Finding, Unknown
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.signs import ask, signs
from wheeltapper.sources.record import ClockName

FAILED = "this sign failed, which is a bug in Wheeltapper"
# What the audit may prove that makes a run another one than was asked for, or breaks it.
DECIDES = {
    "accumulation-not-implemented", "scheduler-never-stepped", "scheduler-wrong-unit", "onecycle-overrun", "warmup-longer-than-run",
    "milestones-never-reached", "cosine-rises-again", "ema-horizon-too-long", "zero-grad-missing", "clip-before-unscale",
    "val-in-train-mode", "double-softmax", "lr-scaled-twice", "objective-preconditioner-mismatch", "resume-never-loaded",
    "per-rank-sampler-seed", "resize-not-applied", "loss-not-divided", "train-mode-not-restored", "curriculum-longer-than-run",
    "weight-decay-too-strong", "noise-ends-early", "ema-buffers-not-averaged", "ema-low-precision", "params-not-in-optimizer", "params-frozen",
}  # fmt: skip
USUAL = -1.5  # bits: causes that people suspect first; a rarer one that cannot be is not worth a line
IDLE = -4.0  # bits: proved, and explains nothing of what is seen in the curves; it is told as a finding all the same
SHOWN = 0.02  # causes below this share are not worth a reader's time


def diagnose_run(
    run: Run, *, audit: Sequence[Finding] = (), trials: Sequence[tuple[str, Evidence]] = (), live: bool = False
) -> Diagnosis:
    """The whole answer about one run. `audit`: what config and code declare and do not do; `trials`: (cause, verdict)
    of trials of this run; `live`: it still runs, so only the signs are asked that may be (LIVE).

    What the audit proves is shown and weighed. It makes a run ill only where it proves that the optimisation or the
    evaluation is not what was asked for (DECIDES); a setting that does nothing can lie beside a training that went well.
    """
    asked = ask_run(run, audit=audit, trials=trials, live=live)
    case, signals, findings = asked.case, asked.case.signals, asked.case.findings
    validity, clears, unknowns = asked.validity, asked.clears, asked.unknowns
    ranked, ruled_out = rank_causes(case)
    expected = _expected(case)
    verdict = _verdict(findings, signals)
    missing = what_is_missing(case, verdict, ranked, unknowns)
    best = best_checkpoint(signals, validity, findings)
    reached = signals.get("progress")
    return Diagnosis(
        run=run,
        verdict=verdict,
        headline=wording.headline(verdict, findings, signals),
        why=wording.why(verdict, findings, ranked, expected),
        todo=wording.todo(verdict, ranked, best, missing, signals, _after_crash(case, verdict)),
        validity=validity,
        findings=findings,
        clears=clears,
        unknowns=unknowns,
        causes=ranked,
        ruled_out=(*ruled_out, *folk.refused(case)),
        expected=expected,
        best=best,
        missing=missing,
        progress=Progress(reached.state, reached.at, reached.total, reached.clock, reached.text),
        notes=tuple(
            f"{note.file}{f':{note.line}' if note.line else ''}: {note.text}"
            for note in run.notes
            if note.level != "info"
        ),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the signs answered, before any cause is weighed."""

    case: Case
    validity: tuple[MetricVerdict, ...]
    clears: tuple[tuple[str, Clear], ...]
    unknowns: tuple[tuple[str, Unknown], ...]


def ask_run(
    run: Run, *, audit: Sequence[Finding] = (), trials: Sequence[tuple[str, Evidence]] = (), live: bool = False
) -> Asked:
    """Every sign asked of one run, echoes quieted, most severe first."""
    signals = Signals(run)
    findings, clears, unknowns = _ask_all(signals, live=live)
    validity = judge_metrics(signals, findings)
    findings = without_echoes(findings)
    resumed = any(segment.kind == "resume" for segment in run.segments)
    findings += [_as_sign(f, resumed) for f in audit if f.grade == "is"]
    findings.sort(
        key=lambda f: (
            {"ill": 0, "watch": 1, "note": 2}[f.severity],
            f.series is None,
            f.id != "not-finite",
            f.onset or 0.0,
        )
    )
    case = Case(signals, tuple(findings), tuple(audit), tuple(trials))
    return Asked(case, tuple(validity), tuple(clears), tuple(unknowns))


def _as_sign(finding: Finding, resumed: bool) -> Finding:
    """A finding of the audit among the signs; only what DECIDES keeps its severity. A setting that does nothing decides
    where it was given for this run and would have steered the optimisation, a resume that loses something where the run
    was resumed."""
    decides = finding.id in DECIDES or (finding.id == "option-never-used" and "asked" in finding.numbers)
    decides = decides or (finding.id == "resume-incomplete" and resumed)
    return replace(finding, severity="watch") if finding.severity == "ill" and not decides else finding


def _ask_all(
    signals: Signals, *, live: bool
) -> tuple[list[Finding], list[tuple[str, Clear]], list[tuple[str, Unknown]]]:
    findings: list[Finding] = []
    clears: list[tuple[str, Clear]] = []
    unknowns: list[tuple[str, Unknown]] = []
    for sign in signs():
        if live and not sign.LIVE:
            unknowns.append((sign.ID, Unknown("asked when the run is over")))
            continue
        for answer in _answers(sign, signals):
            if isinstance(answer, Finding):
                findings.append(answer)
            elif isinstance(answer, Clear):
                clears.append((sign.ID, answer))
            else:
                unknowns.append((sign.ID, answer))
    return findings, clears, unknowns


def _answers(sign: ModuleType, signals: Signals) -> list[Answer]:
    """One sign that fails on one run must not take the others' answers with it."""
    try:
        return ask(sign, signals)
    except WheeltapperError:
        raise
    except Exception as error:
        return [Unknown(f"{FAILED} ({type(error).__name__}: {error})", ("a report of this to the project",))]


def rank_causes(case: Case) -> tuple[tuple[RankedCause, ...], list[RuledOut]]:
    """Causes that explain what is ill, most probable first, with "something else" among them."""
    ill = ill_signs_of(case.findings)
    if not ill:
        return (), []
    candidates, ruled_out = candidates_of(case, ill)
    shares, other = probabilities([candidate for _, candidate in candidates.values()], ill)
    ranked = [
        _ranked(cause, candidate, shares[cause_id], ill, case)
        for cause_id, (cause, candidate) in candidates.items()
        if shares[cause_id] >= SHOWN
    ]
    for cause_id, (cause, candidate) in candidates.items():
        against = [e.text for e in candidate.evidence if e.group == "trial" and e.bits < 0]
        if against and shares[cause_id] < SHOWN:
            ruled_out.append(RuledOut(cause_id, _title(cause), against[0]))
    rest = other + sum(share for share in shares.values() if share < SHOWN)
    ranked.append(
        RankedCause(SOMETHING_ELSE, "Something else", rest, "suspected", summary="None of the causes we know.")
    )
    return tuple(sorted(ranked, key=lambda c: -c.probability)), ruled_out


def candidates_of(
    case: Case, ill: Sequence[str], by: Weights | None = None
) -> tuple[dict[str, tuple[ModuleType, Candidate]], list[RuledOut]]:
    """Causes that could explain what is ill, with their evidence; and those that people suspect and that cannot be."""
    observed = {f.id for f in case.findings if f.severity == "ill" and f.series is not None}
    candidates: dict[str, tuple[ModuleType, Candidate]] = {}
    ruled_out: list[RuledOut] = []
    for cause in causes():
        if getattr(cause, "NORMAL", False):
            continue
        answer = weighed(cause, case, by)
        proves = _proved_by(answer, case)
        if not proves and not set(ill) & {cause.ID, *cause.EXPLAINS}:
            continue
        if isinstance(answer, Excluded):
            if cause.PRIOR >= USUAL or answer.folk:
                ruled_out.append(RuledOut(cause.ID, _title(cause), answer.why))
            continue
        decided = any(e.group == "proof" for e in answer)
        explains = (cause.ID, *cause.EXPLAINS, *proves)
        idle = bool(observed) and not observed & set(cause.EXPLAINS)
        prior = cause.PRIOR + (IDLE if idle else 0.0)
        candidates[cause.ID] = (cause, Candidate(cause.ID, prior, explains, answer, decided))
    return candidates, ruled_out


def _after_crash(case: Case, verdict: Verdict) -> tuple[str, ...]:
    """How a run goes on that died and is not ill: what mends the crash, where that is proved, and the newest checkpoint."""
    if verdict == "ill" or not wording.unfinished(case.findings, case.signals):
        return ()
    candidates, _ = candidates_of(case, ["crashed"])
    proved = [cause for cause, candidate in candidates.values() if candidate.decided]
    out = [remedy.text for cause in proved for remedy in remedies_of(cause, case)[:1]]
    lying = [c for c in case.run.checkpoints if c.exists and (c.step is not None or c.epoch is not None)]
    if lying and case.signals.get("progress").state != "finished":
        newest = max(lying, key=lambda c: (c.step or 0.0, c.epoch or 0.0))
        out.append(f"Go on from {newest.path}, the newest checkpoint that lies here.")
    return tuple(out)


def _proved_by(answer: Excluded | tuple[Evidence, ...], case: Case) -> tuple[str, ...]:
    """The ill findings of the audit that this cause rests on: what code or settings prove, it explains."""
    if isinstance(answer, Excluded):
        return ()
    told = {e.text for e in answer if e.group == "proof"}
    ill = {f.id for f in case.findings if f.severity == "ill"}
    return tuple(dict.fromkeys(f.id for f in case.audit if f.summary in told and f.id in ill))


def _ranked(cause: ModuleType, candidate: Candidate, share: float, ill: Sequence[str], case: Case) -> RankedCause:
    explains = tuple(sign for sign in ill if sign in candidate.explains)
    progress = case.get("progress")
    clock: ClockName = progress.clock if progress is not None and progress.clock is not None else "step"
    return RankedCause(
        id=cause.ID,
        title=_title(cause),
        probability=share,
        grade=grade_of(share, candidate.decided),
        explains=explains,
        evidence=candidate.evidence,
        summary=candidate.evidence[0].text if candidate.evidence else "",
        remedies=remedies_of(cause, case),
        trial=cause.TRIAL,
        onset=case.since(clock, *explains) if explains else None,
    )


def _title(cause: ModuleType) -> str:
    return (cause.__doc__ or cause.ID).strip().splitlines()[0].rstrip(".")


def _expected(case: Case) -> tuple[Expected, ...]:
    out = []
    for cause in causes():
        if getattr(cause, "NORMAL", False):
            why = cause.expect(case)
            if why:
                out.append(Expected(cause.ID, _title(cause), why))
    return tuple(out)


def _verdict(findings: Sequence[Finding], signals: Signals) -> Verdict:
    """Ill needs a finding that stands on its own; sound needs something that was seen to improve."""
    if any(f.severity == "ill" and f.grade != "suspected" for f in findings):
        return "ill"
    if any(f.severity == "ill" for f in findings):
        return "cannot-tell"
    enough: bool = signals.get("learned").seen
    return "sound" if enough else "cannot-tell"
