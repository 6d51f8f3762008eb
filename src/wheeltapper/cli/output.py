"""Options and manners that the commands share: where output goes, how wide, in colour or not."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


STOPPED = 130  # as a shell reports SIGINT


def add_look_options(parser: argparse._ActionsContainer, *, output: bool = True) -> None:
    """`output` False: the command has an -o of its own."""
    parser.add_argument("--width", type=int, metavar="N", help="columns to use (default: the terminal, or 80)")
    parser.add_argument("--no-color", action="store_true", help="no colour (also with the NO_COLOR variable)")
    if output:
        parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of the screen")
    else:
        parser.set_defaults(output=None)


@contextmanager
def console_for(args: argparse.Namespace) -> Iterator[Console]:
    """The console of this call; with -o its plain text goes to the file."""
    from wheeltapper.report.terminal import console

    if args.width is not None and args.width < 40:
        raise InputError(f"--width {args.width} is too narrow for a table.", do="Use at least 40.")
    if args.output:
        text = io.StringIO()
        yield console(text, width=args.width or 100, color=False)
        write(text.getvalue(), args.output)
    else:
        yield console(sys.stdout, width=args.width, color=False if args.no_color else None)


def write(text: str, target: str | None) -> None:
    """Text to a file, or to the screen where no file is named."""
    if target is None or target == "-":
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    path = Path(target)
    if path.is_dir():
        raise InputError(f"{target} is a folder.", do="Name a file to write to.")
    if not path.parent.exists():
        raise InputError(f"the folder {path.parent} does not exist.", do="Make it first, or name another file.")
    path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    print(f"written: {target}", file=sys.stderr)
