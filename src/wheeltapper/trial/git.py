"""git, asked about the checkout that the user runs a trial in."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wheeltapper.errors import InputError


def git(cwd: Path, *args: str) -> str:
    """What git prints; its own words where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(cwd), *args], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"git cannot be run: {error}") from None
    if done.returncode:
        raise InputError(f"git {args[0]}: {done.stderr.strip()[:300]}", do="Run it in a git checkout, or give --cwd.")
    return done.stdout


def commit_of(folder: Path) -> str | None:
    """The commit that a folder stands at, or None outside a checkout."""
    try:
        return git(folder, "rev-parse", "HEAD").strip() or None
    except InputError:
        return None
