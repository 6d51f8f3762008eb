"""`wheeltapper diagnose`: is it sound, what happened, why, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wheeltapper.cli.lines import add_line_options, lines_of
from wheeltapper.cli.output import SIGNED_MARKDOWN, add_look_options, console_for, write
from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.fleet.scan import Engine

DESCRIPTION = """\
Says whether a run is sound; whether its numbers can be believed; what happened, from
which step to which; why, ranked, with the evidence for and against; which checkpoint
to keep; what is missing to be sure; and what was suspected and is not the cause.
"""
EXAMPLES = """\
examples:
  wheeltapper diagnose runs/exp1                        the answer, on one screen
  wheeltapper diagnose runs/exp1 --full                 with all signs, causes and their evidence
  wheeltapper diagnose runs/exp1 --html report.html     one file, opens anywhere
  wheeltapper diagnose train.log --markdown             to paste into an issue
  wheeltapper diagnose runs/exp1 --target val/accuracy=0.8
  wheeltapper diagnose runs/exp1 --ill-line 0.8         call it ill from 80 % on, not 90 %
  wheeltapper diagnose runs --filter verdict=ill --sort -changed --group cause
  wheeltapper diagnose runs --csv runs.csv              one row a run, with its settings
  wheeltapper diagnose runs --json | jq '.runs[].verdict'
  wheeltapper diagnose runs --json --brief --fields name,verdict,causes.id

exit codes: 0 sound (also where the program crashed: the verdict is about what was learned), 1 ill, 2 error, 3 cannot tell (of several runs: ill wins, then cannot tell)
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "diagnose", help="is it sound? what happened, and why?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", nargs="+", metavar="PATH", help="a file or a folder of a run, or of many")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/diagnosis.json describes it")
    how.add_argument("--markdown", action="store_true", help="Markdown, to paste into an issue")
    how.add_argument("--html", metavar="FILE", help="one self-contained page with annotated curves")
    how.add_argument("--csv", metavar="FILE", help="a table of the runs and their settings")
    how.add_argument("--parquet", metavar="FILE", help="the same as Parquet (needs pyarrow)")
    many = parser.add_argument_group("many runs", "a table of the runs, what matters first")
    many.add_argument("--sort", metavar="COLUMN", help="by a column or a setting; -COLUMN: downwards")
    many.add_argument("--filter", action="append", metavar="TEST", help='only these, as in "p_ill>0.5" or "cause~warmup"')
    many.add_argument("--group", metavar="COLUMN", help="counts by the values of a column or a setting")
    many.add_argument("--all", action="store_true", help="every run, not only the first 40")
    many.add_argument("--engine", metavar="NAME", help="ray, or ray:ADDRESS: scan on a Ray cluster (needs ray)")
    parser.add_argument("--target", metavar="NAME=VALUE", help="how likely is it that this score gets there?")
    add_line_options(parser)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="the first screen only (the default); with --json at most 1.5 kB a run")
    size.add_argument("--full", action="store_true", help="the whole report (the default into a file)")
    parser.add_argument("--fields", metavar="NAMES", help="with --json: only these, as in verdict,causes.id")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    if _asks_for_table(args):
        return _run_table(args)
    lines = lines_of(args)
    with Progress("diagnosing") as progress:
        diagnoses = [
            d for path in args.path for d in api.diagnose(path, target=args.target, lines=lines, progress=progress)
        ]
    if args.json:
        from wheeltapper.report.brief import briefs_object, only
        from wheeltapper.report.json_out import diagnoses_object, dumps

        told = briefs_object(diagnoses) if args.brief else diagnoses_object(diagnoses)
        write(dumps(only(told, args.fields) if args.fields else told, indent=0 if args.brief else 2), args.output)
    elif args.html:
        from wheeltapper.report.html import page
        from wheeltapper.report.view import view_of

        if args.output is not None and args.output != args.html:
            raise InputError(
                f"two files are named for one page: --html {args.html} and -o {args.output}.", do="Name one of them."
            )
        write(page([view_of(d, charts=True) for d in diagnoses]), args.html)
    else:
        from wheeltapper.report.view import view_of

        views = [view_of(d) for d in diagnoses]
        if args.markdown:
            from wheeltapper.report.markdown import render

            text = render(views)
            write(f"{text.rstrip()}\n\n{SIGNED_MARKDOWN}\n" if args.output else text, args.output)
        else:
            from wheeltapper.report.first_screen import print_first_screens
            from wheeltapper.report.terminal import print_diagnoses

            full = args.full or (args.output is not None and not args.brief)
            with console_for(args) as out:
                (print_diagnoses if full else print_first_screens)(views, out)
    return 0 if args.exit_zero else exit_code(d.verdict for d in diagnoses)


def _asks_for_table(args: argparse.Namespace) -> bool:
    """A folder of many runs is a table; the whole report of each is for a few, or where a page or JSON was asked for."""
    if any((args.csv, args.parquet, args.sort, args.filter, args.group, args.all, args.engine)):
        return True
    if args.json or args.html or args.markdown or args.target:
        return False
    from itertools import islice
    from pathlib import Path

    from wheeltapper.fleet.units import units_of
    from wheeltapper.report.terminal import MOST_FULL

    units = (unit for path in args.path if Path(path).exists() for unit in units_of(Path(path)))
    return len(list(islice(units, MOST_FULL + 1))) > MOST_FULL


def _engine(name: str | None) -> Engine:
    from wheeltapper.fleet.pool import run_tasks

    if name is None:
        return run_tasks
    kind, _, address = name.partition(":")
    if kind != "ray":
        raise InputError(f"there is no engine {kind!r}.", do="There is ray, and without --engine this machine.")
    from wheeltapper.fleet.on_ray import ray_engine

    return ray_engine(address)


def _run_table(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.cli.progress import Progress
    from wheeltapper.fleet.export import as_csv, write_parquet
    from wheeltapper.fleet.scan import scan, some_runs
    from wheeltapper.fleet.table import grouped, matching, ordered

    refused = [name for name in ("json", "html", "markdown", "target") if getattr(args, name)]
    if refused:
        raise InputError(f"--{refused[0]} is a report of each run, not of a table.", do="Leave out --sort, --filter, --group.")
    with Progress("reading runs") as progress:
        fleet = some_runs(scan(args.path, lines=lines_of(args), progress=progress, engine=_engine(args.engine)), args.path)
    members = ordered(matching(fleet.members, args.filter or []), args.sort)
    if args.csv:
        write(as_csv(members), args.csv)
    elif args.parquet:
        write_parquet(members, Path(args.parquet))
    else:
        from wheeltapper.fleet.terminal import print_fleet, print_groups, print_remarks

        with console_for(args) as out:
            if args.group:
                print_groups(grouped(members, args.group), args.group, members, out)
                print_remarks(fleet, out)
            else:
                print_fleet(members, fleet, out, whole=args.all)
    return 0 if args.exit_zero else exit_code(member.row.verdict for member in members)


def exit_code(verdicts: Iterable[str]) -> int:
    """
    >>> exit_code(["sound", "cannot-tell", "ill"]), exit_code(["sound", "cannot-tell"]), exit_code(["sound"])
    (1, 3, 0)
    """
    seen = set(verdicts)
    return 1 if "ill" in seen else 3 if "cannot-tell" in seen else 0
