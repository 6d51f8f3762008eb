"""An error says what happened, where, and what to do; it exits with 2 and shows no traceback."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.errors import ContractError, Damaged, InputError, MissingExtra, NothingToRead, WheeltapperError


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(words)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    if code == 2:
        assert out == "", "an error prints nothing on stdout"
        assert err.startswith("wheeltapper: ")
    return code, err


def test_the_text_has_what_where_and_do() -> None:
    error = InputError("step went back to 1200", where="train.log:881", do="Pass --split.")
    assert str(error) == "train.log:881: step went back to 1200\nPass --split."
    assert str(MissingExtra("lab", "torch", "`wheeltapper lab`")) == (
        "`wheeltapper lab` needs torch, which is not installed.\nInstall it with: pip install torch"
    )
    for kind in (InputError, NothingToRead, Damaged, ContractError):
        assert issubclass(kind, WheeltapperError)


@pytest.mark.parametrize("command", ["show", "diagnose", "check", "schedule", "compare"])
def test_a_missing_path(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, err = call(capsys, command, "no/such/run")
    assert code == 2
    assert "no/such/run" in err
    assert "\n  Give " in err


@pytest.mark.parametrize("command", ["show", "diagnose"])
def test_an_empty_folder(capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path) -> None:
    code, err = call(capsys, command, str(tmp_path))
    assert code == 2
    assert "Point at the folder the training wrote to" in err


def test_a_folder_without_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"\xff\xd8\xff\xe0" * 100)
    code, err = call(capsys, "diagnose", str(tmp_path))
    assert code == 2
    assert "holds no file that could be a log" in err
    (tmp_path / "README.md").write_text("Nothing here.\n")  # a document may quote a log, so it is read
    code, err = call(capsys, "diagnose", str(tmp_path))
    assert code == 2
    assert "holds one file, and it does not read as a log" in err


@pytest.mark.parametrize("name", ["junk.bin", "train.log", "events.out.tfevents.1", "metrics.csv", "m.safetensors"])
def test_binary_junk_is_survived(capsys: pytest.CaptureFixture[str], name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(random.Random(7).randbytes(20_000))
    assert call(capsys, "diagnose", str(path))[0] in (2, 3), "there is nothing to judge in it"
    assert call(capsys, "show", str(path))[0] in (0, 2)


@pytest.mark.parametrize(
    "text", ["a: [1, 2\nb: {", "\tlr: 1\n  - x: y: z", "lr: !!python/object/apply:os.system ['true']\n", "\x00\x01"]
)
def test_a_broken_config_is_survived(capsys: pytest.CaptureFixture[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert call(capsys, "diagnose", str(tmp_path))[0] in (2, 3)
    assert call(capsys, "check", str(tmp_path))[0] in (0, 1, 2)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("epoch 1 loss 2\n")
    path.chmod(0)
    code, err = call(capsys, "show", str(path))
    assert code in (0, 2)
    assert "Permission denied" in err or code == 0


def test_what_the_system_refuses_is_said_plainly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path, progress=None, target=None, lines=None):
        raise PermissionError(13, "Permission denied", "runs/secret.log")

    monkeypatch.setattr(api, "diagnose", refuse)
    code, err = call(capsys, "diagnose", "x")
    assert (code, err) == (2, "wheeltapper: runs/secret.log: Permission denied\n")


def test_a_bug_of_ours_asks_to_be_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path, progress=None, target=None, lines=None):
        raise ZeroDivisionError("oh\x1b[31m no")

    monkeypatch.setattr(api, "diagnose", broken)
    code, err = call(capsys, "diagnose", "x")
    assert code == 2
    assert err == (
        "wheeltapper: this is a bug in Wheeltapper, not in your run: ZeroDivisionError: oh no\n"
        "  Please report it; --debug shows the traceback to send along.\n"
    )
    with pytest.raises(ZeroDivisionError):
        main(["diagnose", "x", "--debug"])


def test_ctrl_c_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path, progress=None, target=None, lines=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "diagnose", stop)
    assert main(["diagnose", "x"]) == 130
    assert capsys.readouterr().err == "\nwheeltapper: stopped\n"


@pytest.mark.parametrize("words", [["nonsense"], ["show"], ["diagnose", "x", "--json", "--markdown"]])
def test_a_wrong_command_line(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "usage: wheeltapper" in capsys.readouterr().err


def test_output_to_a_place_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = str(Path(__file__).resolve().parents[1] / "examples" / "collapsed")
    code, err = call(capsys, "diagnose", example, "--html", str(tmp_path / "no" / "r.html"))
    assert code == 2
    assert "does not exist" in err
    code, err = call(capsys, "diagnose", example, "--html", str(tmp_path))
    assert code == 2
    assert "is a folder" in err
