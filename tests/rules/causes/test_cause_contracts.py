"""Every cause meets the contract: its page, what it shows and forbids, remedies that can be applied, and little code."""

from __future__ import annotations

import ast
import importlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from made_runs import at_chance, case_of, falling

import wheeltapper
from wheeltapper.errors import ContractError
from wheeltapper.finding import Remedy
from wheeltapper.observations import observations
from wheeltapper.program.checks import registry
from wheeltapper.report.pages import pages_of
from wheeltapper.rules import causes as package
from wheeltapper.rules.causes import SECTIONS, Case, Cause, cause, causes, fits, normals, remedies_of
from wheeltapper.rules.signs import signs
from wheeltapper.settings.knobs import KNOBS
from wheeltapper.testing import make_run

CAUSES = causes()
FOLDER = Path(package.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
FINDINGS = {page.id for page in pages_of("check")} | set(registry())
SIGNS = {sign.id for sign in signs()}
OBSERVATIONS = {observation.id: observation for observation in observations()}
MOST_CONSTANTS, MOST_BRANCHES = 8, 12
EVERYTHING = (
    "optimizer: sgd\nlearning_rate: 0.1\nmomentum: 0.999\nweight_decay: 5.0\nbetas: [0.999, 0.999]\neps: 0.001\n"
    "epochs: 3\nmax_steps: 300\nwarmup_steps: 900\nt_max: 100\nlr_decay_epochs: [100, 150]\nbatch_size: 2\n"
    "gradient_accumulation_steps: 4\nworld_size: 8\nclip_grad: 0.0001\nema_decay: 0.99999\nema_every: 10\n"
    "precision: fp16\ndropout: 0.9\nlabel_smoothing: 0.6\nsigma_max: 2.0\nsigma_data: 0.5\nP_mean: 2.0\nshuffle: false\n"
    "num_workers: 0\nresume: true\ngamma: 0.5\ntemperature: 10.0\neval_steps: 10\nnum_classes: 10\n"
)
ODD = (
    "lr: 0\nepochs: 0\nbatch_size: 0\nworld_size: 0\nema_decay: 1.0\nclip_grad: -1\nmilestones: []\n"
    "accumulation_steps: 0\nwarmup_steps: -5\noptimizer: adam\nbetas: [1.0, 1.0]\neps: 0\ndropout: x\ngamma: .nan\n"
)


def cases() -> dict[str, Case]:
    rows = 60
    known = {"steps_per_epoch": 100, "total_steps": 300, "total_epochs": 3}
    series = {**at_chance(10, rows), "lr": [0.1] * rows, "grad_norm": [5.0] * rows, "loss_scale": [65536.0] * rows}
    bad = [2.0, 1.0, math.nan, math.inf, 20.0, 50.0]
    return {
        "empty": case_of(make_run({})),
        "one value": case_of(make_run({"val/accuracy": [0.5]})),
        "healthy": case_of(make_run({"train/loss": falling(rows).tolist()})),
        "settings": case_of(make_run(series, config=EVERYTHING, facts=known)),
        "never finite": case_of(
            make_run({"train/loss": [math.nan] * 8, "lr": [math.nan] * 8, "grad_norm": [math.inf] * 8})
        ),
        "odd settings": case_of(make_run({"train/loss": bad, "lr": [0.0] * 6}, config=ODD, facts={"total_steps": 0})),
    }


CASES = cases()
each = pytest.mark.parametrize("one", CAUSES, ids=lambda c: c.id)


def test_every_file_is_a_cause_or_an_expected_pattern() -> None:
    names = {path.stem.replace("_", "-") for path in FILES if not path.stem.startswith("_")}
    assert {c.id for c in CAUSES} | {n.id for n in normals()} == names
    assert len(names) == len(CAUSES) + len(normals())
    assert all(n.id.startswith("normal-") for n in normals())
    assert not any(c.id.startswith("normal-") for c in CAUSES)


def test_a_cause_is_found_by_its_id() -> None:
    assert cause("lr-too-high") in CAUSES
    assert cause("no-such-cause") is None


@pytest.mark.parametrize("one", [*CAUSES, *normals()], ids=lambda c: c.id)
def test_the_page_says_something_in_every_section(one: Cause) -> None:
    assert re.findall(r"^## (.+)$", one.page, re.MULTILINE) == list(SECTIONS)
    head, *bodies = re.split(r"^## .+$", one.page, flags=re.MULTILINE)
    assert head.strip().endswith("."), "the title is a sentence"
    assert one.title == head.strip().rstrip(".").replace("\n", " ")
    assert all(len(body.strip()) > 10 for body in bodies)


@each
def test_what_it_shows_and_forbids_can_be_looked_at(one: Cause) -> None:
    assert 1 <= len(one.shows) <= 6
    assert len(one.forbids) <= 4
    for key, word in [*one.shows.items(), *one.forbids.items()]:
        assert key in SIGNS or key in OBSERVATIONS
        assert fits(word, OBSERVATIONS.get(key))
    assert not set(one.shows.items()) & set(one.forbids.items()), "it cannot show what excludes it"


def test_no_two_causes_say_the_same() -> None:
    said = [(tuple(sorted(c.shows.items())), tuple(sorted(c.forbids.items()))) for c in CAUSES]
    assert len(set(said)) == len(said)


def test_an_id_that_is_both_sign_and_observation_would_be_ambiguous() -> None:
    assert not SIGNS & set(OBSERVATIONS)


@each
def test_it_explains_signs_and_rests_on_findings_that_exist(one: Cause) -> None:
    assert one.explains
    assert set(one.explains) <= SIGNS | FINDINGS
    assert len(set(one.explains)) == len(one.explains)
    assert set(one.proved_by) <= FINDINGS
    assert one.trial
    assert one.area


def test_every_proof_of_a_check_reaches_a_cause() -> None:
    """A check that names a cause names one that is there, and that cause knows the check."""
    named = {check.id: check.cause for check in registry().values() if check.cause is not None}
    assert named
    for check, cause_id in named.items():
        known = cause(cause_id)
        assert known is not None, check
        assert check in known.proved_by, check


@each
@pytest.mark.parametrize("name", CASES)
def test_remedies_can_be_applied(one: Cause, name: str) -> None:
    found = remedies_of(one, CASES[name])
    assert isinstance(found, tuple)
    assert found, "there is always something to do"
    for remedy in found:
        assert isinstance(remedy, Remedy)
        assert remedy.text.endswith(".")
        assert remedy.predicts
        for edit in remedy.edits:
            assert edit.knob in KNOBS
            assert edit.old != edit.new, "a remedy changes something"
            assert not isinstance(edit.new, float) or math.isfinite(edit.new)


@pytest.mark.parametrize("one", normals(), ids=lambda n: n.id)
@pytest.mark.parametrize("name", CASES)
def test_an_expected_pattern_answers_in_words(one: package.Normal, name: str) -> None:
    assert isinstance(one.expect(CASES[name]), str)


def test_nothing_is_expected_of_an_empty_run() -> None:
    assert [n.id for n in normals() if n.expect(CASES["empty"])] == []


# --- the budget of a unit


def numeric_constants(tree: ast.Module) -> int:
    values = [
        node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
    ]
    parts = [item for v in values for item in (v.elts if isinstance(v, ast.Tuple) else [v])]
    return sum(
        isinstance(part, ast.Constant) and isinstance(part.value, int | float) and not isinstance(part.value, bool)
        for part in parts
    )


def branches(function: ast.AST) -> int:
    kinds = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.BoolOp, ast.comprehension, ast.match_case)
    found = [node for node in ast.walk(function) if isinstance(node, kinds)]
    return sum(len(node.values) - 1 if isinstance(node, ast.BoolOp) else 1 for node in found)


def literals(tree: ast.Module) -> Iterator[str]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_unit_stays_within_its_budget(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert numeric_constants(tree) <= MOST_CONSTANTS
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert {f.name: branches(f) for f in functions if branches(f) > MOST_BRANCHES} == {}
    names = {f.name for f in functions}
    assert "weigh" not in names


def test_the_budget_can_be_overdrawn() -> None:
    many = "\n".join(f"A{i} = {i}" for i in range(9))
    assert numeric_constants(ast.parse(many)) == 9
    assert numeric_constants(ast.parse("A, B = 1, 2.0\nC = True\nD = 'x'")) == 2
    assert branches(ast.parse("def f(a, b):\n    if a and b or a:\n        return [x for x in b if x]\n")) == 4


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_cause_names_another(path: Path) -> None:
    """Causes compete in the judge; none knows of the others. Ids of findings in PROVED_BY may be those of causes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [
        n
        for n in tree.body
        if not isinstance(n, ast.Assign)
        or getattr(n.targets[0], "id", "") not in ("PROVED_BY", "EXPLAINS", "ID", "SHOWS", "FORBIDS")
    ]
    ids = {c.id for c in CAUSES} - SIGNS
    assert [text for text in literals(tree) if text in ids] == []


# --- the registry refuses what breaks the contract


def broken(**changes: object) -> ModuleType:
    """The module of a sound cause with something changed or (None) taken away."""
    sound = importlib.import_module("wheeltapper.rules.causes.lr_too_low")
    module = ModuleType("made")
    for name, value in {**vars(sound), **changes}.items():
        if value is not None:
            setattr(module, name, value)
    return module


def test_the_registry_takes_a_sound_module() -> None:
    assert package._cause(broken()).id == "lr-too-low"


@pytest.mark.parametrize(
    "changes",
    [
        {"SHOWS": {}},
        {"SHOWS": {"no-such-thing": "low"}},
        {"SHOWS": {"rate-size": "seen"}},
        {"SHOWS": {"diverged": "low"}},
        {"SHOWS": {"launches": "high"}},
        {"FORBIDS": {"not-finite": "in"}},
        {"ABOUT": "weather"},
        {"ABOUT": None},
        {"TRIAL": None},
        {"EXPLAINS": None},
        {"remedies": None},
        {"__doc__": "A title.\n\n## What happens\nThis."},
    ],
)
def test_the_registry_refuses(changes: dict[str, object]) -> None:
    with pytest.raises(ContractError):
        package._cause(broken(**changes))


def test_importing_the_causes_loads_nothing_heavy() -> None:
    root = Path(wheeltapper.__file__).parent / "rules" / "causes"
    heavy = {"torch", "pandas", "scipy", "matplotlib"}
    for path in root.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        told |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not told & heavy, path.name
