"""`wheeltapper followup`: is the next run what the plan promised?"""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Holds a new run against the plan that `wheeltapper fix` wrote: whether the edits were really
made; each promise kept, broken or not yet testable; each cause FIXED, PARTIAL, OPEN or
REFUTED, with the evidence; and what to do next. The result is added to the case file beside
the plan (see `wheeltapper lessons`).
"""
EXAMPLES = """\
examples:
  wheeltapper followup runs/exp2 --plan exp1-fix/plan.yaml
  wheeltapper followup runs/exp2 --plan exp1-fix --markdown    to paste into an issue
  wheeltapper followup runs/exp2 --plan exp1-fix --no-record   only look

exit codes: 0 as planned, 1 not as planned, 2 error, 3 too early to tell
"""
CODES = {"kept": 0, "broken": 1, "not yet": 3}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "followup", help="is the next run what the plan promised?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", metavar="NEW_RUN", help="a file or the folder of the new run")
    parser.add_argument("--plan", required=True, metavar="PLAN", help="plan.yaml, or the folder that holds it")
    parser.add_argument("--run", metavar="NAME", dest="name", help="which run, where NEW_RUN holds several")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/followup.json describes it")
    how.add_argument("--markdown", action="store_true", help="Markdown, to paste into an issue")
    how.add_argument("--html", metavar="FILE", help="one self-contained page, curves with the promises drawn in")
    parser.add_argument("--no-record", action="store_true", help="do not add the result to the case file")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress
    from wheeltapper.report.fix_view import followup_view

    with Progress("following up"):
        result = api.followup(args.path, args.plan, name=args.name, record=False)
    if args.json:
        from wheeltapper.report.json_fix import followup_object
        from wheeltapper.report.json_out import dumps

        write(dumps(followup_object(result)), args.output)
    elif args.html:
        from wheeltapper.report.html import followup_page

        write(followup_page(followup_view(result, charts=True)), args.html)
    elif args.markdown:
        from wheeltapper.report.markdown_fix import render_followup

        write(render_followup(followup_view(result)), args.output)
    else:
        from wheeltapper.report.terminal_fix import print_followup

        with console_for(args) as out:
            print_followup(followup_view(result), out)
    if not args.no_record:  # last: what was found is told even where it cannot be written down
        api.record_followup(result, args.plan)
    return CODES[result.outcome]
