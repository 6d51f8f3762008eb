"""`wheeltapper replay`: what the guard caught, and a script that runs the step again."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.errors import InputError

DESCRIPTION = """\
Shows an incident that the guard's recorder wrote: what was caught, the steps before it and the tensors
involved. With --script it writes a small program that runs the step again in float32, module by module,
and says where it first goes wrong; what it cannot know (how the model is built) is marked FILL IN.
"""
EXAMPLES = """\
examples:
  wheeltapper replay runs/exp1/incident-1200
  wheeltapper replay runs/exp1                           the newest incident in the folder
  wheeltapper replay runs/exp1/incident-1200 --script again.py

exit codes: 0 shown, 2 error
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "replay", help="what the guard caught live, step by step", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "incident", metavar="INCIDENT", help="a folder incident-<step>, or a run folder that holds some"
    )
    parser.add_argument("--script", metavar="OUT.py", help="write a program that runs the step again in float32")
    parser.add_argument("--steps", type=int, default=12, metavar="N", help="steps to show (default: 12)")
    parser.add_argument("--json", action="store_true", help="the incident as JSON")
    add_look_options(parser)


def run(args: argparse.Namespace) -> int:
    from wheeltapper.guard.replay import read_incident, script_of
    from wheeltapper.guard.replay_view import print_incident

    replay = read_incident(args.incident)
    if args.script:
        script = script_of(replay)
        if filled_in(Path(args.script), script):
            raise InputError(f"{args.script} is there already, and is not as it would be written.", do="Name another.")
        write(script, args.script)
    if args.json:
        write(
            json.dumps(json.loads((replay.folder / "incident.json").read_text(encoding="utf-8")), indent=1), args.output
        )
    elif args.script != "-":
        with console_for(args) as out:
            print_incident(replay, out, steps=max(1, args.steps))
    return 0


def filled_in(path: Path, script: str) -> bool:
    """Whether writing would lose something: the script is made to be filled in by hand."""
    return path.is_file() and path.stat().st_size > 0 and path.read_text(encoding="utf-8").strip() != script.strip()
