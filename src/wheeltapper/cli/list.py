"""`wheeltapper list`: every observation, sign, cause, code check and log format that is known."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Lists what Wheeltapper knows: the observations it measures, the signs it looks for, the
causes it weighs, the checks it makes on code and configuration, and the formats it reads.
"""
EXAMPLES = """\
examples:
  wheeltapper list
  wheeltapper list causes
  wheeltapper list observations
  wheeltapper list formats --json
"""
WHAT = ("observations", "signs", "causes", "checks", "formats")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "list", help="every observation, sign, cause, check and format", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("what", nargs="?", choices=WHAT, help="only these (default: all)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    lists = {what: _rows(what) for what in ([args.what] if args.what else WHAT)}
    if args.json:
        from wheeltapper.report.json_out import dumps

        named = {what: [{"id": key, "title": title} for key, title in rows] for what, rows in lists.items()}
        write(dumps(named), args.output)
        return 0
    from wheeltapper.report.terminal_page import print_list

    with console_for(args) as out:
        for what, rows in lists.items():
            print_list(f"{what.capitalize()} ({len(rows)})", rows, out)
    return 0


def _rows(what: str) -> list[tuple[str, str]]:
    if what == "formats":
        from wheeltapper.reading import readers

        rows = []
        for reader in readers():
            name = reader.__name__.rpartition(".")[2]
            about = (reader.__doc__ or "").strip().split("\n\n")[0]
            rows.append((name, reader.FORMAT if isinstance(reader.FORMAT, str) else " ".join(about.split())))
        return rows
    from wheeltapper.report.pages import FOLDERS, pages

    return [(page.id, page.title) for page in pages() if FOLDERS[page.kind] == what]
