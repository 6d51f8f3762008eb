"""Lengths of time, sizes and names of folders, as they are written on a command line."""

from __future__ import annotations

import argparse
import re

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"


def seconds(text: str) -> float:
    """A length of time; a bare number is seconds.

    >>> seconds("30m"), seconds("1h 30min"), seconds("45"), seconds("1.5h")
    (1800.0, 5400.0, 45.0, 5400.0)
    """
    written = re.sub(r"\s", "", text)
    # Only the last number may go without its unit: "1.2.3" is no sum of 1.2 and .3 seconds.
    if not written or not re.fullmatch(rf"(?:(?:{_NUMBER})(?:min|[smhd]))*(?:{_NUMBER})?", written):
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time; write it as 90s, 30m, 2h or 1h30m")
    parts = re.findall(rf"({_NUMBER})(min|[smhd]|)", written)
    return sum(float(number) * SECONDS[unit] for number, unit in parts)


def size(text: str) -> int:
    """
    >>> size("4G"), size("512M"), size("1.5 GiB")
    (4294967296, 536870912, 1610612736)
    """
    match = re.fullmatch(rf"({_NUMBER})\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it as 512M or 4G")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def folder_name(name: str) -> str:
    """A run's name as the name of a folder.

    >>> folder_name("a b/c"), folder_name("..")
    ('a_b_c', 'run')
    """
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".")
    return kept[:80] or "run"
