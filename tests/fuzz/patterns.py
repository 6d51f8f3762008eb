"""Every compiled pattern of the package that looks over several lines, on texts of one piece repeated: none may take long.

A pattern for one line is given lines of bounded length; one with re.M or re.S is given the head of a file, 64 KB.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Iterator, Sequence

import wheeltapper

SIZE = 65_536
PIECES = [
    "a", "1", " ", "-", ":", "=", "\n", "a\n", "1\n", " \n", "-\n", ":\n", "|\n", "#\n", "\\\n", "[\n", ".\n", "a a", "1 ", "a:", "a: 1\n", "a=1\n", "1.", ", ", "[", "(",
    "{", '"', "'", "a=1 ", "1/1 ", "00:00 ", "\t", "1e", "epoch 1 ", "epoch", "Epoch 1\n", "loss: ", "step 1 ", "step 1\n", "%|", "#", "..", "a/", "_", "A", "1,", "a,b\n",
    "--a ", "it/s", "| a ", "=1", "- ", "INFO ", "[a] ", "train ", "Iter ", "    ", "\r\n", "* ", "Step 1: a ", "a b = ", "1: ",
]  # fmt: skip


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for info in pkgutil.walk_packages(wheeltapper.__path__, "wheeltapper."):
        if any(part in info.name for part in (".lab", ".guard", "__main__", ".dashboard", ".mcp.server", ".web", ".fleet.on_ray", ".places", ".notebook")):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            several = value if isinstance(value, tuple | list) else value.values() if isinstance(value, dict) else [value]
            for one in several:
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str) and one.flags & (re.M | re.S):
                    yield f"{info.name}.{name}", one


def slow(
    pattern: re.Pattern[str], limit: float, size: int = SIZE, pieces: Sequence[str] = PIECES
) -> Iterator[tuple[str, float]]:
    for piece in pieces:
        text = (piece * (size // len(piece) + 1))[:size]
        begun = time.process_time()
        # In quarters, so that what is far too slow is found out early.
        for part in (size // 16, size // 4, size):
            for _ in itertools.islice(pattern.finditer(text[:part]), 3000):
                pass
            if time.process_time() - begun > limit:
                yield piece, time.process_time() - begun
                break


if __name__ == "__main__":
    for name, pattern in patterns():
        found = list(slow(pattern, 0.5))
        if found:
            print(name, found[:4], pattern.pattern[:150].replace("\n", " "))
