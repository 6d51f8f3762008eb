"""A path -> the runs that lie there. Walks bounded, groups files into runs, hands each group to merge."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from wheeltapper.errors import InputError, NothingToRead
from wheeltapper.limits import Failure, guarded, seconds_for
from wheeltapper.reading import readings_of
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading.document import ENDINGS as DOCUMENTS
from wheeltapper.reading.record import Note, Reading
from wheeltapper.run.apart import runs_apart
from wheeltapper.run.folders import INCIDENT, guard_beside_log, home_of, rejoined
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run
from wheeltapper.run.one_training import joined
from wheeltapper.run.titles import with_names
from wheeltapper.settings.parse import configs_among

MOST_FILES = 20_000  # a folder with more is a data set, not a run; the walk stops and says so
MOST_DEPTH = 12
SKIP_FOLDERS = {
    ".git",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    "site-packages",
    ".cache",
    "visualization",
    "images",
}
# What is never a record of training, by its ending: cheaper than opening each.
SKIP_ENDINGS = {
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".mp4", ".avi", ".wav", ".mp3", ".flac",
    ".pdf", ".npy", ".npz", ".parquet", ".arrow", ".lmdb", ".mdb", ".html", ".css", ".js",
    ".pyc", ".so", ".whl", ".zip", ".tar", ".tgz", ".lock", ".ttf", ".svg",
}  # fmt: skip
NOT_FOR_US = {
    "package.json", "package-lock.json", "tokenizer.json", "vocab.json", "special_tokens_map.json", "pyproject.toml",
    "tokenizer_config.json", "generation_config.json", "MANIFEST.csv",
}  # fmt: skip

SETTINGS_FOLDERS = {"config", "configs", "conf", "cfg", "cfgs", "settings", "hparams", "params", "options", "yaml", "yamls"}
MOST_PARTS = 8  # files that one configuration is composed of
TRACKER_LOG = re.compile(r"debug(-\w+)?(\.\d+)?\.log$|requirements\.txt$|wandb-metadata\.json$")

_GIVE = "Give the path of a log, a config, a checkpoint or a run folder."
_POINT = "Point at the folder the training wrote to, or at one file."


def read_runs(
    path: str | Path,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    read: Callable[[Path], list[Reading]] = readings_of,
    files: Sequence[Path] | None = None,
    within: Path | None = None,
) -> list[Run]:
    """Every run at a file or folder. Raises NothingToRead when there is none.

    `progress` is called before each file of a folder with its path, how many were read, and how many there are.
    `read` reads one file; who follows a live run gives one that remembers what it has read.
    `files` and `within`: the folder is a part of a larger one, `within`; these are its files and those of the folders above
    it. Its runs are read as they are when the larger folder is read as a whole.
    """
    top = Path(path)
    if not top.exists():
        raise InputError(f"there is no file or folder {top}.", do=_GIVE)
    if not top.is_file() and not top.is_dir():
        raise InputError(f"{top} is neither a file nor a folder", do=_GIVE)
    if top.is_file():
        readings = read(top)
        if not any(_tells_something(r) for r in readings):
            why = "is empty" if top.stat().st_size == 0 else "does not read as a log, a config or a checkpoint of a run"
            raise NothingToRead(f"{top} {why}.", do=_GIVE)
        return with_names(_by_key(readings, top.stem, str(top), []))
    notes: list[Note] = []
    if files is None:
        files, notes = walk_files(top)
    outer = within or top
    groups: dict[Path, list[Reading]] = defaultdict(list)
    scripts: dict[Path, list[str]] = defaultdict(list)
    for done, file in enumerate(files):
        if progress:
            progress(str(file), done, len(files))
        home = home_of(file.parent, outer)
        if _is_script(file):
            scripts[home].append(str(file))
            continue
        if file.suffix in {".sh", ".bash"}:
            scripts[home].append(str(file))
        found = [r for r in read(file) if _tells_something(r)]
        groups[home] += found
    groups = _without_documents(groups)
    groups = {home: guard_beside_log(readings) for home, readings in groups.items()}
    runs = _runs_of(joined(rejoined(groups, outer)), scripts, outer)
    if within is not None:
        runs = [run for run in runs if run.series and _within(Path(run.root), top)]
    if not runs:
        raise NothingToRead(f"{top} {_nothing_in(len(files), notes)}.", do=_POINT)
    if notes:
        runs[0] = _with_notes(runs[0], notes)
    if within is None and len({run.root for run in runs}) == 1:
        runs = [replace(run, alone=True) for run in runs]
    return with_names(runs)


def files_at(path: Path) -> list[Path]:
    """The files that `read_runs` would open."""
    return [path] if path.is_file() else [file for file in walk_files(path)[0] if not _is_script(file)]


def _is_script(file: Path) -> bool:
    return file.suffix == ".py" and not re.search(r"config|cfg", file.name, re.IGNORECASE)


def _without_documents(groups: dict[Path, list[Reading]]) -> dict[Path, list[Reading]]:
    """A notebook or a README may quote the log of any run: it counts where nothing else tells of one."""

    def quotes(r: Reading) -> bool:
        return Path(r.file).suffix.lower() in DOCUMENTS

    told = any(r.points and not quotes(r) for found in groups.values() for r in found)
    sets = any(r.configs and not quotes(r) for found in groups.values() for r in found)

    def counts(r: Reading) -> bool:
        return not quotes(r) or bool((r.points and not told) or (r.configs and not sets))

    out = {
        home: [replace(r, points=()) if quotes(r) and told else r for r in found if counts(r)] for home, found in groups.items()
    }
    return {home: found for home, found in out.items() if found}


def _nothing_in(n_files: int, notes: list[Note]) -> str:
    lost = [note for note in notes if note.level == "lost"]
    if not n_files and lost:
        return f"gave nothing to read ({lost[0].text})"
    if not n_files:
        return "holds no file that could be a log, a config or a checkpoint of a run"
    files = "one file, and it does not read" if n_files == 1 else f"{n_files:,} files, and none of them reads"
    return f"holds {files} as a log, a config or a checkpoint of a run"


def _with_notes(run: Run, notes: list[Note]) -> Run:
    return replace(run, notes=(*run.notes, *notes))


def _tells_something(reading: Reading) -> bool:
    return bool(
        reading.points
        or reading.configs
        or reading.events
        or reading.checkpoints
        or reading.facts
        or any(note.level == "lost" for note in reading.notes)
        or reading.format not in {"not understood"}
    )


def walk_files(top: Path) -> tuple[list[Path], list[Note]]:
    """Files below `top` in natural order, each real folder once (a symlink loop is walked once)."""
    seen: set[tuple[int, int]] = set()
    out: list[Path] = []
    notes: list[Note] = []

    def walk(folder: Path, depth: int) -> Iterator[Path]:
        try:
            info = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda e: (e.is_symlink(), e.name))  # W&B's latest-run is a link
        except OSError as error:
            notes.append(Note(f"folder cannot be read: {error.strerror}", str(folder), level="lost"))
            return
        if (info.st_dev, info.st_ino) in seen:
            return
        seen.add((info.st_dev, info.st_ino))
        if depth > MOST_DEPTH:
            notes.append(Note(f"folders deeper than {MOST_DEPTH} are not read", str(folder), level="lost"))
            return
        for entry in entries:
            try:
                if entry.is_dir():
                    if entry.name not in SKIP_FOLDERS:
                        yield from walk(Path(entry.path), depth + 1)
                elif INCIDENT.match(folder.name) and entry.name != "incident.json":
                    continue  # batches and random states that the guard kept
                elif "wandb" in folder.parts and TRACKER_LOG.match(entry.name):
                    continue  # what the tracker says of itself
                elif entry.is_file() and is_worth_opening(entry.name):
                    yield Path(entry.path)
            except OSError as error:
                notes.append(Note(f"cannot be read: {error.strerror}", entry.path, level="lost"))

    for file in walk(top, 0):
        if len(out) >= MOST_FILES:
            notes.append(Note(f"more than {MOST_FILES} files; the rest is not read", str(top), level="lost"))
            break
        out.append(file)
    return out, notes


def is_worth_opening(name: str) -> bool:
    """Whether a file of this name may be a record of training."""
    stem, ending = os.path.splitext(name)
    if name in NOT_FOR_US:
        return False
    return ending.lower() not in SKIP_ENDINGS or (
        ending in {".npy", ".npz"} and (names_measure(stem) or name == "evaluations.npz")
    )


def _runs_of(groups: dict[Path, list[Reading]], scripts: dict[Path, list[str]], top: Path) -> list[Run]:
    measured = {home: readings for home, readings in groups.items() if any(r.points for r in readings)}
    runs: list[Run] = []
    for home, readings in groups.items():
        if home in measured:
            extra = [
                r
                for above in home.parents
                if above in groups and above not in measured and _within(above, top)
                for r in groups[above]
            ]
            extra += _saved_below(home, readings, groups, measured)
            extra += _settings_below(home, groups, measured)
            label = home.name or str(home)
            near = scripts.get(home) or next((scripts[a] for a in home.parents if a in scripts and _within(a, top)), [])
            near = near or _settings_scripts_below(home, scripts)
            apart = _apart(readings)
            for cluster in apart:
                runs += _by_key([*cluster, *extra], label if len(apart) == 1 else _stem(cluster), str(home), near)
    if not measured:
        everything = [r for readings in groups.values() for r in readings]
        near = [s for found in scripts.values() for s in found]
        if any(_tells_something(r) for r in everything) and everything:
            runs += _by_key(everything, top.name, str(top), near)
        elif near:
            runs.append(merge([], name=top.name, root=str(top), scripts=near))
    return runs


def _apart(readings: list[Reading]) -> list[list[Reading]]:
    """The runs of one folder; one run, where telling them apart fails."""
    apart = guarded(lambda: runs_apart(readings), seconds=_seconds(readings))
    return [readings] if isinstance(apart, Failure) else apart


def _merged(readings: list[Reading], name: str, root: str, scripts: list[str]) -> Run:
    """One run. If what its files say cannot be put together, they are left out one by one until it can: a file never
    costs another."""
    run = guarded(lambda: merge(readings, name=name, root=root, scripts=scripts), seconds=_seconds(readings))
    if not isinstance(run, Failure):
        return run
    kept: list[Reading] = []
    notes: list[Note] = []
    for reading in sorted(readings, key=lambda r: len(r.points)):
        failed = guarded(partial(merge, [*kept, reading], name=name, root=root, scripts=scripts))
        if isinstance(failed, Failure):
            notes.append(Note(f"left out: {failed.text} (in {failed.where})", reading.file, level="lost"))
        else:
            kept.append(reading)
    return _with_notes(merge(kept, name=name, root=root, scripts=scripts), notes)


def _seconds(readings: list[Reading]) -> float:
    """CPU time for putting readings together, by how many numbers they hold."""
    return 5 * seconds_for(sum(8 * len(points.values) for reading in readings for points in reading.points))


def _saved_below(
    home: Path, readings: list[Reading], groups: dict[Path, list[Reading]], measured: dict[Path, list[Reading]]
) -> list[Reading]:
    """Checkpoints in a folder further down that the log of this run names, by its path from here."""
    named = {os.path.normpath(c.path) for r in readings for c in r.checkpoints if not c.exists}
    below = [g for g in groups if g not in measured and home in g.parents] if named else []
    files = [r for folder in below for r in groups[folder] if r.checkpoints]
    return [r for r in files if os.path.relpath(r.file, home) in named]


def _settings_below(home: Path, groups: dict[Path, list[Reading]], measured: dict[Path, list[Reading]]) -> list[Reading]:
    """Configurations in folders below the log: the one in a folder of configurations; else all, where they are parts of one.
    Of several that set the same keys, which one ran is not known."""
    if any(home in other.parents for other in measured):
        return []
    below = [g for g in groups if g.parent == home and g.name.lower() in SETTINGS_FOLDERS]
    found = [r for folder in below for r in groups[folder] if r.configs and not r.points]
    if len(found) == 1:
        return found
    found = [r for folder in groups if home in folder.parents for r in groups[folder] if r.configs and not r.points]
    return found if len(found) == 1 or _parts_of_one(found) else []


def _parts_of_one(found: list[Reading]) -> bool:
    """Files that hardly share a key complete each other, as the parts of a composed configuration do."""
    keys = [{leaf.path for tree in r.configs for leaf in tree} for r in found]
    pairs = [(a, b) for at, a in enumerate(keys) for b in keys[:at]]
    return 1 < len(found) <= MOST_PARTS and all(3 * len(a & b) <= min(len(a), len(b)) for a, b in pairs)


def _settings_scripts_below(home: Path, scripts: dict[Path, list[str]]) -> list[str]:
    """The one Python file in a folder below that is nothing but settings."""
    below = [file for folder, files in scripts.items() if home in folder.parents for file in files if file.endswith(".py")]
    return below if len(below) == 1 and configs_among(below) else []


def _within(folder: Path, top: Path) -> bool:
    return folder == top or top in folder.parents


def _stem(cluster: list[Reading]) -> str:
    return Path(next(r.file for r in cluster if r.points)).stem


def _by_key(readings: list[Reading], name: str, root: str, scripts: list[str]) -> list[Run]:
    keys = list(dict.fromkeys(r.key for r in readings if r.key is not None))
    if not keys:
        return [_merged(readings, name, root, scripts)]
    loose = [r for r in readings if r.key is None]
    if len(keys) == 1:
        return [_merged(readings, name, root, scripts)]
    return [
        _merged([*(r for r in readings if r.key == key), *loose], f"{name}/{key}", root, scripts)
        for key in keys
    ]
