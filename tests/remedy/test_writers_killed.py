"""kill -9 at random moments: nothing lost, doubled or half-written, whatever writes. And several writers at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.cli.output import write as write_report
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.remedy import files
from wheeltapper.remedy.case_file import Attempt, add_attempt, load_case
from wheeltapper.remedy.plan_file import load_plan
from wheeltapper.settings import locked as locks
from wheeltapper.settings.edit import plan_edits
from wheeltapper.settings.parse import parse_file
from wheeltapper.settings.write import write
from wheeltapper.watch.state import State, load, save
from wheeltapper.watch.watcher import Seen

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KILLS = 50
FILES = {"args.yaml", "plan.yaml", "fix.patch", "fix.md", "fix.html", "case.json", "case.md"}
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else multiprocessing.get_context()


def killed(work: Callable[[], None], longest: float, check: Callable[[], None]) -> None:
    """Start, kill at a random moment, look; fifty times."""
    rng = random.Random(0)
    for _ in range(KILLS):
        process = FORK.Process(target=work)
        process.start()
        time.sleep(rng.uniform(0, longest))
        process.kill()
        process.join()
        check()


def forever(one: Callable[[int], None]) -> Callable[[], None]:
    def work() -> None:
        number = 0
        while True:
            one(number)
            number += 1

    return work


@pytest.fixture
def fixed(tmp_path: Path) -> tuple[object, Path]:
    run = Path(shutil.copytree(EXAMPLES / "collapsed", tmp_path / "collapsed"))
    fix = api.fix(run)
    api.save_fix(fix, tmp_path / "out")
    return fix, tmp_path / "out"


@pytest.mark.slow
@pytest.mark.parametrize("swaps", [True, False], ids=["exchanged", "file by file"])
def test_a_fix_over_its_own_folder(fixed: tuple[object, Path], swaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """42 of 50 kills lost the config: it was thrown away before the new one was written."""
    fix, out = fixed
    config = (out / "args.yaml").read_bytes()
    if not swaps:
        monkeypatch.setattr(files, "exchange", lambda _a, _b: False)

    def check() -> None:
        assert {p.name for p in out.iterdir() if not p.name.endswith(".tmp")} == FILES
        assert (out / "args.yaml").read_bytes() == config
        load_plan(out / "plan.yaml")
        assert load_case(out).attempts
        assert json.loads((out / "case.json").read_text())

    killed(forever(lambda _: api.save_fix(fix, out) and None), 0.12, check)  # type: ignore[arg-type]
    api.save_fix(fix, out)  # type: ignore[arg-type]
    check()
    assert not list(out.parent.glob(".*.part")), "what the killed ones left is gone"


def test_what_the_user_edited_is_not_written_over(fixed: tuple[object, Path]) -> None:
    fix, out = fixed
    for name in ("args.yaml", "plan.yaml", "fix.md"):
        text = (out / name).read_text()
        (out / name).write_text("# mine\n" + text)
        with pytest.raises(InputError, match=f"{name} was edited"):
            api.save_fix(fix, out)  # type: ignore[arg-type]
        assert (out / name).read_text() == "# mine\n" + text
        (out / name).write_text(text)
    api.save_fix(fix, out)  # type: ignore[arg-type]


def test_a_fix_into_the_folder_we_stand_in(fixed: tuple[object, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    out = fixed[1]
    inode = out.stat().st_ino
    monkeypatch.chdir(out)
    assert main(["fix", str(out.parent / "collapsed"), "-o", "."]) == 0
    assert out.stat().st_ino == inode
    assert {p.name for p in out.iterdir()} == FILES


def test_a_case_that_is_killed_while_it_grows(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    known: list[str] = []

    def check() -> None:
        nonlocal known
        runs = [a.run for a in load_case(file).attempts] if file.exists() else []
        assert runs[: len(known)] == known, "what was there stays"
        assert len(set(runs)) == len(runs)
        known = runs

    def add(number: int) -> None:
        add_attempt(file, Attempt("followup", "d", f"run {os.getpid()}.{number}", "h"), "a")

    killed(forever(add), 0.04, check)
    add(0)
    check()
    assert known


def follow_ups(file: Path, who: int, count: int) -> None:
    for number in range(count):
        add_attempt(file, Attempt("followup", "d", f"{who}.{number}", "h"), "a")


def test_four_follow_ups_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    several = [FORK.Process(target=follow_ups, args=(file, who, 10)) for who in range(4)]
    for process in several:
        process.start()
    for process in several:
        process.join()
    runs = [a.run for a in load_case(file).attempts]
    assert sorted(runs) == sorted(f"{who}.{number}" for who in range(4) for number in range(10))


def test_fixes_and_follow_ups_at_once_lose_nothing(fixed: tuple[object, Path]) -> None:
    fix, out = fixed
    before = len(load_case(out).attempts)
    several = [FORK.Process(target=follow_ups, args=(out / "case.json", who, 10)) for who in range(2)]
    several.append(FORK.Process(target=lambda: [api.save_fix(fix, out) for _ in range(5)]))  # type: ignore[arg-type]
    for process in several:
        process.start()
    for process in several:
        process.join()
        assert process.exitcode == 0
    runs = [a.run for a in load_case(out).attempts[before:] if a.what == "followup"]
    assert sorted(runs) == sorted(f"{who}.{number}" for who in range(2) for number in range(10))


def test_a_report_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    texts = {f"{n}" * 400_000 + "\n" for n in range(10)}

    def check() -> None:
        assert not target.exists() or target.read_text() in texts

    killed(forever(lambda n: write_report(str(n % 10) * 400_000, str(target))), 0.03, check)


def test_the_state_of_a_watch_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "state.json"

    def keep(number: int) -> None:
        save(file, State(seen={f"run {i}": Seen(1.0, 2.0, (number,), "sound") for i in range(2000)}))

    def check() -> None:
        assert load(file).problem == ""

    killed(forever(keep), 0.03, check)


def test_a_config_edited_in_place_is_whole_and_its_backup_too(tmp_path: Path) -> None:
    file = tmp_path / "args.yaml"
    first = "".join(f"key{i}: {i}\n" for i in range(100)) + "lr: 0.1\n"
    file.write_text(first)

    def halve(_: int) -> None:
        tree = parse_file(file)
        assert tree is not None
        lr = tree.get("lr")
        (edited,) = plan_edits([tree], [Edit("optimizer.lr", lr, 0.2 if lr == 0.1 else 0.1)])
        write(edited, file, in_place=True)

    whole = {first, first.replace("lr: 0.1", "lr: 0.2")}

    def check() -> None:
        for path in tmp_path.glob("args.yaml*"):
            assert path.read_text() in whole

    killed(forever(halve), 0.1, check)
    halve(0)
    check()
    assert (tmp_path / "args.yaml.bak").exists()


def test_a_lock_that_is_never_given_back_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT", 0.1)
    with locks.locked(tmp_path), pytest.raises(InputError, match="another wheeltapper"), locks.locked(tmp_path):
        pass
