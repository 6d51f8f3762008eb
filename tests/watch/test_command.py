"""`wheeltapper watch` as it is called."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from pathlib import Path

import pytest
from writers import Live

from wheeltapper.cli.main import main
from wheeltapper.watch import Watcher, plain
from wheeltapper.watch.notify import Notifier
from wheeltapper.watch.state import default_file

JUDGED_AS = "nan-batch"  # how it is told is tested here, not what the judge says


def once(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["watch", *args, "--once"])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_cron_job_hears_only_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, state = Live(tmp_path), str(tmp_path / "state.json")
    live.grow(40)
    code, out, err = once(capsys, str(live.folder), "--state", state)
    assert (code, err) == (0, "")
    assert "exp: sound" in out
    live.grow(5)
    assert once(capsys, str(live.folder), "--state", state)[:2] == (0, "")
    live.grow(5, broken=True)
    code, out, _ = once(capsys, str(live.folder), "--state", state)
    assert code == 1
    assert "not-finite" in out
    assert "exp: ill" in out
    live.grow(5, broken=True)
    assert once(capsys, str(live.folder), "--state", state)[:2] == (1, "")


def test_silence_is_measured_from_call_to_call(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    live, state = Live(tmp_path), str(tmp_path / "state.json")
    live.grow(40)
    for file in live.folder.iterdir():
        os.utime(file, (1e9, 1e9))  # a file server whose clock is decades behind: told as silent, and only once
    args = (str(live.folder), "--state", state, "--stale", "10m")
    assert "nothing was written" in once(capsys, *args)[1]
    assert once(capsys, *args)[1] == ""
    live.grow(1)
    assert "it writes again" in once(capsys, *args)[1]
    later = time.time() + 700
    monkeypatch.setattr(Watcher.__init__, "__kwdefaults__", {**(Watcher.__init__.__kwdefaults__ or {}), "clock": lambda: later})
    assert "nothing was written for 11 min" in once(capsys, *args)[1]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(tmp_path)
    live.grow(120)
    code, out, _ = once(capsys, str(live.folder), str(tmp_path / "later"), "--state", str(tmp_path / "s"), "--json", "--target", "val/accuracy=95")
    told = json.loads(out)
    assert code == 0
    [run] = told["runs"]
    assert (run["name"], run["verdict"], run["state"], run["at"], run["total"]) == ("exp", "sound", "running", 119.0, 200.0)
    assert run["seconds_left"] == pytest.approx(81 * 60)
    assert run["target"]["chance"] < 0.1
    assert told["waiting"][0]["path"].endswith("later")


@pytest.mark.parametrize("content", ["", "{", '{"version": 7}', '{"version": 1, "ledger": 3, "seen": {}}', '{"version": 1, "ledger": {"signs": {"k": {"i": {"x": 1}}}, "said": {}}, "seen": {}}'])
def test_a_state_that_does_not_read_is_written_anew(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, state = Live(tmp_path), tmp_path / "state.json"
    live.grow(40)
    state.write_text(content)
    code, out, err = once(capsys, str(live.folder), "--state", str(state))
    assert code == 0
    assert "exp: sound" in out
    assert "written anew" in err
    assert json.loads(state.read_text())["version"] == 1


@pytest.mark.parametrize("content", ["[]", '{"log_history": []}', "lr: 0.1\n", "step,loss\n"])
def test_a_file_that_is_no_state_is_not_written_over(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, state = Live(tmp_path), tmp_path / "mine.json"
    live.grow(40)
    state.write_text(content)
    code, _, err = once(capsys, str(live.folder), "--state", str(state))
    assert code == 2
    assert "not written over" in err
    assert state.read_text() == content


def test_a_state_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(tmp_path)
    live.grow(40)
    (tmp_path / "file").write_text("")
    code, _, err = once(capsys, str(live.folder), "--state", str(tmp_path / "file" / "state.json"))
    assert code == 2
    assert "--state" in err


def test_the_state_lies_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_file(["b", "a"]) == default_file(["a", "b"]) != default_file(["a"])
    assert tmp_path in default_file(["a"]).parents


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--interval", "soon"], "no length of time"),
        (["--target", "accuracy"], "NAME=VALUE"),
        (["--json"], "--once"),
        (["--once", "--notify", "nonsense"], "pip install apprise"),
    ],
)
def test_wrong_input_is_told_in_words(args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.watch.notify.find_spec", lambda _name: None)
    try:
        code = main(["watch", str(tmp_path), *args])
    except SystemExit as stop:
        code = int(str(stop.code))
    assert code == 2
    assert said in capsys.readouterr().err


def test_lines_until_done(tmp_path: Path) -> None:
    live, out = Live(tmp_path, total=60), io.StringIO()
    live.grow(30)

    def more(_seconds: float) -> None:
        live.grow(10)

    watcher = Watcher([live.folder, tmp_path / "exp"])
    plain.follow_lines(watcher, out, interval=0.1, until_done=True, notifier=Notifier([]), sleep=more)
    told = out.getvalue().splitlines()
    assert any("sound · running" in line for line in told)
    assert any("finished" in line for line in told)
    assert len(told) < 12


def test_the_command_follows_a_writer_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = Live(tmp_path, total=40)
    live.grow(20)

    def write() -> None:
        for _ in range(10):
            time.sleep(0.05)
            live.grow(2)

    thread = threading.Thread(target=write)
    thread.start()
    code = main(["watch", str(live.folder), "--plain", "--until-done", "--interval", "0.1"])
    thread.join()
    assert code == 0
    assert "■ exp" in capsys.readouterr().out


def test_the_table_for_who_has_no_textual(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.grow(30)
    watcher = Watcher([live.folder, tmp_path / "later"])
    watcher.look()
    from wheeltapper.report.terminal import console

    out = io.StringIO()
    console(out, width=100, color=False).print(plain.overview(watcher))
    assert "exp" in out.getvalue()
    assert "waiting" in out.getvalue()


def test_lengths_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("-3m", "1.2.3", "soon", ""):
        with pytest.raises(SystemExit, match="2"):
            main(["watch", "runs", f"--interval={wrong}"])
        assert "no length of time" in capsys.readouterr().err


