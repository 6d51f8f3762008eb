"""`wheeltapper check`: what a run will really do, before a GPU hour is spent."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Reads configurations, training scripts and launch scripts, runs none of them, and says
what the run will really do (effective batch, updates, learning rate, warm-up, average,
precision), then what is declared and is not so: options that nothing acts on, keys that
do not exist, schedules that never get there.
"""
EXAMPLES = """\
examples:
  wheeltapper check train.py config.yaml
  wheeltapper check launch.sh --json
  wheeltapper check . --sarif -o wheeltapper.sarif      for GitHub code scanning

exit codes: 0 nothing certain was found, 1 something was, 2 error. Suspicions are shown and
do not count, unless --strict is given.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check", help="what will this run really do?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", nargs="+", metavar="PATH", help="configs, scripts, launch scripts, a folder or a run")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/check.json describes it")
    how.add_argument("--sarif", action="store_true", help="SARIF 2.1.0, for GitHub code scanning")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for suspicions too")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    with Progress("checking"):
        report = api.check(args.path)
    if args.json:
        from wheeltapper.report.json_out import check_object, dumps

        write(dumps(check_object(report)), args.output)
    elif args.sarif:
        from wheeltapper.report.json_out import dumps
        from wheeltapper.report.sarif import sarif_object

        write(dumps(sarif_object(report.findings)), args.output)
    else:
        from wheeltapper.report.terminal_check import print_audit

        with console_for(args) as out:
            print_audit(report, out)
    if args.exit_zero:
        return 0
    counted = [f for f in report.findings if f.severity != "note" and f.grade != "expected"]
    return 1 if any(args.strict or f.grade != "suspected" for f in counted) else 0
