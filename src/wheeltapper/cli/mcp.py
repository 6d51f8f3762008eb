"""`wheeltapper mcp`: serve evidence about runs to language-model agents."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from wheeltapper.errors import InputError, MissingExtra

DESCRIPTION = """\
A server of the Model Context Protocol over standard input and output, or over HTTP on this
machine. Its tools list runs, diagnose them, show evidence, curves and settings, simulate
changes and review written diagnoses, in short answers. Only the folders named here are
read; nothing is written unless --allow-write is given. Needs: pip install mcp
"""
EXAMPLES = """\
examples:
  wheeltapper mcp runs                         for a client that starts it itself
  wheeltapper mcp runs experiments --http      at http://127.0.0.1:8765/mcp

`wheeltapper agents` prints what an agent should know.
"""
PORT = 8765
LOCAL = "127.0.0.1"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "mcp", help="serve evidence about runs to agents", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("folder", nargs="+", metavar="FOLDER", help="what may be read")
    parser.add_argument(
        "--http", action="store_true", help="streamable HTTP on this machine instead of standard input and output"
    )
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"with --http (default: {PORT})")
    parser.add_argument("--allow-write", action="store_true", help="let `fix` write into a new folder below FOLDER")


def run(args: argparse.Namespace) -> int:
    from wheeltapper.mcp.roots import Roots

    roots = Roots.of(args.folder)
    if not 0 < args.port < 65536:
        raise InputError(f"--port {args.port} is no port.", do="Use one between 1 and 65535.")
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp", "`wheeltapper mcp`")
    from wheeltapper.mcp.desk import Desk
    from wheeltapper.mcp.server import build_server

    server = build_server(Desk(roots, allow_write=args.allow_write))
    if args.http:
        print(f"wheeltapper: serving at http://{LOCAL}:{args.port}/mcp", file=sys.stderr)
        server.run("streamable-http", host=LOCAL, port=args.port)
    else:
        server.run("stdio")
    return 0
