"""Runs that live elsewhere, brought into the cache."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from made_fleet import write_run
from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.errors import InputError
from wheeltapper.fleet.scan import scan
from wheeltapper.places import local_path, remote

RECORDS = Path(__file__).resolve().parents[1] / "records"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_plain_path_stays_as_it_is(tmp_path: Path) -> None:
    odd = tmp_path / "mlflow:old"
    odd.mkdir()
    assert local_path(str(odd)) == odd
    assert local_path("runs/exp:1") == Path("runs/exp:1")


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", 3)
    data = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    main(["diagnose", "-", "--brief"])
    assert "stdin" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["diagnose", "-"]) == 2
    assert "standard input is empty" in capsys.readouterr().err


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec")
    system = fsspec.filesystem("memory")
    for number in range(3):
        write_run(tmp_path / "there" / f"run-{number}", number)
    system.put(str(tmp_path / "there"), "/bucket/runs", recursive=True)
    yield system
    system.rm("/bucket", recursive=True)


def test_a_bucket_is_read_as_a_folder_is(bucket: Any, tmp_path: Path) -> None:
    there = {d.run.name: (d.verdict, d.p_ill) for d in api.diagnose("memory://bucket/runs")}
    assert there == {d.run.name: (d.verdict, d.p_ill) for d in api.diagnose(tmp_path / "there")}
    assert len(scan(["memory://bucket/runs"], workers=0).members) == 3


def test_what_was_brought_is_not_brought_again(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []
    real = remote._fetch
    monkeypatch.setattr(remote, "_fetch", lambda system, source, target: (fetched.append(source), real(system, source, target)))
    local_path("memory://bucket/runs")
    assert len(fetched) == 6
    bucket.pipe("/bucket/runs/run-1/config.yaml", b"lr: 0.5\nepochs: 3\n")
    bucket.rm("/bucket/runs/run-2", recursive=True)
    folder = local_path("memory://bucket/runs")
    assert fetched[6:] == ["/bucket/runs/run-1/config.yaml"]
    assert not (folder / "run-2" / "config.yaml").exists()


def test_a_break_keeps_what_was_fetched(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = remote._fetch
    fetched: list[str] = []

    def breaks(system: Any, source: str, target: Path) -> None:
        if len(fetched) == 3:
            raise ConnectionError("gone")
        fetched.append(source)
        real(system, source, target)

    monkeypatch.setattr(remote, "_fetch", breaks)
    with pytest.raises(InputError, match="what was fetched is kept"):
        local_path("memory://bucket/runs")
    fetched.clear()
    local_path("memory://bucket/runs")
    assert len(fetched) == 3


@pytest.mark.parametrize("url", ["memory://nowhere/at/all", "nosuchscheme://x/y"])
def test_a_place_that_is_not_there(url: str) -> None:
    pytest.importorskip("fsspec", reason="needs fsspec")
    with pytest.raises(InputError):
        local_path(url)


def test_names_that_lead_out_of_the_cache_are_not_brought() -> None:
    assert not remote._wanted("../../etc/cron.d/x.log", {"size": 1})
    assert not remote._wanted("/etc/x.log", {"size": 1})
    assert remote._wanted("run/train.log", {"size": 1})
    assert not remote._wanted("run/model.pt", {"size": 1 << 40})


def test_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server_module = pytest.importorskip("moto.server", reason="needs moto[server]")
    s3fs = pytest.importorskip("s3fs", reason="needs s3fs")
    server = server_module.ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem()
        system.mkdir("lake")
        write_run(tmp_path / "there" / "one", 3)
        system.put(str(tmp_path / "there"), "lake/runs", recursive=True)
        found = api.diagnose("s3://lake/runs")
        assert [d.run.name for d in found] == [d.run.name for d in api.diagnose(tmp_path / "there")]
        with pytest.raises(InputError, match="nothing at"):
            local_path("s3://lake/other")
    finally:
        server.stop()


def test_wandb_and_trackio_name_what_lies_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb").mkdir()
    assert local_path(f"wandb:{tmp_path / 'wandb'}") == tmp_path / "wandb"
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    (tmp_path / "trackio").mkdir()
    (tmp_path / "trackio" / "mine.db").write_bytes(b"")
    assert local_path("trackio:mine").name == "mine.db"
    for wrong in ("trackio:other", "trackio:../mine", "wandb:nowhere"):
        with pytest.raises(InputError):
            local_path(wrong)


RUN = "0123456789abcdef0123456789abcdef"
HISTORY = [{"key": "val/loss", "value": 2.3 * 0.9**k + 0.3, "timestamp": 1_700_000_000_000 + 1000 * k, "step": k} for k in range(30)]


class FakeTracking(BaseHTTPRequestHandler):
    """What an MLflow server answers, as its REST documentation has it."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("experiments/search"):
            self._say({"experiments": [{"experiment_id": "7", "name": "demo"}]})
        else:
            info = {"run_id": RUN, "experiment_id": "7", "status": "FINISHED", "end_time": 5}
            data = {
                "metrics": [{"key": "val/loss", "value": 0.4}],
                "params": [{"key": "lr", "value": "0.01"}, {"key": "../../../evil", "value": "x"}],
            }
            self._say({"runs": [{"info": info, "data": data}]})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.asked.append(query["metric_key"][0])
        half = HISTORY[15:] if "page_token" in query else HISTORY[:15]
        self._say({"metrics": half, **({} if "page_token" in query else {"next_page_token": "more"})})

    def _say(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.slow
def test_a_real_mlflow_server(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store, "--host", "127.0.0.1", "--port", str(port),
               "--default-artifact-root", str(tmp_path / "artifacts"), "--workers", "1"]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True)
    try:
        ends = time.monotonic() + 120
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < ends:
            time.sleep(0.3)
        client = mlflow.MlflowClient(f"http://127.0.0.1:{port}")
        experiment = client.create_experiment("demo")
        for name in ("one", "two"):
            run = client.create_run(experiment, run_name=name).info.run_id
            client.log_param(run, "lr", 0.01)
            for point in HISTORY:
                client.log_metric(run, "val/loss", point["value"], timestamp=point["timestamp"], step=point["step"])
            client.set_terminated(run)
        runs = api.read(f"mlflow:http://127.0.0.1:{port}?experiment=demo")
        assert len(runs) == 2
        assert [len(run.series["val/loss"]) for run in runs] == [30, 30]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def test_an_mlflow_server(cache: Path) -> None:
    FakeTracking.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), FakeTracking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"mlflow:http://127.0.0.1:{server.server_port}"
    try:
        run = api.read(place)[0]
        assert len(run.series["val/loss"]) == 30
        assert [leaf.value for tree in run.configs for leaf in tree.leaves if leaf.dotted == "lr"]
        assert not list(cache.parent.glob("evil"))
        assert FakeTracking.asked == ["val/loss"] * 2
        api.read(place)
        assert len(FakeTracking.asked) == 2  # an ended run is not fetched again
        with pytest.raises(InputError, match="no experiment"):
            local_path(f"{place}?experiment=other")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(InputError, match="does not answer"):
        local_path(place)
    shutil.rmtree(cache)
