"""Edits of settings that stand in the training script itself: `TrainingArguments(learning_rate=...)`, `Trainer(...)`,
`compile(...)`, a constant at the top, the default of an option.

The program is read as it is for the diagnosis, which knows the literal that every setting comes from. That literal is
replaced, the program is read again, and the edit counts only if the setting then reads as asked and no other setting
moved that does not share the text. A setting that is not given yet is added to the call that takes it, under the same proof.
"""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.program.framework_settings import framework_settings
from wheeltapper.program.options import ABSENT, literal
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code, read_code
from wheeltapper.program.settings import settings_of
from wheeltapper.run.model import Run
from wheeltapper.settings.dialects import hf
from wheeltapper.settings.dialects.generic import meaning_of
from wheeltapper.settings.edited import Change, Edited, same
from wheeltapper.settings.knobs import KNOBS, Knobs, cast_value, read_knobs
from wheeltapper.settings.position import Source
from wheeltapper.settings.spell import Unspellable, spell

SEED = "run.seed"
SEEDERS = ("manual_seed", "set_seed", "seed_everything", "set_random_seed")
MOST_PLACES = 12  # literals that are tried for one setting; each costs one reading of the program
# The name that a call has for a knob, where it is not told by the table of its framework.
_LIGHTNING = {"clip.norm": "gradient_clip_val", "batch.accumulation": "accumulate_grad_batches", "run.epochs": "max_epochs"}
_OPTIMIZER = {"optimizer.lr": "lr", "optimizer.weight_decay": "weight_decay", "optimizer.momentum": "momentum"}
_KERAS = {"optimizer.lr": "learning_rate", "clip.norm": "clipnorm", "optimizer.weight_decay": "weight_decay"}
_AGENT = {"optimizer.lr": "learning_rate", "clip.norm": "max_grad_norm", "batch.per_device": "batch_size"}
_HF = {key.knob: key.path for key in hf.KEYS.values() if key.knob is not None} | {
    "clip.norm": "max_grad_norm",
    "run.epochs": "num_train_epochs",
    "schedule.warmup": "warmup_steps",
}
_OF_HF = ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "ORPOConfig", "KTOConfig", "RewardConfig")
_OF_SB3 = ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG")


@dataclass(frozen=True, slots=True)
class _Spot:
    """A stretch of one script, by offsets in its text, and what stands there."""

    file: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class _Reading:
    """The program as it stands after the edits made so far."""

    texts: Mapping[str, str]  # script -> text
    homes: Mapping[str, str]  # the file that was read -> the user's own
    code: Code
    knobs: Knobs


def edit_code(run: Run, edits: Sequence[Edit]) -> list[Edited]:
    """The scripts of a run with these edits made, or RefusedEdit with the reason."""
    texts = {path: _text(path) for path in run.scripts if path.endswith(".py")}
    now = _read(run, texts)
    if now is None:
        raise RefusedEdit(
            "no training script lies beside the run whose settings could be read"
            if not texts
            else "the scripts beside the run are not one training program",
            do="Give the folder that holds the script the run was started with.",
        )
    changes: dict[str, list[Change]] = {}
    for edit in edits:
        now, file, change = _made(run, now, edit)
        changes.setdefault(file, []).append(change)
    return [Edited(file, texts[file], now.texts[file], tuple(made)) for file, made in changes.items()]


def _text(path: str) -> str:
    """With its line ends; the mark that some editors put first stays out, as it does where a program is read."""
    return Path(path).read_bytes().decode("utf-8-sig", errors="replace")


def _read(run: Run, texts: Mapping[str, str]) -> _Reading | None:
    """The program that these texts are; None where they are not one that trains. Texts that differ from the files are
    read from copies, which lie to each other as the files do."""
    changed = {path for path, text in texts.items() if text != _text(path)}
    if not changed:
        return _reading(texts, {path: path for path in run.scripts}, run)
    root = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in run.scripts])
    with tempfile.TemporaryDirectory() as folder:
        homes = {}
        for path in run.scripts:
            copy = Path(folder, os.path.relpath(os.path.abspath(path), root))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((texts[path] if path in texts else _text(path)).encode())
            homes[str(copy)] = path
        return _reading(texts, homes, run)


def _reading(texts: Mapping[str, str], homes: Mapping[str, str], run: Run) -> _Reading | None:
    try:
        programs = [code for code in read_code(list(homes), run.configs)[0] if code.trains]
        if len(programs) != 1:
            return None
        tree = settings_of(programs[0], sure=False)
    except RecursionError:
        return None
    return _Reading(texts, homes, programs[0], read_knobs([tree], dialect="generic"))


def _made(run: Run, now: _Reading, edit: Edit) -> tuple[_Reading, str, Change]:
    """One edit made and proved."""
    known = now.knobs.get(edit.knob)
    if edit.knob == SEED and known is None:
        return _reseeded(run, now, edit)
    where = None if known is None or known.leaf is None else f"{known.leaf.file}:{known.leaf.line}"
    if known is not None and edit.old is not None and not same(known.value, edit.old):
        raise RefusedEdit(
            f"{edit.knob} is {known.value!r} in the script, and the run used {edit.old!r}: a command line sets it",
            where=where,
            do=f"Give the new value {edit.new!r} where you start the run.",
        )
    if edit.new is None:
        raise RefusedEdit(f"{edit.knob} would have to be taken out of the code", where=where, do="Change it by hand.")
    ways = _replaced(now, edit) if known is not None else _added(now, edit)
    for count, (spot, text) in enumerate(ways):
        if count >= MOST_PLACES:
            break
        old = now.texts[spot.file]
        texts = {**now.texts, spot.file: old[: spot.start] + text + old[spot.end :]}
        then = _read(run, texts) if _parses(texts[spot.file]) else None
        moved = None if then is None else _moved(now.knobs, then.knobs)
        if then is None or moved is None or not _as_asked(then.knobs, edit):
            continue
        also = tuple(sorted(knob for knob in moved if knob != edit.knob))
        if all(_follows(knob, now.knobs, known.value if known else None) for knob in also):
            key = _key_of(then.knobs, edit.knob)
            return then, spot.file, Change(edit.knob, key, old[spot.start : spot.end] or None, text.strip(" ,\n"), spot.line, also)
    if known is None:
        raise RefusedEdit(
            f"{edit.knob} is not set in the script, and no call of it takes it for certain",
            where=now.code.program.entry.name,
            do=f"Set it to {edit.new!r} by hand.",
        )
    raise RefusedEdit(f"{edit.knob} is computed in the script", where=where, do=f"Make it {edit.new!r} by hand.")


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _as_asked(knobs: Knobs, edit: Edit) -> bool:
    found = knobs.get(edit.knob)
    known = KNOBS.get(edit.knob)
    return found is not None and known is not None and same(cast_value(known.kind, edit.new), found.value)


def _moved(before: Knobs, after: Knobs) -> set[str]:
    shown = {*before, *after}
    return {k for k in shown if not same(before.value(k), after.value(k))}


def _follows(knob: str, before: Knobs, old: Any) -> bool:
    """Another setting that changes along: it is made of the same text, or says whether the edited one is there at all."""
    was = before.value(knob)
    return (old is not None and same(was, old)) or was is None or isinstance(was, bool) or before[knob].default


def _key_of(knobs: Knobs, knob: str) -> str:
    leaf = knobs[knob].leaf
    return knob if leaf is None else leaf.dotted


# -- the seed, which is handed to a function and is no argument of what trains --------------------------------


def seed_in_code(run: Run) -> int | None:
    """The seed that the script sets by a call with a number; None where it sets none, or several."""
    texts = {path: _text(path) for path in run.scripts if path.endswith(".py")}
    now = _read(run, texts) if texts else None
    found = {literal(node) for node in _seeds(now)} if now is not None else set()
    return next(iter(found)) if len(found) == 1 else None


def _seeds(now: _Reading) -> list[ast.expr]:
    """The numbers that the functions which set a seed are called with, last one first."""
    calls = [call for name in SEEDERS for call in now.code.program.calls.get(name, [])]
    # `generator.manual_seed(7)` draws one thing; `torch.manual_seed` seeds the run.
    calls = [call for call in calls if not _of_a_generator(call)]
    nodes = [call.args[0] for call in calls if call.args and type(literal(call.args[0])) is int]
    own = [node for node in nodes if (script := now.code.program.script_of.get(node)) and script.name in now.homes]
    return sorted(own, key=lambda node: (node.lineno, node.col_offset), reverse=True)


def _of_a_generator(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr == "manual_seed" and ast.unparse(func.value) != "torch"


def _reseeded(run: Run, now: _Reading, edit: Edit) -> tuple[_Reading, str, Change]:
    spots = [spot for node in _seeds(now) if literal(node) == edit.old and (spot := _spot(now, node)) is not None]
    files = {spot.file for spot in spots}
    if len(files) != 1:
        raise RefusedEdit("the script sets no seed by a number", where=now.code.program.entry.name)
    file = files.pop()
    text = now.texts[file]
    for spot in spots:
        text = f"{text[: spot.start]}{edit.new}{text[spot.end :]}"
    then = _read(run, {**now.texts, file: text})
    if then is None or _moved(now.knobs, then.knobs):
        raise RefusedEdit("the seed of the script is used for other things, too", where=f"{file}:{spots[-1].line}")
    return then, file, Change(SEED, "seed", str(edit.old), str(edit.new), spots[-1].line)


# -- the literal that a setting comes from ---------------------------------------------------------------


def _replaced(now: _Reading, edit: Edit) -> Iterator[tuple[_Spot, str]]:
    """Each literal that may be the setting, with the new text for it; the surest first."""
    seen: set[tuple[str, int]] = set()
    for node in _literals(now, edit):
        spot = _spot(now, node)
        if spot is None or (spot.file, spot.start) in seen:
            continue
        seen.add((spot.file, spot.start))
        raw = now.texts[spot.file][spot.start : spot.end]
        try:
            yield spot, spell(_like(literal(node), edit.new), raw, "python", whole=_whole(edit.knob))
        except Unspellable:
            continue


def _like(old: Any, new: Any) -> Any:
    """A tuple stays a list of as many; everything else is as asked."""
    return list(new) if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) else new


def _whole(knob: str) -> bool:
    return knob in KNOBS and KNOBS[knob].kind == "count"


def _literals(now: _Reading, edit: Edit) -> Iterator[ast.expr]:
    """Where the value of this setting is written out."""
    leaf = now.knobs[edit.knob].leaf
    program = now.code.program
    told = [t for t in framework_settings(now.code.story) if same(t.value, now.knobs.value(edit.knob))]
    own = [t for t in told if leaf is not None and t.name == leaf.dotted]
    for one in (*own, *(t for t in told if meaning_of(t.name) == edit.knob)):
        if isinstance(one.at.node, ast.expr) and _is_literal(one.at.node):
            yield one.at.node
    for script in program.scripts:
        for node in ast.walk(script.tree):
            here = leaf is not None and getattr(node, "lineno", 0) == leaf.line and script.name == leaf.file
            if not here or getattr(node, "col_offset", -1) + 1 != (leaf.column if leaf else 0):
                continue
            if isinstance(node, ast.expr) and _is_literal(node):
                yield node
    for option in now.code.options:
        if same(option.default, now.knobs.value(edit.knob)) and meaning_of(option.name) in (edit.knob, None):
            yield from _default_of(option.node)
    for script in program.scripts:
        for name, value in _assigned(script.tree):
            if meaning_of(name.lower()) == edit.knob and _is_literal(value):
                yield value


def _default_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        default = argument(node, "default")
        if default is not None and _is_literal(default):
            yield default
    elif isinstance(node, ast.AnnAssign) and node.value is not None and _is_literal(node.value):
        yield node.value


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg, node.value


def _is_literal(node: ast.expr) -> bool:
    return literal(node) is not ABSENT


def _spot(now: _Reading, node: ast.expr) -> _Spot | None:
    script = now.code.program.script_of.get(node)
    if script is None or node.end_lineno is None or node.end_col_offset is None:
        return None
    file = now.homes.get(script.name)
    if file is None or file not in now.texts:
        return None
    text = now.texts[file]
    start = _offset(text, node.lineno, node.col_offset)
    return _Spot(file, start, _offset(text, node.end_lineno, node.end_col_offset), node.lineno)


def _offset(text: str, line: int, column: int) -> int:
    """The offset of a place that the parser counts in bytes of UTF-8."""
    start = Source(text, "").offset_of(line - 1)
    row = text[start:].split("\n", 1)[0]
    return start + len(row.encode("utf-8")[:column].decode("utf-8", "ignore"))


# -- a setting that is not given yet -----------------------------------------------------------------------


def _added(now: _Reading, edit: Edit) -> Iterator[tuple[_Spot, str]]:
    """`name=value` behind the last argument of the call that takes it, laid out as its other arguments are."""
    for call, name in _takers(now, edit.knob):
        after = (call.keywords[-1].value if call.keywords else None) or (call.args[-1] if call.args else None)
        spot = None if after is None else _spot(now, after)
        if spot is None or after is None or any(k.arg in (name, None) for k in call.keywords):
            continue
        text = now.texts[spot.file]
        row = text.rfind("\n", 0, spot.start) + 1
        before = text[row : spot.start]
        alone = bool(call.keywords) and before.strip() == f"{call.keywords[-1].arg}="
        gap = f",\n{before[: len(before) - len(before.lstrip())]}" if alone else ", "
        value = spell(edit.new, None, "python", whole=_whole(edit.knob))
        yield _Spot(spot.file, spot.end, spot.end, spot.line + int(alone)), f"{gap}{name}={value}"


def _takers(now: _Reading, knob: str) -> Iterator[tuple[ast.Call, str]]:
    for call in now.code.story.calls:
        if call.op != "call" or not isinstance(call.node, ast.Call) or call.guards:
            continue
        names: Mapping[str, str] = {}
        if call.name in _OF_HF:
            names = _HF
        elif call.name in _OF_SB3 and "stable_baselines3" in call.origin:
            names = _AGENT
        elif call.name == "Trainer" and "lightning" in call.origin:
            names = _LIGHTNING
        elif "keras" in call.origin and "optimizers" in call.origin:
            names = _KERAS
        elif "torch.optim" in call.origin:
            names = _OPTIMIZER
        if knob in names:
            yield call.node, names[knob]
