"""Does the time a text takes grow faster than its length? Pieces are repeated, and twice four times as long is compared.

    python tests/fuzz/scaling.py [--seconds 60] [--seed 0]

Prints a JSON line for each reader or parser that takes more than `SLOW` for the long text and more than `RATIO` times as
long as for the short one (linear is 4, quadratic 16).
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SHORT, LONG = 25_000, 100_000  # bytes
SLOW, RATIO, MOST = 0.8, 9.0, 6.0
PIECES = [
    "a", "1", " ", "-", ":", "=", "a:", "1.", ", ", "[", "]", "(", ")", "{", "}", '"', "'", "\\", "a=1 ", "1/1 ", "00:00 ", "\t", "e", "1e", "E-", "epoch 1 ",
    "loss: ", "loss 1 ", "%|", "|", "#", "##", "..", "/", "a/", "_", "a_", "A", "é", "0", "0.0", "1,", "1;", "a b", "--a ", "-a", "a.", "a-", "it/s", "s/it", "[1", "(a",
    "=1", "key=", "x x", "&", "*", "<", ">", "~", "$", "${", "$(", "`", "\x1b[", "\x1b[0m", "Epoch", "Iter", "lr", "nan", "1/", "/1", ": 1", "a: 1, ", "'a': ", "NaN,", "@", "!",
    "\\\n", "\r", "- ", "? ", "a,b;", "1 2 ", "1-1-1 ", "12:", "INFO ", "[a] ", "train ", "val ", "step ",
]  # fmt: skip
NAMES = ("train.log", "log.txt", "metrics.csv", "stats.jsonl", "trainer_state.json", "args.yaml", "run.sh", "config.py", "opt.toml")


class TooSlowError(BaseException):
    """Not an Exception, so that nothing swallows it."""


def ring(*_: Any) -> None:
    raise TooSlowError


def texts(rng: random.Random, size: int) -> str:
    head = "".join(rng.choice(PIECES) for _ in range(rng.choice([0, 1, 3])))
    middle = "".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 2, 3])))
    if rng.random() < 0.25:
        middle += "\n"
    tail = rng.choice(["", "", "\n", "x", "!", "\x00", " end", "\nstep 1 loss 0.5\n"])
    return head + middle * (size // len(middle)) + tail


def seconds(call: Callable[[], Any]) -> float:
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST)
        try:
            call()
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except TooSlowError:
        return float("inf")
    return time.process_time() - begun


def jobs(text: str, name: str, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    from wheeltapper.reading import head_of, readers, readings_of
    from wheeltapper.settings.parse import FORMATS, parse_text

    path = folder / f"{len(text) > 2 * SHORT}" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    yield f"readings_of {name}", lambda: readings_of(path)
    head = head_of(path)
    for reader in readers():
        yield f"{reader.__name__} sniff", lambda reader=reader: reader.sniff(head)
        yield f"{reader.__name__} read", lambda reader=reader: reader.read(path)
    for kind in FORMATS:
        yield f"parse {kind}", lambda kind=kind: parse_text(text, name, kind)


def tried(seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    rng = random.Random(seed)
    name, state = rng.choice(NAMES), rng.getstate()
    long = texts(rng, LONG)
    rng.setstate(state)
    short = texts(rng, SHORT)
    pairs = zip(jobs(short, name, folder), jobs(long, name, folder), strict=True)
    for (what, _), (_, slow) in pairs:
        spent = seconds(slow)
        if spent < SLOW:
            continue
        quick = seconds(dict(jobs(short, name, folder))[what])
        if spent > RATIO * max(quick, 0.02):
            yield {"seed": seed, "what": what, "text": long[:60], "short": round(quick, 3), "long": round(spent, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGVTALRM, ring)
    begun, seed, found = time.monotonic(), args.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - begun < args.seconds:
            for one in tried(seed, Path(folder)):
                found += 1
                print(json.dumps(one), flush=True)
            seed += 1
    print(json.dumps({"texts": seed - args.seed, "found": found}), flush=True)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
