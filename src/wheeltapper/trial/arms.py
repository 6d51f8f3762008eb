"""The arms of a trial: one per cause with its single remedy, and what the user sets by hand."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis, RankedCause
from wheeltapper.remedy.loads import edit_run
from wheeltapper.remedy.named import named_cause
from wheeltapper.settings.knobs import KNOBS, Knobs, cast_value
from wheeltapper.trial.commands import overrides
from wheeltapper.trial.model import Arm
from wheeltapper.trial.protocol import Command, holes

TRIED = 3  # causes tried unless asked for: the leading one and its two rivals
# Knobs whose remedy is a guess of how far, not a value that the record tells.
SCALES = {
    "optimizer.lr", "optimizer.lr_d", "optimizer.weight_decay", "optimizer.eps", "clip.norm", "schedule.warmup",
    "curriculum.steps",
}  # fmt: skip
LEAST = 0.05  # share from which a cause is worth an arm


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for, beyond the run and the command."""

    causes: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()  # "knob=value" or "cause-id:knob=value"
    files: tuple[str, ...] = ()  # "path=replacement" or "cause-id:path=replacement"
    placebo: tuple[str, ...] = ()
    dose: bool = False
    metric: str | None = None
    better: Literal["up", "down"] | None = None
    symptom: str | None = None
    steps: float | None = None
    repeats: int | None = None
    delta: float | None = None
    alpha: float = 0.05
    config: str | None = None
    cwd: str | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int | None = None
    timeout: float | None = None
    budget: float | None = None
    data: tuple[str, ...] = ()


def arms_of(
    diagnosis: Diagnosis, command: Command, wish: Wish, knobs: Knobs | None
) -> tuple[tuple[Arm, ...], list[tuple[str, str]]]:
    """One arm per cause with its single remedy, then what the user sets by hand."""
    arms: list[Arm] = []
    left: list[tuple[str, str]] = []
    by_hand = [*(_set_arm(text, knobs) for text in wish.sets), *(_file_arm(text, command) for text in wish.files)]
    ranked = {cause.id: cause for cause in diagnosis.causes if cause.id != SOMETHING_ELSE}
    asked = [c for c in wish.causes if not any(arm.cause == c for arm in by_hand)]
    ranked |= {c: found for c in asked if (found := named_cause(diagnosis, c)) is not None}
    if not wish.causes and not by_hand:
        asked = [cause.id for cause in ranked.values() if cause.probability >= LEAST]
    for cause_id in asked:
        if cause_id not in ranked:
            why = next((r.why for r in diagnosis.ruled_out if r.id == cause_id), "")
            known = ", ".join(ranked) or "none"
            raise InputError(
                f"{cause_id!r} is not among the causes of this run{f': {why}' if why else ''}.",
                do=f"Causes: {known}. A change of your own: --set {cause_id}:KNOB=VALUE.",
            )
        made, why = _cause_arm(diagnosis, ranked[cause_id], command)
        if made is None:
            left.append((cause_id, why))
        elif len([a for a in arms if a.kind == "remedy"]) < TRIED or wish.causes:
            if any(_same_edits(made, other) for other in arms):
                left.append(
                    (cause_id, "its remedy is the same change as another arm's; a trial cannot tell them apart")
                )
                continue
            arms.append(made)
            arms += _doses(made) if wish.dose else []
            arms += _further(made, diagnosis, command)
        else:
            left.append((cause_id, f"only the {TRIED} leading causes are tried unless it is asked for"))
    for arm in by_hand:
        arms += [arm, *(_doses(arm) if wish.dose else [])]
    arms += [replace(_set_arm(text, knobs), kind="placebo", cause=None) for text in wish.placebo]
    for arm in arms:
        _refuse_unreachable(arm, diagnosis, command)
    if not arms:
        told = "".join(f"\n  {cause}: {why}" for cause, why in left)
        raise InputError(
            f"no cause of this run can be tried by changing a setting.{told}",
            do="Give a change of your own with --set knob=value, mended code with --file PATH=FILE, or a good run with --good RUN2.",
        )
    if len({arm.id for arm in arms}) < len(arms):
        raise InputError("two arms change the same setting to the same value.", do="Give each change once.")
    return tuple(arms), left


def _cause_arm(diagnosis: Diagnosis, cause: RankedCause, command: Command) -> tuple[Arm | None, str]:
    why = "its remedy is a change of code or data, not of a setting"
    for remedy in cause.remedies:
        if not remedy.edits:
            continue
        arm = Arm(
            cause.id, "remedy", edit_words(remedy.edits), cause.id, remedy.edits,
            (f"{cause.title}: confirmed; mending it alone makes the symptom go away",
             f"{cause.title}: refuted, or more than this remedy is needed"),
        )  # fmt: skip
        try:
            _refuse_unreachable(arm, diagnosis, command)
        except InputError as error:
            why = error.what
            continue
        return arm, ""
    return None, why


def _refuse_unreachable(arm: Arm, diagnosis: Diagnosis, command: Command) -> None:
    """An edit must reach the training: through the command, or through a file that it reads."""
    edits = [edit for edit in arm.edits if edit.knob not in holes(command.text)]
    if not edits:
        return
    try:
        if "set" in holes(command.text):
            overrides(diagnosis.run, edits)
            return
        edited = edit_run(diagnosis.run, edits)
    except RefusedEdit as refused:
        raise InputError(
            refused.what, where=refused.where, do=f"Name the knob in the command: --cmd '... {{{edits[0].knob}}}'."
        ) from None
    if not command.isolated and command.config is None:
        raise InputError(
            f"{edits[0].knob} is set in {edited[0].file}, and the command takes no {{config}}.",
            do="Write {config} into the command where that file goes.",
        )


def _same_edits(a: Arm, b: Arm) -> bool:
    return bool(a.edits) and {(e.knob, str(e.new)) for e in a.edits} == {(e.knob, str(e.new)) for e in b.edits}


def _further(arm: Arm, diagnosis: Diagnosis, command: Command) -> list[Arm]:
    """The same knob changed ten times further, run only if the first step is refuted: a rate a hundred times too
    high breaks at half of it as well, and that would refute the remedy, not the cause."""
    edit = arm.edits[0]
    if len(arm.edits) != 1 or edit.knob not in SCALES or not all(_plain(v) and v > 0 for v in (edit.old, edit.new)):
        return []
    value = float(f"{edit.new / 10 if edit.new < edit.old else edit.new * 10:.3g}")
    new: float = max(1, round(value)) if isinstance(edit.old, int) and isinstance(edit.new, int) else value
    more = Edit(edit.knob, edit.old, new, "further the same way")
    made = Arm(
        f"{arm.id}.further", "dose", f"further, only if that is refuted ({edit_words((more,))})", arm.cause, (more,)
    )
    try:
        _refuse_unreachable(made, diagnosis, command)
    except InputError:
        return []
    return [replace(made, after=arm.id)]


def _doses(arm: Arm) -> list[Arm]:
    """Half the change, for a remedy that is one number: the effect must lie between (TRL-14)."""
    if len(arm.edits) != 1:
        return []
    (edit,) = arm.edits
    if not all(_plain(v) for v in (edit.old, edit.new)):
        return []
    old, new = float(edit.old), float(edit.new)
    half = (old * new) ** 0.5 if old > 0 and new > 0 else (old + new) / 2
    half = round(half) if isinstance(edit.old, int) and isinstance(edit.new, int) else float(f"{half:.3g}")
    between = Edit(edit.knob, edit.old, half, "half the change")
    return [Arm(f"{arm.id}.half", "dose", f"half the change ({edit_words((between,))})", arm.cause, (between,))]


def _set_arm(text: str, knobs: Knobs | None) -> Arm:
    """An arm from `knob=value` or `cause:knob=value`."""
    match = re.fullmatch(r"(?:([a-z0-9-]+):)?([\w.]+)=(.*)", text)
    if match is None:
        raise InputError(f"--set {text!r} is not of the form knob=value.", do="For example: --set optimizer.lr=5e-5.")
    cause, knob, raw = match.groups()
    value: Any = yaml.safe_load(raw) if raw else None
    if knob not in KNOBS and knobs is not None:  # the user's own key for a knob: `lr` for optimizer.lr
        own = (id_ for id_, found in knobs.items() if found.leaf and ".".join(map(str, found.leaf.path)) == knob)
        knob = next(own, knob)
    known = KNOBS.get(knob)
    if known is not None:
        cast = cast_value(known.kind, value)
        if cast is None:
            raise InputError(f"--set {text!r}: {raw!r} is not a {known.kind}.")
        value = cast
    now = None if knobs is None or knob not in knobs or knobs[knob].default else knobs.value(knob)
    edit = Edit(knob, now, value)
    name = re.sub(r"[^\w.=+-]+", "_", f"{knob}={raw}")
    means = ("this change makes the difference", "this change makes none that matters")
    return Arm(cause or name, "remedy", edit_words((edit,)), cause, (edit,), means)


def _file_arm(text: str, command: Command) -> Arm:
    """An arm with another version of a file, from `path=replacement` or `cause:path=replacement`: for causes in code."""
    match = re.fullmatch(r"(?:([a-z0-9-]+):)?([^=]+)=(.+)", text)
    if match is None:
        raise InputError(
            f"--file {text!r} is not of the form PATH=REPLACEMENT.", do="For example: --file train.py=fixed.py."
        )
    cause, name, source = match.groups()
    cwd = Path(command.cwd)
    target = Path(os.path.normpath(cwd / name))
    if not target.is_relative_to(cwd) or not target.is_file():
        raise InputError(f"there is no file {name} in {cwd}.", do="Name one below the folder that the command runs in.")
    if not Path(source).is_file():
        raise InputError(f"there is no file {source}.")
    if not command.isolated:
        raise InputError("a file can only be replaced in a copy of the folder.", do="Leave {out} out of the command.")
    if target.read_bytes() == Path(source).read_bytes():
        raise InputError(f"{source} is the same as {name}: nothing would change.")
    place = str(target.relative_to(cwd))
    means = ("this change makes the difference", "this change makes none that matters")
    ident = cause or re.sub(r"[^\w.+-]+", "_", f"{place}={Path(source).name}")
    return Arm(ident, "remedy", f"{place} → {source}", cause, (), means, ((place, str(Path(source).resolve())),))


def edit_words(edits: Sequence[Edit]) -> str:
    return ", ".join(f"{e.knob} {'(not set)' if e.old is None else e.old} → {e.new}" for e in edits)


def _plain(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
