"""The pages and what they fetch, as one Starlette application."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from functools import partial
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from wheeltapper import __version__
from wheeltapper.errors import WheeltapperError
from wheeltapper.fleet.export import as_csv
from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.table import grouped
from wheeltapper.fleet.terminal import counts_line
from wheeltapper.judge.compare import compare_runs
from wheeltapper.judge.model import Diagnosis
from wheeltapper.report.html import SIGNS, page
from wheeltapper.report.json_out import dumps
from wheeltapper.report.text import clean, num, plural
from wheeltapper.report.view import view_of
from wheeltapper.web.curves import charts_json, pairs_json, zoomed
from wheeltapper.web.live import LiveFleet
from wheeltapper.web.points import scatter
from wheeltapper.web.security import Doorman
from wheeltapper.web.views import (
    Asked,
    asked_by,
    attempts_of,
    columns_offered,
    file_view,
    files_of,
    incidents_of,
    settings_view,
    table_view,
)  # fmt: skip

KINDS = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
PLACE = re.compile(r"^(.+?):(\d+)(?::\d+)?$")
BEAT = 15.0  # seconds between signs of life on an open line
LOOK = 0.3  # seconds between looks at the version


class Missing(Exception):  # noqa: N818
    """What was asked for is not there; the page says so."""


class Site:
    """The pages of one live fleet."""

    def __init__(self, live: LiveFleet) -> None:
        self.live = live
        self.templates = Environment(
            loader=ChoiceLoader([PackageLoader("wheeltapper.web"), PackageLoader("wheeltapper.report")]),
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.globals.update(version=__version__, signs=SIGNS, place_link=place_link, export=False)
        self.templates.filters.update(plural=plural, num=num, clean=clean)

    def show(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        live = self.live
        common = {"live_version": live.version, "scanning": None if live.ready.is_set() else live.progress, "problem": live.problem}
        return HTMLResponse(self.templates.get_template(name).render(**common, **values), status)

    # pages

    def fleet(self, request: Request) -> Response:
        asked = asked_by(request.query_params)
        whole = request.url.path == "/"
        return self.show("fleet.html.j2" if whole else "table.html.j2", **self._table(asked))

    def _table(self, asked: Asked) -> dict[str, Any]:
        fleet = self.live.fleet
        view = table_view(fleet.members, asked)
        groups, trouble = [], view.problem
        if asked.group:
            try:
                groups = grouped(view.shown, asked.group)
            except WheeltapperError as error:
                trouble = str(error)
        return {
            "asked": asked, "view": view, "groups": groups, "trouble": trouble, "counts": counts_line(view.shown),
            "all": len(fleet.members), "problems": fleet.problems, "offered": columns_offered(fleet.members),
        }  # fmt: skip

    def run(self, request: Request) -> Response:
        member, diagnosis = self._opened(request.path_params["ident"])
        run = diagnosis.run
        return self.show(
            "run.html.j2", member=member, view=view_of(diagnosis), settings=settings_view(run), incidents=incidents_of(run),
            cases=attempts_of(run), files=sorted(files_of(run)),
            asked=Asked(), names={name: name for name in files_of(run)},
        )  # fmt: skip

    def file(self, request: Request) -> Response:
        member, diagnosis = self._opened(request.path_params["ident"])
        name, line = request.query_params.get("name", ""), request.query_params.get("line", "1")
        found = file_view(diagnosis.run, name, int(line) if line.isdigit() and len(line) < 10 else 1)
        if found is None:
            raise Missing("That is no file of this run.")
        return self.show("file.html.j2", member=member, file=found)

    def compare(self, request: Request) -> Response:
        a, b = self._two(request)
        (first, da), (second, db) = self._opened(a), self._opened(b)
        found = compare_runs(da.run, db.run)
        return self.show("compare.html.j2", a=first, b=second, found=found, differences=found.differences[:200])

    def sweep(self, request: Request) -> Response:
        members = self.live.fleet.members
        offered = [name for name, _ in columns_offered(members)]
        return self.show(
            "sweep.html.j2", found=self.live.sweep(), offered=offered,
            x=request.query_params.get("x", "lr"), y=request.query_params.get("y", "score"),
        )  # fmt: skip

    # what pages fetch

    def curves(self, request: Request) -> Response:
        _, diagnosis = self._opened(request.path_params["ident"])
        query = request.query_params
        if "chart" not in query:
            return _json(charts_json(diagnosis))
        try:
            lines = zoomed(diagnosis, int(query["chart"]), float(query["start"]), float(query["end"]))
        except (KeyError, ValueError):
            lines = None
        if lines is None:
            raise Missing("There is no such part of a curve.")
        return _json(lines)

    def pairs(self, request: Request) -> Response:
        a, b = self._two(request)
        (first, da), (second, db) = self._opened(a), self._opened(b)
        return _json(pairs_json(compare_runs(da.run, db.run), (first.label, second.label)))

    def points(self, request: Request) -> Response:
        query = request.query_params
        return _json(scatter(self.live.fleet.members, query.get("x", "lr"), query.get("y", "score")))

    def export_run(self, request: Request) -> Response:
        member, diagnosis = self._opened(request.path_params["ident"])
        return _file(page([view_of(diagnosis, charts=True)]), f"{member.label}.html", "text/html")

    def export_fleet(self, request: Request) -> Response:
        asked = asked_by(request.query_params)
        values = self._table(asked)
        if request.url.path.endswith(".csv"):
            return _file(as_csv(values["view"].shown), "runs.csv", "text/csv")
        response = self.show("fleet_export.html.j2", **values)
        return _file(bytes(response.body).decode(), "runs.html", "text/html")

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._changes(request), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        """A line whenever something changed: the version, and which runs are new or different."""
        known, waited = -1, 0.0
        yield "retry: 2000\n\n"
        while not self.live.stopped and not await request.is_disconnected():
            version = self.live.version
            if version != known:
                changed = [ident for ident, at in list(self.live.changed.items()) if at > known][:200] if known >= 0 else []
                yield f"data: {json.dumps({'version': version, 'changed': changed, 'ready': self.live.ready.is_set()})}\n\n"
                known, waited = version, 0.0
            elif waited >= BEAT:
                yield ": still here\n\n"
                waited = 0.0
            await asyncio.sleep(LOOK)
            waited += LOOK

    def _opened(self, ident: str) -> tuple[Member, Diagnosis]:
        member = self.live.member(ident)
        if member is None:
            waits = "" if self.live.ready.is_set() else " The first scan is still under way."
            raise Missing(f"There is no such run here (any more).{waits}")
        return member, self.live.diagnosis(member)

    def _two(self, request: Request) -> tuple[str, str]:
        idents = request.query_params.getlist("run")
        if len(idents) != 2 or idents[0] == idents[1]:
            raise Missing("A comparison takes two runs: tick two in the table.")
        return idents[0], idents[1]

    def failed(self, request: Request, error: Exception) -> Response:
        if isinstance(error, OSError):
            words = f"The files of this run cannot be read: {error.strerror or error}. They may have been moved or deleted."
        else:
            words = str(error)
        status = 404 if isinstance(error, Missing | OSError) else 400
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"error": words}, status)
        return self.show("error.html.j2", status, words=words)


def place_link(place: str, member: Member, names: Iterable[str]) -> Markup:
    """A place in a file of the run, as a link to its lines; anything else as it is."""
    parts = PLACE.match(place)
    if parts is None or parts[1] not in names:
        return Markup('<code class="soft">{}</code>').format(place)
    target = f"/run/{member.id}/file?{urlencode({'name': parts[1], 'line': parts[2]})}#line"
    return Markup('<a class="place" href="{}"><code>{}</code></a>').format(target, escape(place))


def _json(value: Any) -> Response:
    return Response(dumps(value, indent=0), media_type="application/json")


def _file(text: str, name: str, kind: str) -> Response:
    shown = quote(re.sub(r"[^\w.-]+", "-", name)[:80])
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{shown}"}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


def static(request: Request) -> Response:
    """Our own files, by name."""
    name = request.path_params["name"]
    folder = "report" if name == "style.css" else "web"
    place = resources.files(f"wheeltapper.{folder}") / ("templates" if folder == "report" else "static") / name
    ending = name[name.rfind(".") :]
    if "/" in name or ending not in KINDS or not place.is_file():
        return Response("no such file", 404)
    return Response(place.read_bytes(), media_type=KINDS[ending], headers={"Cache-Control": "max-age=3600"})


def make_app(live: LiveFleet, *, token: str, port: int, hosts: Iterable[str] = ()) -> Starlette:
    """The application; the caller starts `live`."""
    site = Site(live)
    failed: Any = site.failed
    return Starlette(
        routes=[
            Route("/", site.fleet),
            Route("/table", site.fleet),
            Route("/runs.csv", site.export_fleet),
            Route("/runs.html", site.export_fleet),
            Route("/run/{ident}", site.run),
            Route("/run/{ident}/file", site.file),
            Route("/run/{ident}/curves", site.curves),
            Route("/run/{ident}/export", site.export_run),
            Route("/compare", site.compare),
            Route("/compare/curves", site.pairs),
            Route("/sweep", site.sweep),
            Route("/sweep/points", site.points),
            Route("/events", site.events),
            Route("/static/{name}", static),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=Doorman(token, port, hosts))],
        exception_handlers={Missing: failed, WheeltapperError: failed, OSError: failed, 404: partial(_not_found, site)},
    )


def _not_found(site: Site, _request: Request, _error: Exception) -> Response:
    return site.show("error.html.j2", 404, words="There is no such page.")
