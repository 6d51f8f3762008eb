"""`wheeltapper explain`: the page of an observation, a sign, a cause or a code check."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.errors import InputError

DESCRIPTION = """\
Prints the page of an observation, a sign, a cause or a code check: what it measures or
sees, when it is wrong, what to do, and where that is known from.
"""
EXAMPLES = """\
examples:
  wheeltapper explain not-finite
  wheeltapper explain not-finite --markdown > not-finite.md
  wheeltapper explain skill
  wheeltapper list signs                       every id there is
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "explain", help="what is this observation, sign, cause or check?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("id", metavar="ID", help="as the report prints it, for instance not-finite")
    parser.add_argument("--markdown", action="store_true", help="the page as Markdown")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper.report.close import close_matches
    from wheeltapper.report.pages import pages

    wanted = args.id.lower().replace("_", "-").replace(" ", "-")
    found = [page for page in pages() if page.id in (args.id, wanted)]
    if not found:
        near = close_matches(args.id, dict.fromkeys(page.id for page in pages()))
        hint = f"Did you mean {', '.join(near)}?" if near else "`wheeltapper list` shows every id."
        raise InputError(f"nothing is called {args.id!r}.", do=hint)
    if args.markdown:
        write("\n".join(page.markdown() for page in found), args.output)
        return 0
    from wheeltapper.report.terminal_page import print_page

    with console_for(args) as out:
        for page in found:
            print_page(page, out)
    return 0
