"""A trial without processes: an engine that plays the toy training in memory, and a run to try things on."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wheeltapper.trial.engines import EXIT_CODE_FILE, Event, Job

TOY = Path(__file__).parent / "toy"


def toy_log(lr: float, seed: int, steps: int = 200, noise: float = 0.05, decay: float = 0.0) -> str:
    """What tests/trial/toy/train.py writes, without starting it."""
    rng = random.Random(seed)
    curvature = 1.0 + 0.05 * rng.random()
    weight = 3.0 + rng.random()
    lines = []
    for step in range(1, steps + 1):
        rate = lr * min(1.0, step / 20)
        weight -= rate * (curvature * (weight - 1.0) + noise * rng.gauss(0, 1)) + rate * decay * weight
        loss = 0.5 * curvature * (weight - 1.0) ** 2 + 0.1 + noise * 0.1 * abs(rng.gauss(0, 1))
        if not loss < 1e30:
            loss = weight = float("nan")
        if step % 2 == 0:
            lines.append(f"step {step} train_loss {loss:.6g} lr {rate:.3g}")
        if step % 10 == 0:
            lines.append(f"step {step} val_loss {loss * 1.02:.6g}")
    return "\n".join(lines) + "\n"


def toy_run(folder: Path, lr: float = 2.3) -> Path:
    """A run folder with script, config and log."""
    folder.mkdir(parents=True)
    shutil.copy(TOY / "train.py", folder)
    text = (TOY / "config.yaml").read_text(encoding="utf-8").replace("lr: 2.3", f"lr: {lr}")
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    (folder / "train.log").write_text(toy_log(lr, 7), encoding="utf-8")
    return folder


Behave = Callable[[Job, dict[str, float]], tuple[int | None, str]]  # exit code and log of a job


def by_config(job: Job, options: dict[str, float]) -> tuple[int | None, str]:
    return 0, toy_log(options["lr"], int(options["seed"]), decay=options["weight_decay"])


@dataclass
class FakeEngine:
    """Runs each job at the poll after its submission. `code` None means that the node was lost."""

    behave: Behave = by_config
    slots: int = 2
    name: str = "fake"
    jobs: list[Job] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    closed: bool = False

    def room(self) -> int:
        return self.slots

    def submit(self, job: Job) -> str:
        assert job.id not in {j.id for j in self.jobs}, f"{job.id} was submitted twice"
        self.jobs.append(job)
        self.waiting.append(job)
        return "here"

    def poll(self, timeout: float = 0.0) -> list[Event]:
        del timeout  # nothing takes time here
        for job in self.waiting[: self.slots]:
            self.waiting.remove(job)
            self.events.append(Event(job.id, "started", time.time()))
            code, log = self.behave(job, options_of(job))
            (Path(job.out) / "out" / "train.log").write_text(log, encoding="utf-8")
            if code is None:
                self.events.append(Event(job.id, "lost", time.time(), None, "node lost"))
            else:
                (Path(job.out) / EXIT_CODE_FILE).write_text(f"{code}\n", encoding="utf-8")
                self.events.append(Event(job.id, "ended", time.time(), code))
        out, self.events = self.events, []
        return out

    def cancel(self, job_id: str) -> None:
        for job in list(self.waiting):
            if job.id == job_id:
                self.waiting.remove(job)
                self.events.append(Event(job_id, "ended", time.time(), None, "cancelled"))

    def close(self) -> None:
        self.closed = True


def options_of(job: Job) -> dict[str, float]:
    """The settings in the config that the command of a job names."""
    found = re.search(r"--config (\S+)", job.command)
    assert found is not None
    text = (Path(job.cwd) / found[1]).read_text(encoding="utf-8")
    return {key: float(value) for key, value in re.findall(r"^(\w+): ([\d.e+-]+)", text, re.MULTILINE)}
