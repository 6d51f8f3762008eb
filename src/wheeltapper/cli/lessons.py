"""`wheeltapper lessons`: what was tried in a case, and what came of it."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Prints the history of a case: every plan and every run held against it, with the verdict on
each cause. Refuted causes stay in it, so that nobody tries them again.
"""
EXAMPLES = """\
examples:
  wheeltapper lessons exp1-fix
  wheeltapper lessons exp1-fix/case.json --json
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "lessons", help="what was tried in a case, and what came of it", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("case", nargs="?", default=".", metavar="CASE", help="the folder of a fix, or its case.json (default: here)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/lessons.json describes it")
    how.add_argument("--markdown", action="store_true", help="as Markdown")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper.remedy.case_file import case_markdown, load_case

    case = load_case(args.case)
    if args.json:
        from wheeltapper.report.json_fix import case_object
        from wheeltapper.report.json_out import dumps

        write(dumps(case_object(case)), args.output)
    elif args.markdown:
        write(case_markdown(case), args.output)
    else:
        from wheeltapper.report.fix_view import attempts_of, refuted_of
        from wheeltapper.report.terminal_fix import print_lessons
        from wheeltapper.report.text import clean

        with console_for(args) as out:
            print_lessons(clean(case.name, 120), attempts_of(case), refuted_of(case), out)
    return 0
