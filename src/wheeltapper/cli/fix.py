"""`wheeltapper fix`: the corrected config, the plan of the next run, and a page of before and after."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.cli.quantities import folder_name

DESCRIPTION = """\
Writes what to do after an ill run: the corrected config (only the lines that change,
comments kept, load-tested), plan.yaml with what must then be seen by step and where each
number comes from, and a page of before and after. Your own files are never changed.
Where no setting mends the run, it says which lines of code do. Options: A uses the best
checkpoint there is, B trains again, C resumes before the trouble began.
"""
EXAMPLES = """\
examples:
  wheeltapper fix runs/exp1 --dry-run              what would change, and nothing is written
  wheeltapper fix runs/exp1 -o exp1-fix            config, plan.yaml, fix.html, fix.md
  wheeltapper fix runs/exp1 --keep lr --keep ema   leave these settings alone
  wheeltapper fix runs/exp1 --option C             resume instead of training again
  wheeltapper fix runs/exp1 --try lr-too-high      a config that tries what is only suspected
  wheeltapper fix runs/exp2 --case exp1-fix        go on with a case: what it refuted is not tried again

exit codes: 0 written, or nothing to fix; 1 no setting mends it (the code must change, or
            what would mend it is kept); 2 error; 3 cannot tell: a trial or more data first
"""
CODES = {"ready": 0, "nothing": 0, "code": 1, "refused": 1, "cannot-tell": 3}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "fix", help="what to change, and what must then be seen", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", metavar="RUN", help="a file or the folder of one run")
    parser.add_argument(
        "--option", choices=("A", "B", "C"), help="A use a checkpoint, B train again (default), C resume"
    )
    parser.add_argument("-o", "--out", metavar="DIR", help="folder to write to (default: NAME-fix)")
    parser.add_argument("--dry-run", action="store_true", help="show the diff only; write nothing")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="KNOB",
        help="a setting that stays as it is: a knob, an area or your own key (may be repeated)",
    )
    parser.add_argument("--try", dest="wanted", metavar="CAUSE", help="try a cause that is only suspected")
    parser.add_argument(
        "--case", metavar="CASE", help="the earlier attempts at this run: the folder of a fix, or its case.json"
    )
    parser.add_argument("--run", metavar="NAME", dest="name", help="which run, where RUN holds several")
    parser.add_argument("--json", action="store_true", help="JSON, as report/schema/fix.json describes it")
    add_look_options(parser, output=False)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress
    from wheeltapper.report.fix_view import fix_view

    with Progress("fixing") as progress:
        fix = api.fix(
            args.path, option=args.option, keep=args.keep, case=args.case, wanted=args.wanted, name=args.name, progress=progress
        )  # fmt: skip
    folder = args.out or f"{folder_name(fix.diagnosis.run.name)}-fix"
    written = [] if args.dry_run else [str(path) for path in api.save_fix(fix, folder, case=args.case)]
    if args.json:
        from wheeltapper.report.json_fix import fix_object
        from wheeltapper.report.json_out import dumps

        write(dumps(fix_object(fix, written)), None)
        return CODES[fix.state]
    from wheeltapper.report.terminal_fix import print_diff, print_fix

    view = fix_view(fix, folder if written else None)
    with console_for(args) as out:
        if args.dry_run and fix.state == "ready":
            print_diff(view, out)
        else:
            print_fix(view, out, written)
    return CODES[fix.state]
