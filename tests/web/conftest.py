"""A server with a fleet, and a browser. Both are skipped where their packages are not installed."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import HOSTILE, TOKEN

from made_fleet import fleet_at


@pytest.fixture(scope="session")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("served") / "runs"
    fleet_at(top, 300)
    hostile = top / "group00" / HOSTILE.replace("/", "")
    shutil.copytree(top / "group00" / "run-00003", hostile)
    (hostile / "config.yaml").write_text("optimizer: '<script>document.title=2</script>'\nlr: 0.1\n")
    (hostile / "guard.jsonl").write_text('{"event": "incident", "step": 7, "kind": "nan", "severity": "error", "text": "<b>loss</b> is NaN"}\n')
    return top


@pytest.fixture(scope="session")
def live(fleet_folder: Path) -> Iterator[Any]:
    pytest.importorskip("starlette", reason="needs the extra [web]")
    from wheeltapper.web.live import LiveFleet

    found = LiveFleet([str(fleet_folder)], every=0.5, index_file=fleet_folder.parent / "index.sqlite")
    found.start()
    assert found.ready.wait(600)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def address(live: Any) -> Iterator[str]:
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra [web]")
    from wheeltapper.web.app import make_app
    from wheeltapper.web.server import listen

    held = listen("127.0.0.1", 0)
    port = held.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(live, token=TOKEN, port=port), log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    live.stop()
    server.should_exit = True
    thread.join(10)
    held.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,900"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()
