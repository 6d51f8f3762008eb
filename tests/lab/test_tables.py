"""The tables of faults and oddities: each can be planned, and says what it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from wheeltapper.errors import ContractError, InputError
from wheeltapper.lab.faults import Benign, Fault, benign_of, faults_of, find, patched
from wheeltapper.lab.launch import plan_run, plan_twin
from wheeltapper.lab.systems import NAMES, SIZES, system

ALL = [(name, one) for name in NAMES for one in (*faults_of(name), *benign_of(name))]


@pytest.mark.parametrize(("name", "one"), ALL, ids=[f"{n}-{o.id}" for n, o in ALL])
def test_each_can_be_planned(name: str, one: Fault | Benign) -> None:
    plan = plan_run(name, "test", 3, one.id)
    twin = plan_twin(plan)
    ast.parse(plan.script)
    assert "@AT@" not in plan.script
    changed = plan.script != twin.script or plan.settings != twin.settings
    assert changed or one.resume or getattr(one, "stale", False), "it changes nothing"
    assert twin.fault is None
    assert twin.settings["seed"] == plan.settings["seed"]
    if one.at:
        assert plan.onset is not None
        assert 0 < plan.onset < system(name).length(plan.settings)
    if isinstance(one, Fault):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.cause)
        known = one.knob in plan.settings
        assert known or (one.good is not None and one.bad is not None), "a truth file needs good and bad"


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_within_a_system(name: str) -> None:
    ids = [one.id for one in (*faults_of(name), *benign_of(name))]
    assert len(ids) == len(set(ids))


def test_there_are_enough() -> None:
    assert sum(len(faults_of(name)) for name in NAMES) >= 40
    assert sum(len(benign_of(name)) for name in NAMES) >= 15


@pytest.mark.parametrize(("name", "one"), ALL, ids=[f"{n}-{o.id}" for n, o in ALL])
def test_names_and_scripts_do_not_give_the_fault_away(name: str, one: Fault | Benign) -> None:
    plan = plan_run(name, "test", 3, one.id)
    assert one.id not in plan.name
    assert not re.search(r"\bfault", plan.script.lower())


@pytest.mark.parametrize("name", NAMES)
def test_each_system_has_all_sizes(name: str) -> None:
    home = system(name)
    assert set(home.RECIPES) == set(SIZES) == set(home.EXPECTED)
    keys = {frozenset(recipe) for recipe in home.RECIPES.values()}
    assert len(keys) == 1, "every size sets the same things"


def test_a_patch_must_fit_once() -> None:
    assert patched("a\nb\nc\n", " a\n-b\n+B\n") == "a\nB\nc\n"
    assert patched("a\nb\nc\n", "-a\n@@\n-c\n+d\n") == "b\nd\n"
    assert patched("x = 1\n", " x = 1\n+y = @AT@\n", 12.0) == "x = 1\ny = 12\n"
    with pytest.raises(ContractError, match="0 times"):
        patched("a\n", "-b\n")
    with pytest.raises(ContractError, match="2 times"):
        patched("a\na\n", "-a\n")


def test_unknown_names_are_refused_with_the_choice() -> None:
    with pytest.raises(InputError, match="resnet-ddp"):
        system("resnet")
    with pytest.raises(InputError, match="ema-horizon"):
        find("sr-nano", "nonsense")


def test_the_tables_need_no_torch() -> None:
    code = (
        "import sys\n"
        "from wheeltapper.lab.faults import faults_of, benign_of\n"
        "from wheeltapper.lab.systems import NAMES, system\n"
        "from wheeltapper.lab.launch import plan_run\n"
        "[(system(n), faults_of(n), benign_of(n), plan_run(n, 'test', 1, None)) for n in NAMES]\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
