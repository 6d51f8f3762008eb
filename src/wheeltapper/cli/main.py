"""`wheeltapper`: words in, one call of the api, words out. No logic lives here.

Command modules import nothing heavy at the top, so that --help answers at once (tests/test_light_import.py).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from wheeltapper import __version__
from wheeltapper.cli.output import STOPPED, refuse_inputs
from wheeltapper.errors import WheeltapperError

# In the order of the help text. Each is a module of this package with add_parser(subparsers) and run(args).
COMMANDS = (
    "show", "diagnose", "trial", "fix", "followup", "lessons", "watch", "serve", "check", "practice", "schedule", "compare", "sweep", "review", "explain", "list", "replay", "mcp", "agents", "lab",
)  # fmt: skip

SOUND, ERROR = 0, 2
PIPE_CLOSED = 141  # as a shell reports SIGPIPE
EXIT_CODES = """\
exit codes:
  0  sound, or nothing found
  1  ill, or something found
  2  an error: the message says what to do
  3  cannot tell: the record does not say enough
"""
DESCRIPTION = """\
Reads what a training run left behind (logs, config, checkpoints, code) and says
whether it is sound, what went wrong, since when, and why.
"""
EXAMPLES = """\
start here:
  wheeltapper show RUN              what did the run leave behind?
  wheeltapper diagnose RUN          is it sound? what happened, and why?
  wheeltapper fix RUN               what to change, and what must then be seen
  wheeltapper check train.py c.yaml what will this run really do?

"""


def command_modules() -> list[ModuleType]:
    return [importlib.import_module(f"wheeltapper.cli.{name}") for name in COMMANDS]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a call, to a program as JSON."""

    as_json = False

    def error(self, message: str) -> NoReturn:
        if _Parser.as_json:
            _print_error("usage", message, do=f"See {self.prog} --help.")
            self.exit(ERROR)
        super().error(message)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="wheeltapper",
        description=DESCRIPTION,
        epilog=EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wheeltapper {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in command_modules():
        module.add_parser(subparsers)
    for sub in subparsers.choices.values():
        sub.formatter_class = argparse.RawDescriptionHelpFormatter
        sub.add_argument("--debug", action="store_true", help="show the traceback if something breaks")
        sub.add_argument("--json-errors", action="store_true", help="tell an error as JSON, on standard error")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show "→" gets "?"; it must not get a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    parser = build_parser()
    _Parser.as_json = "--json-errors" in (sys.argv[1:] if argv is None else argv)
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return SOUND
    module = importlib.import_module(f"wheeltapper.cli.{args.command}")
    try:
        refuse_inputs(args)
        code: int = module.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nwheeltapper: stopped", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        # The reader of our output (head, less) has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:
        if getattr(args, "debug", False):
            raise
        if args.json_errors:
            _print_error(type(error).__name__, *parts_of(error))
        else:
            print(f"wheeltapper: {complaint(error)}", file=sys.stderr)
        return ERROR
    return code


def _print_error(kind: str, what: str, where: str | None = None, do: str | None = None) -> None:
    from wheeltapper.report.brief import error_object
    from wheeltapper.report.json_out import dumps

    print(dumps(error_object(kind, what, where, do), indent=0), file=sys.stderr)


def parts_of(error: Exception) -> tuple[str, str | None, str | None]:
    """What happened, where, and what to do, each on its own."""
    from wheeltapper.report.text import clean

    if isinstance(error, WheeltapperError):
        where, do = (None if part is None else clean(part, 1000) for part in (error.where, error.do))
        return clean(error.what, 1000), where, do
    return complaint(error), None, None


def complaint(error: Exception) -> str:
    """What a user reads instead of a traceback. Paths and names in it may come from a run: cleaned."""
    from wheeltapper.report.text import clean

    if isinstance(error, WheeltapperError):
        text = str(error)
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror or error}"
    else:
        text = (
            f"this is a bug in Wheeltapper, not in your run: {type(error).__name__}: {error}\n"
            "Please report it; --debug shows the traceback to send along."
        )
    return "\n  ".join(clean(line, 1000) for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
