"""The dashboard, driven by keys without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from writers import Live

pytest.importorskip("textual")

from textual.widgets import DataTable, Static

from wheeltapper.prognosis.goal import goal_of
from wheeltapper.watch import Watcher
from wheeltapper.watch.dashboard import Curve, Dashboard, Report
from wheeltapper.watch.notify import Notifier


def drive(
    watcher: Watcher, play: Callable[[Dashboard, Any], Awaitable[None]], *, size: tuple[int, int] = (120, 40), **how: Any
) -> Dashboard:
    app = Dashboard(watcher, interval=how.pop("interval", 30.0), until_done=how.pop("until_done", False), notifier=Notifier([]), **how)

    async def session() -> None:
        async with app.run_test(size=size) as pilot:
            await looked(app, pilot, 1)
            await play(app, pilot)

    asyncio.run(session())
    return app


async def looked(app: Dashboard, pilot: Any, times: int) -> None:
    for _ in range(600):
        await pilot.pause(0.02)
        if app.looks >= times:
            await pilot.pause()
            return
    raise AssertionError("it never looked")


def words(app: Dashboard, id: str) -> str:
    return str(app.query_one(id, Static).render())


def two_runs(root: Path) -> Watcher:
    good, bad = Live(root, "good"), Live(root, "bad [red]", seed=1)
    good.grow(120)
    bad.grow(60)
    bad.grow(9, broken=True)
    return Watcher([root], target=goal_of("val/accuracy=95"))


def test_the_sick_run_comes_first_and_keys_go_to_the_next(tmp_path: Path) -> None:
    async def play(app: Dashboard, pilot: Any) -> None:
        assert app.query_one("#runs", DataTable).row_count == 2
        assert "ILL" in words(app, "#verdict")
        assert "bad [red]" in words(app, "#verdict")  # shown as it is, not as markup
        assert "not-finite" in words(app, "#said")
        await pilot.press("j")
        await pilot.pause()
        assert "SOUND" in words(app, "#verdict")
        assert "epoch" in words(app, "#facts")
        assert "by epoch" in words(app, "#facts")
        assert "✗ 1" in words(app, "#top")
        await pilot.press("k")
        await pilot.pause()
        assert "ILL" in words(app, "#verdict")

    drive(two_runs(tmp_path), play)


def test_curves_scale_ground_and_report(tmp_path: Path) -> None:
    async def play(app: Dashboard, pilot: Any) -> None:
        await pilot.press("j")
        first = app.query_one("#first", Curve)
        assert first.series is not None
        assert first.series.name == "val/accuracy"  # the target's
        await pilot.press("c")
        assert first.series.name == "train/loss"
        await pilot.press("l")
        assert first.log_scale
        dark = app.current_theme.dark
        await pilot.press("t")
        assert app.current_theme.dark != dark
        await pilot.press("d")
        await pilot.pause()
        assert isinstance(app.screen, Report)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, Report)

    drive(two_runs(tmp_path), play)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (200, 60)])
def test_it_fits_any_size(size: tuple[int, int], tmp_path: Path) -> None:
    async def play(app: Dashboard, pilot: Any) -> None:
        await pilot.resize_terminal(*size)
        await pilot.pause()
        assert app.query_one("#second").has_class("hidden") == (size[1] < 26)
        assert "svg" in app.export_screenshot()

    drive(two_runs(tmp_path), play, light=True)


def test_it_waits_for_a_run_and_sees_it_grow(tmp_path: Path) -> None:
    folder = tmp_path / "exp"

    async def play(app: Dashboard, pilot: Any) -> None:
        assert "no" in words(app, "#verdict")
        live = Live(tmp_path)
        live.grow(30)
        await pilot.press("r")
        await looked(app, pilot, 2)
        assert "SOUND" in words(app, "#verdict")
        assert app.query_one("#runs").has_class("alone")

    drive(Watcher([folder]), play)


def test_it_leaves_when_all_is_done(tmp_path: Path) -> None:
    live = Live(tmp_path, total=40)
    live.grow(40)

    async def play(app: Dashboard, pilot: Any) -> None:
        for _ in range(100):
            if not app.is_running:
                return
            await pilot.pause(0.02)
        raise AssertionError("it is still there")

    app = drive(Watcher([live.folder]), play, until_done=True)
    assert app.return_code in (0, None)


def test_the_file_that_is_drawn_is_not_the_file_that_is_read(tmp_path: Path) -> None:
    """Copies are drawn: a look that changes a run does not change the screen under its feet."""
    watcher = two_runs(tmp_path)

    async def play(app: Dashboard, _pilot: Any) -> None:
        assert all(app._runs[key] is not run for key, run in watcher.runs.items())

    drive(watcher, play)
