"""Named causes, held against the plan, the ranked causes of the diagnosis and what it ruled out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from wheeltapper.finding import Finding, Place
from wheeltapper.review.model import Answer, Blame
from wheeltapper.review.quantities import quantities
from wheeltapper.review.record import Record
from wheeltapper.rules.causes import cause
from wheeltapper.settings.dialects.schema import place_of

LIKELY, POSSIBLE = 0.5, 0.02
FLAT = 1e-3  # relative: a learning rate that moves by less is constant

Denial = tuple[str, tuple[Place, ...]]


def answer_blame(claim: Blame, record: Record) -> Answer:
    for need in claim.needs:
        denied = NEEDS[need](record) if need in NEEDS else None
        if denied is not None:
            return Answer(claim, "contradicted", *denied)
    for check in (_own_rule, _ranked, _refused, _proved):
        answer = check(claim, record)
        if answer is not None:
            return answer
    return _left_open(claim, record)


def _ranked(claim: Blame, record: Record) -> Answer | None:
    ranked = next((c for c in record.diagnosis.causes if c.id in claim.causes and c.probability >= LIKELY), None)
    if ranked is None:
        return None
    places = tuple(place for evidence in ranked.evidence[:2] for place in evidence.places)[:3]
    return Answer(claim, "supported", f"{ranked.id} ({ranked.probability:.0%}): {ranked.summary}", places)


def _refused(claim: Blame, record: Record) -> Answer | None:
    refused = next((r for r in record.diagnosis.ruled_out if r.id in claim.causes), None)
    return None if refused is None else Answer(claim, "contradicted", refused.why)


def _proved(claim: Blame, record: Record) -> Answer | None:
    """A finding of code or settings with the same name decides."""
    finding = record.found(*claim.causes)
    if finding is None or finding.grade != "is":
        return None
    return Answer(claim, "supported", finding.summary, finding.places[:3])


def _left_open(claim: Blame, record: Record) -> Answer:
    d = record.diagnosis
    known = next((c for c in d.causes if c.id in claim.causes and c.probability >= POSSIBLE), None)
    if known is not None:
        return Answer(
            claim, "undecided", f"{known.id} has {known.probability:.0%}; {known.trial or 'a trial would decide'}"
        )
    first = next((c for c in d.causes if cause(c.id) is not None), None)
    told = (
        f"; the record points to {first.id} ({first.probability:.0%})"
        if first is not None and first.probability >= LIKELY
        else ""
    )
    named = next((cause(id_) for id_ in claim.causes if cause(id_) is not None), None)
    trial = f"; it would take: {named.trial}" if named is not None and named.trial else ""
    return Answer(claim, "undecided", f"nothing in the record speaks for it{told}{trial}")


# -- claims that a rule of their own decides ---------------------------------------------------------------


def _own_rule(claim: Blame, record: Record) -> Answer | None:
    for name in claim.causes:
        rule = _OWN.get(name)
        answer = rule(claim, record) if rule is not None else None
        if answer is not None:
            return answer
    return None


def _degradation(claim: Blame, record: Record) -> Answer | None:
    """A score that cannot be believed shows no degradation of the model."""
    broken = next((v for v in record.diagnosis.validity if v.valid == "no"), None)
    return None if broken is None else Answer(claim, "contradicted", f"the score cannot be believed: {broken.why}")


def _evaluated(claim: Blame, record: Record) -> Answer | None:
    told = record.found("ema-buffers-not-averaged", "ema-is-evaluated")
    return None if told is None else Answer(claim, "supported", told.summary, told.places[:2])


def _harmless(claim: Blame, record: Record) -> Answer | None:
    told = record.found("onecycle-overrun")
    return None if told is None else Answer(claim, "contradicted", told.summary, told.places[:2])


def _resized(claim: Blame, record: Record) -> Answer | None:
    told = record.found("resize-not-applied")
    return None if told is None else Answer(claim, "contradicted", told.summary, told.places[:2])


def _noise_share(claim: Blame, record: Record) -> Answer | None:
    """How much of a log-normal noise level lies in the range that is named."""
    told = record.found("noise-as-published")
    numbers = [q.low for q in quantities(claim.text) if q.low > 0]
    if told is None or len(numbers) < 2:
        return None
    mean, std = told.numbers["P_mean"], told.numbers["P_std"]
    low, high = (0.5 * math.erfc((mean - math.log(edge)) / std / math.sqrt(2)) for edge in numbers[:2])
    share = high - low
    return Answer(
        claim, "supported" if share > 0.5 else "contradicted", f"{share:.0%} of them: {told.summary}", told.places[:1]
    )


_OWN: dict[str, Callable[[Blame, Record], Answer | None]] = {
    "degradation": _degradation,
    "ema-is-evaluated": _evaluated,
    "pre-step-harmless": _harmless,
    "resize-works": _resized,
    "noise-share": _noise_share,
}


# -- what a cause presupposes: why it cannot be, or None ---------------------------------------------------


def _told(record: Record, knob: str) -> tuple[Place, ...]:
    place = record.knobs.place(knob)
    return () if place.file is None else (place,)


def _no_warmup(record: Record) -> Denial | None:
    length = record.knobs.value("schedule.warmup")
    if not isinstance(length, int | float) or length <= 0 or record.found("option-never-used", "unknown-key"):
        return None
    return f"there is a warm-up of {length:g} {record.knobs['schedule.warmup'].unit or 'steps'}", _told(
        record, "schedule.warmup"
    )


def _fp16(record: Record) -> Denial | None:
    precision = record.knobs.value("precision")
    on = record.knobs.value("amp.enabled")
    logged = record.run.fact("amp")
    if precision in ("fp32", "bf16", "tf32") and not logged:
        return f"nothing runs in fp16: the precision is {precision}", _told(record, "precision")
    if precision is None and on is False and not logged:
        return "mixed precision is off", _told(record, "amp.enabled")
    typed = next(
        (
            leaf
            for leaf in record.leaves
            if re.search(r"dtype|precision", leaf.dotted) and str(leaf.value) in ("float32", "fp32", "32")
        ),
        None,
    )
    if precision is None and typed is not None:
        return f"nothing runs in fp16: `{typed.dotted}` is {typed.value}", (place_of(typed),)
    return None


def _scaler(record: Record) -> Denial | None:
    return None if record.run.find("loss_scale") else _fp16(record)


def _ema(record: Record) -> Denial | None:
    known: Finding | None = record.found("ema-horizon-too-long", "ema-buffers-not-averaged", "ema-on-one-rank")
    named = any("ema" in name.lower() for name in record.run.series) or any(
        "ema" in leaf.dotted.lower() for leaf in record.leaves
    )
    if known is not None or named or not record.leaves:
        return None
    return f"no average of the weights is kept: none of {len(record.leaves)} settings and no curve speaks of one", ()


def _clipping(record: Record) -> Denial | None:
    norm, value = record.knobs.value("clip.norm"), record.knobs.value("clip.value")
    off = [leaf for leaf in record.leaves if "clip" in leaf.dotted.lower() and not leaf.value]
    if norm or value or not off or record.knobs.value("clip.enabled"):
        return None
    return f"nothing is clipped: `{off[0].dotted}` is {off[0].value}", (place_of(off[0]),)


def _dropout(record: Record) -> Denial | None:
    share = record.knobs.value("augment.dropout")
    if share is None or share:
        return None
    return "there is no dropout: it is 0", _told(record, "augment.dropout")


def _cosine(record: Record) -> Denial | None:
    name = record.knobs.value("schedule.name")
    if not isinstance(name, str) or "cos" in name.lower():
        return None
    return f"the run used {name}, not a cosine", _told(record, "schedule.name")


def _rate_falls(record: Record) -> Denial | None:
    for series in record.run.find("lr"):
        good = series.values[series.finite]
        if len(good) > 2 and float(np.ptp(good[len(good) // 10 :])) <= FLAT * float(np.abs(good).max()):
            return (
                f"the learning rate never falls: lr is {good[-1]:.4g} from {series.clock} {series.at[len(good) // 10]:,.10g} to the end",
                (series.place(len(series) - 1),),
            )
    return None


def _rate_reached(record: Record) -> Denial | None:
    nominal = record.knobs.value("optimizer.lr")
    highest = max((float(s.values[s.finite].max()) for s in record.run.find("lr") if s.finite.any()), default=None)
    if not isinstance(nominal, int | float) or highest is None or highest > 0.5 * nominal:
        return None
    return (
        f"it was never used: the highest logged rate is {highest:.3g}, {highest / nominal:.0%} of {nominal:g}",
        _told(record, "optimizer.lr"),
    )


NEEDS: dict[str, Callable[[Record], Denial | None]] = {
    "no-warmup": _no_warmup,
    "fp16": _fp16,
    "scaler": _scaler,
    "ema": _ema,
    "cosine": _cosine,
    "clipping": _clipping,
    "dropout": _dropout,
    "rate-falls": _rate_falls,
    "rate-reached": _rate_reached,
}
