"""One run -> its diagnosis: everything seen, weighed in one place; the verdict; causes; the checkpoint to keep; what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wheeltapper.finding import Evidence as Weighed
from wheeltapper.finding import Finding, Grade, Remedy
from wheeltapper.judge import folk, wording
from wheeltapper.judge.best import best_checkpoint
from wheeltapper.judge.echo import without_echoes
from wheeltapper.judge.evidence import Evidence, Pointer, Seen, gather, grade_of
from wheeltapper.judge.missing import what_is_missing
from wheeltapper.judge.model import (
    SOMETHING_ELSE,
    Diagnosis,
    Expected,
    Lines,
    Progress,
    RankedCause,
    RuledOut,
    Trouble,
    Verdict,
)
from wheeltapper.judge.posterior import Item, Posterior, is_proof, weigh
from wheeltapper.judge.tables import POOLED, declared_causes, is_setting, tables
from wheeltapper.judge.validity import judge_metrics
from wheeltapper.program.checks import registry
from wheeltapper.reading.record import ClockName
from wheeltapper.rules.causes import Case, cause, normals, remedies_of
from wheeltapper.run.model import Run
from wheeltapper.study import Study

SHOWN = 0.02  # causes below this share are not worth a reader's time
IS, LIKELY = 0.95, 0.60  # from here a claim may say "is", "is probably"; below, "suspected"
LEAST_BITS = 0.3  # evidence below this is not worth a line
LINES = Lines()


def diagnose_run(
    run: Run,
    *,
    audit: Sequence[Finding] = (),
    trials: Sequence[tuple[str, Weighed]] = (),
    live: bool = False,
    lines: Lines = LINES,
    study: Study | None = None,
) -> Diagnosis:
    """The whole answer about one run. `audit`: what config and code declare and do not do; `trials`: (cause, verdict)
    of trials of this run; `live`: it still runs, so only what may be asked then is asked; `lines`: from which probability on a
    run is called ill or sound."""
    study = Study(run) if study is None else study
    evidence = gather(study, audit, live=live)
    posterior = weigh(evidence, trials=[(cause_id, said.bits) for cause_id, said in trials])
    verdict = _verdict(posterior, evidence, study, lines)
    findings = _findings(evidence, posterior, verdict, audit)
    case = Case(study, findings, tuple(audit), tuple(trials))
    ranked = _ranked_causes(posterior, case) if posterior.p_ill > lines.sound else ()
    validity = tuple(judge_metrics(study, findings))
    expected = tuple(Expected(n.id, n.title, why) for n in normals() if (why := n.expect(case)))
    missing = what_is_missing(case, verdict, ranked, evidence.unknowns)
    best = best_checkpoint(study, validity, findings)
    reached = study.get("progress")
    shown = ranked if verdict != "sound" else ()
    return Diagnosis(
        run=run,
        verdict=verdict,
        headline=wording.headline(verdict, findings, study, ranked, posterior.p_ill),
        p_ill=posterior.p_ill,
        trouble=_trouble(verdict, posterior),
        why=wording.why(verdict, findings, shown, expected),
        todo=wording.todo(verdict, shown, best, missing, study, _after_crash(case, verdict)),
        validity=validity,
        findings=findings,
        clears=evidence.clears,
        unknowns=evidence.unknowns,
        causes=shown,
        ruled_out=(*_ruled_out(posterior, trials), *folk.refused(case)) if verdict != "sound" else tuple(folk.refused(case)),
        expected=expected,
        best=best,
        missing=missing,
        progress=Progress(reached.state, reached.at, reached.total, reached.clock, reached.text),
        seen=evidence.seen,
        study=study,
        notes=tuple(
            f"{note.file}{f':{note.line}' if note.line else ''}: {note.text}"
            for note in run.notes
            if note.level != "info"
        ),
    )


def _verdict(posterior: Posterior, evidence: Evidence, study: Study, lines: Lines) -> Verdict:
    """Ill from a probability on; sound only below another one, with something clearly learned, no proof of a defect and no setting
    beyond its working range."""
    certain = any(f.severity == "ill" and f.grade == "is" for f in without_echoes(evidence.findings))
    proved = any(is_proof(tables(), pointer) or pointer.grade in ("range", "edge") for pointer in evidence.pointers)
    if posterior.p_ill >= lines.ill:
        return "ill"
    learned = study.get("learned").seen and not _at_trivial_level(evidence.seen)
    return "sound" if posterior.p_ill <= lines.sound and learned and not proved and not certain else "cannot-tell"


def _at_trivial_level(seen: Sequence[Seen]) -> bool:
    """A held-out score that does not clearly beat its trivial level was not learned from."""
    return any(s.needed and s.state == 0 for s in seen)


def _trouble(verdict: Verdict, posterior: Posterior) -> Trouble | None:
    """What kind of trouble it is: that of the likeliest cause, else of the strongest observation."""
    if verdict == "sound":
        return None
    named = max((c for c in posterior.shares if c != SOMETHING_ELSE), key=lambda c: posterior.shares[c], default=None)
    known = declared_causes().get(named or "")
    if known is not None and posterior.shares[known.id] >= posterior.shares.get(SOMETHING_ELSE, 0.0):
        return known.about
    items = [item.seen for item in posterior.items.get(SOMETHING_ELSE, ()) if item.bits > 0]
    abouts = [seen.about for seen in items if isinstance(seen, Seen)]
    return abouts[0] if abouts else "learning"  # type: ignore[return-value]


def _findings(evidence: Evidence, posterior: Posterior, verdict: Verdict, audit: Sequence[Finding]) -> tuple[Finding, ...]:
    """The signs that were seen, and observations that left their band and count; none is called ill in a run that is not."""
    quiet = without_echoes(evidence.findings)
    if verdict == "ill":
        quiet += _observed(posterior, quiet)
    quiet += [_as_sign(f) for f in audit if f.grade == "is"]
    if verdict != "ill":
        quiet = [replace(f, severity="watch") if f.severity == "ill" else f for f in quiet]
    rank = {"ill": 0, "watch": 1, "note": 2}
    weight = {item.seen.id: item.bits for item in _leading_items(posterior) if isinstance(item.seen, Seen)}
    quiet.sort(key=lambda f: (rank[f.severity], f.series is None, -weight.get(f.id, 0.0), f.id != "not-finite", f.onset or 0.0))
    return tuple(quiet)


def _leading_items(posterior: Posterior) -> tuple[Item, ...]:
    lead = max(posterior.items, key=lambda c: posterior.shares[c], default=None)
    return posterior.items[lead] if lead is not None else ()


def _observed(posterior: Posterior, findings: Sequence[Finding]) -> list[Finding]:
    """Observations that speak for the leading cause, as findings, strongest first; at most three."""
    known = {f.id for f in findings}
    items = [item for item in _leading_items(posterior) if isinstance(item.seen, Seen) and item.bits >= 1.0]
    out = []
    for item in items:
        seen = item.seen
        if isinstance(seen, Seen) and not seen.inside and seen.id not in known and seen.value is not None and not is_setting(seen.id):
            numbers = {"value": seen.value, "bits": round(item.bits, 2)}
            out.append(
                Finding(
                    seen.id, seen.text, "ill", "is-p", seen.series, seen.clock, seen.onset,
                    p=1 - posterior.p_ill, numbers=numbers, places=seen.places,
                )
            )  # fmt: skip
    if not out and not any(f.severity == "ill" for f in findings):
        strongest = next((i.seen for i in _leading_items(posterior) if i.bits > 0), None)
        if isinstance(strongest, Pointer):
            out += [replace(strongest.finding, severity="ill")] if strongest.finding.grade != "is" else []  # a proof is listed itself
        elif strongest is not None:
            s = strongest
            out.append(Finding(s.id, s.text or "the evidence adds up", "ill", "is-p", s.series, s.clock, s.onset, p=1 - posterior.p_ill, places=s.places))
    return out[:3]


def _as_sign(finding: Finding) -> Finding:
    """A finding of code or settings among the signs; only a proof that decides keeps its severity."""
    decided = grade_of(finding) == "proof"
    return finding if finding.severity != "ill" or decided else replace(finding, severity="watch")


def _ranked_causes(posterior: Posterior, case: Case) -> tuple[RankedCause, ...]:
    """Causes, most probable first, with "something else" among them."""
    confirmed = {cause_id for cause_id, said in case.trials if said.bits > 0}
    listed = [(id_, share) for id_, share in posterior.shares.items() if (share >= SHOWN or id_ in confirmed) and id_ != SOMETHING_ELSE]
    ranked = [_ranked(id_, share, posterior, case) for id_, share in listed]
    rest = 1.0 - sum(c.probability for c in ranked)
    ranked.append(RankedCause(SOMETHING_ELSE, "Something else", max(rest, 0.0), "suspected", summary="None of the causes we know."))
    # Something else is many things: it leads only where it is likelier than all that we know together.
    return tuple(sorted(ranked, key=lambda c: (c.id == SOMETHING_ELSE and c.probability < 0.5, -c.probability)))


def _ranked(id_: str, share: float, posterior: Posterior, case: Case) -> RankedCause:
    items = posterior.items.get(id_, ())
    proved = any(isinstance(i.seen, Pointer) and is_proof(tables(), i.seen) and i.seen.cause == id_ for i in items)
    weighed = [_weighed(item) for item in items if abs(item.bits) >= LEAST_BITS]
    weighed += [said for cause_id, said in case.trials if cause_id == id_]
    weighed.sort(key=lambda e: -abs(e.bits))
    known = cause(id_)
    ill = {f.id for f in case.findings if f.severity == "ill"}
    explains = tuple(dict.fromkeys(f.id for f in case.findings if f.severity == "ill" and (known is None or f.id in known.explains or f.id in known.shows or f.id in known.proved_by)))
    progress = case.get("progress")
    clock: ClockName = progress.clock if progress is not None and progress.clock is not None else "step"
    check = registry().get(id_)
    return RankedCause(
        id=id_,
        title=known.title if known is not None else check.title if check is not None else id_,
        probability=share,
        grade=_claim(share, proved),
        explains=explains or tuple(sorted(ill))[:1],
        evidence=tuple(weighed),
        summary=next((e.text for e in weighed if e.bits > 0 and e.group not in POOLED), ""),
        remedies=(*_exact(items, id_), *(remedies_of(known, case) if known is not None else ())),
        trial=known.trial if known is not None else "",
        onset=case.since(clock, *explains) if explains else case.since(clock),
    )


def _exact(items: Sequence[Item], cause_id: str) -> Iterator[Remedy]:
    """Remedies that the evidence itself names."""
    for item in items:
        if isinstance(item.seen, Pointer) and item.seen.cause == cause_id and item.seen.remedy is not None:
            yield item.seen.remedy


def _weighed(item: Item) -> Weighed:
    if isinstance(item.seen, Pointer):
        group = "proof" if item.seen.grade == "proof" else "code"
        return Weighed(item.bits, item.seen.finding.summary, group, item.seen.finding.places)
    text = item.seen.text or f"{item.seen.id} was looked for and not seen"
    return Weighed(item.bits, text, item.seen.id, item.seen.places)


def _claim(probability: float, decided: bool) -> Grade:
    if decided and probability >= LIKELY:
        return "is"
    return "is-p" if probability >= IS else "suspected"


def _ruled_out(posterior: Posterior, trials: Sequence[tuple[str, Weighed]]) -> list[RuledOut]:
    """Causes that forbid what was seen, where they would have been likely; and those that a trial refuted."""
    out = []
    for id_, seen in posterior.excluded.items():
        known = declared_causes()[id_]
        if seen.text and not seen.inside:
            out.append(RuledOut(id_, known.title, f"it does not go with this: {seen.text}"))
    for id_, said in trials:
        refuted = cause(id_)
        if said.bits < 0 and refuted is not None:
            out.append(RuledOut(id_, refuted.title, said.text))
    return out[:6]


def _after_crash(case: Case, verdict: Verdict) -> tuple[str, ...]:
    """How a run goes on that died and is not ill: the newest checkpoint."""
    if verdict == "ill" or not wording.unfinished(case.findings, case.study):
        return ()
    lying = [c for c in case.run.checkpoints if c.exists and (c.step is not None or c.epoch is not None)]
    if lying and case.study.get("progress").state != "finished":
        newest = max(lying, key=lambda c: (c.step or 0.0, c.epoch or 0.0))
        return (f"Go on from {newest.path}, the newest checkpoint that lies here.",)
    return ()
