"""Writing: the author's file stays whole whatever happens, backups are never lost, encodings survive."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.settings.edit import plan_edits
from wheeltapper.settings.edited import Edited
from wheeltapper.settings.parse import parse_file
from wheeltapper.settings.write import write


def planned(path: Path, old: float = 0.1, new: float = 0.2) -> Edited:
    tree = parse_file(path)
    assert tree is not None
    [edited] = plan_edits([tree], [Edit("lr", old, new)])
    return edited


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "conf" / "a.yml"
    path.parent.mkdir()
    path.write_bytes(b"lr: 0.1  # rate\n")
    return path


def test_a_new_folder_leaves_the_original_alone(config: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made = write(planned(config), tmp_path / "out")
    assert made == tmp_path / "out" / "a.yml"
    assert made.read_bytes() == b"lr: 0.2  # rate\n"
    assert config.read_bytes() == b"lr: 0.1  # rate\n"
    assert os.listdir(config.parent) == ["a.yml"]


def test_the_original_is_only_written_over_when_asked(config: Path) -> None:
    with pytest.raises(RefusedEdit, match="not written over"):
        write(planned(config), config)
    with pytest.raises(RefusedEdit, match="not written over"):
        write(planned(config), config.parent)
    assert write(planned(config), config, in_place=True) == config
    assert config.read_bytes() == b"lr: 0.2  # rate\n"
    assert config.with_name("a.yml.bak").read_bytes() == b"lr: 0.1  # rate\n"


def test_no_backup_is_written_over(config: Path) -> None:
    for old, new in ((0.1, 0.2), (0.2, 0.3), (0.3, 0.4)):
        write(planned(config, old, new), config, in_place=True)
    backups = {path.name: path.read_text() for path in config.parent.glob("*.bak*")}
    assert backups == {
        "a.yml.bak": "lr: 0.1  # rate\n",
        "a.yml.bak1": "lr: 0.2  # rate\n",
        "a.yml.bak2": "lr: 0.3  # rate\n",
    }


def test_another_file_of_that_name_is_kept(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.yml").write_text("mine\n")
    with pytest.raises(RefusedEdit, match="there already"):
        write(planned(config), out)
    assert (out / "a.yml").read_text() == "mine\n"


def test_a_file_that_changed_meanwhile_is_not_written(config: Path, tmp_path: Path) -> None:
    edited = planned(config)
    config.write_text("lr: 0.1  # rate, and more\n")
    with pytest.raises(RefusedEdit, match="changed since"):
        write(edited, tmp_path / "b.yml")


def test_permissions_stay(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("python train.py --lr 0.1\n")
    script.chmod(0o750)
    write(planned(script), script, in_place=True)
    assert script.stat().st_mode & 0o777 == 0o750
    assert script.with_name("run.sh.bak").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbflr: 0.1\r\nname: x\r\n",
        "lr: 0.1\nname: größe\n".encode("cp1252"),
        "lr: 0.1\nname: größe ✓\n".encode(),
        b"\xff\xfe" + "lr: 0.1\nname: ü\n".encode("utf-16-le"),
        b"\xfe\xff" + "lr: 0.1\nname: ü\n".encode("utf-16-be"),
        b"name: x\nlr: 0.1",
    ],
)
def test_the_encoding_stays(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_bytes(data)
    made = write(planned(path), tmp_path / "b.yml")
    zero_one = "0.1".encode("utf-16-le" if data[:1] == b"\xff" else "utf-16-be" if data[:1] == b"\xfe" else "ascii")
    assert made.read_bytes() == data.replace(zero_one, zero_one[:-2] + zero_one[-2:].replace(b"1", b"2"))


def test_a_folder_that_cannot_be_written_to(config: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises((InputError, OSError)):
        write(planned(config), blocked / "b.yml")


KILLED = """
    import sys
    from wheeltapper.settings.edit import plan_edits
    from wheeltapper.settings.parse import parse_file
    from wheeltapper.settings.write import write
    from wheeltapper.finding import Edit
    path = sys.argv[1]
    while True:
        tree = parse_file(path)
        now = tree.get("lr")
        [edited] = plan_edits([tree], [Edit("lr", now, round(now + 0.1, 1))])
        write(edited, path, in_place=True)
        print("written", flush=True)
"""


def test_killed_at_any_moment_the_file_is_whole(tmp_path: Path) -> None:
    """kill -9 in a loop of edits: the file always reads as one of its versions, each of the right length."""
    path = tmp_path / "a.yml"
    tail = "# filler\n" * 2000
    path.write_text(f"lr: 0.1\n{tail}")
    rng = random.Random(7)
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.2))
        child.kill()
        child.wait()
        child.stdout.close()
        text = path.read_text()
        first, _, rest = text.partition("\n")
        assert float(first.removeprefix("lr: ")) > 0
        assert rest == tail
        for backup in tmp_path.glob("a.yml.bak*"):
            assert backup.read_text().partition("\n")[2] == tail
            backup.unlink()
    assert path.read_text().splitlines()[0] != "lr: 0.1"
