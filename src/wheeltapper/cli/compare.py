"""`wheeltapper compare`: two runs, what differs, and where they part."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Shows only the settings that differ between two runs, by meaning and not by spelling
(names, folders and times are hidden), with the environment; then the curves one above
the other and the first position where they part by more than noise.
"""
EXAMPLES = """\
examples:
  wheeltapper compare runs/good runs/bad
  wheeltapper compare mlflow.db --a baseline --b lr2x      two runs of one store
  wheeltapper compare runs/good runs/bad --json | jq '.differences[].name'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="what differs between two runs, and where do they part?",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("first", metavar="A", help="a run; or a place that holds both, when B is left out")
    parser.add_argument("second", nargs="?", metavar="B", help="the other run")
    parser.add_argument("--a", metavar="NAME", help="which run of A, where it holds several")
    parser.add_argument("--b", metavar="NAME", help="which run of B, where it holds several")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    with Progress("comparing"):
        comparison = api.compare(args.first, args.second, name_a=args.a, name_b=args.b)
    if args.json:
        from wheeltapper.report.json_out import comparison_object, dumps

        write(dumps(comparison_object(comparison)), args.output)
        return 0
    from wheeltapper.report.terminal_compare import print_comparison

    with console_for(args) as out:
        print_comparison(comparison, out)
    return 0
