"""`wheeltapper explain`: the page of a sign, a cause or a code check."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.errors import InputError

DESCRIPTION = """\
Prints the page of a sign, a cause or a code check: what it sees, how it decides,
when it is wrong, what to do, and where that is known from.
"""
EXAMPLES = """\
examples:
  wheeltapper explain not-finite
  wheeltapper explain not-finite --markdown > not-finite.md
  wheeltapper list signs                       every id there is
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "explain", help="what is this sign, cause or check?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("id", metavar="ID", help="as the report prints it, for instance not-finite")
    parser.add_argument("--markdown", action="store_true", help="the page as Markdown")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper.report.close import close_matches
    from wheeltapper.report.pages import pages

    known = pages()
    page = known.get(args.id) or known.get(args.id.lower().replace("_", "-").replace(" ", "-"))
    if page is None:
        near = close_matches(args.id, known)
        hint = f"Did you mean {', '.join(near)}?" if near else "`wheeltapper list` shows every id."
        raise InputError(f"nothing is called {args.id!r}.", do=hint)
    if args.markdown:
        write(page.markdown(), args.output)
        return 0
    from wheeltapper.report.terminal_page import print_page

    with console_for(args) as out:
        print_page(page, out)
    return 0
