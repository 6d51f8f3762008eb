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


SIGNED_MARKDOWN = "<!-- written by wheeltapper -->"
SIGNED = "-- written by wheeltapper"  # the last line of a report in a file, so that it is known for one of ours
MOST_REPORT = 100 << 20  # bytes
GENERIC = 0.3  # how sure a reader is that reads anything of its kind

# Options that name a file to write, and arguments that name what is read.
WRITTEN = ("output", "html", "csv", "parquet", "state", "script")
READ = ("path", "document", "first", "second", "config", "run", "case", "plan", "good", "corpus", "incident")


def refuse_inputs(args: argparse.Namespace) -> None:
    """A report never takes the place of what it reports on: the log, the config, the script."""
    targets = [Path(name) for name in (getattr(args, option, None) for option in WRITTEN) if isinstance(name, str)]
    targets = [target for target in targets if target.is_file()]
    if not targets:
        return
    given = [getattr(args, name, None) for name in READ]
    inputs = [Path(one) for each in given for one in (each if isinstance(each, list) else [each]) if isinstance(one, str)]
    for target in targets:
        for place in inputs:
            same = place.is_file() and place.samefile(target)
            below = place.is_dir() and target.resolve().is_relative_to(place.resolve())
            if same or (below and _of_the_run(target.resolve())):
                raise InputError(f"{target} is a file of the run, and is not written over.", do="Name another file.")


def _of_the_run(file: Path) -> bool:
    """Whether a run left this file, or one of ours an earlier report."""
    from wheeltapper.reading import has_curve, head_of, ranked, readings_of
    from wheeltapper.run.gather import SKIP_ENDINGS

    if file.suffix in {".py", ".sh", ".bash", ".slurm", ".sbatch"}:
        return True
    if file.suffix.lower() in SKIP_ENDINGS:  # never read as a record
        return False
    data = file.read_bytes() if file.stat().st_size < MOST_REPORT else b""
    if b'"wheeltapper/' in data[:200] or data.rstrip().endswith((SIGNED.encode(), SIGNED_MARKDOWN.encode())):
        return False
    sure = max((claim for claim, _ in ranked(head_of(file))), default=0.0)
    return sure > GENERIC or has_curve(readings_of(file))


@contextmanager
def console_for(args: argparse.Namespace) -> Iterator[Console]:
    """The console of this call; with -o its plain text goes to the file."""
    from wheeltapper.report.terminal import console

    if args.width is not None and args.width < 40:
        raise InputError(f"--width {args.width} is too narrow for a table.", do="Use at least 40.")
    if args.output:
        text = io.StringIO()
        yield console(text, width=args.width or 100, color=False)
        write(f"{text.getvalue()}{SIGNED}\n", args.output)
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
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: written to, never replaced
        path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    else:
        from wheeltapper.settings.write import replace_bytes

        whole = (text if text.endswith("\n") else text + "\n").encode("utf-8", errors="replace")
        replace_bytes(path.resolve(), whole, like=path if path.exists() else None)
    print(f"written: {target}", file=sys.stderr)
