"""`wheeltapper schedule`: the learning rate that a configuration plans."""

from __future__ import annotations

import argparse

from wheeltapper.cli.output import add_look_options, console_for, write

DESCRIPTION = """\
Draws the learning rate (and the momentum, where the schedule drives it) that a
configuration plans, exactly as its framework computes it. With a run, the logged
learning rate is drawn over it and the two are compared.
"""
EXAMPLES = """\
examples:
  wheeltapper schedule config.yaml --steps-per-epoch 625
  wheeltapper schedule config.yaml runs/exp1        planned against logged
  wheeltapper schedule config.yaml log.csv          a log that lies elsewhere
  wheeltapper schedule runs/exp1                    a folder that holds both

exit codes: 0 the log follows the plan (or there is none), 1 it does not, 3 the plan cannot be worked out
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "schedule",
        help="which learning rate is planned, and was it followed?",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("config", metavar="CONFIG", help="a configuration, or a run folder that holds one")
    parser.add_argument("run", nargs="?", metavar="RUN", help="the run whose logged learning rate is compared")
    parser.add_argument("--steps", type=_count, metavar="N", help="length of the run in optimizer updates, if unstated")
    parser.add_argument("--steps-per-epoch", type=_count, metavar="N", help="updates per epoch, where it is unstated")
    parser.add_argument("--json", action="store_true", help="every planned value as JSON")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 whatever was found")
    add_look_options(parser)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of steps; it must be 1 or more")
    return number


def run(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.finding import Unknown

    schedule = api.schedule(args.config, args.run, steps=args.steps, steps_per_epoch=args.steps_per_epoch)
    if args.json:
        from wheeltapper.report.json_out import dumps, schedule_object

        write(dumps(schedule_object(schedule)), args.output)
    else:
        from wheeltapper.report.terminal_schedule import print_schedule

        with console_for(args) as out:
            print_schedule(schedule, out)
    if args.exit_zero:
        return 0
    if isinstance(schedule.plan, Unknown):
        return 3
    return 0 if schedule.match is None or schedule.match.verdict in ("matches", "cannot tell") else 1
