"""`wheeltapper trial`: prove the cause by running again with one thing changed."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheeltapper.cli.output import STOPPED, add_look_options, console_for, write
from wheeltapper.cli.quantities import folder_name, seconds, size
from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.trial.engines import Engine
    from wheeltapper.trial.plan import TrialPlan
    from wheeltapper.trial.read import Trial

DESCRIPTION = """\
Runs a training again, unchanged and with one thing changed, often enough to tell whether that thing is the
cause. The arms: a control that must show the symptom again, an A/A arm that shows how far two equal runs
differ, and one arm per suspected cause with its single remedy. The plan and its cost are printed first.
"""
EXAMPLES = """\
the command:
  without --cmd the launch script or the one training script beside the run is started, in a copy of its folder with
  the change made where the setting lives (a file of settings, or the script itself). Else, in --cmd:
  {config} {seed} {steps} {epochs} {resume} {out} and knobs such as {optimizer.lr} are filled in for each arm;
  {set} stands for the changes as the script's options or Hydra's overrides; the same values are in WHEELTAPPER_CONFIG, _SEED, _STEPS, _RESUME, _OUT. A command without {out} runs in a
  copy of its folder. Metrics come from its own logs, or from wheeltapper.trial.step(loss=...) in the script.

examples:
  wheeltapper trial runs/exp1 --budget 15m
  wheeltapper trial runs/exp1 --cmd "python train.py {set}"
  wheeltapper trial runs/exp1 --cmd "python train.py --config {config} --out {out}"
  wheeltapper trial runs/exp1 --cmd "python train.py -opt {config}" --cause lr-too-high --budget 30m
  wheeltapper trial runs/exp1 --cmd "python train.py --lr {optimizer.lr} --seed {seed} --out {out}" --set optimizer.lr=5e-5
  wheeltapper trial report trial_exp1 --html report.html
  wheeltapper trial resume trial_exp1        after a crash or Ctrl-C: what is finished is not run again

exit codes: 0 some cause is confirmed, 1 none is (refuted), 2 error, 3 cannot tell
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "trial", help="prove the cause: run again with one thing changed", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("path", metavar="RUN", help="a run folder; or `report DIR`, `resume DIR`")
    parser.add_argument("folder", nargs="?", metavar="DIR", help="the folder of a trial, after `report` or `resume`")
    _add_what(parser.add_argument_group("what is tried"))
    _add_how(parser.add_argument_group("how it is decided"))
    _add_where(parser.add_argument_group("where it runs"))
    _add_written(parser.add_argument_group("what is written"))


def _add_what(what: argparse._ArgumentGroup) -> None:
    what.add_argument("--cmd", metavar="COMMAND", help="how the training is started (see below; default: as found beside the run)")
    what.add_argument(
        "--cause", action="append", default=[], metavar="ID", help="try this cause (default: the leading three)"
    )
    what.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        dest="sets",
        help="an arm with this change; CAUSE:KNOB=VALUE ties it to a cause",
    )
    what.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH=FILE",
        dest="files",
        help="an arm with another version of a file, for causes in code; CAUSE:PATH=FILE ties it to a cause",
    )
    what.add_argument(
        "--placebo",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="an arm with a change that should do nothing",
    )
    what.add_argument("--dose", action="store_true", help="also arms with half of each change")
    what.add_argument("--good", metavar="RUN2", help="a run that went well: which of the settings that differ did it?")
    what.add_argument(
        "--bisect", metavar="GOOD..BAD", help="which commit did it? each is run in a work tree of its own"
    )
    what.add_argument("--run", metavar="NAME", dest="run_name", help="which run, where RUN holds several")
    what.add_argument(
        "--config", metavar="FILE", help="the file that {config} stands for (default: the run's only one)"
    )
    what.add_argument("--cwd", metavar="DIR", help="where the command is run (default: here, or with the run)")


def _add_how(how: argparse._ArgumentGroup) -> None:
    how.add_argument(
        "--metric", metavar="SERIES", help="compare by this series (default: the leading validation metric)"
    )
    how.add_argument("--better", choices=("up", "down"), help="which way that series is better")
    how.add_argument(
        "--symptom",
        metavar="SIGN",
        help="the sign that must go away (default: the leading one; none: compare the metric alone)",
    )
    how.add_argument("--delta", type=float, metavar="X", help="the smallest difference of the metric that matters")
    how.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        metavar="P",
        help="chance of a false confirmation, all arms together (0.05)",
    )
    how.add_argument("--repeats", type=int, metavar="N", help="seeds per arm at most (default: 8)")
    how.add_argument(
        "--steps", type=float, metavar="N", help="length of an arm (default: as short as the symptom allows)"
    )


def _add_where(where: argparse._ArgumentGroup) -> None:
    where.add_argument("--engine", default="local", metavar="NAME", help="local, ray or slurm (default: local)")
    where.add_argument(
        "--engine-option", action="append", default=[], metavar="KEY=VALUE", help="an option of the engine"
    )
    where.add_argument("--budget", type=seconds, metavar="TIME", help="machine time of all arms together: 90s, 30m, 2h")
    where.add_argument("--cpus", type=float, default=1.0, metavar="N", help="processors of one arm (default: 1)")
    where.add_argument("--gpus", type=float, metavar="N", help="GPUs of one arm (default: 1 if there are any)")
    where.add_argument("--memory", type=size, metavar="SIZE", help="memory that one arm may use: 4G")
    where.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="stop a repeat after this (default: ten times the control)"
    )
    where.add_argument(
        "--data", action="append", default=[], metavar="FILE", help="data whose hash goes into the ledger"
    )
    where.add_argument("--yes", action="store_true", help="do not ask")
    where.add_argument("--dry-run", action="store_true", help="print the plan and stop")


def _add_written(out: argparse._ArgumentGroup) -> None:
    out.add_argument("-o", "--output", dest="out", metavar="DIR", help="the folder of the trial (default: trial_NAME)")
    out.add_argument("--case", metavar="CASE", help="add the verdicts to this case file, or the one in this folder")
    form = out.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="the report as Markdown")
    form.add_argument("--html", metavar="FILE", help="the report as one page with paired curves")
    form.add_argument("--json", action="store_true", help="the report as JSON")
    add_look_options(out, output=False)


def run(args: argparse.Namespace) -> int:
    if args.path in ("report", "resume") and args.folder is not None:
        return _report(args, Path(args.folder)) if args.path == "report" else _resume(args)
    if args.folder is not None:
        raise InputError(
            f"{args.folder!r} is one argument too many.", do="Give one RUN, or `report DIR`, `resume DIR`."
        )
    if args.path in ("report", "resume") and args.cmd is None:
        raise InputError(
            f"`trial {args.path}` needs the folder of a trial.",
            do=f"For example: wheeltapper trial {args.path} trial_exp1.",
        )
    if args.cmd is None and (args.good or args.bisect):
        raise InputError(
            "a search needs the command that starts the training.",
            do='For example: --cmd "python train.py --config {config} --out {out}".',
        )
    return _search(args) if args.good or args.bisect else _begin(args)


def _begin(args: argparse.Namespace) -> int:
    from wheeltapper import api
    from wheeltapper.cli.progress import Progress
    from wheeltapper.report.terminal_trial import print_plan

    with Progress("diagnosing"):
        plan = api.plan_trial(args.path, args.cmd, _wish(args), name=args.run_name)
    folder = Path(args.out or f"trial_{folder_name(plan.name)}")
    with console_for(args) as out:
        print_plan(plan, out)
    if args.dry_run:
        return 0
    if not _agreed(plan, folder, args.yes):
        return 3
    from wheeltapper.trial.driver import start_trial

    return _drive(args, folder, lambda engine, show: start_trial(plan, folder, engine, show=show))


def _search(args: argparse.Namespace) -> int:
    """Look for the culprit among settings or commits; the folder can be given again to go on after a stop."""
    from wheeltapper import api
    from wheeltapper.report.terminal_trial import print_search
    from wheeltapper.trial.hunt import hunt_commit, hunt_settings
    from wheeltapper.trial.search import commits_between

    if args.good and args.bisect:
        raise InputError("--good and --bisect are two searches.", do="Look among the commits first, then the settings.")
    plan, found = api.plan_search(args.path, args.cmd, _wish(args), name=args.run_name, good=args.good)
    folder = Path(args.out or f"trial_{folder_name(plan.name)}_search")
    good, commits = commits_between(args.bisect, Path(plan.command.cwd)) if args.bisect else ("", ())
    with console_for(args) as out:
        print_search(plan, found, commits, out)
    if args.dry_run:
        return 0
    if not _agreed(plan, folder, args.yes):
        return 3

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        with _engine(args) as engine:
            if found is None:
                answer = hunt_commit(plan, good, commits, folder, engine, say)
            else:
                answer = hunt_settings(plan, found.edits, folder, engine, say)
    except KeyboardInterrupt:
        print("\nstopped; give the same command again to go on: what has run is not run again", file=sys.stderr)
        return STOPPED
    print(f"{answer.text} ({answer.runs} runs)")
    return 0 if answer.culprits else 3


def _agreed(plan: TrialPlan, folder: Path, yes: bool) -> bool:
    """Ask before more is spent than the budget, or anything of unknown cost, unless told not to; say how it went."""
    most = plan.cost.most_seconds
    if not yes and (plan.budget is None or most is None or most > plan.budget):
        if not sys.stdin.isatty():
            raise InputError("nobody is there to agree to the cost.", do="Give --yes to begin without asking.")
        over = "This may cost more than the budget; it will be stopped there. " if plan.budget is not None else ""
        if input(f"{over}Begin? [y/N] ").strip().lower() not in ("y", "yes"):
            print("nothing was run", file=sys.stderr)
            return False
    print(f"trial:  {folder}", file=sys.stderr)
    return True


def _resume(args: argparse.Namespace) -> int:
    from wheeltapper.trial.driver import resume_trial

    folder = Path(args.folder)
    return _drive(args, folder, lambda engine, show: resume_trial(folder, engine, budget=args.budget, show=show))


def _drive(args: argparse.Namespace, folder: Path, work: Any) -> int:
    from wheeltapper.cli.trial_bars import bars

    try:
        with _engine(args) as engine, bars(sys.stderr) as show:
            work(engine, show)
    except KeyboardInterrupt:
        print(f"\nstopped; go on with: wheeltapper trial resume {shlex.quote(str(folder))}", file=sys.stderr)
        return STOPPED
    return _report(args, folder)


@contextmanager
def _engine(args: argparse.Namespace) -> Iterator[Engine]:
    """The engine that was asked for; while it works, a stop by the system is as clean as Ctrl-C."""
    from wheeltapper.trial.engines import open_engine

    before = signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        yield open_engine(args.engine, **dict(_pair(text) for text in args.engine_option))
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _report(args: argparse.Namespace, folder: Path) -> int:
    from wheeltapper import api

    trial = api.trial(folder, case=args.case)
    _refuse_broken_command(trial)
    if args.json:
        from wheeltapper.report.json_out import dumps
        from wheeltapper.report.trial_pages import as_object

        write(dumps(as_object(trial)), None)
    elif args.html or args.markdown:
        from wheeltapper.report.trial_pages import as_html, as_markdown

        write(as_html(trial) if args.html else as_markdown(trial), args.html)
    else:
        from wheeltapper.report.terminal_trial import print_report

        with console_for(args) as out:
            print_report(trial, out)
    from wheeltapper.report.trial_view import answers_in

    answers = set(answers_in(trial).values())
    return 0 if "confirmed" in answers else 1 if answers == {"refuted"} else 3


def _refuse_broken_command(trial: Trial) -> None:
    """A control that did not run once is no result but a mistake in the command; its own words say which."""
    if trial.books.outcomes or trial.books.closed is None:
        return
    last = next((r for r in reversed(trial.records) if r["kind"] == "ended" and r.get("failed")), None)
    if last is not None:
        tail = [line for line in str(last.get("tail", "")).splitlines() if line.strip()][-5:]
        words = "".join(f"\n  | {line}" for line in tail) or f"\n  {last.get('note', '')}"
        seed = str(last["job"]).removeprefix("control-")
        raise InputError(
            f"the command ended with exit code {last.get('code')} and left nothing to measure:{words}",
            do=f"Try it by hand: sh {shlex.quote(f'{trial.folder}/arms/control/{seed}/command.sh')}",
        )


def _wish(args: argparse.Namespace) -> Any:
    from wheeltapper.trial.arms import Wish
    from wheeltapper.trial.engines.local import visible_gpus

    if args.repeats is not None and args.repeats < 1:
        raise InputError("--repeats must be at least 1.")
    if not 0 < args.alpha < 1:
        raise InputError("--alpha is a probability between 0 and 1.")
    if args.steps is not None and args.steps <= 0:
        raise InputError("--steps must be more than 0.")
    gpus = args.gpus if args.gpus is not None else float(args.engine == "local" and bool(visible_gpus()))
    return Wish(
        causes=tuple(args.cause), sets=tuple(args.sets), files=tuple(args.files), placebo=tuple(args.placebo), dose=args.dose, metric=args.metric,
        better=args.better, symptom=args.symptom, steps=args.steps, repeats=args.repeats, delta=args.delta,
        alpha=args.alpha, config=args.config, cwd=args.cwd, cpus=args.cpus, gpus=gpus,
        memory=args.memory, timeout=args.timeout, budget=args.budget, data=tuple(args.data),
    )  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    key, sep, value = text.partition("=")
    if not sep or not key:
        raise InputError(f"--engine-option {text!r} is not of the form key=value.")
    return key, value
