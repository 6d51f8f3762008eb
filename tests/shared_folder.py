"""Where the labelled records lie: the folder `shared` beside the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def shared_runs_dir() -> Path | None:
    folder = ROOT.parent / "shared" / "runs"
    return folder if (folder / "MANIFEST.csv").is_file() else None
