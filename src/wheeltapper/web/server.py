"""Starts and ends the server."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from wheeltapper.errors import InputError
from wheeltapper.places import local_path
from wheeltapper.web.app import make_app
from wheeltapper.web.live import LiveFleet

DEFAULT_PORT = 8700
MOST_TRIED = 20  # ports after the default one
OWN = {"127.0.0.1", "localhost", "::1"}


def serve(
    paths: Sequence[str], *, port: int, host: str, token: str | None, every: float, browser: bool = False
) -> None:
    """Serve until Ctrl-C."""
    paths = [str(local_path(path)) for path in paths]
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise InputError(f"there is no file or folder {missing[0]}.", do="Give folders that runs were written to.")
    held = listen(host, port)
    chosen = held.getsockname()[1]
    secret = token or secrets.token_urlsafe(24)
    live = LiveFleet(paths, every=every)
    hosts = () if host in OWN else ("*",) if host in ("0.0.0.0", "::") else (host,)
    app = make_app(live, token=secret, port=chosen, hosts=hosts)
    shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
    link = f"http://{f'[{shown}]' if ':' in shown else shown}:{chosen}/?token={secret}"
    if host not in OWN:
        print(
            f"wheeltapper: listening on {host}: everybody on the network who has the link can read these runs. The link "
            "and the pages travel unencrypted.",
            file=sys.stderr,
        )
    print(f"Open  {link}\nStop with Ctrl-C.", flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2, server_header=False)
    live.start()
    if browser:
        webbrowser.open(link)
    try:
        uvicorn.Server(config).run(sockets=[held])
    except KeyboardInterrupt:
        pass
    finally:
        live.stop()
        held.close()


def listen(host: str, port: int) -> socket.socket:
    """A socket at the port; beside the default one, the next that is free. Raises InputError where there is none."""
    tries = range(port, min(port + MOST_TRIED, 65536)) if port == DEFAULT_PORT else (port,)
    why = ""
    for number in tries:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            held = socket.socket(family, socket.SOCK_STREAM)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((host, number))
            return held
        except (OSError, OverflowError) as error:
            held.close()
            why = getattr(error, "strerror", None) or str(error)
    raise InputError(f"cannot listen on {host}:{port}: {why}.", do="Name another with --port, or end what uses it.")
