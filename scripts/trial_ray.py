"""One trial on the local engine and again on a cluster with a worker killed in the middle of an arm: same verdict?

    python scripts/trial_ray.py                      # a Ray of two worker processes, started here
    python scripts/trial_ray.py --engine slurm       # a real Slurm, if sbatch is in the path
    python scripts/trial_ray.py --engine slurm --option cluster=local

The training is the toy of the tests (gradient descent whose rate is too high), slowed down so that a worker can
be killed while it runs. The first worker that runs the arm with the remedy is killed with SIGKILL, once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from wheeltapper import api
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.driver import start_trial
from wheeltapper.trial.engines import Engine, Event, Job, open_engine
from wheeltapper.trial.ledger import Books

TOY = Path(__file__).resolve().parents[1] / "tests" / "trial" / "toy"


@dataclass
class Killer:
    """An engine whose first worker of an arm is killed a moment after it began."""

    engine: Engine
    arm: str
    after: float = 0.5
    killed: str = ""
    at: float | None = None
    pid: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.engine.name

    def room(self) -> int:
        return self.engine.room()

    def submit(self, job: Job) -> str:
        return self.engine.submit(job)

    def poll(self, timeout: float = 0.0) -> list[Event]:
        events = self.engine.poll(min(timeout, 0.2))
        for event in events:
            if event.kind == "started" and event.id.startswith(self.arm) and not self.killed:
                self.killed, self.pid = event.id, int(event.where.rsplit(":", 1)[1])
                self.at = time.monotonic() + self.after
            if event.kind == "lost":
                self.lost.append(f"{event.id}: {event.where}")
        if self.at is not None and time.monotonic() >= self.at:
            os.kill(self.pid, signal.SIGKILL)
            self.at = None
        return events

    def cancel(self, job_id: str) -> None:
        self.engine.cancel(job_id)

    def close(self) -> None:
        self.engine.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="ray", choices=["ray", "slurm"])
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--pause", type=float, default=0.01, help="seconds that the toy waits in each of its 200 steps")
    parser.add_argument("-o", "--out", type=Path, help="where the trials are kept (on a shared file system for Slurm)")
    args = parser.parse_args()
    home = args.out or Path(tempfile.mkdtemp(prefix="trial-"))
    run = home / "run"
    shutil.copytree(TOY, run, dirs_exist_ok=True)
    subprocess.run([sys.executable, "train.py"], cwd=run, check=True, stdout=subprocess.DEVNULL)
    os.environ["TOY_PAUSE"] = str(args.pause)
    command = f"{sys.executable} {run}/train.py --config {{config}} --out {{out}} --seed {{seed}}"
    wish = Wish(sets=("optimizer.lr=0.5", "optimizer.weight_decay=0.01"), config=str(run / "config.yaml"), cwd=str(run))
    plan = api.plan_trial(str(run), command, wish)
    options = dict(text.partition("=")[::2] for text in args.option)
    if args.engine == "ray" and "address" not in options:
        options.setdefault("cpus", "2")
    first = plan.tried[0].id
    began = time.monotonic()
    local = start_trial(plan, home / "local", open_engine("local", cpus="2"))
    middle = time.monotonic()
    killer = Killer(open_engine(args.engine, **options), first)
    opened = time.monotonic()
    cluster = start_trial(plan, home / args.engine, killer)
    end = time.monotonic()
    print(
        f"local: {middle - began:.1f} s; {args.engine}: opened in {opened - middle:.1f} s, trial {end - opened:.1f} s"
    )
    print(f"killed: the worker of {killer.killed}; lost: {'; '.join(killer.lost)}")
    for arm in plan.tried:
        for where, books in (("local", local), (args.engine, cluster)):
            verdict = books.verdicts[arm.id]
            print(f"{arm.id:28} {where:6} {verdict.answer:12} {verdict.pairs} pairs  {verdict.why}")
    good = same(local, cluster) and len(killer.lost) == 1
    print("same verdicts, no repeat lost or doubled" if good else "NOT THE SAME")
    return 0 if good else 1


def same(one: Books, two: Books) -> bool:
    """Verdicts are equal, and so are the outcomes of all repeats that both had (which ones depends on timing)."""
    if {k: v.answer for k, v in one.verdicts.items()} != {k: v.answer for k, v in two.verdicts.items()}:
        return False
    for arm in set(one.outcomes) & set(two.outcomes):
        for seed in set(one.outcomes[arm]) & set(two.outcomes[arm]):
            a, b = one.outcomes[arm][seed], two.outcomes[arm][seed]
            if a.broke != b.broke or (a.value != b.value and not (a.value != a.value and b.value != b.value)):
                return False
    return True


if __name__ == "__main__":
    sys.exit(main())
