"""A fuzzing campaign over every reader, parser, check and command. An input is known by its number, and can be tried alone:

    python tests/fuzz/campaign.py --seconds 600            until the time is over
    python tests/fuzz/campaign.py --inputs 1000000         so many inputs
    python tests/fuzz/campaign.py --only 4711 --keep x     one of them, and its file kept in x

What counts as a failure: an exception that reaches the user (or that the one guard had to catch), more than 5 s of CPU
time, more than 1 GB of memory, anything executed. Each is a JSON line; the last line is the sum.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "reading"))
RECORDS, EXAMPLES, FINDS = HERE.parent / "records", HERE.parents[1] / "examples", HERE / "finds"
SECONDS, MEMORY = 5.0, 1_000_000_000
LARGEST = 20_000  # bytes of a seed: size is for hostile.py
BATCH = 2000  # inputs of one process
# How often each is tried; a command reads, judges and prints a whole folder.
TARGETS = {"readings": 30, "reader": 12, "parser": 20, "settings": 12, "check": 6, "command": 8}
COMMANDS = ("show", "diagnose", "check", "schedule", "compare", "fix", "watch", "followup", "lessons", "replay")


class TooSlowError(BaseException):
    """Not an Exception, so that nothing swallows it."""


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    import tb_writer as tb
    from mutate import binary_seeds

    files = sorted(p for folder in (RECORDS, EXAMPLES) for p in folder.rglob("*") if p.is_file())
    found = [(path.name, path.read_bytes()[:LARGEST]) for path in files]
    events = [tb.version(1.0), tb.event(1.0, 0, tb.hparams({"lr": 0.1})), tb.event(1.0, 0, tb.text("a", '{"b": 1}'))]
    events += [tb.event(2.0 + i, i, tb.scalar("loss", i), tb.tensor_scalar("acc", i)) for i in range(30)]
    return (*found, ("events.out.tfevents.1.host", b"".join(events)), *binary_seeds())


def made(number: int) -> tuple[str, str, bytes, random.Random]:
    """Target, file name and content of one input."""
    from mutate import mutated

    rng = random.Random(number)
    target = rng.choices(list(TARGETS), list(TARGETS.values()))[0]
    choice = seeds()
    if target == "check":
        choice = tuple(seed for seed in seeds() if seed[0].endswith((".py", ".sh")))
    if target in ("parser", "settings"):
        choice = tuple(seed for seed in seeds() if seed[0].endswith((".yaml", ".yml", ".json", ".toml", ".py", ".sh", ".txt")))
    name, data = rng.choice(choice)
    data = mutated(data, name, rng.choice(seeds())[1], rng)
    if rng.random() < 0.05:  # under another name, so that another reader looks at it
        name = rng.choice(seeds())[0]
    return target, name, data, rng


def tried(target: str, name: str, data: bytes, rng: random.Random, folder: Path) -> str:
    """What went wrong that was caught and told; exceptions that were not caught go up."""
    from wheeltapper.reading import head_of, readers, readings_of
    from wheeltapper.settings.check import check_config
    from wheeltapper.settings.knobs import read_knobs
    from wheeltapper.settings.parse import FORMATS, parse_file, parse_text
    from wheeltapper.simulate.plan_from_knobs import planned_lr

    path = folder / name
    path.write_bytes(data)
    if target == "readings":
        notes = [note.text for reading in readings_of(path) for note in reading.notes]
        return next((text for text in notes if "(in " in text and "cannot be read as" in text), "")
    if target == "reader":
        reader = rng.choice(readers())
        assert 0.0 <= float(reader.sniff(head_of(path))) <= 1.0
        list(reader.read(path))
        return ""
    if target == "parser":
        tree = parse_text(data.decode("utf-8", "replace"), name, rng.choice(list(FORMATS)))
        tree.nested()
        return next((p for p in tree.problems if "cannot be read as" in p and "Error:" in p), "")
    if target == "settings":
        tree = parse_file(path)
        if tree is not None:
            knobs = read_knobs([tree])
            list(check_config([tree]))
            plan = planned_lr(knobs, trees=[tree], steps_per_epoch=rng.choice([None, 100]))
            why = getattr(plan, "why", "")
            return why if "Error:" in why and "ValueError" not in why and "TypeError" not in why else ""
        return ""
    if target == "check":
        from wheeltapper import api
        from wheeltapper.errors import InputError

        try:
            report = api.check(path)
        except InputError:
            return ""
        return next((note for note in report.notes if "Error:" in note), "")
    return command(name, path, rng, folder)


def command(name: str, path: Path, rng: random.Random, folder: Path) -> str:
    """A command on a folder with the damaged file in it; it may find fault, never fail."""
    from wheeltapper.cli.main import main

    if rng.random() < 0.7:  # beside a sound log
        rows = "".join(f"{i},{2 / (i + 1)},{1 - 1 / (i + 2)}\n" for i in range(40))
        (folder / "metrics.csv").write_text("step,loss,val_accuracy\n" + rows)
    where = str(rng.choice([folder, path]))
    chosen = rng.choice(COMMANDS)
    words = {
        "compare": ["compare", where, str(EXAMPLES / "collapsed")],
        "fix": ["fix", where, "--dry-run"],
        "watch": ["watch", where, "--once", "--state", str(folder.parent / "state.json")],
        "followup": ["followup", where, "--plan", str(path), "--no-record"],
        "show": ["show", where, *rng.choice([[], ["--json"], ["--all"]])],
        "diagnose": ["diagnose", where, *rng.choice([[], ["--json"], ["--markdown"], ["--html", str(folder.parent / "x.html")]])],
    }.get(chosen, [chosen, where])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*words, "--debug"])
        except Exception as error:
            if type(error).__module__.startswith("wheeltapper.errors") or isinstance(error, OSError):
                return ""
            raise
    assert code in (0, 1, 2, 3), f"exit code {code}"
    return "a rule failed: " + out.getvalue()[:500] if "which is a bug in Wheeltapper" in out.getvalue() else ""


def ring(*_: Any) -> None:
    raise TooSlowError


def one(number: int, folder: Path, keep: Path | None = None) -> dict[str, Any] | None:
    target, name, data, rng = made(number)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / name).write_bytes(data)
    problem, begun = "", time.process_time()
    place = folder / "run"
    place.mkdir()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            problem = tried(target, name, data, rng, place)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except (Exception, TooSlowError):
        problem = traceback.format_exc(limit=-4)
    shutil.rmtree(place, ignore_errors=True)
    spent = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if peak > MEMORY:
        problem += f" memory {peak / 1e6:.0f} MB"
    if not problem:
        return None
    return {"number": number, "target": target, "name": name, "bytes": len(data), "seconds": round(spent, 2), "problem": problem[-1200:]}


def batch(first: int, count: int) -> None:
    """Inputs one after another in this process; ends early once the memory is over its limit."""
    from wheeltapper.reading import readers

    readers()
    signal.signal(signal.SIGVTALRM, ring)
    called: list[str] = []
    watched = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class"}
    sys.addaudithook(lambda event, _: called.append(event) if event in watched else None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        for number in range(first, first + count):
            found = one(number, Path(folder))
            if called:
                found = {"number": number, "problem": f"it called {called}"}
                called.clear()
            if found is not None:
                print(json.dumps(found), flush=True)
            print(f"#{number}", flush=True)
            if found is not None and "memory" in found["problem"]:
                return


def campaign(first: int, inputs: int, seconds: float) -> int:
    """Batches in processes of their own, so that one that dies costs one input."""
    begun, number, failures = time.monotonic(), first, 0
    kinds: Counter[str] = Counter()
    while number < first + inputs and time.monotonic() - begun < seconds:
        count = min(BATCH, first + inputs - number)
        words = [sys.executable, str(HERE / "campaign.py"), "--batch", str(number), str(count)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        last = number - 1
        for line in process.stdout:
            if line.startswith("#"):
                last = int(line[1:])
                if time.monotonic() - begun >= seconds:
                    process.kill()
                    break
                continue
            failures += 1
            kinds[json.loads(line)["problem"].strip().splitlines()[-1][:100]] += 1
            print(line, end="", flush=True)
        code = process.wait()
        if code not in (0, -9):
            failures += 1
            print(json.dumps({"number": last + 1, "problem": f"the process died with {code}"}), flush=True)
            last += 1
        number = last + 1
    spent = time.monotonic() - begun
    print(json.dumps({"inputs": number - first, "first": first, "failures": failures, "seconds": round(spent), "kinds": kinds.most_common(20)}), flush=True)
    return 1 if failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--first", type=int, default=0, help="number of the first input: another gives another set")
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--batch", type=int, nargs=2)
    args = parser.parse_args()
    if args.batch:
        batch(*args.batch)
        return 0
    if args.only is not None:
        signal.signal(signal.SIGVTALRM, ring)
        with tempfile.TemporaryDirectory() as folder:
            found = one(args.only, Path(folder), args.keep)
        print(found["problem"] if found else "nothing found")
        return int(found is not None)
    return campaign(args.first, args.inputs, args.seconds)


if __name__ == "__main__":
    sys.exit(main())
