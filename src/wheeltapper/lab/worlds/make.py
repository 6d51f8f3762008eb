"""Make many runs: each trained from its own script, with its twin, written to a folder, its truth to a label."""

from __future__ import annotations

import json
import math
import multiprocessing
import random
import shutil
import tarfile
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from wheeltapper.lab.worlds import textlogs, truth
from wheeltapper.lab.worlds.draw import Draw, draw_base
from wheeltapper.lab.worlds.families import FAMILIES
from wheeltapper.lab.worlds.faults import Fault
from wheeltapper.lab.worlds.names import Names
from wheeltapper.lab.worlds.plan import Job, jobs, things
from wheeltapper.lab.worlds.script import NotApplicable, Recorder, body_text, execute, untrained
from wheeltapper.lab.worlds.scriptfile import script_text
from wheeltapper.lab.worlds.writers import WRITERS, Record

Trained = tuple[list[dict[str, Any]], str, str | None]


def drawn(job: Job) -> tuple[Draw, Draw, Fault]:
    """The run, its healthy base, and what was done to it."""
    thing = things()[job.what]
    family = FAMILIES[job.family]
    for again in range(6):
        base, run = (draw_base(family, job.seed + again, thing.want) for _ in range(2))
        thing.apply(run, random.Random(f"{job.what}-{job.seed}"))
        try:
            body_text(run)
        except NotApplicable:
            continue
        return run, base, thing
    raise NotApplicable(f"{job.what} in {job.family}")


def train(draw: Draw, r: random.Random, resumes: bool) -> Trained:
    """Run the script, in two launches where the story has a resume."""
    body = body_text(draw)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if resumes:
            at = int(draw.total_steps * r.uniform(0.4, 0.6))
            first = Recorder(stop_at=at)
            execute(body, draw.cfg, first, folder)
            second = Recorder()
            second.start -= first.rows[-1]["clock"]
            printed, error = execute(body, draw.cfg | {"resume": True}, second, folder)
            draw.notes.setdefault("cause_step", second.rows[0]["step"] if second.rows else at)
            draw.cfg["resume"] = True
            return first.rows + second.rows, "", error
        share = draw.notes.get("stop_share")
        recorder = Recorder(stop_at=int(share * draw.total_steps) if share else None)
        printed, error = execute(body, draw.cfg, recorder, folder)
        return recorder.rows, printed, error


def pick_format(draw: Draw, r: random.Random) -> str:
    names = [n for n in WRITERS if n not in textlogs.RETURNS_ONLY]
    if "env_id" in draw.cfg:
        names = [n for n in WRITERS if n not in textlogs.NOT_FOR_RETURNS]
        return r.choice([*names, *textlogs.RETURNS_ONLY])
    if draw.family.name == "gan":
        return r.choice([n for n in names if n not in textlogs.NOT_FOR_RETURNS])
    if draw.plan["per_epoch"]:
        return r.choice([*names, *textlogs.EPOCH_ONLY, *textlogs.EPOCH_ONLY])
    return r.choice([n for n in names if n not in textlogs.EPOCH_ONLY])


def keep_script(thing: Fault, r: random.Random) -> bool:
    if thing.script == "always":
        return True
    if thing.script == "never" or thing.kind == "data":
        return False
    return r.random() < (0.65 if thing.kind == "code" else 0.45)


def tier_of(thing: Fault, kept: bool) -> str | None:
    if thing.kind == "control":
        return None
    return "A" if thing.kind == "setting" else ("C" if kept else "B")


def positions(rows: list[dict[str, Any]], unit: str) -> dict[int, int]:
    """From steps to the unit of the log."""
    if unit == "step":
        return {row["step"]: row["step"] for row in rows}
    less = 1 if unit == "epoch0" else 0
    return {row["step"]: row["epoch"] - less for row in rows}


def place(step: int | None, where: dict[int, int]) -> int | None:
    if step is None or not where:
        return None
    return where[min(where, key=lambda s: abs(s - step))] if step > 0 else min(0, *where.values())


def judge(run: Draw, thing: Fault, mine: Trained, twin: Trained | None, init: float) -> dict[str, Any]:
    """The part of the label that is measured."""
    family, rows = run.family, mine[0]
    points = truth.curve(rows, family.main)
    if twin is None:
        against = truth.sound(run, points, init)
        kind = "uncertain" if against else "healthy"
        return {
            "class": kind,
            "healthy": None if against else True,
            "pattern": "healthy",
            "checks": against,
            "cause": "none",
        }
    if thing.measure in ("speed", "memory"):
        effect, counts = truth.cost(thing, rows, twin[0])
        better = False
    else:
        effect, counts, better = truth.harm(run, thing, rows, twin[0], init)
    against = truth.sound(run, truth.curve(twin[0], family.main), init)
    kind = "broken" if counts else ("uncertain" if against else "benign")
    if counts and against and effect < 0.5:
        kind = "uncertain"
    onset, low, high = truth.onset_of(run, thing, rows, twin[0], init)
    theirs = truth.curve(twin[0], family.main)
    best = truth.best_of(theirs, family.mode)
    return {
        "class": kind, "healthy": False if kind == "broken" else None, "cause": thing.cause,
        "pattern": truth.pattern_of(run, thing, rows, effect, better, init) if kind == "broken" else "healthy",
        "onset": onset if kind == "broken" else None, "onset_lo": low if kind == "broken" else None,
        "onset_hi": high if kind == "broken" else None, "cause_step": run.notes.get("cause_step", 0),
        "effect": effect, "manifested": counts, "twin_final": truth.last_level(theirs),
        "twin_best": best[1] if best else None, "twin_healthy": not against, "twin_checks": against,
    }  # fmt: skip


def written_config(draw: Draw, names: Names) -> dict[str, Any]:
    extra = {"task": draw.family.words}
    if not draw.family.own_loop:
        extra["optimizer"] = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "rmsprop": "RMSprop"}[
            draw.plan["optimizer"]
        ]
    return extra | names.config(draw.cfg)


def on_users_machine(rows: list[dict[str, Any]], pace: float) -> list[dict[str, Any]]:
    """Times as on the user's machine, and without the time before the first step."""
    gap = rows[1]["clock"] - rows[0]["clock"] if len(rows) > 1 else 0.0
    begin = max(0.0, rows[0]["clock"] - gap)
    factors = {"samples_per_s": 1 / pace, "data_time": pace, "batch_time": pace}
    changed = []
    for row in rows:
        values = {key: value * factors.get(key, 1) for key, value in row["values"].items()}
        changed.append({**row, "clock": max(0.0, row["clock"] - begin), "values": values})
    return changed


def clean(value: Any) -> Any:
    """Labels are strict JSON: no NaN."""
    if isinstance(value, dict):
        return {k: clean(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clean(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def make_one(job: Job, out: Path) -> dict[str, Any]:
    began = time.time()
    r = random.Random(f"make-{job.id}")
    run, base, thing = drawn(job)
    twin = train(base, random.Random(0), False) if thing.kind != "control" else None
    mine = train(run, r, bool(run.plan["resume"]))
    init = untrained(base)
    if init is None:
        first = truth.curve((twin or mine)[0], run.family.main)
        init = next((v for _, v in first if math.isfinite(v)), 0.0)
    names, fmt = Names(job.seed), pick_format(run, r)
    if run.family.main == "rewards_accuracy":
        init = 0.5  # before the first update all rewards are equal
    init = min(init, truth.FAR_STARTS.get(run.family.main, math.inf))
    label = judge(run, thing, mine, twin, init)
    folder = out / "runs" / job.id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    day = datetime(2025, 1, 1) + timedelta(days=r.randint(0, 400), seconds=r.randint(0, 86000))
    lines = mine[1].splitlines(keepends=True)
    tail = "".join(line for line in lines if line.startswith("Early stopping"))
    printed = "".join(line for line in lines if not line.startswith("Early stopping"))
    pace = r.uniform(10, 200)
    rows = on_users_machine(mine[0], pace)
    record = Record(run, names, rows, written_config(run, names), printed, mine[2], r, day, pace, tail)
    unit = WRITERS[fmt](record, folder)
    kept = keep_script(thing, r)
    if kept:
        text = script_text(body_text(run), names, run.cfg, fmt, run.family.words, r)
        (folder / r.choice(["train.py", "main.py", f"train_{run.family.name}.py"])).write_text(text)
    label = facts(job, run, base, thing, mine, names, fmt, unit, kept, init) | label
    label["patterns_ok"] = truth.patterns_ok(label["pattern"])
    where = positions(mine[0], unit)
    for key in ("onset", "onset_lo", "onset_hi"):
        label[key] = place(label.get(key), where)
    label["wall_s"] = round(time.time() - began, 2)
    label = {key: clean(value) for key, value in label.items()}
    (out / "state").mkdir(exist_ok=True)
    (out / "state" / f"{job.id}.json").write_text(json.dumps(label))
    return label


def facts(
    job: Job,
    run: Draw,
    base: Draw,
    thing: Fault,
    mine: Trained,
    names: Names,
    fmt: str,
    unit: str,
    kept: bool,
    init: float,
) -> dict[str, Any]:
    """The part of the label that needs no judgement."""
    family, rows = run.family, mine[0]
    points = truth.curve(rows, family.main)
    best = truth.best_of(points, family.mode)
    where = positions(rows, unit)
    changed = [k for k in sorted({*run.cfg, *base.cfg}) if run.cfg.get(k) != base.cfg.get(k) and k != "resume"]
    said = hf_key if fmt == "hf" else names.setting
    total = max(row["step"] for row in rows)
    return {
        "id": job.id, "split": job.split, "family": job.family, "format": fmt, "fault": thing.id, "kind": thing.kind,
        "group": thing.group, "measure": thing.measure, "tier": tier_of(thing, kept), "script": kept,
        "causes_ok": list(thing.also), "control": thing.id.removesuffix("_again") if thing.kind == "control" else None, "story": thing.story,
        "fix": thing.fix, "fix_keys": [{"key": said(k), "bad": run.cfg.get(k), "good": base.cfg.get(k)} for k in changed] if thing.kind != "control" else [],
        "x_unit": "step" if unit == "step" else "epoch", "total": place(total, where), "steps_run": total,
        "steps_planned": run.total_steps, "steps_per_epoch": run.steps_per_epoch,
        "best_step": place(best[0], where) if best else None,
        "best_steps_ok": sorted({where[s] for s in truth.best_steps(points, family.mode, truth.noise_of(points))}),
        "val_metric": names.score("rollout" if "env_id" in run.cfg else "val", family.main), "val_mode": family.mode,
        "val_steps": sorted({where[s] for s, _ in points}), "metric_init": init,
        "metric_final": truth.last_level(points), "metric_best": best[1] if best else None, "error": mine[2],
    }  # fmt: skip


def hf_key(key: str) -> str:
    return {
        "lr": "learning_rate",
        "batch_size": "per_device_train_batch_size",
        "grad_clip": "max_grad_norm",
        "epochs": "num_train_epochs",
        "adam_eps": "adam_epsilon",
    }.get(key, key)


def work(task: tuple[Job, Path, float]) -> str:
    job, out, deadline = task
    if time.time() > deadline or (out / "state" / f"{job.id}.json").exists():
        return ""
    try:
        label = make_one(job, out)
    except NotApplicable as why:
        return f"{job.id} skipped: {str(why)[:60]!r}"
    except Exception as problem:  # one run must not cost the others
        return f"{job.id} {job.family} {job.what} failed: {type(problem).__name__}: {problem}"
    return f"{job.id} {label['family']:9s} {job.what:28s} {label['class']:9s} {label['format']:13s} {label.get('effect') or 0:7.2f} {label['wall_s']}s"


def make_many(out: Path, seed: int, count: int, workers: int, budget_s: float, verbose: bool = True) -> None:
    out.mkdir(parents=True, exist_ok=True)
    deadline = time.time() + budget_s
    tasks = [(job, out, deadline) for job in jobs(seed, count)]
    if workers == 1:
        for task in tasks:
            said = work(task)
            if verbose and said:
                print(said, flush=True)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for said in pool.imap_unordered(work, tasks):
            if verbose and said:
                print(said, flush=True)


def parts(out: Path, limit: int) -> list[list[str]]:
    """Finished runs in groups that stay under the limit when packed to about a third."""
    groups: list[list[str]] = [[]]
    spent = 0
    for id in sorted(p.stem for p in (out / "state").glob("*.json")):
        size = sum(f.stat().st_size for f in (out / "runs" / id).rglob("*") if f.is_file()) // 3 + 2000
        if spent + size > limit:
            groups.append([])
            spent = 0
        groups[-1].append(id)
        spent += size
    return groups


def pack(out: Path, to: Path, limit: int = 14_000_000) -> None:
    """The finished runs as archives of limited size."""
    to.mkdir(parents=True, exist_ok=True)
    for number, group in enumerate(parts(out, limit)):
        with tarfile.open(to / f"worlds-{number:02d}.tar.gz", "w:gz") as archive:
            for id in group:
                archive.add(out / "runs" / id, f"runs/{id}")
                archive.add(out / "state" / f"{id}.json", f"state/{id}.json")


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--budget-s", type=float, default=300)
    parser.add_argument("--pack-to", type=Path)
    args = parser.parse_args()
    make_many(args.out, args.seed, args.count, args.workers, args.budget_s)
    if args.pack_to:
        pack(args.out, args.pack_to)


if __name__ == "__main__":
    main()
