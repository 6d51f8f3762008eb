"""The server driven by the official client: every tool, limits, errors, cancellation, standard input and output, HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra [mcp] is not installed")

import anyio
from mcp import Client, StdioServerParameters

from wheeltapper.mcp.desk import Desk
from wheeltapper.mcp.roots import Roots
from wheeltapper.mcp.server import agents_text, build_server
from wheeltapper.mcp.short import MOST

TOOLS = {
    "list_runs": {},
    "show": {"run": "good"},
    "diagnose": {"run": "good"},
    "curve": {"run": "good", "series": "train/loss"},
    "settings": {"run": "good"},
    "practice": {"setting": "lr", "value": 0.001},
    "check": {"paths": ["good"]},
    "schedule": {"run": "good"},
    "compare": {"a": "good", "b": "spiky"},
    "simulate": {"run": "good", "edits": {"learning_rate": 0.01}},
    "fix": {"run": "good"},
    "review": {"run": "good", "text": "Training loss ends at 7.7."},
    "explain": {"id": "not-finite"},
}


def asked(server: Any, question: Callable[[Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Client(server) as client:
            return await question(client)

    return anyio.run(main)


@pytest.fixture
def server(allowed: Path) -> Any:
    return build_server(Desk(Roots.of([str(allowed)])))


def test_the_tools_are_those_of_the_documentation_and_say_that_they_read(server: Any) -> None:
    async def question(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = asked(server, question)
    assert {tool.name for tool in tools} == {*TOOLS, "evidence"}
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_answers_in_short_json(name: str, server: Any) -> None:
    result = asked(server, lambda client: client.call_tool(name, TOOLS[name]))
    assert not result.is_error, result.content
    text = result.content[0].text
    assert len(text.encode()) <= MOST
    assert json.loads(text) == result.structured_content


def test_evidence_of_an_ill_run() -> None:
    root = Path(__file__).resolve().parents[2] / "examples"
    server = build_server(Desk(Roots.of([str(root)])))
    result = asked(
        server, lambda c: c.call_tool("evidence", {"run": "cases/004-imagenet-onecycle", "id": "ema-horizon-too-long"})
    )
    told = json.loads(result.content[0].text)
    assert told["cause"]["grade"] == "is"  # the arithmetic of the average proves it
    assert told["for"][0]["bits"] > 5
    assert told["findings"][0]["places"][0].startswith("cases/004-imagenet-onecycle/train.py:")


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("show", {"run": "../private"}, "outside"),
        ("show", {"run": "/etc/passwd"}, "outside"),
        ("diagnose", {"run": "a\u0000b"}, "no path"),
        ("diagnose", {"run": "\u202egood"}, "there is no"),
        ("curve", {"run": "good", "series": "<script>"}, "no curve"),
        ("explain", {"id": "; rm -rf /"}, "nothing is called"),
        ("practice", {"setting": "x" * 10_000}, "no setting"),
        ("check", {"paths": []}, "no path"),
        ("check", {"paths": ["../private"]}, "outside"),
        ("simulate", {"run": "good", "edits": {"no.such.key": 1}}, ""),
        ("fix", {"run": "good", "write_to": "here"}, "writes nothing"),
        ("review", {"run": "good"}, "either text or claims"),
    ],
)
def test_errors_are_structured_and_say_what_to_do(name: str, arguments: dict[str, Any], what: str, server: Any) -> None:
    result = asked(server, lambda client: client.call_tool(name, arguments))
    assert result.is_error
    error = json.loads(result.content[0].text)["error"]
    assert what in error["what"]
    assert error["do"]
    assert len(result.content[0].text) < 1500


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("show", {}),
        ("list_runs", {"offset": -1}),
        ("curve", {"run": "good", "series": "train/loss", "points": 10**9}),
        ("nothing", {}),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_the_server_lives_on(
    name: str, arguments: dict[str, Any], server: Any
) -> None:
    async def question(client: Client) -> Any:
        try:
            refused = (await client.call_tool(name, arguments)).is_error
        except Exception:  # an unknown tool may be an error of the protocol
            refused = True
        return refused, await client.call_tool("list_runs", {})

    refused, after = asked(server, question)
    assert refused
    assert not after.is_error


def test_a_client_that_gives_up_is_not_waited_for(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(Roots.of([str(allowed)]))

    def slow(_run: str) -> dict[str, Any]:
        time.sleep(3)
        return {}

    monkeypatch.setattr(desk, "show", slow)
    server = build_server(desk)

    async def question(client: Client) -> Any:
        began = time.monotonic()
        with anyio.move_on_after(0.3) as scope:
            await client.call_tool("show", {"run": "good"})
        listed = await client.call_tool("list_runs", {})
        return scope.cancelled_caught, time.monotonic() - began, listed

    gave_up, seconds, listed = asked(server, question)
    assert gave_up
    assert seconds < 2.5
    assert not listed.is_error


def test_two_questions_at_once(server: Any) -> None:
    async def question(client: Client) -> Any:
        out: list[Any] = []

        async def ask(run: str) -> None:
            out.append(await client.call_tool("diagnose", {"run": run}))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "good")
            group.start_soon(ask, "spiky")
        return out

    assert {json.loads(r.content[0].text)["run"] for r in asked(server, question)} == {"good", "spiky"}


def test_resources_are_the_pages_the_schemas_and_the_text_for_agents(server: Any) -> None:
    async def question(client: Client) -> list[str]:
        uris = (
            "wheeltapper://agents",
            "wheeltapper://page/not-finite",
            "wheeltapper://schema/claims",
            "wheeltapper://schema/nothing",
            "wheeltapper://page/..%2Fx",
        )
        out = []
        for uri in uris:
            try:
                out.append((await client.read_resource(uri)).contents[0].text)
            except Exception as error:
                out.append(f"refused: {error}")
        return out

    agents, page, schema, nothing, hostile = asked(server, question)
    assert agents == agents_text()
    assert page.startswith("# not-finite")
    assert json.loads(schema)["$id"] == "wheeltapper/claims"
    assert "there is no schema" in nothing
    assert hostile.startswith(("refused", "Nothing is called"))


def test_over_standard_input_and_output(allowed: Path) -> None:
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "wheeltapper", "mcp", str(allowed)], env=dict(os.environ)
    )
    result = asked(started, lambda client: client.call_tool("diagnose", {"run": "good"}))
    assert json.loads(result.content[0].text)["verdict"] in ("sound", "cannot-tell")


def test_over_http_on_this_machine(allowed: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "wheeltapper", "mcp", str(allowed), "--http", "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_for(port, process)
        result = asked(f"http://127.0.0.1:{port}/mcp", lambda client: client.call_tool("list_runs", {}))
        assert json.loads(result.content[0].text)["total"] == 2
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            pytest.fail(f"the server ended: {process.communicate()[1]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the server did not begin to listen")
