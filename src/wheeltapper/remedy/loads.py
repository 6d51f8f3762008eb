"""The load test: whatever was edited is read again, by us, by its framework's rules, and by its own loader.

Three answers, as everywhere: it holds, it does not, or it could not be tried and why. What could not be tried
is never told as a success.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from wheeltapper.errors import RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.program.options import Option, literal
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code, read_code
from wheeltapper.remedy.code_edits import edit_code
from wheeltapper.remedy.dumped import written_by
from wheeltapper.remedy.hydra_sources import hydra_sources
from wheeltapper.run.model import Run
from wheeltapper.settings.check import check_config
from wheeltapper.settings.edit import editable, plan_edits
from wheeltapper.settings.edited import Edited, differing
from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import format_of, parse_text
from wheeltapper.settings.tree import ConfigTree, Leaf
from wheeltapper.settings.units import Scale

TIMEOUT = 60.0  # seconds for a framework's own loader; importing one takes up to 20 on a cold disk


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried. `ok` None: it could not be, and `text` says why."""

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class LoadTest:
    """All that was tried on one file."""

    file: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok is not False for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.ok is False)


def edit_run(run: Run, edits: Sequence[Edit]) -> list[Edited]:
    """The files of a run with these edits made, each where the setting lives: in a file of settings or a launch script that
    the program reads, else in the script itself. RefusedEdit, with the reason of the likelier place, where neither can be."""
    own = authored(run)
    if not any(editable(tree) for tree in own):
        return edit_code(run, edits)
    try:
        return _edit_configs(run, own, edits)
    except RefusedEdit as refused:
        if not any(path.endswith(".py") for path in run.scripts):
            raise
        try:
            return _each_where_it_lives(run, own, edits)
        except RefusedEdit:
            raise refused from None


def _edit_configs(run: Run, own: Sequence[ConfigTree], edits: Sequence[Edit]) -> list[Edited]:
    return plan_edits(own, edits, run_formats=run.formats, options=declared_options(run), scale=scale_of(run))


def _each_where_it_lives(run: Run, own: Sequence[ConfigTree], edits: Sequence[Edit]) -> list[Edited]:
    """Some edits in files of settings, some in the script."""
    in_files: list[Edit] = []
    for edit in edits:
        try:
            _edit_configs(run, own, [*in_files, edit])
            in_files.append(edit)
        except RefusedEdit:
            continue
    in_code = [edit for edit in edits if edit not in in_files]
    return [*(_edit_configs(run, own, in_files) if in_files else []), *edit_code(run, in_code)]


def load_test(edited: Edited, run: Run, *, loaders: bool = True) -> LoadTest:
    """Try the new text of one file. `loaders`: also the framework's own loader, where it is installed."""
    before = next((tree for tree in authored(run) if tree.file == edited.file and editable(tree)), None)
    if before is None:
        return LoadTest(edited.file, _of_script(edited))
    after = replace(parse_text(edited.after, edited.file, before.format), kind=before.kind)
    knobs = read_knobs(run.configs, run_formats=run.formats)
    checks = [_parses(before, after), _only_meant(edited, before, after), _schema(run, knobs, before, after)]
    if before.kind == "command":
        checks.append(_options(edited, after, run))
    if loaders and before.kind != "command":
        checks.append(own_loader(edited, knobs))
    return LoadTest(edited.file, tuple(checks))


def _of_script(edited: Edited) -> tuple[Check, ...]:
    """A training script: it parses, and only the lines of the edits differ."""
    try:
        ast.parse(edited.after)
        parses = Check("parses as python", True, "Python takes it")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        parses = Check("parses as python", False, f"Python does not take it: {error}")
    lines = sum(line.startswith("+") for line in edited.diff().splitlines()[2:])
    most = 2 * len(edited.changes)  # an argument that is added may put a comma behind the one before it
    return (
        parses,
        Check("only what was meant changes", lines <= most, f"{lines} {'line' if lines == 1 else 'lines'}"),
        Check("the program reads as asked", True, "read again with the edit, the setting has its new value"),
    )


# -- what a run tells ----------------------------------------------------------------------------------


def authored(run: Run) -> tuple[ConfigTree, ...]:
    """The settings of a run without the files that its own scripts write (`args.yaml` that a script dumps is no input), and
    with those that Hydra composed them from."""
    names = {PurePath(tree.file).name for tree in run.configs if tree.kind != "command"}
    dumped = written_by(run.scripts, names) if names else frozenset()
    own = tuple(tree for tree in run.configs if PurePath(tree.file).name not in dumped or tree.kind == "command")
    known = {os.path.realpath(tree.file) for tree in own}
    return (*own, *(tree for tree in hydra_sources(run.scripts) if os.path.realpath(tree.file) not in known))


def scale_of(run: Run) -> Scale:
    """How the units of this run relate, from its facts and then its settings."""
    knobs = read_knobs(run.configs, run_formats=run.formats)

    def number(fact: str, knob: str = "") -> float | None:
        value = run.fact(fact)
        if value is None and knob and (known := knobs.get(knob)) is not None and known.unit != "unknown":
            value = known.value
        return float(value) if isinstance(value, (int, float)) and value > 0 else None

    return Scale(
        number("steps_per_epoch"),
        number("total_steps", "run.total_steps"),
        number("accumulation", "batch.accumulation") or 1.0,
        number("effective_batch", "batch.global"),
    )


def declared_options(run: Run) -> dict[str, str]:
    """The command-line options that the run's own script declares, name to flag."""
    code = _script(run)
    return {} if code is None else {one.name: _both_names(one) for one in _flags(code)}


def _both_names(option: Option) -> str:
    """`--amp/--no-amp` for a switch of argparse that has two names, as click writes it."""
    action = argument(option.node, "action") if isinstance(option.node, ast.Call) else None
    two = action is not None and "BooleanOptionalAction" in ast.unparse(action)
    return f"{option.flag}/--no-{option.flag[2:]}" if two and "/" not in option.flag else option.flag


def _script(run: Run) -> Code | None:
    scripts = [path for path in run.scripts if path.endswith((".py", ".sh"))]
    if not scripts:
        return None
    codes, _ = read_code(scripts, run.configs)
    return codes[0] if len(codes) == 1 else None


def _flags(code: Code) -> list[Option]:
    return [one for one in code.options if one.flag.startswith("--")]


# -- the checks ----------------------------------------------------------------------------------------


def _parses(before: ConfigTree, after: ConfigTree) -> Check:
    name = f"parses as {after.format}"
    worse = _new_texts(before.problems, after.problems)
    if worse or not len(after):
        return Check(name, False, worse[0] if worse else "nothing is left in it")
    known = next((text for text in after.problems if "twice" not in text), None)
    if known is not None:
        return Check(name, None, f"as before the edit, not all of it could be read: {known}")
    return Check(name, True, f"{len(after)} settings")


def _new_texts(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Problems that were not there before, whatever line they stand on now."""
    known = {text.rsplit(": ", 1)[-1] for text in before}
    return [text for text in after if text.rsplit(": ", 1)[-1] not in known]


def _only_meant(edited: Edited, before: ConfigTree, after: ConfigTree) -> Check:
    meant = {key for change in edited.changes for key in (change.key, *change.also)}
    moved = [".".join(map(str, path)) for path in differing(before, after) if path[:1] != ("var",)]
    stray = [key for key in moved if not any(key == one or key.startswith(f"{one}.") for one in meant)]
    if stray:
        return Check("only the intended settings differ", False, f"also changed: {', '.join(stray[:5])}")
    missing = [one for one in meant if not any(key == one or key.startswith(f"{one}.") for key in moved)]
    real = [one for one in missing if not one.startswith("var.")]
    if real:
        return Check("only the intended settings differ", False, f"not changed: {', '.join(real[:5])}")
    return Check("only the intended settings differ", True, ", ".join(moved))


def _schema(run: Run, knobs: Knobs, before: ConfigTree, after: ConfigTree) -> Check:
    dialect = knobs.dialect
    name = f"accepted by the rules of {dialect.TITLE}"
    if dialect.NAME in ("generic", "argparse") or dialect.UNKNOWN == "unknown":
        return Check("accepted by the framework's rules", None, "the framework is not known: not tried")
    new = tuple(after if tree is before else tree for tree in run.configs)
    told = {(p.id, p.key, p.text) for p in check_config(run.configs, dialect=dialect)}
    worse = [p for p in check_config(new, dialect=dialect) if (p.id, p.key, p.text) not in told]
    if worse:
        return Check(name, False, f"{worse[0].place}: {worse[0].text}")
    return Check(name, True, "no new problem")


def _options(edited: Edited, after: ConfigTree, run: Run) -> Check:
    """A command line against the options that its script declares."""
    script = after.get("script") or after.get("module")
    name = f"taken by the options of {PurePath(str(script)).name}" if script else "taken by the script's options"
    code = _script(run)
    if code is None:
        return Check(name, None, "the script does not lie beside the run, or there are several: not tried")
    known = {one.name: one for one in _flags(code)}
    if not known:
        return Check(name, None, "the script declares no options that could be read: not tried")
    for change in edited.changes:
        option = known.get(change.key.removeprefix("no_")) or known.get(change.key.split(".")[0])
        other = any(f"no_{change.key}" == one.key and one.new for one in edited.changes)
        if change.new is None and option is not None and option.default is True and not other:
            return Check(name, False, f"without {option.flag} it is on all the same: that is its default")
        if change.new is None or change.key.startswith(("var.", "env.", "launcher.")):
            continue
        if option is None:
            return Check(name, False, f"the script has no option for {change.key}")
        wrong = _refused(option, after.leaf(change.key))
        if wrong:
            return Check(name, False, wrong)
    return Check(name, True, f"{len(known)} options declared")


def _refused(option: Option, leaf: Leaf | None) -> str | None:
    """Why argparse would not take this value, where its type or its choices say so."""
    if leaf is None or not isinstance(option.node, ast.Call) or option.kind != "argparse":
        return None
    given = argument(option.node, "type")
    kind = given.id if isinstance(given, ast.Name) else ""
    text = leaf.raw.strip("'\"")
    try:
        value: Any = int(text) if kind == "int" else float(text) if kind == "float" else text
    except ValueError:
        return f"{option.flag} takes {kind}, not {text}"
    choices = literal(argument(option.node, "choices"))
    if isinstance(choices, (list, tuple, set)) and value not in choices:
        return f"{option.flag} takes one of {', '.join(map(str, choices))}, not {text}"
    return None


# -- the framework's own loader ------------------------------------------------------------------------

# Only documented loaders that read and do not run the file. The new text comes on stdin.
_LOADERS: Mapping[str, tuple[str, str, str]] = {
    "ultralytics": (
        "ultralytics",
        "ultralytics.cfg.get_cfg",
        "from ultralytics.cfg import get_cfg; import yaml; get_cfg(overrides=yaml.safe_load(text))",
    ),
    "hydra": ("omegaconf", "OmegaConf.create", "from omegaconf import OmegaConf; OmegaConf.create(text)"),
    "trainner": (
        "traiNNer",
        "traiNNer's ReduxOptions",
        "import msgspec.yaml; from traiNNer.utils.redux_options import ReduxOptions; "
        "msgspec.yaml.decode(text, type=ReduxOptions, strict=True)",
    ),
}
_PLAIN: Mapping[str, tuple[str, str]] = {
    "yaml": ("yaml.safe_load_all", "import yaml; list(yaml.safe_load_all(text))"),
    "json": ("json.loads", "import json; json.loads(text.lstrip(chr(0xFEFF)))"),
    "toml": ("tomllib.loads", "import tomllib; tomllib.loads(text.lstrip(chr(0xFEFF)))"),
    "python": ("ast.parse", "import ast; ast.parse(text.lstrip(chr(0xFEFF)))"),
}
_RUNNER = """
import json, sys
text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
try:
    {body}
    out = None
except BaseException as error:
    out = f"{{type(error).__name__}}: {{error}}"[:500]
print(); print(json.dumps(out))
"""


def own_loader(edited: Edited, knobs: Knobs, timeout: float = TIMEOUT) -> Check:
    """The framework's loader, in a process of its own; else the format's (PyYAML, json, tomllib)."""
    kind = format_of(edited.file, edited.after) or ""
    package = _LOADERS.get(knobs.dialect.NAME)
    if package is not None and kind in ("yaml", "json"):
        module, name, body = package
        if importlib.util.find_spec(module) is not None:
            return _in_process(name, body, edited, timeout)
    if kind not in _PLAIN:
        return Check("its own loader takes it", None, f"no loader for {kind or 'this format'}: not tried")
    name, body = _PLAIN[kind]
    check = _in_process(name, body, edited, timeout)
    if package is not None and check.ok:  # the plain loader knows nothing of keys: that is no test of this framework's
        return Check(f"{package[1]} takes it", None, f"{package[0]} is not installed: not tried; {name} takes it")
    return check


def _in_process(name: str, body: str, edited: Edited, timeout: float) -> Check:
    """Accepted now, or refused in the same words as before the edit (a file that never was strict JSON)."""
    said = _load(body, edited.after, timeout)
    title = f"{name} takes it"
    if said is None:
        return Check(title, True, "loaded")
    if said.startswith("timeout"):
        return Check(title, None, f"{said}: not decided")
    before = _load(body, edited.before, timeout)
    if before is not None:
        return Check(title, None, f"it did not take the file before the edit either: {before}")
    return Check(title, False, said)


def _load(body: str, text: str, timeout: float) -> str | None:
    """What the loader says against the text; None: nothing."""
    command = [sys.executable, "-I", "-c", _RUNNER.format(body=body)]
    try:
        done = subprocess.run(
            command, input=text.encode("utf-8", "surrogatepass"), capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"timeout after {timeout:g} s"
    try:
        answer = json.loads(done.stdout.decode().strip().splitlines()[-1])
    except (ValueError, IndexError):
        return f"the loader ended with {done.returncode}"
    return None if answer is None else str(answer)


def loads(path: Path | str) -> Check:
    """A written file, read back from disk: the last look before it is handed over."""
    path = Path(path)
    text = path.read_text(encoding="utf-8", errors="replace")
    kind = format_of(path.name, text)
    if kind is None:
        return Check("reads back", None, "not a format we read")
    tree = parse_text(text, str(path), kind)
    return Check("reads back", bool(len(tree)), f"{len(tree)} settings")
