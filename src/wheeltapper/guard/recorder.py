"""The last steps at full detail, kept in memory and written when something goes wrong.

    incident-1200/
      incident.json   what was caught, the steps before it, the names of the tensors involved, where it ran
      random.pt       the state of every random generator before each of the last steps
      tensors.npz     per-parameter numbers of the last looks
      batch.pt        the last batches, if they were handed to `keep`

A folder is written under another name and renamed, so that it is whole or absent. The number of folders and the size
of each are bounded. The .pt files hold tensors and plain values only: torch.load(weights_only=True) reads them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import platform
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard import rng
from wheeltapper.guard.disk import HOST
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord

log = logging.getLogger("wheeltapper.guard")

FORMAT = 1
FOLDERS = 20  # at most, for one launch: a fault that repeats is told by its first incidents
BATCH_BYTES = 64 * 2**20  # larger batches are left out, with a word
NAMED = 50  # tensors named in incident.json; tensors.npz has all


class Recorder:
    """A ring of the last steps, attached to a guard.

    run_dir: where folders go; None keeps everything in memory. keep: steps in the ring. batches: how many of those
    given to `keep` are held (by reference: a batch that the loop changes in place is recorded as changed). draws: steps
    whose random states are kept; 0 for none.
    """

    def __init__(
        self, guard: Any, run_dir: str | Path | None = None, *, keep: int = 64, batches: int = 2, draws: int = 16
    ) -> None:
        self.guard = guard
        self.run_dir = Path(run_dir) if run_dir is not None else guard.run_dir
        self.steps: deque[StepRecord] = deque(maxlen=keep)
        self.tensors: deque[TensorRecord] = deque(maxlen=8)
        self.batches: deque[tuple[int, Any]] = deque(maxlen=max(1, batches))
        self.written: list[Path] = []
        self._draws: deque[tuple[int, tuple[Any, ...]]] = deque(maxlen=max(0, draws))
        self._failed = False
        self.boundary(guard.tick)
        guard.listen(step=self.steps.append, tensors=self.tensors.append, incident=self.caught, boundary=self.boundary)

    def keep(self, batch: Any) -> Any:
        """Hold on to the batch of the step that begins; returns it, so that it can stand in a loop."""
        self.guard.prompt = True  # an incident must be told before its batch has gone
        self.batches.append((self.guard.tick, batch))
        return batch

    def boundary(self, tick: int) -> None:
        """Note the generators as they are before step `tick`: 0.07 ms, most of it numpy's; made plain when written."""
        if not self._draws.maxlen:
            return
        if torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            return  # a graph capture forbids reading the generator
        self._draws.append((tick, rng.raw()))

    def caught(self, incident: Incident) -> None:
        """Write a folder for an incident; notes are not worth one."""
        if incident.severity != "note":
            self.write(incident)

    def write(self, incident: Incident) -> Path | None:
        """The folder written, or None where it could not be (no run_dir, too many, a full disk). What else is caught
        at the same step is added to its folder."""
        if self.run_dir is None:
            return None
        name = f"incident-{incident.step}{f'-rank{incident.rank}' if incident.rank else ''}"
        try:
            for place in self.written:
                if place.name.split(".")[0] == name:
                    self._add(place, incident)
                    return place
            if len(self.written) >= FOLDERS:
                return None
            place = self._free(name)
            half = place.with_name(f".{place.name}.{HOST}-{os.getpid()}")
            try:
                half.mkdir(parents=True)
                notes = self._fill(half, incident)
                _write_json(half / "incident.json", self._page(incident, notes))
                half.rename(place)
            except BaseException:
                shutil.rmtree(half, ignore_errors=True)
                raise
        except Exception as error:  # a full disk, in torch's words too; a page that somebody damaged: training goes on
            if not self._failed:
                log.warning("the incident of step %d could not be written: %s", incident.step, error)
            self._failed = True
            return None
        self._failed = False  # the next failure is told again
        self.written.append(place)
        return place

    def _free(self, name: str) -> Path:
        """A folder of an earlier launch is left as it is."""
        assert self.run_dir is not None
        place, n = self.run_dir / name, 1
        while place.exists():
            n += 1
            place = self.run_dir / f"{name}.{n}"
        return place

    def _add(self, place: Path, incident: Incident) -> None:
        page = json.loads((place / "incident.json").read_text(encoding="utf-8"))
        page.setdefault("also", []).append(jsonable(incident.as_dict()))
        page["tensors"] = list(dict.fromkeys([*page["tensors"], *self.suspects(incident)]))[:NAMED]
        half = place / f".incident.{os.getpid()}"
        _write_json(half, page)
        half.replace(place / "incident.json")

    def _fill(self, folder: Path, incident: Incident) -> list[str]:
        """The binary files; returns what was left out and why."""
        notes: list[str] = []
        last = {tick: rng.plain(*states) for tick, states in self._draws if tick <= incident.tick}
        _save({"ticks": list(last), "states": list(last.values())}, folder / "random.pt")
        if self.tensors:
            import numpy as np

            columns: dict[str, Any] = {"names": np.asarray(self.guard.names, dtype=np.str_)}
            columns |= {
                key: np.stack([getattr(t, key) for t in self.tensors])
                for key in ("weight_rms", "grad_rms", "update_rms", "moved", "lag")
            }
            columns["step"] = np.asarray([t.step for t in self.tensors])
            np.savez(folder / "tensors.npz", allow_pickle=False, **columns)
        held = [(tick, batch) for tick, batch in self.batches if tick <= incident.tick]
        if held:
            plain, size = [], 0
            for tick, batch in held:
                value, left_out = _plain(batch)
                size += sum(t.numel() * t.element_size() for t in _tensors(value))
                notes += [f"batch of tick {tick}: {what} left out" for what in left_out]
                plain.append([tick, value])
            if size <= BATCH_BYTES:
                _save({"batches": plain}, folder / "batch.pt")
            else:
                notes.append(f"the batches are {size / 2**20:.0f} MiB and were left out")
        return notes

    def _page(self, incident: Incident, notes: list[str]) -> dict[str, Any]:
        from wheeltapper import __version__

        guard = self.guard
        return {
            "format": FORMAT,
            "wheeltapper": __version__,
            "incident": incident.as_dict(),
            "tensors": self.suspects(incident),
            "steps": [s.as_dict() for s in self.steps],
            "where": {
                "program": sys.argv[0] if sys.argv else "",
                "python": platform.python_version(),
                "torch": torch.__version__,
                "device": _device(guard.model),
                "rank": guard.rank,
                "policy": guard.policy,
                "written": time.time(),
            },
            "model": {
                "class": _class(guard.model),
                "parameters": sum(p.numel() for p in guard.model.parameters()),
                "dtypes": sorted({str(p.dtype).removeprefix("torch.") for p in guard.model.parameters()}),
                "optimizer": _class(guard.optimizer),
                "autocast": str(torch.get_autocast_gpu_dtype()).removeprefix("torch.")
                if torch.is_autocast_enabled()
                else None,
                "deterministic": torch.are_deterministic_algorithms_enabled(),
            },
            "notes": notes,
        }

    def suspects(self, incident: Incident) -> list[str]:
        """The parameters worth looking at: those the incident names, the first that was not finite, the ones whose
        second moment lags most."""
        out: list[str] = []
        named = incident.facts.get("tensors") or incident.facts.get("names") or ()
        out += [str(n) for n in ([named] if isinstance(named, str) else named)]
        out += [self.guard.names[s.worst] for s in self.steps if 0 <= s.worst < len(self.guard.names)]
        if self.tensors:
            lag = self.tensors[-1].lag
            order = sorted((i for i in range(len(lag)) if math.isfinite(lag[i])), key=lambda i: -lag[i])
            out += [self.guard.names[i] for i in order[:5] if lag[i] > 2]
        return list(dict.fromkeys(out))[:NAMED]


def _write_json(path: Path, value: Any) -> None:
    """JSON that any reader takes: NaN and infinities as the strings "NaN", "Infinity", "-Infinity"."""
    text = json.dumps(jsonable(value), indent=1, allow_nan=False)
    with path.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def jsonable(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(v) for v in value]
    if isinstance(value, torch.Tensor):
        return (
            jsonable(value.tolist()) if value.numel() <= 64 and value.device.type == "cpu" else str(tuple(value.shape))
        )
    if hasattr(value, "tolist"):  # numpy
        return jsonable(value.tolist())
    return str(value)[:200]


def _save(value: Any, path: Path) -> None:
    with path.open("wb") as file:
        torch.save(value, file)
        file.flush()
        os.fsync(file.fileno())


def _plain(value: Any) -> tuple[Any, list[str]]:
    """A batch with everything but tensors, containers and plain values taken out, so that it loads safely."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu(), []
    if value is None or isinstance(value, bool | int | float | str):
        return value, []
    left_out: list[str] = []
    if isinstance(value, Mapping):
        items = {}
        for key, item in value.items():
            items[str(key)], more = _plain(item)
            left_out += more
        return items, left_out
    if isinstance(value, list | tuple):
        row = []
        for item in value:
            one, more = _plain(item)
            row.append(one)
            left_out += more
        return row, left_out
    return None, [f"a {type(value).__name__}"]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [t for item in inner for t in _tensors(item)]


def _class(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _device(model: Any) -> str:
    first = next(iter(model.parameters()), None)
    if first is None:
        return "none"
    with contextlib.suppress(Exception):
        if first.device.type == "cuda":
            return f"{first.device} {torch.cuda.get_device_name(first.device)}"
    return str(first.device)
