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

from wheeltapper import __version__
from wheeltapper.cli.output import STOPPED, refuse_inputs
from wheeltapper.errors import WheeltapperError

# In the order of the help text. Each is a module of this package with add_parser(subparsers) and run(args).
COMMANDS = (
    "show", "diagnose", "trial", "fix", "followup", "lessons", "watch", "check", "practice", "schedule", "compare", "review", "explain", "list", "replay", "lab",
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


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show "→" gets "?"; it must not get a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    parser = build_parser()
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
        print(f"wheeltapper: {complaint(error)}", file=sys.stderr)
        return ERROR
    return code


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
