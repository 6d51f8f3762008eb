"""`wheeltapper check`: what a run will really do, before a GPU hour is spent."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wheeltapper.cli.output import add_look_options, console_for, write

if TYPE_CHECKING:
    from wheeltapper.audit.model import AuditReport
    from wheeltapper.finding import Finding

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

exit codes: 0 nothing certain was found, 1 something was, 2 error, 3 a script that was named
could not be read. Suspicions are shown and do not count, unless --strict is given.
"""
CANNOT_TELL = 3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "check", help="what will this run really do?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", nargs="+", metavar="PATH", help="configs, scripts, launch scripts, a folder or a run")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/check.json describes it")
    how.add_argument("--sarif", action="store_true", help="SARIF 2.1.0, for GitHub code scanning")
    how.add_argument(
        "--format",
        choices=("full", "concise", "github"),
        default="full",
        help="one line a finding, or as GitHub annotations",
    )
    parser.add_argument("--fields", metavar="NAMES", help="with --json: only these, as in findings.id,findings.summary")
    parser.add_argument(
        "--full", action="store_true", help="with --json: everything, however long (default: below 50 kB)"
    )
    parser.add_argument("--select", metavar="IDS", help="only these findings, by id, with commas between them")
    parser.add_argument("--ignore", metavar="IDS", help="all findings but these")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for suspicions too")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def _chosen(report: AuditReport, select: str | None, ignore: str | None) -> AuditReport:
    """The report with the findings that were asked for."""
    wanted = set(select.replace(" ", "").split(",")) if select else None
    unwanted = set(ignore.replace(" ", "").split(",")) if ignore else set()
    kept = tuple(f for f in report.findings if (wanted is None or f.id in wanted) and f.id not in unwanted)
    return replace(report, findings=kept)


def _line(finding: Finding, style: str) -> str:
    """A finding on one line: for people, or as GitHub shows it beside the code."""
    place = finding.places[0] if finding.places else None
    if style == "concise":
        return f"{place or '-'}: {finding.id} {'' if finding.grade == 'is' else '(suspected) '}{finding.summary}"
    level = "error" if finding.grade == "is" and finding.severity == "ill" else "warning"
    where = f" file={place.file},line={place.line or 1}" if place is not None and place.file else ""
    return (
        f"::{level}{where},title={finding.id}::{finding.summary}"
        if where
        else f"::{level} title={finding.id}::{finding.summary}"
    )


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    with Progress("checking"):
        report = _chosen(api.check(args.path), args.select, args.ignore)
    if args.json:
        from wheeltapper.report.brief import check_within, only
        from wheeltapper.report.json_out import check_object, dumps

        told = check_object(report) if args.full else check_within(check_object(report))
        write(dumps(only(told, args.fields, None) if args.fields else told, indent=2 if args.full else 0), args.output)
    elif args.sarif:
        from wheeltapper.report.json_out import dumps
        from wheeltapper.report.sarif import sarif_object

        write(dumps(sarif_object(report.findings)), args.output)
    elif args.format != "full":
        write("\n".join(_line(f, args.format) for f in report.findings), args.output)
    else:
        from wheeltapper.report.terminal_check import print_audit

        with console_for(args) as out:
            print_audit(report, out)
    if args.exit_zero:
        return 0
    counted = [f for f in report.findings if f.severity != "note" and f.grade != "expected"]
    if any(args.strict or f.grade != "suspected" for f in counted):
        return 1
    return CANNOT_TELL if _unread(args.path, report) else 0


def _unread(given: list[str], report: AuditReport) -> bool:
    """Whether what was asked about was not read: a file that was named, or every script that there is."""
    scripts = [file for file in report.files if file.endswith(".py")]
    named = {str(Path(path)) for path in given}
    return bool(named & set(report.unread)) or (bool(scripts) and set(scripts) <= set(report.unread))
