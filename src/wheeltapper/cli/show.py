"""`wheeltapper show`: what a run left behind."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.run.model import Run, Series

DESCRIPTION = """\
Shows everything a run left behind: series with their curves, facts, configuration,
checkpoints, events, launches, and what was not understood and why.
PATH is a file (a log, a CSV, an event file, a checkpoint) or a folder.
"""
MOST_INDENTED = 5000
EXAMPLES = """\
examples:
  wheeltapper show runs/exp1
  wheeltapper show train.log --series train/loss > loss.csv
  wheeltapper show runs/exp1 --json | jq '.runs[0].series[].name'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "show", help="what did the run leave behind?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", nargs="+", metavar="PATH", help="a file or a folder of a run, or of many")
    parser.add_argument("--json", action="store_true", help="everything as JSON, every value included")
    parser.add_argument("--no-values", action="store_true", help="with --json: leave out the points")
    parser.add_argument("--fields", metavar="NAMES", help="with --json: only these, as in name,series.name,series.last")
    parser.add_argument("--series", metavar="NAME", help="dump one series as CSV (or JSON, with --json)")
    parser.add_argument("--all", action="store_true", help="every row of every table")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    with Progress("reading") as progress:
        runs = [run for path in args.path for run in api.read(path, progress=progress)]
    if args.series:
        _dump(runs, args)
    elif args.json:
        from wheeltapper.report.brief import only
        from wheeltapper.report.json_out import dumps, show_object

        points = 0 if args.no_values else sum(len(s) for r in runs for s in r.series.values())
        # A line for every number would make a long file three times as long.
        indent = 2 if points < MOST_INDENTED else 0
        told = show_object(runs, values=not args.no_values)
        write(dumps(only(told, args.fields) if args.fields else told, indent=indent), args.output)
    else:
        from wheeltapper.report.terminal_show import print_runs

        with console_for(args) as out:
            print_runs(runs, out, everything=args.all)
    return 0


def _dump(runs: Sequence[Run], args: argparse.Namespace) -> None:
    found = [(run.name, series) for run in runs if (series := run.series_named(args.series)) is not None]
    if not found:
        from wheeltapper.report.close import close_matches

        known = list(dict.fromkeys(name for run in runs for name in run.series))
        near = close_matches(args.series, known)
        hint = f"Did you mean {', '.join(near)}?" if near else f"There are: {', '.join(known[:20])}."
        raise InputError(f"no series is named {args.series!r}.", do=hint)
    if args.json:
        from wheeltapper.report.json_out import dumps, series_object

        write(dumps({"series": [{"run": name, **series_object(s)} for name, s in found]}), args.output)
    else:
        write(_csv(found), args.output)


def _csv(found: Sequence[tuple[str, Series]]) -> str:
    """One row a point. Non-finite values are written NaN, inf, -inf, which every reader knows."""
    several = len(found) > 1
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*(["run"] if several else []), found[0][1].clock, "value", "file", "line"])
    for name, series in found:
        lead = [name] if several else []
        columns = (series.at.tolist(), series.values.tolist(), series.file_of.tolist(), series.lines.tolist())
        for at, value, file, line in zip(*columns, strict=True):
            shown = "NaN" if value != value else repr(value)
            rows.writerow([*lead, f"{at:.15g}", shown, series.files[file] if series.files else "", line])
    return text.getvalue()
