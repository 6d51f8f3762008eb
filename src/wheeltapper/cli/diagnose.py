"""`wheeltapper diagnose`: is it sound, what happened, why, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from wheeltapper.cli.lines import add_line_options, lines_of
from wheeltapper.cli.output import SIGNED_MARKDOWN, add_look_options, console_for, write
from wheeltapper.errors import InputError

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
  wheeltapper diagnose runs --json | jq '.runs[].verdict'

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
    parser.add_argument("--target", metavar="NAME=VALUE", help="how likely is it that this score gets there?")
    add_line_options(parser)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--brief", action="store_true", help="the first screen only (the default)")
    size.add_argument("--full", action="store_true", help="the whole report (the default into a file)")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    lines = lines_of(args)
    with Progress("diagnosing") as progress:
        diagnoses = [
            d for path in args.path for d in api.diagnose(path, target=args.target, lines=lines, progress=progress)
        ]
    if args.json:
        from wheeltapper.report.json_out import diagnoses_object, dumps

        write(dumps(diagnoses_object(diagnoses)), args.output)
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


def exit_code(verdicts: Iterable[str]) -> int:
    """
    >>> exit_code(["sound", "cannot-tell", "ill"]), exit_code(["sound", "cannot-tell"]), exit_code(["sound"])
    (1, 3, 0)
    """
    seen = set(verdicts)
    return 1 if "ill" in seen else 3 if "cannot-tell" in seen else 0
