"""What the server answers, without a browser."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, build_opener, urlopen

import pytest
from served import TOKEN

from wheeltapper.cli.main import main
from wheeltapper.errors import InputError


def get(address: str, path: str, *, token: bool = True, method: str = "GET", **headers: str) -> tuple[int, str, Any]:
    port = address.rsplit(":", 1)[1]
    asked = Request(address + path, method=method, headers={"Cookie": f"wheeltapper-{port}={TOKEN}"} if token else {})
    for name, value in headers.items():
        asked.add_header(name, value)
    try:
        with urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except HTTPError as error:
        return error.code, error.read().decode(), error.headers


def first_id(live: Any, name: str = "run-00003") -> str:
    return next(m.id for m in live.fleet.members if m.label == name)


def test_nothing_is_shown_without_the_token(address: str, live: Any) -> None:
    for path in ("/", "/table", "/events", "/runs.csv", f"/run/{first_id(live)}", f"/run/{first_id(live)}/curves", "/?token=wrong"):
        status, body, _ = get(address, path, token=False)
        assert (status, "run-0" in body) == (403, False), path


def test_the_link_leaves_a_cookie_and_goes(address: str) -> None:
    opener = build_opener()
    opener.handlers[:] = [h for h in opener.handlers if "Redirect" not in type(h).__name__]
    opener.handle_error.get("http", {}).pop(303, None)
    with pytest.raises(HTTPError) as told:
        opener.open(f"{address}/?token={TOKEN}&q=ill")
    assert told.value.code == 303
    assert told.value.headers["Location"] == "/?q=ill"
    cookie = told.value.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_another_name_for_this_machine_is_refused(address: str) -> None:
    assert get(address, "/", Host="evil.example")[0] == 421
    assert get(address, "/", Host="localhost:1")[0] == 200


def test_nothing_can_be_written(address: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert get(address, "/", method=method)[0] == 405


def test_a_page_runs_no_script_but_ours(address: str, live: Any) -> None:
    for path in ("/", f"/run/{first_id(live)}", "/sweep", "/nowhere"):
        _, body, headers = get(address, path)
        policy = headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert " style=" not in body
        assert "onclick" not in body


def test_only_files_of_the_run_can_be_read(address: str, live: Any) -> None:
    ident = first_id(live)
    status, body, _ = get(address, f"/run/{ident}/file?name=config.yaml&line=2")
    assert status == 200
    assert 'id="line"' in body
    for name in ("/etc/passwd", "../run-00004/config.yaml", "..%2F..%2Fetc%2Fpasswd", ""):
        assert get(address, f"/run/{ident}/file?name={name}")[0] == 404, name
    assert get(address, "/static/..%2Fapp.py")[0] == 404


def test_what_is_asked_wrongly_is_said(address: str) -> None:
    status, body, _ = get(address, "/?sort=nothing&filter=p_ill%3Emuch")
    assert status == 200
    assert "no number" in body or "no column" in body
    assert get(address, "/compare?run=a")[0] == 404
    assert get(address, "/run/zzz")[0] == 404
    assert get(address, "/?page=99999&columns=a,b,c")[0] == 200


def test_a_run_as_one_file(address: str, live: Any) -> None:
    _, body, headers = get(address, f"/run/{first_id(live)}/export")
    assert "attachment" in headers["Content-Disposition"]
    assert "<svg" in body
    assert "src=" not in body
    assert "http" not in body.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    _, table, _ = get(address, "/runs.html?q=chance")
    assert "<script" not in table
    assert "href=\"/static" not in table


def test_the_table_as_csv(address: str) -> None:
    _, body, _ = get(address, "/runs.csv?filter=optimizer.name%3Dsgd")
    assert body.startswith("verdict,p_ill,name")
    assert len(body.splitlines()) > 50


def test_zoom_gives_the_points_of_the_part(address: str, live: Any) -> None:
    import json

    ident = first_id(live, "run-00000")
    charts = json.loads(get(address, f"/run/{ident}/curves")[1])
    assert charts[0]["lines"]
    part = json.loads(get(address, f"/run/{ident}/curves?chart=0&start=100&end=200")[1])
    xs = [x for line in part for x in line["x"] if line["role"] in ("train", "val")]
    assert xs
    assert 100 <= min(xs) <= max(xs) <= 200
    assert get(address, f"/run/{ident}/curves?chart=99&start=0&end=1")[0] == 404


def test_a_folder_that_vanishes_is_said_and_what_was_known_stays(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="needs the extra [web]")
    from made_fleet import fleet_at
    from wheeltapper.web.live import LiveFleet

    fleet_at(tmp_path / "runs", 4)
    live = LiveFleet([str(tmp_path / "runs")], index_file=tmp_path / "index")
    live.look()
    shutil.move(tmp_path / "runs", tmp_path / "gone")
    live.look()
    assert len(live.fleet.members) == 4
    assert "there is no file or folder" in live.problem
    with pytest.raises(OSError, match="No such file"):
        live.diagnosis(live.fleet.members[0])
    shutil.move(tmp_path / "gone", tmp_path / "runs")
    live.look()
    assert not live.problem


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra [web]")
    from wheeltapper.web.server import listen

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="cannot listen"):
            listen("127.0.0.1", port)
        assert main(["serve", str(tmp_path), "--port", str(port), "--no-browser"]) == 2
    assert "--port" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--port", "99999"], ["--every", "0"], ["--token", "short"]])
def test_options_that_cannot_be(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra [web]")
    assert main(["serve", str(tmp_path), *words]) == 2
    assert "wheeltapper:" in capsys.readouterr().err


def test_the_planned_rate_stands_beside_the_logged_one() -> None:
    pytest.importorskip("starlette", reason="needs the extra [web]")
    from wheeltapper import api
    from wheeltapper.web.curves import charts_json

    case = Path(__file__).resolve().parents[2] / "examples" / "cases" / "001-sr-degradation"
    chart = next(c for c in charts_json(api.diagnose(case)[0]) if c["title"] == "lr")
    planned = next(line for line in chart["lines"] if line["role"] == "plan")
    assert (chart["clock"], planned["x"][-1]) == ("step", 40_000)
    assert max(planned["y"]) == pytest.approx(0.0002)


def test_a_plan_in_steps_on_a_clock_of_epochs() -> None:
    pytest.importorskip("starlette", reason="needs the extra [web]")
    import numpy as np

    from wheeltapper.simulate.plan import Plan
    from wheeltapper.web.curves import _ticks

    steps, epochs = Plan("p", np.ones((1, 11)), "steps"), Plan("p", np.ones((1, 11)), "epochs")
    assert (_ticks(steps, "epoch", 50), _ticks(epochs, "step", 50), _ticks(steps, "step", None)) == (0.02, 50.0, 1.0)
    assert _ticks(steps, "epoch", None) is None
    assert _ticks(steps, "token", 50) is None
