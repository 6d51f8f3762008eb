"""`wheeltapper review`: is what somebody wrote about a run true?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wheeltapper.cli.output import SIGNED_MARKDOWN, add_look_options, console_for, write
from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.review.model import AnyClaim

DESCRIPTION = """\
Takes a written diagnosis (Markdown, text, an issue, a pull request), finds its claims
(numbers, curves, causes, settings, commands, configs, checkpoints, promises) and holds each
against what the run left behind: supported, contradicted, cannot be decided, not in this
record, or not a claim about this run. Nothing is guessed; what was not read is listed.
"""
EXAMPLES = """\
examples:
  wheeltapper review DIAGNOSIS.md runs/exp1
  wheeltapper review - runs/exp1 < comment.txt
  wheeltapper review DIAGNOSIS.md runs/exp1 --config configs/exp1.yaml --all
  wheeltapper review claims.json runs/exp1 --claims --json    claims that a program has read

exit codes: 0 nothing is contradicted, 1 something is, 2 error, 3 no claim could be decided
"""
MOST = 4 << 20  # bytes of a document
CANNOT_TELL = 3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "review", help="is what somebody wrote about this run true?", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("document", metavar="DIAGNOSIS", help="the text, or - for standard input")
    parser.add_argument("path", metavar="RUN", help="a file or a folder of the run it is about")
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="settings of the run that lie elsewhere"
    )
    parser.add_argument("--run", metavar="NAME", help="which run, where RUN holds several")
    parser.add_argument(
        "--claims", action="store_true", help="DIAGNOSIS is JSON as report/schema/claims.json describes it"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="JSON, as report/schema/review.json describes it")
    how.add_argument("--markdown", action="store_true", help="a table to paste under the text")
    parser.add_argument("--all", action="store_true", help="also what cannot be decided and what was not read")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress

    text = _text_of(args.document)
    claims = _claims_of(text, args.document) if args.claims else text
    with Progress("reviewing") as progress:
        review = api.review(
            claims, args.path, configs=args.config, name=args.run, document=args.document, progress=progress
        )
    if args.json:
        from wheeltapper.report.json_out import dumps
        from wheeltapper.report.review_out import review_object

        write(dumps(review_object(review)), args.output)
    elif args.markdown:
        from wheeltapper.report.review_out import review_markdown

        write(
            f"{review_markdown(review)}\n{SIGNED_MARKDOWN}\n" if args.output else review_markdown(review), args.output
        )
    else:
        from wheeltapper.report.review_out import print_review

        with console_for(args) as out:
            print_review(review, out, everything=args.all)
    if args.exit_zero:
        return 0
    if review.count("contradicted"):
        return 1
    return 0 if review.count("supported") else CANNOT_TELL


def _text_of(document: str) -> str:
    if document == "-":
        return sys.stdin.read(MOST)
    path = Path(document)
    if not path.is_file():
        raise InputError(
            f"there is no file {document}.", do="Name the written diagnosis, or - to give it on standard input."
        )
    if path.stat().st_size > MOST:
        raise InputError(f"{document} is over {MOST >> 20} MiB: no written diagnosis.", do="Give the text itself.")
    return path.read_text(encoding="utf-8", errors="replace")


def _claims_of(text: str, document: str) -> tuple[AnyClaim, ...]:
    import msgspec

    from wheeltapper.review.model import ClaimFile

    try:
        return msgspec.json.decode(text.encode(), type=ClaimFile).claims
    except msgspec.DecodeError as error:
        raise InputError(
            f"{document} does not hold claims as they are described: {error}.",
            do="report/schema/claims.json describes them; docs/agents.md has an example.",
        ) from error
