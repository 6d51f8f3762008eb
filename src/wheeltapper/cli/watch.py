"""`wheeltapper watch`: follow live runs, and say what happens to them."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheeltapper.cli.diagnose import exit_code
from wheeltapper.cli.output import write
from wheeltapper.cli.quantities import seconds

if TYPE_CHECKING:
    from wheeltapper.watch import Incident, Watcher

DESCRIPTION = """\
Follows live runs from outside by looking at what they write: nothing is added to the
training, and a run on another machine's file system will do. Each look reads only what
is new. The growing record is judged as `diagnose` would; an alarm is raised once, when
it stands, and withdrawn in words if more data refute it.
"""
EXAMPLES = """\
examples:
  wheeltapper watch runs/exp1                        a dashboard in the terminal
  wheeltapper watch runs/* --target val/accuracy=0.9 several runs; the chance of a score
  wheeltapper watch train.log --plain                lines of text, for a pipe or a file
  wheeltapper watch runs/exp1 --until-done && next   go on when it is over and sound
  wheeltapper watch runs --once                      one look; for cron: says what is new
  wheeltapper watch runs --notify https://hooks.example.com/abc

The dashboard needs the extra `watch` (pip install textual); without it a
plain table is shown. Addresses other than http(s) need the extra `notify`.

exit codes: 0 sound, 1 ill or crashed before its end, 2 error, 3 cannot tell (of several runs: ill wins, then cannot tell)
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "watch", help="follow live runs: verdict, alarms, time left", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument(
        "path", nargs="+", metavar="PATH", help="a file or a folder of a run, or of many; may not exist yet"
    )
    parser.add_argument("--target", metavar="NAME=VALUE", help="say how likely the run reaches this score")
    parser.add_argument("--interval", type=seconds, default=10.0, metavar="TIME", help="between looks (default: 10 s)")
    parser.add_argument(
        "--stale", type=seconds, default=1800.0, metavar="TIME", help="silence that is worth saying (default: 30m)"
    )
    parser.add_argument(
        "--until-done", action="store_true", help="stop when every run has finished, crashed or gone silent"
    )
    parser.add_argument(
        "--notify", action="append", default=[], metavar="URL", help="tell a webhook, or what apprise knows; repeatable"
    )
    parser.add_argument("--plain", action="store_true", help="lines of text instead of the dashboard")
    parser.add_argument("--once", action="store_true", help="one look; says what is new since the last such call")
    parser.add_argument(
        "--state", metavar="FILE", help="where --once keeps what it has said (default: in the user's state folder)"
    )
    parser.add_argument("--json", action="store_true", help="with --once: JSON")
    parser.add_argument("--light", action="store_true", help="the dashboard on a light ground")
    parser.add_argument("--no-color", action="store_true", help="no colour (also with the NO_COLOR variable)")


def run(args: argparse.Namespace) -> int:
    from wheeltapper.errors import InputError
    from wheeltapper.prognosis.goal import goal_of
    from wheeltapper.watch.notify import Notifier

    if args.json and not args.once:
        raise InputError("--json goes with --once.", do="Add --once, or leave --json out.")
    target = goal_of(args.target) if args.target else None
    notifier = Notifier(args.notify)
    if args.once:
        return _once(args, target, notifier)
    return _follow(args, target, notifier)


def _follow(args: argparse.Namespace, target: Any, notifier: Any) -> int:
    from wheeltapper.watch import Watcher
    from wheeltapper.watch.plain import follow_lines, follow_live

    watcher = Watcher(args.path, target=target, stale=args.stale)
    how = {"interval": max(0.1, args.interval), "until_done": args.until_done, "notifier": notifier}
    try:
        if args.plain or not sys.stdout.isatty():
            follow_lines(watcher, sys.stdout, **how)
        elif find_spec("textual") is None:
            print('For the dashboard: pip install textual', file=sys.stderr)
            follow_live(watcher, color=False if args.no_color else None, **how)
        else:
            from wheeltapper.watch.dashboard import Dashboard

            Dashboard(watcher, light=args.light, **how).run()
    except KeyboardInterrupt:
        pass  # the ordinary way to end it
    return code_of(watcher)


def code_of(watcher: Watcher) -> int:
    """As diagnose says; a run that crashed before its end is no success, however sound it was until then."""
    died = any(
        w.over == "crashed" and (w.diagnosis is None or w.diagnosis.progress.state != "finished")
        for w in watcher.runs.values()
    )
    return 1 if died else exit_code(watcher.verdicts)


def _once(args: argparse.Namespace, target: Any, notifier: Any) -> int:
    from wheeltapper.errors import InputError
    from wheeltapper.watch import Watcher
    from wheeltapper.watch.plain import once_text
    from wheeltapper.watch.state import default_file, is_ours, load, save

    file = Path(args.state) if args.state else default_file(args.path)
    state = load(file)
    if args.state and state.problem and not is_ours(file):
        raise InputError(f"{state.problem.split(';')[0]}: it is not written over.", do="Name another file with --state.")
    watcher = Watcher(args.path, target=target, stale=args.stale, ledger=state.ledger, seen=state.seen)
    new = watcher.look(judge_now=True)
    changed = [w for key, w in watcher.runs.items() if key not in state.seen or state.seen[key].verdict != _verdict(w)]
    problems = [p for p in (state.problem, *notifier.send(new)) if p]
    if args.json:
        from wheeltapper.report.json_out import dumps

        write(dumps(_object(watcher, new)), None)
    elif text := once_text(watcher, new, changed, fresh=state.fresh):
        write(text, None)
    for problem in problems:
        print(f"wheeltapper: {problem}", file=sys.stderr)
    state.seen = {**state.seen, **watcher.seen()}
    save(file, state)
    return code_of(watcher)


def _verdict(watched: Any) -> str:
    return watched.diagnosis.verdict if watched.diagnosis else ""


def _object(watcher: Watcher, new: list[Incident]) -> dict[str, Any]:
    from dataclasses import asdict

    runs = []
    for watched in watcher.runs.values():
        told = watched.diagnosis
        assert told is not None  # --once judges every run
        entry: dict[str, Any] = {
            "name": watched.name, "root": watched.run.root, "verdict": told.verdict, "headline": told.headline,
            "state": watched.state, "at": told.progress.at, "total": told.progress.total, "clock": told.progress.clock,
            "seconds_left": watched.seconds_left(), "alarms": watcher.ledger.open(watched.key),
        }  # fmt: skip
        if watcher.target is not None:
            chance, words = watched.chance(watcher.target)
            entry["target"] = {**asdict(watcher.target), "chance": chance, "words": words}
        runs.append(entry)
    waiting = [{"path": str(path), "why": why} for path, why in watcher.waiting.items()]
    return {
        "schema": "wheeltapper/watch",
        "version": "1.0",
        "runs": runs,
        "new": [asdict(i) for i in new],
        "waiting": waiting,
    }
