"""Runs of an MLflow tracking server, by its REST interface, written as the file store that MLflow itself keeps on disk.

A run that has ended and is known is not fetched again. Nothing is changed on the server.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from wheeltapper.errors import InputError
from wheeltapper.places.cache import folder_for, write_whole

PATIENCE = 30.0  # seconds for one answer
MOST_RUNS = 20_000
MOST_ANSWER = 256 << 20  # bytes
PAGE = 1000
_SAFE = re.compile(r"[^\w. /-]")


def brought_runs(address: str) -> Path:
    """The folder with all runs of a server; `http://host:5000/#/experiments/3` or `?experiment=name` narrows it to one."""
    base, wanted = _parts(address)
    target = folder_for(address) / "mlruns"
    experiments = _pages(base, "experiments/search", "experiments", {"max_results": PAGE})
    chosen = [e for e in experiments if wanted in (None, str(e.get("experiment_id")), e.get("name"))]
    if not chosen:
        known = ", ".join(str(e.get("name")) for e in experiments[:10])
        raise InputError(f"{base} has no experiment {wanted!r}.", do=f"It has: {known}.")
    ids = [str(e["experiment_id"]) for e in chosen]
    for run in _pages(base, "runs/search", "runs", {"experiment_ids": ids, "max_results": PAGE}, MOST_RUNS):
        _keep(base, run, target)
    if not target.is_dir():
        raise InputError(f"{base} holds no run.", do="Name another experiment.")
    return target


def _parts(address: str) -> tuple[str, str | None]:
    found = re.match(r"^(https?://[^#?]+?)/?(?:#/experiments/(\d+).*|\?experiment=([^&]+))?$", address)
    if found is None:
        raise InputError(f"{address} is no address of an MLflow server.", do="As in mlflow:http://localhost:5000?experiment=name.")
    return found[1], found[2] or found[3]


def _keep(base: str, run: dict[str, Any], target: Path) -> None:
    info, data = run.get("info", {}), run.get("data", {})
    ident, experiment = str(info.get("run_id", "")), str(info.get("experiment_id", ""))
    if not re.fullmatch(r"[0-9a-f]{32}", ident) or not experiment.isalnum():
        return
    folder = target / experiment / ident
    ended = folder / ".ended"
    stamp = f"{info.get('status')} {info.get('end_time')}"
    if ended.is_file() and ended.read_text(encoding="utf-8") == stamp:
        return
    for kind in ("params", "tags"):
        for pair in data.get(kind, []):
            _write(folder / kind, str(pair.get("key")), str(pair.get("value", "")))
    for metric in data.get("metrics", []):
        key = str(metric.get("key"))
        rows = _history(base, ident, key)
        lines = (f"{p.get('timestamp', 0)} {p.get('value')} {p.get('step', 0)}" for p in rows)
        _write(folder / "metrics", key, "\n".join(lines) + "\n")
    if info.get("end_time"):
        write_whole(ended, stamp.encode())


def _write(folder: Path, key: str, text: str) -> None:
    """A name that would lead out of its folder is made harmless."""
    name = "/".join(part for part in _SAFE.sub("_", key).split("/") if part not in ("", ".", ".."))
    if name and len(name) < 200:
        write_whole(folder / name, text.encode(errors="replace"))


def _history(base: str, run: str, key: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    token = ""
    while True:
        query = {"run_id": run, "metric_key": key, "max_results": 25_000, **({"page_token": token} if token else {})}
        answer = _asked(f"{base}/api/2.0/mlflow/metrics/get-history?{urlencode(query, quote_via=quote)}")
        out += answer.get("metrics", [])
        token = str(answer.get("next_page_token") or "")
        if not token:
            return out


def _pages(base: str, path: str, key: str, body: dict[str, Any], most: int = 10_000) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = _asked(f"{base}/api/2.0/mlflow/{path}", {**body, **({"page_token": token} if token else {})})
        out += answer.get(key, [])
        token = str(answer.get("next_page_token") or "")
        if not token or len(out) >= most:
            return out[:most]


def _asked(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            found = json.loads(answer.read(MOST_ANSWER))
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        why = getattr(error, "reason", None) or error
        raise InputError(f"the MLflow server does not answer at {url.partition('/api/')[0]}: {why}", do="Is it running, and is that its address?") from None
    except ValueError:
        raise InputError(f"{url.partition('/api/')[0]} answers, but not as an MLflow server does.", do="Look at the address.") from None
    return found if isinstance(found, dict) else {}
