"""Claims about settings and proposed changes, held against what was set, what the framework knows and what really acts."""

from __future__ import annotations

import re
from typing import Any

from wheeltapper.finding import Finding
from wheeltapper.review.model import Answer, Edit, Setting
from wheeltapper.review.record import Record
from wheeltapper.settings.dialects._lookup import known_key
from wheeltapper.settings.dialects.generic import meanings_of
from wheeltapper.settings.edited import same
from wheeltapper.settings.knobs import KNOBS

_PRECISION = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32"}
# Findings that say of a declared setting that it does not act, and the knob or key they speak of.
_IDLE = {
    "option-never-used": None,
    "onecycle-overrides-momentum": "momentum",
    "accumulation-not-implemented": "gradient_accumulation_steps",
    "resize-not-applied": "progressive_resize",
    "clip-never-read": "clip",
}


def answer_setting(claim: Setting, record: Record) -> Answer:
    special = _special(claim, record)
    if special is not None:
        return special
    if not claim.present:
        return _answer_missing(claim, record)
    found = record.value_of(claim.name)
    if found is None:
        return _unset(claim, record)
    held, place = found
    if claim.value is None or _fits(held, claim.value, claim.slack):
        idle = _idle(claim.name, record)
        if idle is not None:
            return Answer(claim, "contradicted", f"it is set, and does not act: {idle.summary}", idle.places[:3])
        return Answer(claim, "supported", f"`{claim.name}` is {_shown(held)}", (place,))
    return Answer(claim, "contradicted", f"`{claim.name}` is {_shown(held)}, not {_shown(claim.value)}", (place,))


def _unset(claim: Setting, record: Record) -> Answer:
    if claim.value == 0 and record.leaves:
        return Answer(claim, "supported", "nothing of the kind is set")
    curve = record.run.series_named(claim.name.rpartition(".")[2])
    if claim.name not in KNOBS and record.leaves and curve is None and exists(claim.name, record) is None:
        return Answer(claim, "contradicted", f"no key `{claim.name}` is set in this run, and the framework knows none")
    return Answer(claim, "not-in-record", "the record does not tell this setting")


def _special(claim: Setting, record: Record) -> Answer | None:
    if claim.name == "fact.steps_per_epoch":
        each = record.steps_per_epoch or (record.value_of("steps_per_epoch") or (None,))[0]
        if not isinstance(each, int | float):
            return Answer(claim, "not-in-record", "the steps of an epoch are not told")
        return _counted(claim, float(each), f"an epoch has {each:,.0f} steps")
    if claim.name == "workers-per-gpu":
        told = record.row("loader workers")
        if told is None or not isinstance(claim.value, float):
            return Answer(claim, "not-in-record", "the workers are not told")
        return _counted(claim, float(re.match(r"\d+", told).group()), f"loader workers: {told}")  # type: ignore[union-attr]
    if claim.name == "batch.effective":
        return _effective_batch(claim, record)
    return None


def _counted(claim: Setting, held: float, told: str) -> Answer:
    return Answer(claim, "supported" if held == claim.value else "contradicted", told)


def _effective_batch(claim: Setting, record: Record) -> Answer:
    told = record.row("effective batch")
    number = re.match(r"[\d,]+", told or "")
    if told is None or number is None:
        return Answer(claim, "not-in-record", "the effective batch is not told")
    right = float(number.group().replace(",", "")) == claim.value
    finding = record.found("accumulation-not-implemented")
    return Answer(
        claim,
        "supported" if right else "contradicted",
        f"the effective batch is {told}",
        finding.places if finding else (),
    )


def _answer_missing(claim: Setting, record: Record) -> Answer:
    why = exists(claim.name, record)
    if why is None:
        return Answer(
            claim,
            "supported",
            f"no key `{claim.name}` is known to {record.knobs.dialect.TITLE if hasattr(record.knobs.dialect, 'TITLE') else 'this framework'}",
        )
    leaves = record.leaves_named(claim.name)
    told = record.found("unknown-key", "near-miss")
    if told is not None and claim.name in told.summary:
        return Answer(claim, "supported", told.summary, told.places[:2])
    if leaves and why == "set":
        return Answer(
            claim, "undecided", f"`{claim.name}` is set here; whether the program reads it is not in this record"
        )
    return Answer(claim, "contradicted", f"`{claim.name}` is {why}")


def answer_edit(claim: Edit, record: Record) -> Answer:
    why = exists(claim.name, record)
    if why is None:
        return Answer(
            claim,
            "contradicted",
            f"there is no key `{claim.name}`: it is set nowhere in this run, and the framework does not know it",
        )
    if isinstance(claim.new, str) and _number(claim.new) is not None:
        return Answer(
            claim,
            "contradicted",
            f"`{claim.new}` is read as text, not as a number: YAML 1.1 wants {float(claim.new):.1e}",
        )
    idle = _idle(claim.name, record)
    if idle is not None:
        return Answer(claim, "contradicted", f"changing it changes nothing: {idle.summary}", idle.places[:3])
    found = record.value_of(claim.name)
    if found is None:
        return Answer(claim, "undecided", f"`{claim.name}` is {why}; this run does not set it")
    held, place = found
    if claim.new is not None and _fits(held, claim.new, 0.0):
        return Answer(claim, "contradicted", f"without effect: `{claim.name}` is {_shown(held)} already", (place,))
    if claim.old is not None and not _fits(held, claim.old, 0.0):
        return Answer(claim, "contradicted", f"`{claim.name}` is {_shown(held)}, not {_shown(claim.old)}", (place,))
    return Answer(
        claim,
        "undecided",
        f"`{claim.name}` is {_shown(held)} now; what the change brings, a run would have to show",
        (place,),
    )


def exists(name: str, record: Record) -> str | None:
    """Why a key is one: set in this run, an option of its program, known to its framework; None where it is none."""
    if record.leaves_named(name) or record.list_named(name):
        return "set"
    path = tuple(part for part in name.strip("-").replace("-", "_").split(".") if part)
    if any(_same_section(path, leaf.path) for leaf in record.leaves):
        return "a section of this run's settings"
    module = record.knobs.dialect
    if path and any(_known(module, (*parents, *path), record.day, len(path) > 1) for parents in _parents(record, path)):
        return "known to the framework"
    return "a usual name" if path and meanings_of(path) and module.UNKNOWN == "unknown" else None


def _known(module: Any, path: tuple[str, ...], day: str | None, sectioned: bool) -> bool:
    """`sectioned`: the key was named with its section, so that one which takes any key counts."""
    key = known_key(module, path)
    late = key is not None and key.since is not None and day is not None and not key.fork and key.since > day
    return key is not None and ((key.is_open and sectioned) or len(key.parts) == len(path)) and not late


def _parents(record: Record, path: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The sections under which a key may stand: a bare one anywhere, one with a section only where that section is."""
    out: set[tuple[str, ...]] = {()}
    for leaf in record.leaves[:2000]:
        names = tuple(str(p) for p in leaf.path)
        out.update(names[:k] for k in range(1, len(names)) if len(path) == 1 or names[k] == path[0])
    return out


def _same_section(path: tuple[str, ...], other: tuple[Any, ...]) -> bool:
    names = [str(part).lower() for part in other[:-1]]
    return bool(path) and path[-1].lower() in names


def _idle(name: str, record: Record) -> Finding | None:
    """The finding that says that this setting does not act."""
    plain = name.strip("-").rsplit(".", 1)[-1].lower().replace("-", "_")
    for finding in record.audit.findings:
        if finding.id not in _IDLE or finding.grade != "is":
            continue
        named = _IDLE[finding.id]
        said = finding.summary.lower().replace("-", "_")
        if (named is not None and plain in (named, f"optimizer.{named}")) or (
            named is None and re.match(rf"_*{re.escape(plain)}\b", said)
        ):
            return finding
    return None


def _fits(held: Any, wanted: Any, slack: float) -> bool:
    if isinstance(held, bool) or isinstance(wanted, bool):
        return bool(held) is bool(wanted) if isinstance(held, bool | int | float) else False
    if held is None:
        return wanted in (0, 0.0, None)
    if isinstance(held, int | float) and isinstance(wanted, int | float):
        return abs(held - wanted) <= max(slack * 1.01, 1e-9 * abs(held)) or same(held, wanted)
    if isinstance(held, list):
        return same(held, wanted) if isinstance(wanted, list) else wanted in held
    a, b = str(held).lower(), str(wanted).lower()
    a, b = _PRECISION.get(a, a), _PRECISION.get(b, b)
    return a == b or (len(b) > 3 and (b in a or a in b)) or (_number(a) is not None and _number(a) == _number(b))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
