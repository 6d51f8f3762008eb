"""The tools and resources of the server, bound to the official SDK. Each call runs in a thread of its own, so that a client
that gives up is not waited for and others are answered meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from wheeltapper import __version__
from wheeltapper.errors import WheeltapperError
from wheeltapper.mcp import desk_settings
from wheeltapper.mcp.desk import Desk
from wheeltapper.report.brief import error_object
from wheeltapper.report.json_out import dumps, plain
from wheeltapper.report.pages import pages
from wheeltapper.report.text import clean

INSTRUCTIONS = """\
Evidence about training runs, computed from what they left behind. Call list_runs, then diagnose; ask evidence before you
state a cause, and say its probability and grade ("suspected" is not "is"). Answers are short: `more` and `left_out` say what
to ask next. Check a text that you or others wrote with review. Read wheeltapper://agents for when to call what."""
RunName = Annotated[
    str, Field(description="a run as list_runs names it: folder, or folder#name where it holds several")
]
Offset = Annotated[int, Field(ge=0, description="how many to pass over, as `more` says")]
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def agents_text() -> str:
    """What an agent should know, in under 800 words."""
    return (files("wheeltapper.mcp") / "agents.md").read_text(encoding="utf-8")


def build_server(desk: Desk) -> MCPServer[Any]:
    """A server that answers from `desk`."""
    server: MCPServer[Any] = MCPServer(
        "wheeltapper", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING"
    )
    _run_tools(server, desk)
    _setting_tools(server, desk)
    _text_tools(server, desk)
    _resources(server)
    return server


async def _answer(call: Callable[[], dict[str, Any]]) -> CallToolResult:
    """The answer as JSON text and as structure; an error that we foresaw the same way, marked as one."""
    try:
        told = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        return _result(told)
    except WheeltapperError as error:
        kind, what, where, do = type(error).__name__, error.what, error.where, error.do
    except OSError as error:
        kind, what, where, do = (
            "OSError",
            error.strerror or str(error),
            None,
            "The run may be being rewritten: ask again.",
        )
    return _result(error_object(kind, clean(what, 600), where, None if do is None else clean(do, 600)), failed=True)


def _result(told: dict[str, Any], failed: bool = False) -> CallToolResult:
    text = dumps(told, indent=0)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=plain(told), is_error=failed
    )


def _run_tools(server: MCPServer[Any], desk: Desk) -> None:
    @server.tool(annotations=READS)
    async def list_runs(
        folder: str = "", offset: Offset = 0, limit: Annotated[int, Field(ge=1, le=100)] = 25
    ) -> CallToolResult:
        """Runs that may be read: folders that hold a log."""
        return await _answer(partial(desk.list_runs, folder, offset, limit))

    @server.tool(annotations=READS)
    async def show(run: RunName) -> CallToolResult:
        """What a run left behind: its curves with first, last, lowest and highest values, configs, checkpoints, events."""
        return await _answer(partial(desk.show, run))

    @server.tool(annotations=READS)
    async def diagnose(run: RunName) -> CallToolResult:
        """Is the run sound? Verdict with probability, ranked causes with grade, signs with onset, what was ruled out."""
        return await _answer(partial(desk.diagnose, run))

    @server.tool(annotations=READS)
    async def evidence(
        run: RunName, id: Annotated[str, Field(description="of a cause, sign or check in diagnose")]
    ) -> CallToolResult:
        """Everything for and against one cause or sign in this run: sentences with numbers, bits, file:line."""
        return await _answer(partial(desk.evidence, run, id))

    @server.tool(annotations=READS)
    async def curve(
        run: RunName,
        series: Annotated[str, Field(description="as show names it, such as val/loss")],
        points: Annotated[int, Field(ge=4, le=120)] = 40,
        since: float | None = None,
        until: float | None = None,
    ) -> CallToolResult:
        """A curve as [position, value] with few points and no spike lost; since/until zoom in."""
        return await _answer(partial(desk.curve, run, series, points, since, until))


def _setting_tools(server: MCPServer[Any], desk: Desk) -> None:
    @server.tool(annotations=READS)
    async def settings(run: RunName, like: str = "", offset: Offset = 0) -> CallToolResult:
        """What the run was started with: keys, values, their meaning and place; and options that act on nothing."""
        return await _answer(partial(desk_settings.settings, desk, run, like, offset))

    @server.tool(annotations=READS)
    async def practice(setting: str, value: float | None = None) -> CallToolResult:
        """What thousands of public runs use for a setting, and where a value lies among them."""
        return await _answer(partial(desk_settings.practice, setting, value))

    @server.tool(annotations=READS)
    async def check(paths: list[str], offset: Offset = 0) -> CallToolResult:
        """What a run of these configs, scripts or folders will really do, and what is declared and is not so."""
        return await _answer(partial(desk_settings.check, desk, paths, offset))

    @server.tool(annotations=READS)
    async def schedule(run: RunName) -> CallToolResult:
        """The learning rate that the settings plan, step by step, and whether the logged one followed it."""
        return await _answer(partial(desk_settings.schedule, desk, run))

    @server.tool(annotations=READS)
    async def compare(a: RunName, b: RunName) -> CallToolResult:
        """What differs between two runs by meaning, and where their curves part."""
        return await _answer(partial(desk_settings.compare, desk, a, b))

    @server.tool(annotations=READS)
    async def simulate(
        run: RunName,
        edits: Annotated[
            dict[str, Any], Field(description='as in {"optimizer.lr": 0.001}; keys as settings names them')
        ],
    ) -> CallToolResult:
        """What changes of settings would really do: the diff, whether it loads, the learning rate before and after."""
        return await _answer(partial(desk_settings.simulate, desk, run, edits))


def _text_tools(server: MCPServer[Any], desk: Desk) -> None:
    @server.tool(
        annotations=ToolAnnotations(read_only_hint=not desk.allow_write, destructive_hint=False, open_world_hint=False)
    )
    async def fix(
        run: RunName,
        write_to: Annotated[str | None, Field(description="a new folder; only where the server may write")] = None,
    ) -> CallToolResult:
        """What to change after an ill run: edits that load, the diff, and what must then be seen. Dry by default."""
        return await _answer(partial(desk_settings.fix, desk, run, write_to))

    @server.tool(annotations=READS)
    async def review(
        run: RunName,
        text: Annotated[str | None, Field(description="a written diagnosis")] = None,
        claims: Annotated[
            list[dict[str, Any]] | None, Field(description="claims you read, see wheeltapper://schema/claims")
        ] = None,
        offset: Offset = 0,
    ) -> CallToolResult:
        """Every claim of a written diagnosis held against the record: supported, contradicted, undecided, with numbers."""
        return await _answer(partial(desk_settings.review, desk, run, text, claims, offset))

    @server.tool(annotations=READS)
    async def explain(id: str) -> CallToolResult:
        """The page of an observation, sign, cause or check: what it is, and when it is wrong."""
        return await _answer(partial(desk_settings.explain, id))


def _resources(server: MCPServer[Any]) -> None:
    @server.resource("wheeltapper://agents", name="agents", mime_type="text/markdown")
    def agents() -> str:
        """When to call what, how to read the answers."""
        return agents_text()

    @server.resource("wheeltapper://page/{id}", name="page", mime_type="text/markdown")
    def page(id: str) -> str:
        """The whole page of an observation, sign, cause or check."""
        found = [one.markdown() for one in pages() if one.id == id]
        return "\n".join(found) or f"Nothing is called {id[:80]!r}; diagnose and check name ids.\n"

    @server.resource("wheeltapper://schema/{name}", name="schema", mime_type="application/json")
    def schema(name: str) -> str:
        """A JSON schema: brief, claims, review, diagnosis, check, show."""
        folder = files("wheeltapper.report") / "schema"
        known = sorted(file.name.removesuffix(".json") for file in folder.iterdir())
        if name not in known:
            return json.dumps(
                error_object("InputError", f"there is no schema {name[:40]!r}.", do=f"There are: {', '.join(known)}.")
            )
        return (folder / f"{name}.json").read_text(encoding="utf-8")
