"""`wheeltapper sweep`: which settings go with illness or with the score, over many runs."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Looks at many runs together: which settings go with illness, and which with the score.
Counts for every setting that varies how the runs of each value fared, and says how
likely it is that chance alone makes the best-looking of them look so good.
"""
EXAMPLES = """\
examples:
  wheeltapper sweep runs
  wheeltapper sweep runs --filter "optimizer.name=adamw"
  wheeltapper sweep runs --json | jq '.illness[] | select(.holds)'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "sweep", help="which settings go with illness or the score?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", nargs="+", metavar="FOLDER", help="folders of runs")
    parser.add_argument("--filter", action="append", default=[], metavar="TEST", help='only these runs, as in "p_ill<0.9"')
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from wheeltapper.cli.progress import Progress
    from wheeltapper.fleet.scan import scan, some_runs
    from wheeltapper.fleet.sweep import sweep_of
    from wheeltapper.fleet.table import matching

    with Progress("reading runs") as progress:
        fleet = some_runs(scan(args.path, progress=progress), args.path)
        found = sweep_of(matching(fleet.members, args.filter))
    if args.json:
        from wheeltapper.report.json_out import dumps

        links = {key: [{**asdict(link), "holds": link.holds} for link in getattr(found, key)] for key in ("illness", "score")}
        write(dumps({"schema": "wheeltapper/sweep", **asdict(found), **links}), args.output)
        return 0
    from wheeltapper.fleet.terminal import print_remarks, print_sweep

    with console_for(args) as out:
        print_sweep(found, out)
        print_remarks(fleet, out)
    return 0
