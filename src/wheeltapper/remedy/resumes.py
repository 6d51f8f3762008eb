"""Would resuming work, and would it undo the edit?

A checkpoint brings back more than weights. PyTorch's `Optimizer.load_state_dict` replaces the parameter groups,
and with them lr, betas, eps and weight decay; a scheduler's puts back every number it was laid out with (SCH-12,
measured: lr 1e-5 became 1e-3, T_max 1000 became 10). So an edit that is right for a new run may do nothing here.
"""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wheeltapper.finding import Edit
from wheeltapper.program.reading import Code, read_code
from wheeltapper.remedy.loads import Check
from wheeltapper.run.model import Checkpoint, Run
from wheeltapper.settings.knobs import Knobs, read_knobs

# Which saved state brings back the old value of a knob.
RESTORED = (
    ("optimizer.lr*", ("optimizer",)),
    ("optimizer.name", ()),
    ("optimizer.*", ("optimizer",)),
    ("schedule.restart", ()),
    ("schedule.interval", ()),
    ("schedule.*", ("scheduler",)),
    ("amp.init_scale", ("scaler",)),
    ("amp.growth_interval", ("scaler",)),
)
# Frameworks that compute the rate anew at every step from the settings, whatever the checkpoint held.
RATE_FROM_SETTINGS = {"nanogpt", "sedd"}
# ultralytics reads all settings from the checkpoint; of the new ones only these count (engine/trainer.py).
ULTRALYTICS_KEEPS = ("model.image_size", "batch.per_device", "batch.global", "data.workers", "run.early_stop")


def resume_test(run: Run, checkpoint: str, edits: Sequence[Edit]) -> tuple[Check, ...]:
    """Is it there, does it hold what resuming needs, and does each edit take effect?"""
    found = next((one for one in run.checkpoints if one.path == checkpoint or Path(one.path).name == checkpoint), None)
    on_disk = (
        Path(checkpoint).exists() or (Path(run.root) / checkpoint).exists() or (found is not None and found.exists)
    )
    if not on_disk:
        said = "only the log names it" if found is not None else "no such file"
        return (Check("the checkpoint exists", False, f"{checkpoint}: {said}"),)
    out = [Check("the checkpoint exists", True, checkpoint)]
    if found is None:
        out.append(Check("it holds what resuming needs", None, "its content was not read"))
        return (*out, *(Check(f"{edit.knob} takes effect", None, "the content is not known") for edit in edits))
    knobs = read_knobs(run.configs, run_formats=run.formats)
    out.append(_holds(_with_weights(found, run, knobs), knobs))
    code = _program(run)
    return (*out, *(takes_effect(edit, found, knobs, code) for edit in edits))


def _with_weights(found: Checkpoint, run: Run, knobs: Knobs) -> Checkpoint:
    """BasicSR and its kin keep the weights of a state file in files of their own, of the same step."""
    if knobs.dialect.NAME not in ("basicsr", "trainner", "neosr") or "raw" in found.kinds or found.step is None:
        return found
    beside = [c for c in run.checkpoints if c.exists and c.step == found.step and {"raw", "ema"} & set(c.kinds)]
    held = dict.fromkeys(kind for c in (*beside, found) for kind in c.kinds)
    return replace(found, kinds=tuple(held))


def _holds(found: Checkpoint, knobs: Knobs) -> Check:
    name = "it holds what resuming needs"
    if not found.kinds:
        return Check(name, None, found.note or "what it holds could not be read")
    if not {"raw", "ema"} & set(found.kinds):
        return Check(name, False, f"no weights: it holds {', '.join(found.kinds)}")
    lacks = [kind for kind in ("optimizer", "scheduler") if kind not in found.kinds]
    if knobs.value("precision") == "fp16" and "scaler" not in found.kinds:
        lacks.append("scaler")
    if "optimizer" in lacks:
        return Check(name, False, f"no optimizer state: the moments start at zero (it holds {', '.join(found.kinds)})")
    held = f"it holds {', '.join(found.kinds)}"
    return Check(name, True, f"{held}; without {', '.join(lacks)}" if lacks else held)


def takes_effect(edit: Edit, found: Checkpoint, knobs: Knobs, code: Code | None = None) -> Check:
    """Whether the new value is the one in force after resuming from this checkpoint."""
    name, dialect = f"{edit.knob} takes effect", knobs.dialect.NAME
    special = _by_framework(edit, dialect, knobs)
    if special is not None:
        return Check(name, *special)
    states = next((kinds for pattern, kinds in RESTORED if fnmatch.fnmatch(edit.knob, pattern)), ())
    rate = edit.knob.startswith("optimizer.lr") or edit.knob in ("schedule.warmup", "schedule.min_lr", "schedule.total")
    if rate and code is not None and _sets_rate(code):
        return Check(name, True, "the script computes the rate at every step from the settings")
    held = [kind for kind in states if kind in found.kinds]
    if edit.knob.startswith("optimizer.lr") and "scheduler" in found.kinds and "scheduler" not in held:
        held.append("scheduler")  # its base_lrs are saved, too
    if not held:
        if found.kinds or not states:
            return Check(name, True, "nothing in the checkpoint brings the old value back")
        return Check(name, None, "what the checkpoint holds is not known")
    if code is not None and not any(_loads(code, kind) for kind in held):
        return Check(name, True, f"the script does not load the saved {' and '.join(held)} state")
    text = f"the saved {' and '.join(held)} state brings back the old value"
    do = "load the weights only, or set the value again after loading"
    return Check(name, False, f"{text}: {do}")


def _by_framework(edit: Edit, dialect: str, knobs: Knobs) -> tuple[bool, str] | None:
    rate = edit.knob.startswith(("optimizer.lr", "schedule."))
    if dialect in RATE_FROM_SETTINGS and rate:
        return True, f"{knobs.dialect.TITLE} computes the rate at every step from the settings"
    if dialect == "ultralytics" and edit.knob not in ULTRALYTICS_KEEPS:
        return False, "on resume ultralytics takes its settings from the checkpoint; start from weights without resume"
    if dialect == "trainner" and edit.knob.startswith("schedule.") and edit.knob != "schedule.restart":
        if knobs.value("schedule.restart") is True:
            return None
        return False, "traiNNer restores the saved schedule unless train.restart_scheduler is true"
    if dialect == "megatron" and rate:
        return False, "Megatron stops when the checkpoint disagrees, unless --override-opt_param-scheduler is given"
    if dialect == "hf" and edit.knob in ("schedule.warmup", "run.total_steps", "run.epochs", "schedule.name"):
        return True, "the shape of the schedule is built from the new arguments; only its base rate is restored"
    return None


def _program(run: Run) -> Code | None:
    scripts = [path for path in run.scripts if path.endswith((".py", ".sh"))]
    codes, _ = read_code(scripts, run.configs) if scripts else ([], ())
    return codes[0] if len(codes) == 1 else None


def _sets_rate(code: Code) -> bool:
    """`group["lr"] = ...` somewhere: the rate is written by the script itself."""
    for node in code.program.live_nodes():
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == "lr"
            ):
                return True
    return False


def _loads(code: Code, kind: str) -> bool:
    """Whether the script gives a saved state of this kind back: `optimizer.load_state_dict(...)`."""
    stem = {"optimizer": "opt", "scheduler": "sched", "scaler": "scaler"}[kind]
    calls = code.program.calls.get("load_state_dict", [])
    return any(stem in ast.unparse(call.func).lower() for call in calls)
