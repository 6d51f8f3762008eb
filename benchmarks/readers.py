"""How fast the readers are, against what people use instead. Both sides in one run, each in its own process.

    python benchmarks/readers.py [tensorboard] [jsonl] [csv] [text] [startup] [--points 1000000] [--repeats 5]

Competitors that are not installed are skipped with a line saying so (`pip install tensorboard tbparse
tensorboard-data-server polars google-crc32c`; tensorboard's own checksum is slow, the last one only makes
the files faster to write). CPU time is user + system of the process and its children, without imports: it
is the steadier figure on a machine that does other work. Files are written once and kept in the temporary
folder. Memory: the peak of the process above what it had before reading, over the bytes of the arrays kept.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "sources")]
FOLDER = Path(tempfile.gettempdir()) / "wheeltapper-benchmarks"
TAGS = (
    "train/loss", "train/lr", "train/grad_norm", "val/acc", "losses/l_g_pix", "losses/l_g_gan",
    "losses/l_d_real", "losses/l_d_fake", "losses/l_g_total", "metrics/psnr", "metrics/ssim", "perf/it_per_s",
    "perf/data_time", "mem/alloc", "mem/reserved", "scales/scale_g", "grad_norms/grad_norm_g",
    "grad_norms/grad_norm_d", "lr-AdamW/pg1", "lr-AdamW/pg2",
)  # fmt: skip


# --- files


def event_file(kind: str, points: int) -> Iterator[bytes]:
    """An event file of `points` scalars: as a framework writes it, or as hard to read as they come."""
    import tb_writer as tb

    rng = random.Random(1)
    start = 1.7e9
    yield tb.version(start)
    if kind == "random order, 200 tags":
        tags = [f"group{i % 7}/metric_{i}" for i in range(200)]
        for i in range(points):
            yield tb.event(start + 0.05 * i + 0.01 * rng.random(), i // 20, tb.scalar(rng.choice(tags), rng.random()))
        return
    encode = tb.tensor_scalar if kind == "tensor encoding" else tb.scalar
    for i in range(points // len(TAGS)):
        for j, tag in enumerate(TAGS):
            yield tb.event(start + i + 0.001 * j + 0.01 * rng.random(), 10 * i, encode(tag, rng.random()))
        if kind == "with histograms and images":
            if i % 50 == 0:
                for k in range(10):
                    size = rng.randrange(100, 700)
                    yield tb.event(start + i, 10 * i, tb.histogram(f"weights/layer{k}", [rng.random()] * size))
            if i % 200 == 0:
                yield tb.event(start + i, 10 * i, tb.image("samples", rng.randbytes(rng.randrange(20_000, 200_000))))


EVENT_KINDS = ("clean", "tensor encoding", "with histograms and images", "random order, 200 tags")


def table_rows(points: int) -> Iterator[dict[str, float]]:
    rng = random.Random(2)
    for i in range(points):
        yield {
            "step": i, "loss": round(3 * rng.random(), 6), "grad_norm": round(9 * rng.random(), 6), "lr": 1e-4 * rng.random(),
            "acc": round(rng.random(), 4), "epoch": i // 1000, "time": round(0.05 * i, 3),
        }  # fmt: skip


def jsonl_file(points: int) -> Iterator[bytes]:
    for row in table_rows(points):
        yield json.dumps(row).encode() + b"\n"


def csv_file(points: int) -> Iterator[bytes]:
    yield b"step,loss,grad_norm,lr,acc,epoch,time\n"
    for row in table_rows(points):
        yield ",".join(map(repr, row.values())).encode() + b"\n"


def text_file(lines: int) -> Iterator[bytes]:
    """A BasicSR log: the lines people have most of."""
    rng = random.Random(3)
    for i in range(1, lines + 1):
        losses = " ".join(
            f"{name}: {rng.random():.4e}" for name in ("l_g_pix", "l_g_percep", "l_g_gan", "l_d_real", "l_d_fake")
        )
        yield (
            f"2024-05-0{1 + i // 60_000} 1{i % 10}:{i % 60:02}:{i * 7 % 60:02},{i % 1000:03} INFO: [net..][epoch:{i // 500:3}, "
            f"iter:{100 * i:8,}, lr:(1.000e-04,)] [eta: 1 day, 2:03:04, time (data): 0.412 (0.003)] {losses}\n"
        ).encode()


def made(name: str, parts: Callable[[], Iterator[bytes]]) -> Path:
    path = FOLDER / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"writing {path.name} ...", file=sys.stderr)
        part = path.with_name("part")
        with part.open("wb") as file:
            for chunk in parts():
                file.write(chunk)
        part.rename(path)
    return path


# --- routes: each reads a file and returns (numbers read, bytes of the arrays kept)


def by_wheeltapper(path: Path) -> tuple[int, int]:
    from wheeltapper.reading import readings_of

    points = [p for reading in readings_of(path) for p in reading.points]
    kept = {id(a): a.nbytes for p in points for a in (p.values, p.at, p.lines, *p.clocks.values())}
    by_wheeltapper.kept = points  # type: ignore[attr-defined]
    return sum(len(p.values) for p in points), sum(kept.values())


def by_event_accumulator(path: Path) -> tuple[int, int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(path), size_guidance={"scalars": 0, "tensors": 0, "histograms": 1, "images": 1})
    read.Reload()
    tags = read.Tags()
    return sum(len(read.Scalars(t)) for t in tags["scalars"]) + sum(len(read.Tensors(t)) for t in tags["tensors"]), 0


def by_tbparse(path: Path) -> tuple[int, int]:
    from tbparse import SummaryReader

    read = SummaryReader(str(path), event_types={"scalars", "tensors"}, extra_columns={"wall_time"})
    return len(read.scalars) + len(read.tensors), 0


def last_seen(path: Path) -> dict[str, float]:
    """The latest wall time of each tag: how one knows that a data server has read the whole file."""
    from wheeltapper.reading import tensorboard

    return {p.name: float(p.clocks["second"].max()) for p in tensorboard.read(path)[0].points}


def by_data_server(path: Path) -> tuple[int, int]:
    """tensorboard-data-server ("rustboard") over gRPC: all samples asked for, taken as the columns it sends."""
    from tensorboard.data import server_ingester
    from tensorboard.data.proto import data_provider_pb2 as messages
    from tensorboard.util import grpc_util

    wanted = json.loads(os.environ["LAST_SEEN"])
    binary = server_ingester.get_server_binary()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path.name).symlink_to(path)
        ingester = server_ingester.SubprocessServerDataIngester(
            binary,
            folder,
            reload_interval=0,
            channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
            samples_per_plugin={"scalars": 0},
        )
        ingester.start()
        stub = ingester.data_provider._stub
        ask = messages.ListScalarsRequest()
        ask.plugin_filter.plugin_name = "scalars"
        seen: dict[str, float] = {}
        patience = time.monotonic() + 300
        while any(seen.get(tag, 0) < last for tag, last in wanted.items()):
            if time.monotonic() > patience:
                raise TimeoutError("the data server did not get to the end of the file")
            time.sleep(0.05)
            seen = {t.tag_name: t.metadata.max_wall_time for r in stub.ListScalars(ask).runs for t in r.tags}
        read = messages.ReadScalarsRequest()
        read.plugin_filter.plugin_name = "scalars"
        read.downsample.num_points = 10**9
        count = sum(len(t.data.value) for r in stub.ReadScalars(read).runs for t in r.tags)
        ingester._stdin_handle.close()  # tells the server to end
        while True:  # its CPU time counts once it has been waited for
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                break
    return count, 0


def by_polars(path: Path) -> tuple[int, int]:
    import polars

    frame = polars.read_csv(path) if path.suffix == ".csv" else polars.read_ndjson(path)
    return frame.height * (frame.width - 1), 0


ROUTES: dict[str, tuple[Callable[[Path], tuple[int, int]], str, int]] = {
    # name: function, module it needs, most repeats that it is worth
    "wheeltapper": (by_wheeltapper, "wheeltapper.reading", 99),
    "EventAccumulator": (by_event_accumulator, "tensorboard.backend.event_processing.event_accumulator", 1),
    "tbparse": (by_tbparse, "tbparse", 1),
    "tensorboard-data-server": (by_data_server, "tensorboard_data_server", 3),
    "polars": (by_polars, "polars", 99),
}


def cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def memory_now() -> int:
    return (
        int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        if Path("/proc/self/statm").exists()
        else 0
    )


def measure(route: str, path: Path) -> dict[str, Any]:
    """Runs in the child: one reading of one file by one route."""
    function, module, _ = ROUTES[route]
    importlib.import_module(module)
    if route == "wheeltapper":
        from wheeltapper.reading import readers

        readers()
    before, begun, wall = memory_now(), cpu(), time.perf_counter()
    count, kept = function(path)
    wall = time.perf_counter() - wall
    spent = cpu() - begun
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
    return {"cpu": spent, "wall": wall, "count": count, "kept": kept, "peak": peak, "above": peak - before}


def compare(title: str, path: Path, routes: list[str], repeats: int) -> list[str]:
    """A Markdown table of all routes on one file."""
    size = path.stat().st_size / 1e6
    rows: list[tuple[str, dict[str, float], int]] = []
    for route in routes:
        if importlib.util.find_spec(ROUTES[route][1].split(".")[0]) is None:
            print(f"{title}: {route} is not installed, skipped", file=sys.stderr)
            continue
        times = []
        environment = dict(os.environ)
        if route == "tensorboard-data-server":
            environment["LAST_SEEN"] = json.dumps(last_seen(path))
        for _ in range(min(repeats, ROUTES[route][2])):
            command = [sys.executable, __file__, "--route", route, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                print(f"{title}: {route} failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
                break
            times.append(json.loads(done.stdout.splitlines()[-1]))
        if times:
            rows.append((route, {key: statistics.median(t[key] for t in times) for key in times[0]}, len(times)))
    out = [f"**{title}** ({size:.0f} MB)", ""]
    out += [
        "| route | CPU s | wall s | MB/s of CPU | x wheeltapper | numbers | peak RSS MB | peak above start / kept | n |"
    ]
    out += ["|---|---|---|---|---|---|---|---|---|"]
    ours = next((figures["cpu"] for route, figures, _ in rows if route == "wheeltapper"), float("nan"))
    for route, f, n in rows:
        memory = f"{f['above'] / f['kept']:.1f}" if f["kept"] else "-"
        out.append(
            f"| {route} | {f['cpu']:.3f} | {f['wall']:.3f} | {size / f['cpu']:.0f} | {f['cpu'] / ours:.1f} | "
            f"{f['count']:,.0f} | {f['peak'] / 1e6:.0f} | {memory} | {n} |"
        )
    return [*out, ""]


def startup(repeats: int) -> list[str]:
    """Whole processes: what a user waits for before anything happens."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    run = FOLDER / "small_run.jsonl"
    run.write_bytes(b"".join(jsonl_file(200)))
    python = [sys.executable, "-c", "import sys; from wheeltapper.cli.main import main; sys.exit(main())"]
    commands = {
        "bare Python": [sys.executable, "-c", "pass"],
        "import numpy": [sys.executable, "-c", "import numpy"],
        "wheeltapper --help": [*python, "--help"],
        "wheeltapper show (200 rows)": [*python, "show", str(run)],
        "wheeltapper show --json": [*python, "show", str(run), "--json"],
    }
    out = ["**start-up**", "", "| command | CPU ms | wall ms | n |", "|---|---|---|---|"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for name, command in commands.items():
        times: list[tuple[float, float]] = []
        for _ in range(max(repeats, 5)):
            begun, wall = cpu(), time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            times.append((cpu() - begun, time.perf_counter() - wall))
        if done.returncode:
            print(f"{name} failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            continue
        spent, waited = (1000 * statistics.median(t[i] for t in times) for i in (0, 1))
        out.append(f"| {name} | {spent:.0f} | {waited:.0f} | {len(times)} |")
    return [*out, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="tensorboard, jsonl, csv, text, startup; all of them if none is named")
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="ROUTE", help="only these routes; can be repeated")
    parser.add_argument("--route", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.route:
        print(json.dumps(measure(options.route[0], Path(options.route[1]))))
        return
    what = options.what or ["tensorboard", "jsonl", "csv", "text", "startup"]
    n = options.points
    python = ".".join(map(str, sys.version_info[:3]))
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, Python {python}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {n:,} points",
        "",
    ]
    if "tensorboard" in what:
        for kind in EVENT_KINDS:
            name = f"{n}-{kind.replace(' ', '_').replace(',', '')}/events.out.tfevents.1700000000.host.1.0"
            path = made(name, lambda kind=kind: event_file(kind, n))  # type: ignore[misc]
            routes = ["wheeltapper", "EventAccumulator", "tbparse", "tensorboard-data-server"]
            routes = [r for r in routes if not options.only or r in options.only]
            lines += compare(f"TensorBoard, {kind}", path, routes, options.repeats)
    if "jsonl" in what:
        lines += compare(
            "JSON lines", made(f"{n}.jsonl", lambda: jsonl_file(n)), ["wheeltapper", "polars"], options.repeats
        )
    if "csv" in what:
        lines += compare("CSV", made(f"{n}.csv", lambda: csv_file(n)), ["wheeltapper", "polars"], options.repeats)
    if "text" in what:
        count = n // 5
        path = made(f"train_{count}.log", lambda: text_file(count))
        lines += compare(f"BasicSR text log, {count:,} lines", path, ["wheeltapper"], options.repeats)
    if "startup" in what:
        lines += startup(options.repeats)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
