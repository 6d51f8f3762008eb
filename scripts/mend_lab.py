"""Every lab fault that a setting mends: diagnose, fix, train again, follow up. Is it FIXED, and as good as its twin?

    python scripts/mend_lab.py [-o FOLDER] [--only SYSTEM/FAULT ...] [--attempts 3] [--seed 1] [--again]

Per fault: a run with the fault and its healthy twin; `api.fix` on what the run left (never on the truth); the
corrected files trained by `lab rerun`; `api.followup`. Where the followup says that it is not over, the new run is
diagnosed and fixed in turn, as a person would, up to `--attempts` times. What no fix was written for is listed with
the reason. What is done is kept in FOLDER/mended.json, so a run that was cut off goes on. Figures in LOG.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from wheeltapper import api
from wheeltapper.errors import WheeltapperError
from wheeltapper.lab.faults import Fault, faults_of, unchanged
from wheeltapper.lab.launch import plan_run, run_with_twin
from wheeltapper.lab.manifest import WORSE
from wheeltapper.lab.rerun import rerun
from wheeltapper.lab.systems import NAMES, system
from wheeltapper.lab.truth import Truth, load, save, truth_path


@dataclass
class Mended:
    """What became of one fault."""

    fault: str
    cause: str
    before: float | None = None
    twin: float | None = None
    after: float | None = None
    named: str = ""  # the cause that the diagnosis puts first
    edits: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)  # of the treated issues, attempt by attempt
    verdict: str = ""  # of the last run
    ended: str = ""
    why_not: str = ""
    seconds: float = 0.0

    @property
    def fixed(self) -> bool:
        return bool(self.statuses) and self.statuses[-1] == "FIXED"

    @property
    def good(self) -> bool:
        """Not worse than the healthy twin by more than scores of equal runs differ."""
        noise = system(self.fault.split("/")[0]).NOISE
        return self.after is not None and self.twin is not None and self.after >= self.twin - WORSE * noise


# Faults in the code that a setting mends all the same: bf16 has the range that fp16 lacks.
BY_PRECISION = ("fp16-overflow", "loss-scale-collapse")


def by_settings(fault: Fault) -> bool:
    """A config change can mend it."""
    changed = fault.change is not unchanged and (not fault.patch or fault.knob.startswith("ema"))
    return changed or fault.stale or fault.cause in BY_PRECISION


def mend(name: str, fault: Fault, seed: int, out: Path, attempts: int) -> Mended:
    """One fault from the ill run to the end."""
    began = time.process_time()
    plan = plan_run(name, "test", seed, fault.id)
    truth = run_with_twin(plan, out)
    row = Mended(f"{name}/{fault.id}", fault.cause, before=truth.score)
    row.twin = load(truth_path(out, truth.twin)).score if truth.twin else None
    here = truth
    for attempt in range(1, attempts + 1):
        again = step(here, out, attempt, row)
        if again is None:
            break
        row.after, row.ended = again.score, again.ended
        if row.fixed and row.good:
            break
        here = again
    row.seconds = time.process_time() - began
    return row


def step(here: Truth, out: Path, attempt: int, row: Mended) -> Truth | None:
    """Diagnose, fix, train again, follow up. None: there is no fix."""
    folder = out / "runs" / here.run
    made = out / "fixes" / f"{here.run}-{attempt}"
    shutil.rmtree(made, ignore_errors=True)
    try:
        fix = api.fix(folder)
        if attempt == 1:
            row.named = next((cause.id for cause in fix.diagnosis.causes), "") or fix.diagnosis.verdict
        if fix.plan is None or not fix.edited:
            row.why_not = f"{fix.state}: {fix.headline}"
            return None
        api.save_fix(fix, made)
    except WheeltapperError as error:
        row.why_not = f"{type(error).__name__}: {error.what}"
        return None
    row.edits += [f"{edit.knob} {edit.old} -> {edit.new}" for edit in fix.plan.edits]
    again = Truth(**{**asdict_of(here), "run": f"{here.run}x", "kind": "rerun"})
    target = out / "runs" / again.run
    shutil.rmtree(target, ignore_errors=True)
    result = rerun(folder, [made / name for name in fix.plan.configs], target)
    again.ended, again.score, again.reported = result.ended, result.score, result.reported
    save(out, again)
    followed = api.followup(target, made, record=True)
    treated = {issue.cause for issue in fix.plan.issues if issue.how in ("apply", "try")}
    found = [issue.status for issue in followed.issues if issue.cause in treated]
    row.statuses.append(found[0] if found else "none")
    row.verdict = followed.verdict
    return again


def asdict_of(truth: Truth) -> dict[str, object]:
    return {name: getattr(truth, name) for name in truth.__struct_fields__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default="out/mend", help="folder for runs and fixes")
    parser.add_argument("--only", nargs="+", metavar="SYSTEM/FAULT", help="only these")
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="also what is done already")
    args = parser.parse_args()
    out = Path(args.output)
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "mended.json"
    done: dict[str, Mended] = {}
    if kept.exists() and not args.again:
        done = {row["fault"]: Mended(**row) for row in json.loads(kept.read_text())}
    faults = {f"{name}/{fault.id}": (name, fault) for name in NAMES for fault in faults_of(name) if by_settings(fault)}
    for told in args.only or faults:
        name, fault = faults[told]
        slot = told if args.seed == 1 else f"{told}#{args.seed}"
        if slot not in done:
            done[slot] = replace(mend(name, fault, args.seed, out, args.attempts), fault=slot)
            kept.write_text(json.dumps([asdict(row) for row in done.values()], indent=1))
        print(line(done[slot]), flush=True)
    summary = Counter(kind(row) for row in done.values())
    print(f"\n{len(done)} faults: " + ", ".join(f"{count} {what}" for what, count in summary.most_common()))


def kind(row: Mended) -> str:
    if row.fixed:
        return "FIXED and as good as the twin" if row.good else "FIXED, not as good as the twin"
    if not row.edits:
        return "no fix written"
    return "not said to be FIXED, as good as the twin" if row.good else "not fixed"


def line(row: Mended) -> str:
    scores = " -> ".join("-" if one is None else f"{one:.3g}" for one in (row.before, row.after))
    twin = "-" if row.twin is None else f"{row.twin:.3g}"
    told = " ".join(row.statuses) or f"NO FIX ({row.why_not})"
    left = f"; then {row.why_not}" if row.statuses and row.why_not else ""
    mark = "ok " if row.fixed and row.good else "   "
    return f"{mark}{row.fault:38} first: {row.named:26} {scores} (twin {twin}) {told}{left}; {'; '.join(row.edits)}"


if __name__ == "__main__":
    main()
