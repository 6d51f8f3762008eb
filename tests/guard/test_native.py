"""How the part in C++ is come by, without a compiler at work. That it finds what Python finds is in test_fused.py."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from wheeltapper.guard import native  # noqa: E402

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no compiler is asked for elsewhere")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("WHEELTAPPER_NATIVE", "1")
    return tmp_path / "wheeltapper"


def test_not_asked_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WHEELTAPPER_NATIVE")
    assert native.Build().wait(5) is None
    assert not cache.exists()


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler", ""])
def test_no_compiler_or_one_that_fails(
    cache: Path, compiler: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CXX", compiler)
    if not compiler:
        monkeypatch.setattr(native.shutil, "which", lambda _: None)
    build = native.Build()
    with caplog.at_level(logging.INFO, logger="wheeltapper.guard"):
        assert build.wait(60) is None
    assert build.over
    assert build.ask() is None
    assert len([m for m in caplog.messages if "C++" in m]) == 1
    assert list(cache.iterdir()) == []  # nothing is left behind


def test_one_process_compiles_and_the_others_wait(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []

    class Running:
        def poll(self) -> Any:
            return None

    monkeypatch.setattr(native, "start", lambda path: (started.append(path), Running())[1])
    monkeypatch.setattr(native, "load", lambda path: path.name)
    first, second = native.Build(), native.Build()
    assert first.ask() is second.ask() is first.ask() is None
    assert len(started) == 1
    assert not second.over
    lock = started[0].with_suffix(".lock")
    os.utime(lock, (0, time.time() - 2 * native.STALE))  # its owner is gone
    assert second.ask() is None
    assert len(started) == 2
    started[0].write_bytes(b"")
    assert first.ask() == second.ask() == started[0].name


def test_a_folder_that_others_can_write_to_is_not_trusted(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    build = native.Build()
    assert build.ask() is None
    assert build.over


def test_a_library_that_cannot_be_loaded(cache: Path) -> None:
    build = native.Build()
    (native.folder() / f"guard-{native.key()}.so").write_bytes(b"no library")
    assert build.ask() is None
    assert build.over
