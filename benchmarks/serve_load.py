"""Fifty clients at a running `wheeltapper serve` for a minute: errors, and how long an answer takes.

    python benchmarks/serve_load.py http://127.0.0.1:8700 TOKEN [CLIENTS] [SECONDS]

Every client asks for the first page, a sorted one, a filter, a search and the page of a run, one after the other, without a pause.
A second pass with one client gives the time of an answer when nobody else asks.
"""

from __future__ import annotations

import http.client
import re
import statistics
import sys
import threading
import time
from urllib.parse import quote, urlsplit

PATHS = ("/", "/table?sort=-score", f"/table?q={quote('p_ill>0.5')}", "/table?q=loss", "/table?group=optimizer.name")


def client(host: str, port: int, token: str, runs: list[str], ends: float, took: dict[str, list[float]], errors: list[str]) -> None:
    line = http.client.HTTPConnection(host, port, timeout=60)
    number = 0
    while time.monotonic() < ends:
        path = PATHS[number % len(PATHS)] if number % 6 < 5 else f"/run/{runs[number % len(runs)]}"
        number += 1
        began = time.monotonic()
        try:
            line.request("GET", path, headers={"Cookie": f"wheeltapper-{port}={token}"})
            answer = line.getresponse()
            answer.read()
            if answer.status != 200:
                errors.append(f"{path}: {answer.status}")
        except OSError as error:
            errors.append(f"{path}: {error}")
            line.close()
        took.setdefault("/run/…" if path.startswith("/run/") else path, []).append(time.monotonic() - began)


def main() -> None:
    place, token = urlsplit(sys.argv[1]), sys.argv[2]
    clients = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 60.0
    host, port = place.hostname or "127.0.0.1", place.port or 80
    line = http.client.HTTPConnection(host, port)
    line.request("GET", "/", headers={"Cookie": f"wheeltapper-{port}={token}"})
    runs = re.findall(r'data-id="(\w+)"', line.getresponse().read().decode())[:20]
    for count, lasting in ((1, min(seconds, 10.0)), (clients, seconds)):
        took: dict[str, list[float]] = {}
        errors: list[str] = []
        ends = time.monotonic() + lasting
        threads = [threading.Thread(target=client, args=(host, port, token, runs, ends, took, errors)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        total = sum(map(len, took.values()))
        print(f"{count} clients, {lasting:.0f} s: {total} answers ({total / lasting:.0f} a second), {len(errors)} errors {errors[:3]}")
        for path, times in sorted(took.items()):
            print(f"  {path:32s} median {1000 * statistics.median(times):6.0f} ms, slowest {1000 * max(times):6.0f} ms")


if __name__ == "__main__":
    main()
