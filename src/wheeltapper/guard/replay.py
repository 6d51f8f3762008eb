"""Read an incident that the recorder wrote, and write a script that runs its step again in float32.

Reading needs no torch: only incident.json and the .npz are opened. A folder may come from elsewhere, so all of it is
treated as data that may be wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheeltapper.errors import Damaged, NothingToRead

LIMIT = 64 * 2**20  # bytes of incident.json: the recorder's own are below one megabyte
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Replay:
    """An incident folder, read."""

    folder: Path
    incident: Mapping[str, Any]
    also: tuple[Mapping[str, Any], ...]  # what else was caught at the same step
    steps: tuple[Mapping[str, Any], ...]
    tensors: tuple[str, ...]
    where: Mapping[str, Any]
    model: Mapping[str, Any]
    notes: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def step(self) -> int:
        return _whole(self.incident.get("step"))

    @property
    def tick(self) -> int:
        return _whole(self.incident.get("tick"))


def read_incident(path: str | Path) -> Replay:
    """The incident in a folder (or named by its incident.json, or the newest in a run folder)."""
    folder = find(Path(path))
    page = folder / "incident.json"
    try:
        if page.stat().st_size > LIMIT:
            raise Damaged(f"is larger than {LIMIT // 2**20} MiB.", where=str(page))
        text = page.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NothingToRead(f"{page}: {error.strerror or error}") from error
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(
            "is not JSON; the folder was not written by the recorder, or was cut.", where=str(page)
        ) from error
    value = _numbers(value)
    if not isinstance(value, dict) or not isinstance(value.get("incident"), dict):
        raise Damaged("does not describe an incident.", where=str(page))
    steps = value.get("steps")
    return Replay(
        folder,
        value["incident"],
        tuple(a for a in value.get("also") or () if isinstance(a, dict)),
        tuple(s for s in steps if isinstance(s, dict)) if isinstance(steps, list) else (),
        tuple(str(t) for t in value.get("tensors") or () if isinstance(t, str)),
        _mapping(value.get("where")),
        _mapping(value.get("model")),
        tuple(str(n) for n in value.get("notes") or ()),
        tuple(sorted(p.name for p in folder.iterdir() if p.is_file())),
    )


def find(path: Path) -> Path:
    if path.name == "incident.json" and path.is_file():
        return path.parent
    if (path / "incident.json").is_file():
        return path
    found = incidents(path)
    if not found:
        raise NothingToRead(
            f"{path} holds no incident.",
            do="Name a folder incident-<step> that the guard's recorder wrote, or the run folder that holds it.",
        )
    return found[-1]


def incidents(run: Path) -> list[Path]:
    """The folders of incidents in a run's folder, oldest first."""
    return [p.parent for p in sorted(run.glob("incident-*/incident.json"), key=lambda p: p.stat().st_mtime)]


def _numbers(value: Any) -> Any:
    if isinstance(value, str):
        return NUMBERS.get(value, value)
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    return [_numbers(v) for v in value] if isinstance(value, list) else value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


SCRIPT = '''\
"""Runs step {step} again in float32 and says where it first goes wrong.

Written by `wheeltapper replay` for {folder}
({text})

Fill in what is marked FILL IN; everything else is read from the incident.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

INCIDENT = Path({path!r})
TICK = {tick}  # the guard's count of the step to run again
BATCH_IDS: Any = {batch_id!r}  # as the loop named them
RECORDED_LOSS, RECORDED_NORM = {loss}, {norm}
SUSPECTS: list[str] = {suspects!r}  # parameters that the incident names


def build_model() -> torch.nn.Module:
    """FILL IN: build the model ({model_class}, {parameters:,} parameters) and load the weights from before step {step}."""
    raise SystemExit("fill in build_model(): the model with its weights from before step {step}")


def get_batch() -> Any:
    """The batch of the step."""
{get_batch}

def compute_loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    """FILL IN: the loss, as the training computes it."""
    raise SystemExit("fill in compute_loss(model, batch)")


def restore_random() -> str:
    """Set the generators to where they stood before the step."""
    import random

    saved = torch.load(INCIDENT / "random.pt", weights_only=True)
    if TICK not in saved["ticks"]:
        return f"random states are kept for steps {{saved['ticks']}} only; this run draws others"
    state = saved["states"][saved["ticks"].index(TICK)]
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        import numpy as np

        name, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((name, np.asarray(keys, dtype=np.uint32), position, has_gauss, cached))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])
    return "random states restored"


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for item in items for t in tensors_in(item)]


def to(value: Any, device: torch.device) -> Any:
    """The batch on the device, its floating-point tensors in float32."""
    if isinstance(value, torch.Tensor):
        return value.to(device, torch.float32) if value.is_floating_point() else value.to(device)
    if isinstance(value, dict):
        return {{k: to(v, device) for k, v in value.items()}}
    return type(value)(to(v, device) for v in value) if isinstance(value, (list, tuple)) else value


def main() -> int:
    model = build_model().float().train()
    device = next(model.parameters()).device
    batch = to(get_batch(), device)
    print(restore_random())
    if not all(torch.isfinite(t).all() for t in tensors_in(batch) if t.is_floating_point()):
        print("the batch itself holds numbers that are not finite")
    bad = [n for n, p in model.named_parameters() if not torch.isfinite(p).all()]
    if bad:
        print(f"the weights are not finite before the step, first in {{bad[0]}}: load older ones")
        return 1
    seen: list[tuple[str, float, bool]] = []

    def look(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            for t in tensors_in(output):
                if t.is_floating_point() and t.numel():
                    good = bool(torch.isfinite(t).all())
                    seen.append((name, float(t.detach().abs().max()), good))

        return hook

    hooks = [m.register_forward_hook(look(n)) for n, m in model.named_modules() if not list(m.children())]
    with torch.autograd.set_detect_anomaly(False):
        loss = compute_loss(model, batch)
        for h in hooks:
            h.remove()
        loss.backward()
    print(f"loss in float32: {{float(loss.detach()):.6g}} (recorded: {{RECORDED_LOSS}})")
    first = next((name for name, _, good in seen if not good), None)
    if first:
        print(f"the forward pass is not finite from {{first}} on")
    for name, size, _ in sorted(seen, key=lambda item: -item[1])[:3]:
        print(f"  largest activation: {{name}} {{size:.4g}}{{' (over the fp16 limit of 65504)' if size > 65504 else ''}}")
    grads = {{n: p.grad for n, p in model.named_parameters() if p.grad is not None}}
    norms = {{n: float(g.norm()) for n, g in grads.items()}}
    total = sum(v * v for v in norms.values()) ** 0.5
    print(f"gradient norm in float32: {{total:.6g}} (recorded: {{RECORDED_NORM}})")
    broken = [n for n, v in norms.items() if v != v or v in (float("inf"),)]
    if broken:
        print(f"gradients are not finite in {{len(broken)}} of {{len(norms)}} parameters, e.g. {{', '.join(broken[-3:])}}")
    for name in [n for n in SUSPECTS if n in norms] or sorted(norms, key=lambda n: -norms[n])[:5]:
        print(f"  {{name}}: gradient norm {{norms[name]:.4g}}, weight norm {{float(model.get_parameter(name).detach().norm()):.4g}}")
    finite = not first and not broken and total == total
    if finite and not (float("-inf") < RECORDED_LOSS < float("inf") and RECORDED_NORM < float("inf")):
        print("finite in float32, and not as it ran: the precision of the training is the cause")
    elif not finite:
        print("not finite in float32 either: the batch, the weights or the loss is the cause, not the precision")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
SAVED = """\
    saved = dict(torch.load(INCIDENT / "batch.pt", weights_only=True)["batches"])
    if TICK not in saved:
        raise SystemExit(f"batches are kept for steps {list(saved)} only; fill in get_batch()")
    return saved[TICK]

"""
ASKED = """\
    # FILL IN: the batch of this step; BATCH_IDS says which samples it held, if the loop named them.
    raise SystemExit(f"fill in get_batch(): the batch {BATCH_IDS!r}")

"""


def script_of(replay: Replay) -> str:
    """The text of a script that runs the step of the incident again.

    The step is the one where it began, where the incident knows that; its onset may lie before the step it was
    caught at."""
    wanted = replay.incident.get("onset")
    first = _whole(wanted) if isinstance(wanted, int | float) else replay.step
    row = next((s for s in reversed(replay.steps) if s.get("step") == first), None)
    row = row or (replay.steps[-1] if replay.steps else {})
    return SCRIPT.format(
        step=_whole(row.get("step", replay.step)),
        folder=_safe(replay.folder.name),
        text=_safe(str(replay.incident.get("text", ""))),
        path=str(replay.folder.resolve()),
        tick=_whole(row.get("tick", replay.tick)),
        batch_id=_literal(row.get("batch_id")),
        loss=_float(row.get("loss")),
        norm=_float(row.get("grad_norm")),
        suspects=list(replay.tensors),
        model_class=_safe(str(replay.model.get("class", "unknown"))),
        parameters=_whole(replay.model.get("parameters")),
        get_batch=SAVED if "batch.pt" in replay.files else ASKED,
    )


def _safe(text: str) -> str:
    """Text from a folder, inside a docstring: one line, no quotes or backslashes that could end it."""
    line = "".join(c for c in text if c.isprintable())[:200]
    return line.replace("\\", "/").replace('"', "'")


def _literal(value: Any) -> Any:
    """Only what has a literal: numbers, strings, lists and dicts of them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_literal(v) for v in value[:10_000]]
    if isinstance(value, dict):
        return {str(k): _literal(v) for k, v in value.items()}
    return value


def _float(value: Any) -> str:
    """A float as an expression.

    >>> _float(1.5), _float(math.nan), _float("x")
    ('1.5', 'float("nan")', 'float("nan")')
    """
    number = float(value) if isinstance(value, int | float) else math.nan
    return repr(number) if math.isfinite(number) else f'float("{number}")'
