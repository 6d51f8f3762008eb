"""Every lab fault that a setting mends: diagnose, fix, train again, follow up. Is it FIXED, and as good as its twin?

    python scripts/mend_lab.py [-o FOLDER] [--only SYSTEM/FAULT ...] [--seeds 1 2] [--sizes test] [--jobs 1]
    python scripts/mend_lab.py -o FOLDER --table        # only print what is known

Per case: a run with the fault and its healthy twin; `api.fix` on what the run left (never on the truth); the corrected
files trained by `lab rerun`; `api.followup`. Where the followup says that it is not over, the new run is fixed in
turn with the case file of the first (`fix --case`), as a person would, up to `--attempts` times; the table tells
which attempt did it. Each case is written to FOLDER/done as soon as it is known, so a run that is cut off goes on.
Figures in LOG.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from wheeltapper import api
from wheeltapper.errors import WheeltapperError
from wheeltapper.lab.faults import Fault, faults_of, unchanged
from wheeltapper.lab.launch import plan_run, plan_twin, run, run_with_twin
from wheeltapper.lab.manifest import not_as_good
from wheeltapper.lab.rerun import rerun
from wheeltapper.lab.systems import NAMES, SIZES, Size, system
from wheeltapper.lab.truth import Truth, load, save, truth_path

# Faults in the code that a setting mends all the same: bf16 has the range that fp16 lacks.
BY_PRECISION = ("fp16-overflow", "loss-scale-collapse")


@dataclass(frozen=True, order=True)
class Case:
    """One fault in one run."""

    system: str
    fault: str
    size: Size
    seed: int

    @property
    def file(self) -> str:
        return f"{self.system}.{self.fault}.{self.size}.{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.system}/{self.fault} {self.size} {self.seed}"


@dataclass
class Mended:
    """What became of one case."""

    case: Case
    cause: str
    harm: bool | None = None  # the fault did harm at this size and seed
    before: float | None = None
    twin: float | None = None
    after: float | None = None
    verdict: str = ""  # of the ill run
    named: str = ""  # the cause that the diagnosis puts first
    edits: list[str] = field(default_factory=list)  # attempt by attempt
    statuses: list[str] = field(default_factory=list)  # of the treated cause, attempt by attempt
    outcome: str = ""  # of the last followup
    ended: str = ""
    why_not: str = ""
    seconds: float = 0.0

    @property
    def fixed(self) -> bool:
        return bool(self.statuses) and self.statuses[-1] == "FIXED"

    @property
    def good(self) -> bool:
        """Not worse than the healthy twin by more than scores of equal runs differ."""
        return self.after is not None and not not_as_good(self.after, self.twin, system(self.case.system).NOISE)


def by_settings(fault: Fault) -> bool:
    """A config change can mend it."""
    changed = fault.change is not unchanged and (not fault.patch or fault.knob.startswith("ema"))
    return changed or fault.stale or fault.cause in BY_PRECISION


def mend(case: Case, out: Path, attempts: int) -> Mended:
    """One case from the ill run to the end."""
    began = time.process_time()
    truth = run_with_twin(plan_run(case.system, case.size, case.seed, case.fault), out)
    row = Mended(case, truth.cause or "", truth.manifested, truth.score)
    row.twin = load(truth_path(out, truth.twin)).score if truth.twin else None
    here, earlier = truth, None
    for attempt in range(1, attempts + 1):
        made = out / "fixes" / f"{truth.run}-{attempt}"
        again = step(here, out, made, earlier, row)
        if again is None:
            break
        row.after, row.ended = again.score, again.ended
        if row.fixed and row.outcome != "broken":
            break
        here, earlier = again, out / "fixes" / f"{truth.run}-1"
    row.seconds = time.process_time() - began
    return row


def step(here: Truth, out: Path, made: Path, earlier: Path | None, row: Mended) -> Truth | None:
    """Diagnose, fix, train again, follow up. None: there is no fix."""
    folder = out / "runs" / here.run
    shutil.rmtree(made, ignore_errors=True)
    try:
        fix = api.fix(folder, case=earlier)
        if earlier is None:
            row.verdict = fix.diagnosis.verdict
            row.named = next((f"{cause.id} {cause.probability:.0%}" for cause in fix.diagnosis.causes), "")
        if fix.plan is None or not fix.edited:
            row.why_not = f"{fix.state}: {fix.headline}"
            return None
        api.save_fix(fix, made, case=earlier)
    except WheeltapperError as error:
        row.why_not = f"{type(error).__name__}: {error.what}"
        return None
    row.edits.append(", ".join(f"{edit.knob} {edit.old} -> {edit.new}" for edit in fix.plan.edits))
    again = Truth(
        **{**{name: getattr(here, name) for name in here.__struct_fields__}, "run": f"{here.run}x", "kind": "rerun"}
    )
    target = out / "runs" / again.run
    shutil.rmtree(target, ignore_errors=True)
    result = rerun(folder, [made / name for name in fix.plan.configs], target)
    again.ended, again.score, again.reported = result.ended, result.score, result.reported
    save(out, again)
    followed = api.followup(target, made, record=True)
    treated = {issue.cause for issue in fix.plan.issues if issue.how in ("apply", "try")}
    found = [issue.status for issue in followed.issues if issue.cause in treated]
    row.statuses.append(found[0] if found else "none")
    row.outcome = followed.outcome
    return again


def cases(only: Sequence[str] | None, sizes: Sequence[Size], seeds: Sequence[int]) -> list[Case]:
    every = [(name, fault.id) for name in NAMES for fault in faults_of(name) if by_settings(fault)]
    known = [f"{name}/{fault}" for name, fault in every]
    for told in only or ():
        if told not in known:
            raise SystemExit(f"{told} is no fault that a setting mends. There are: {', '.join(known)}")
    kept = [pair for pair in every if not only or "/".join(pair) in only]
    return [Case(name, fault, size, seed) for seed in seeds for size in sizes for name, fault in kept]


def train_twin(case: Case, out: Path) -> None:
    """The healthy run of a case, which several cases share: made before them, so that no two jobs write it."""
    run(plan_twin(plan_run(case.system, case.size, case.seed, case.fault)), out)


def mend_all(todo: Sequence[Case], out: Path, attempts: int, jobs: int) -> Iterator[Mended]:
    if jobs == 1:
        yield from (mend(case, out, attempts) for case in todo)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        twins = {plan_twin(plan_run(c.system, c.size, c.seed, c.fault)).name: c for c in todo}
        for made in [pool.submit(train_twin, case, out) for case in twins.values()]:
            made.result()
        for done in as_completed([pool.submit(mend, case, out, attempts) for case in todo]):
            yield done.result()


def known_rows(done: Path) -> list[Mended]:
    rows = []
    for path in sorted(done.glob("*.json")):
        data: dict[str, Any] = json.loads(path.read_text())
        rows.append(Mended(**{**data, "case": Case(**data["case"])}))
    return sorted(rows, key=lambda row: row.case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default="out/mend", help="folder for runs, fixes and results")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM/FAULT", help="only these")
    parser.add_argument("--attempts", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--sizes", nargs="+", default=["test"], choices=SIZES)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--again", action="store_true", help="fix again what is done already; trained runs are kept")
    parser.add_argument("--table", action="store_true", help="run nothing, print what is known as Markdown")
    args = parser.parse_args()
    out = Path(args.output).resolve()
    done = out / "done"
    done.mkdir(parents=True, exist_ok=True)
    if not args.table:
        todo = [c for c in cases(args.only, args.sizes, args.seeds) if args.again or not (done / c.file).exists()]
        for row in mend_all(todo, out, args.attempts, args.jobs):
            part = done / f".{row.case.file}"
            part.write_text(json.dumps(asdict(row), indent=1))
            part.replace(done / row.case.file)
            print(line(row), flush=True)
    print(table(known_rows(done)))


def kind(row: Mended) -> str:
    if row.fixed and row.good:
        return "FIXED, as good as the twin" if len(row.statuses) == 1 else "FIXED by the second attempt, as good"
    if row.fixed:
        return "FIXED, not as good as the twin"
    if row.edits:
        return "not said to be FIXED, as good as the twin" if row.good else "not fixed"
    return "no harm here, no fix" if row.harm is False else "no fix written"


def table(rows: Sequence[Mended]) -> str:
    lines = ["", "| case | before, after, twin | named first | edits | followup |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        scores = ", ".join("-" if one is None else f"{one:.4g}" for one in (row.before, row.after, row.twin))
        told = " ".join(row.statuses) or row.why_not
        lines.append(f"| {row.case} | {scores} | {row.named or row.verdict} | {'; '.join(row.edits)} | {told} |")
    summary = Counter(kind(row) for row in rows)
    lines += ["", *(f"{count:3} {what}" for what, count in summary.most_common())]
    good = {(row.case.system, row.case.fault) for row in rows if row.fixed and row.good}
    return "\n".join([*lines, f"{len(good)} faults FIXED and as good as the twin at one seed at least"])


def line(row: Mended) -> str:
    scores = " -> ".join("-" if one is None else f"{one:.3g}" for one in (row.before, row.after))
    twin = "-" if row.twin is None else f"{row.twin:.3g}"
    left = f"; {row.why_not}" if row.why_not else ""
    edits = "; ".join(row.edits)
    return f"{kind(row)}: {row.case}: {row.verdict}, first {row.named}; {scores} (twin {twin}) {' '.join(row.statuses)}{left}; {edits}"


if __name__ == "__main__":
    main()
