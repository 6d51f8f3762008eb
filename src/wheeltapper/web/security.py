"""Who may ask, and what a page may do.

The server listens on this machine only, unless it is told otherwise. Whoever asks must know the token: in the link that was
printed, or in the cookie that this link left. A page runs our scripts and no others, whatever the names in it say.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HOME = {"localhost", "127.0.0.1", "[::1]"}
Next = Callable[[Request], Awaitable[Response]]


class Doorman:
    """Lets in who knows the token, under a name of this machine (another name may be an attack by DNS)."""

    def __init__(self, token: str, port: int, hosts: Iterable[str] = ()) -> None:
        self.token = token
        self.cookie = f"wheeltapper-{port}"
        self.hosts = {*HOME, *hosts}

    async def __call__(self, request: Request, call_next: Next) -> Response:
        response = self._refused(request) or self._welcomed(request) or await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refused(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if "*" not in self.hosts and name not in self.hosts:
            return PlainTextResponse("This server does not go by that name.", 421)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("This server only shows; nothing can be written.", 405)
        if not self.token or request.url.path.startswith("/static/"):
            return None
        given = (request.query_params.get("token"), request.cookies.get(self.cookie))
        if any(one is not None and hmac.compare_digest(one.encode(), self.token.encode()) for one in given):
            return None
        words = "This page needs the token: open the link that `wheeltapper serve` printed."
        return PlainTextResponse(words, 403)

    def _welcomed(self, request: Request) -> Response | None:
        """The token moves from the link to a cookie, so that it stays out of what people copy."""
        if "token" not in request.query_params or request.url.path.startswith("/static/"):
            return None
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
        target = request.url.path + (f"?{urlencode(rest)}" if rest else "")
        response = RedirectResponse(target if not target.startswith("//") else "/", 303)
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
        return response
