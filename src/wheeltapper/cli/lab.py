"""`wheeltapper lab`: real small trainings, healthy or with a named fault, and how right `diagnose` is on them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.judge.tables import Tables
    from wheeltapper.lab.fit import Judged

DESCRIPTION = """\
Four small real trainings, healthy or with a named fault whose truth is known: to see what a failure looks
like, to try things on, and to measure how often a diagnosis is right.
"""
EXAMPLES = """\
examples:
  wheeltapper lab list
  wheeltapper lab run resnet-ddp --fault ema-horizon --size test -o lab_runs
  wheeltapper diagnose lab_runs/runs
  wheeltapper lab rerun lab_runs/runs/run-1a2b3c4d5e --config fix/run.sh -o lab_runs/again
  wheeltapper lab corpus --n 100 --size test --jobs 2 -o lab_runs/corpus
  wheeltapper lab score lab_runs/corpus
  wheeltapper lab fit research/seen.json.gz -o fitted.json --accuracy docs/accuracy.md
  wheeltapper lab gallery lab_runs/corpus -o gallery.html

The truth about a run is written beside the runs (DIR/truth), never inside them.
"""
SIZES = ("test", "tiny", "full")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "lab",
        help="small real trainings with known faults, and the score of diagnose on them",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the systems, their faults and their benign oddities")
    listing.add_argument("--json", action="store_true", help="as JSON")
    one = actions.add_parser("run", help="train one system, healthy or with a fault")
    one.add_argument("system", metavar="SYSTEM", help="its name, as `lab list` shows it")
    one.add_argument("--fault", metavar="ID", help="a fault or a benign oddity of this system (default: healthy)")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--size", choices=SIZES, default="tiny", help="seconds, about a minute, or for a GPU")
    one.add_argument("--no-script", action="store_true", help="leave the training script out of the run folder")
    again = actions.add_parser("rerun", help="train again from a lab run's files, some of them corrected")
    again.add_argument("run", metavar="RUN", help="the folder of a lab run")
    again.add_argument("--config", nargs="+", metavar="FILE", default=[], help="take the place of files of this name")
    again.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder of the new run")
    many = actions.add_parser("corpus", help="a labelled set of runs with settings drawn at random")
    many.add_argument("--n", type=int, default=200, help="how many runs, healthy twins counted")
    many.add_argument("--jobs", type=int, default=1)
    many.add_argument("--systems", nargs="+", metavar="NAME", help="only these (default: all)")
    many.add_argument("--size", choices=SIZES, default="test")
    many.add_argument("--seed", type=int, default=0, help="another number gives another set")
    for sub in (one, many):
        sub.add_argument("-o", "--output", metavar="DIR", default="lab_runs", help="where to (default: lab_runs)")
    score = actions.add_parser("score", help="run diagnose over a labelled set and print how right it is")
    score.add_argument("corpus", metavar="DIR")
    score.add_argument("--json", action="store_true", help="as JSON")
    score.add_argument("--misses", action="store_true", help="also name every run that was got wrong")
    fitting = actions.add_parser("fit", help="fit the judge's tables on a labelled set; test them on others")
    fitting.add_argument("corpus", nargs="+", metavar="SET", help="folders of labelled runs, or files of what was seen in some (--seen)")
    fitting.add_argument("--test", nargs="*", default=[], metavar="DIR", help="sets of other seeds or sizes to test on")
    fitting.add_argument("--jobs", type=int, default=1)
    fitting.add_argument("--seen", metavar="FILE", help="keep what was seen in the runs here (.json or .json.gz), to fit again without them")
    fitting.add_argument("--accuracy", metavar="FILE", help="write how right it is on left-out runs here, as Markdown")
    fitting.add_argument(
        "-o", "--output", metavar="FILE", help="write the tables here (the package's: judge/fitted.json)"
    )
    show = actions.add_parser("gallery", help="one page with each fault's curve, diagnosis and remedy")
    show.add_argument("corpus", metavar="DIR")
    show.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="gallery.html",
        help="default: gallery.html; a name in .md gives a small Markdown page",
    )


def run(args: argparse.Namespace) -> int:
    actions = {
        "list": run_list,
        "run": run_one,
        "rerun": run_again,
        "corpus": run_corpus,
        "score": run_score,
        "fit": run_fit,
        "gallery": run_gallery,
    }
    return actions[args.action](args)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_list(args: argparse.Namespace) -> int:
    from wheeltapper.lab.faults import benign_of, faults_of
    from wheeltapper.lab.systems import NAMES, system

    systems: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    benign: list[dict[str, Any]] = []
    for name in NAMES:
        home = system(name)
        systems.append(
            {"name": name, "description": home.DESCRIPTION, "cases": list(home.CASES), "result": home.RESULT}
            | {"expected": home.EXPECTED}
        )
        faults += [
            {"id": f.id, "system": name, "cause": f.cause, "knob": f.knob, "harm": f.harm, "description": f.text}
            for f in faults_of(name)
        ]
        benign += [
            {"id": b.id, "system": name, "looks_like": b.looks_like, "description": b.text} for b in benign_of(name)
        ]
    if args.json:
        print(json.dumps({"systems": systems, "faults": faults, "benign": benign}, indent=1))
        return 0
    for one in systems:
        print(f"{one['name']}: {one['description']}")
        for fault in faults:
            if fault["system"] == one["name"]:
                print(f"  {fault['id']:28} {fault['description']}  [{fault['cause']}]")
        for odd in benign:
            if odd["system"] == one["name"]:
                print(f"  {odd['id']:28} {odd['description']}  [benign]")
        print()
    print(f"{len(systems)} systems, {len(faults)} faults, {len(benign)} benign oddities")
    return 0


def run_one(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.lab.launch import plan_run, run_with_twin
    from wheeltapper.lab.systems import system
    from wheeltapper.lab.truth import truth_path
    from wheeltapper.report.text import num

    out = Path(args.output)
    plan = plan_run(args.system, args.size, args.seed, args.fault, keep_script=not args.no_script)
    truth = run_with_twin(plan, out)
    print(f"run:    {out / 'runs' / truth.run}")
    print(f"truth:  {truth_path(out, truth.run)}")
    print(f"ended:  {truth.ended}, {truth.seconds:.1f} CPU seconds")
    if truth.score is not None:
        print(f"result: {num(truth.score)} ({system(args.system).RESULT})")
    if truth.measured:
        print(f"harm:   {truth.measured}")
    return 0


def run_again(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.lab.rerun import rerun
    from wheeltapper.report.text import num

    again = rerun(Path(args.run), [Path(config) for config in args.config], Path(args.output))
    print(f"run:    {args.output}")
    print(f"ended:  {again.ended}, {again.seconds:.1f} CPU seconds")
    if again.score is not None:
        print(f"result: {num(again.score)}")
    return 0


def run_corpus(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.lab.corpus import make_corpus
    from wheeltapper.lab.systems import NAMES, system

    systems = args.systems or list(NAMES)
    for name in systems:
        system(name)  # an unknown name is refused before anything is run
    truths = make_corpus(args.n, Path(args.output), systems, args.size, jobs=args.jobs, seed=args.seed, say=say)
    harmed = sum(t.kind == "fault" and bool(t.manifested) for t in truths)
    print(f"{len(truths)} runs in {args.output}: {harmed} harmed by their fault")
    return 0


def run_score(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.lab.score import examine_all
    from wheeltapper.lab.tell import as_json, as_text

    cases = examine_all(Path(args.corpus), say if sys.stderr.isatty() else lambda _line: None)
    print(json.dumps(as_json(cases), indent=1) if args.json else as_text(cases, misses=args.misses))
    return 0


def run_fit(args: argparse.Namespace) -> int:
    from pathlib import Path

    import msgspec

    from wheeltapper.cli.output import write
    from wheeltapper.lab.accuracy import page
    from wheeltapper.lab.fit import calibrate, fit, judge_with, left_out
    from wheeltapper.lab.labelled import labelled, save

    tell = say if sys.stderr.isatty() else lambda _line: None
    runs = [run for place in args.corpus for run in labelled(Path(place), args.jobs, tell)]
    if args.seen:
        save(runs, Path(args.seen))
    if len({run.family for run in runs}) < 2 or len({run.ill for run in runs}) < 2:
        raise InputError(
            f"{', '.join(args.corpus)} is too small a set to fit on.",
            do="It takes healthy and broken runs of two families or more.",
        )
    unseen = left_out(runs, lambda run: run.family)
    held = calibrate(fit(runs), unseen)
    print(_fit_line("families that were left out", held, unseen))
    for other in args.test:
        print(_fit_line(f"tested on {Path(other).name}", held, judge_with(held, labelled(Path(other), args.jobs))))
    if args.accuracy:
        write(page(held, unseen), args.accuracy)
    if args.output:
        write(msgspec.json.format(msgspec.json.encode(held), indent=1).decode() + "\n", args.output)
    return 0


def _fit_line(words: str, held: Tables, judged: Sequence[Judged]) -> str:
    """How right tables are on runs that they were not fitted on, at the lines of the judge."""
    from wheeltapper.judge.model import Lines
    from wheeltapper.lab.fit import p_ill

    lines, parts = Lines(), []
    for name, ill in (("ill", True), ("healthy", False)):
        said = [p_ill(held, one) for one in judged if one.run.ill is ill]
        over, under = sum(p >= lines.ill for p in said), sum(p <= lines.sound for p in said)
        parts.append(f"{len(said)} {name}: {over} called ill, {under} at or below the sound line")
    return f"{words}: {'; '.join(parts)}"


def run_gallery(args: argparse.Namespace) -> int:
    from pathlib import Path

    from wheeltapper.cli.output import write
    from wheeltapper.lab.gallery import gallery, gallery_text

    make = gallery_text if args.output.endswith(".md") else gallery
    write(make(Path(args.corpus), say), args.output)
    return 0
