"""Files made to break a reader: each is small to write and large, deep or slow to read carelessly.

Run as a script it reads every one under a limit of memory and time and prints a JSON line for each failure:

    python tests/fuzz/hostile.py FOLDER [-v] [--all]
"""

from __future__ import annotations

import io
import json
import resource
import signal
import sqlite3
import struct
import sys
import time
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MEMORY = 3_000_000_000  # address space, of which the libraries map a good part
SECONDS = 10  # CPU time for one file, on a machine that does other work as well

# Found by this list, reported, not repaired yet: tried only with --all. Take an entry out when its reader is.
REPORTED: dict[str, str] = {}

TEXT_NAMES = ("train.log", "log.txt", "metrics.csv", "stats.jsonl", "trainer_state.json", "args.yaml")


def texts() -> Iterator[tuple[str, bytes]]:
    """Text bombs. Each is tried under several names, since the name decides which readers look at it."""
    mb = 1 << 18  # a quadratic reader shows at this size, and the whole list stays quick
    yield "one huge line", b"loss: 0.5 " * (mb // 10)
    yield "no line at all", b"a" * mb
    yield "digits", b"1" * mb
    yield "blanks", b" " * mb
    yield "colons", b"a:" * (mb // 2)
    yield "brackets", b"[" * mb
    yield "braces", b'{"a":' * (mb // 5)
    yield "closed braces", b"{" * 100_000 + b"}" * 100_000
    yield "parentheses", b"(" * 200_000 + b")" * 200_000
    yield "pairs without end", b"epoch 1 " + b"key=1, " * (mb // 7)
    yield "commas", b"step,loss\n" + b"," * mb
    yield "wide table", b",".join(b"c%d" % i for i in range(30_000)) + b"\n" + b",".join([b"1"] * 30_000) + b"\n"
    yield "tall table", b"step,loss\n" + b"1,2\n" * (mb // 4)
    yield "new key every line", b"".join(b'{"step": %d, "k%d": 1.0}\n' % (i, i) for i in range(20_000))
    yield "new nested key every line", b"".join(b'{"step": %d, "m": {"k%d": 1}}\n' % (i, i) for i in range(20_000))
    yield "new word every line", b"".join(b'{"step": %d, "k%d": "word"}\n' % (i, i) for i in range(20_000))
    yield "short rows", b",".join(b"c%d" % i for i in range(20_000)) + b"\n" + b"1,,x\n" * 20_000
    yield "one name", b"loss," * 30_000 + b"loss\n" + b"1," * 30_000 + b"1\n"
    yield "numbers too long", b'{"step": 1, "loss": ' + b"9" * 10_000 + b"}\n" + b"step 1 loss " + b"9" * 10_000 + b"\n"
    yield "numbers too large", b'{"step": 1e999, "loss": -1e99999}\n{"step": 99999999999999999999999, "loss": 1}\n' * 50
    yield "carriage returns", b"10%|#    | 1/10 [00:01<00:09, 1.0it/s, loss=0.5]\r" * (mb // 50)
    yield "escapes", b"\x1b[31m" * (mb // 5) + b"loss: 1\n"
    yield "not text", bytes(range(256)) * (mb // 256)
    yield "zeros", bytes(mb)
    yield "broken utf-8", "épöch 1 loss 0.5\n".encode() * 2000 + b"\xff\xfe\xc3\x28" * 1000
    yield "utf-16", "step,loss\n1,0.5\n2,0.4\n".encode("utf-16") * 20
    yield "quotes", b'a,"' + b'""' * (mb // 2)
    yield (
        "traceback without end",
        b"Traceback (most recent call last):\n" + b'  File "a.py", line 1, in f\n    f()\n' * 20_000,
    )
    yield (
        "yaml laughs",
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (97 + i, 97 + i, b",".join([b"*%c" % (96 + i)] * 9)) for i in range(1, 20)),
    )
    yield "yaml deep", b"".join(b" " * i + b"a:\n" for i in range(1500))
    yield "yaml python object", b"a: !!python/object/apply:os.system ['touch wheeltapper_fuzz_ran']\nlr: 0.1\n"
    yield "yaml merge keys", b"a: &a {b: 1}\n" + b"c%d: {<<: *a}\n" * 1 % 1 + b"d: {<<: [*a, *a]}\n"
    yield "dashes", b"- " * 20_000 + b"\n" + b"-" * mb
    yield "namespace", b"Namespace(" + b"a=Namespace(" * 5000 + b")" * 5001 + b"\n"
    yield "bare line ends", b"\n" * mb
    yield "marks on lines", b"%|\n" * (mb // 3)
    yield "backslashes on lines", b"\\\n" * (mb // 2)
    yield "dots in a key", b"a." * (mb // 8)
    yield "python tower", b"x = " + b"-" * 50_000 + b"1\n" + b"y = " + b"(" * 5000 + b")" * 5000 + b"\n"


def binaries() -> Iterator[tuple[str, bytes]]:
    """Named files of binary formats."""
    with_bomb = io.BytesIO()
    with zipfile.ZipFile(with_bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("model/data.pkl", b"\x80\x02]q\x00(" + b"N" * 50_000_000)
        archive.writestr("model/data/0", bytes(50_000_000))
    yield "model.pth", with_bomb.getvalue()
    yield "archive.zip", with_bomb.getvalue()
    yield "optimizer.bin", b"\x80\x02cos\nsystem\nX\x1c\x00\x00\x00touch wheeltapper_fuzz_ran  \x85R."
    yield "hostile.pt", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f" + b"(" * 100_000
    yield "model.safetensors", struct.pack("<Q", 400_000) + b"[" * 400_000
    yield "huge.safetensors", struct.pack("<Q", 2**62) + b"{}"
    header = struct.pack("<Q", 2**62)
    yield "events.out.tfevents.1.host", header + bytes(4) + bytes(range(256)) * 400
    yield "events.out.tfevents.2.host", bytes(1 << 20)
    yield "run-abc.wandb", b":W&B\xe1\xbe\x00" + b"\xff" * 70_000
    yield "mlflow.db", b"SQLite format 3\x00" + bytes(range(256)) * 40
    yield "trackio.db", b"SQLite format 3\x00" + b"\xff" * 10_000


def database(path: Path) -> None:
    """A sound database whose view would take for ever, under a name that readers look for."""
    with sqlite3.connect(path) as db:
        db.execute("create table n(x)")
        db.executemany("insert into n values (?)", [(i,) for i in range(2000)])
        db.execute("create view metrics as select a.x as key, b.x as value, c.x as step from n a, n b, n c")
        db.execute("create table runs(run_uuid text)")
    db.close()


def write_all(folder: Path) -> list[Path]:
    paths = []
    for i, (kind, body) in enumerate(texts()):
        if kind in REPORTED and "--all" not in sys.argv:
            continue
        for name in TEXT_NAMES:
            path = folder / f"{i:02}" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(body)
            paths.append(path)
    for name, body in binaries():
        path = folder / name
        path.write_bytes(body)
        paths.append(path)
    database(folder / "views.db")
    return [*paths, folder / "views.db"]


class TooSlowError(BaseException):
    """Not an Exception, so that no reader swallows it."""


def ring(*_: Any) -> None:
    raise TooSlowError


def main() -> None:
    from wheeltapper.reading import readers, readings_of

    readers()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, ring)
    called: list[str] = []
    watched = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class"}
    sys.addaudithook(lambda name, _: called.append(name) if name in watched else None)
    kinds = [kind for kind, _ in texts()]
    for path in write_all(Path(sys.argv[1])):
        begun = time.process_time()
        problem = ""
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            readings_of(path)
        except (Exception, TooSlowError):
            problem = traceback.format_exc(limit=-6)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if called:
            problem += f" it called {called}"
        spent = time.process_time() - begun
        which = kinds[int(path.parent.name)] if path.parent.name.isdigit() else "binary"
        if problem or "-v" in sys.argv:
            print(
                json.dumps({"file": path.name, "kind": which, "seconds": round(spent, 2), "problem": problem}),
                flush=True,
            )


if __name__ == "__main__":
    main()
