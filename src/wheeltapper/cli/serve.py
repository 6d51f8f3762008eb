"""`wheeltapper serve`: runs in a browser, on this machine."""

from __future__ import annotations

import argparse

from wheeltapper.errors import InputError, MissingExtra

DESCRIPTION = """\
Shows folders of runs in a browser: a table to sort, filter and group, every run with
its curves and causes, two runs side by side, a sweep as a whole. Pages follow runs that
go on. Nothing is written; only who has the printed link can look.
"""
EXAMPLES = """\
examples:
  wheeltapper serve runs
  wheeltapper serve runs /data/other --port 8700 --no-browser
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("serve", help="runs in a browser", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("path", nargs="+", metavar="FOLDER", help="folders of runs")
    parser.add_argument("--port", type=int, default=8700, metavar="N", help="default: 8700, or the next that is free")
    parser.add_argument("--host", default="127.0.0.1", metavar="NAME", help="listen here; default: this machine only")
    parser.add_argument("--token", metavar="TEXT", help="default: a new one each time")
    parser.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between looks at the folders")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    try:
        from wheeltapper.web.server import serve
    except ImportError as error:
        raise MissingExtra("web", "starlette uvicorn", "`wheeltapper serve`") from error
    if not 0 <= args.port <= 65535:
        raise InputError(f"--port {args.port} is no port.", do="Use one from 1024 to 65535.")
    if not args.every > 0:
        raise InputError(f"--every {args.every:g} is no time to wait.", do="Use a number of seconds above 0.")
    if args.token is not None and len(args.token) < 8:
        raise InputError("the token is too short to keep anybody out.", do="Use at least 8 characters.")
    serve(args.path, port=args.port, host=args.host, token=args.token, every=args.every, browser=not args.no_browser)
    return 0
