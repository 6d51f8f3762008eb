"""Mines what people run from local copies of public repositories, and writes the reference of practice.

    python scripts/mine_practice.py mine FOLDER records.jsonl    read bare repositories, at most 5 configurations of each
    python scripts/mine_practice.py build records.jsonl          write reference.json and the list of sources

FOLDER holds `owner+name/repo` (or `.../repo/.git`) directories. Only numbers leave this script: no text of anybody's
code is kept. A file whose settings equal those of a file already taken, in any repository, is a copy and is left out.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import decode, format_of, parse_text
from wheeltapper.settings.parse_python import sets_only
from wheeltapper.settings.parse_script import parse_script
from wheeltapper.settings.practice.features import family_of, mode_of, numbers_of, optimizer_class
from wheeltapper.settings.tree import ConfigTree

EACH = 5  # configurations of one repository
TRIED = 250  # files read of one repository
LARGEST = 120_000  # bytes
FEWEST = 3  # steering settings that make a file a configuration of a training
SMALLEST_GROUP = 40
MOST_VALUES = 250
MOST_BUILT = 20  # optimizers built in one repository; with more it holds several projects
CORE = {"optimizer.lr", "batch.per_device", "batch.global", "run.epochs", "run.total_steps", "optimizer.lr_g"}
SUFFIXES = {".yaml", ".yml", ".json", ".toml", ".py", ".sh", ".ini", ".cfg", ".slurm"}
SKIPPED = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|\.github|docs?|tests?|third_party|vendor|\.vscode|package(?:-lock)?\.json"
    r"|docker-compose\.ya?ml|mkdocs\.yml|setup\.py|tokenizer\w*\.json|vocab\.json|dataset_info\.json)(?:/|$)"
)
TELLING = re.compile(
    r"train|conf|cfg|hparam|hyper|param|args|opt|finetun|fine_tun|sft|dpo|lora|ppo|dqn|sac|exp|recipe|run|main|pretrain|gan|vae|\.hydra"
)
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "wheeltapper" / "settings" / "practice"


def repositories(folder: Path) -> Iterator[tuple[str, Path]]:
    for one in sorted(folder.iterdir()):
        for git in (one / "repo" / ".git", one / "repo"):
            if (git / "HEAD").is_file():
                yield one.name.replace("+", "/", 1), git
                break


def git(where: Path, *arguments: str, given: bytes | None = None) -> bytes:
    done = subprocess.run(["git", f"--git-dir={where}", *arguments], input=given, capture_output=True, timeout=120)
    return done.stdout


def candidates(where: Path) -> list[tuple[str, str]]:
    """(object, path) of files that may set a training, the likeliest first."""
    out = []
    for line in git(where, "ls-tree", "-r", "-l", "HEAD").decode("utf-8", "replace").splitlines():
        head, _, path = line.partition("\t")
        parts = head.split()
        if len(parts) != 4 or parts[1] != "blob" or not parts[3].isdigit():
            continue
        size, low = int(parts[3]), path.lower()
        if not 40 < size < LARGEST or Path(low).suffix not in SUFFIXES or SKIPPED.search(low):
            continue
        hits = len(set(TELLING.findall(low)))
        if hits:
            out.append((-hits - (Path(low).suffix not in (".py", ".sh")), low.count("/"), parts[2], path))
    out.sort()
    return _spread([(sha, path) for _, _, sha, path in out])


def _spread(files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Round robin over folders, so that one large folder does not take all places."""
    by_folder: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for sha, path in files:
        by_folder[str(Path(path).parent)].append((sha, path))
    out: list[tuple[str, str]] = []
    while by_folder and len(out) < TRIED:
        for folder in list(by_folder):
            out.append(by_folder[folder].pop(0))
            if not by_folder[folder]:
                del by_folder[folder]
    return out[:TRIED]


def contents(where: Path, files: list[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    told = git(where, "cat-file", "--batch", given="".join(f"{sha}\n" for sha, _ in files).encode())
    at = 0
    for _, path in files:
        end = told.find(b"\n", at)
        header = told[at:end].split()
        if len(header) != 3:
            at = end + 1
            continue
        size = int(header[2])
        yield path, told[end + 1 : end + 1 + size]
        at = end + 2 + size


def tree_of(path: str, data: bytes) -> ConfigTree | None:
    text = decode(data)
    if text is None:
        return None
    if path.endswith(".py") and not sets_only(text):
        return parse_script(text, path)
    format_ = format_of(path, text)
    return None if format_ is None else parse_text(text, path, format_)


def record_of(path: str, data: bytes) -> dict[str, Any] | None:
    tree = tree_of(path, data)
    if tree is None or not len(tree):
        return None
    knobs = read_knobs([tree])
    numbers = numbers_of(knobs)
    steering = {id_ for id_ in numbers if id_ not in ("batch.effective", "world_size", "vocab_size")}
    if len(steering) < FEWEST or not CORE & steering:
        return None
    name = knobs.value("optimizer.name")
    told = [path, *(str(leaf.path[-1]) for leaf in tree.leaves[:400])]
    told += [leaf.value for leaf in tree.leaves[:400] if isinstance(leaf.value, str) and len(leaf.value) < 60]
    return {
        "numbers": {key: float(f"{value:.6g}") for key, value in sorted(numbers.items())},
        "optimizer": optimizer_class(name if isinstance(name, str) else None),
        "family": family_of(told),
        "mode": mode_of(told, knobs),
        "schedule": _schedule(knobs),
        "precision": knobs.value("precision"),
        "dialect": knobs.dialect.NAME,
        "format": tree.format,
        "inherits": any(
            str(part) in ("_base_", "defaults", "inherit") for leaf in tree.leaves for part in leaf.path[:1]
        ),
    }


def _schedule(knobs: Knobs) -> str | None:
    found = knobs.get("schedule.name")
    if found is None or found.default or not isinstance(found.value, str):
        return None
    low = found.value.lower()
    words = ("cosine", "linear", "onecycle", "poly", "constant", "plateau", "multistep", "step", "exp", "cyclic", "wsd")
    return next((word for word in words if word in low), None)


def mine(folder: Path, out: Path) -> None:
    finished = out.with_suffix(".done")
    done = set(finished.read_text().splitlines()) if finished.exists() else set()
    with out.open("a") as written, finished.open("a") as noted:
        for name, where in repositories(folder):
            if name in done:
                continue
            commit = git(where, "rev-parse", "HEAD").decode().strip()
            for row in _chosen(name, where):
                written.write(json.dumps({"repository": name, "commit": commit, **row}) + "\n")
            written.flush()
            noted.write(name + "\n")
            noted.flush()


def _chosen(name: str, where: Path) -> list[dict[str, Any]]:
    """Up to five configurations that differ most from each other."""
    files = candidates(where)
    found: dict[str, dict[str, Any]] = {}
    for path, data in contents(where, files) if files else ():
        try:
            row = record_of(path, data)
        except RecursionError:
            row = None
        if row is not None:
            found.setdefault(json.dumps(row["numbers"]), {"path": path, **row})
    left, out = list(found.values()), []
    while left and len(out) < EACH:
        best = max(left, key=lambda row: _news(row, out))
        left.remove(best)
        out.append(best)
    usual = usual_optimizer(where) if any(row["optimizer"] is None for row in out) else None
    for row in out:
        row["optimizer"] = row["optimizer"] or (usual if not row["inherits"] else None)
    print(f"{name}: {len(files)} files, {len(found)} configurations, {len(out)} taken", flush=True)
    return out


OPTIMIZERS = r"(optim|optimizers?|torch_optimizer|bnb\.optim)\.(AdamW|Adam|SGD|RMSprop|Adagrad|Adadelta|Lion)\("


def usual_optimizer(where: Path) -> str | None:
    """The optimizer of a small repository whose code builds only one kind of it."""
    told = git(where, "grep", "-ohE", OPTIMIZERS, "HEAD", "--", "*.py").decode("utf-8", "replace")
    counts = Counter(optimizer_class(line.rstrip("(")) for line in told.splitlines())
    return next(iter(counts)) if len(counts) == 1 and sum(counts.values()) <= MOST_BUILT else None


def _news(row: dict[str, Any], taken: list[dict[str, Any]]) -> tuple[int, int]:
    pairs = set(row["numbers"].items())
    same = max((len(pairs & set(other["numbers"].items())) for other in taken), default=0)
    kinds = {(other["optimizer"], other["family"]) for other in taken}
    return len(pairs) - same + 2 * ((row["optimizer"], row["family"]) not in kinds), len(pairs)


def build(records: Path) -> None:
    rows = _without_copies([json.loads(line) for line in records.read_text().splitlines()])
    held: dict[str, dict[str, list[tuple[float, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for knob, value in row["numbers"].items():
            for group in _groups(row):
                held[knob][group].append((value, row["repository"]))
    excerpts = _excerpts()
    for knob, value, optimizer, file in excerpts:
        for group in {"||", f"{optimizer}||"}:
            held[knob][group].append((value, f"file {file}"))
    knobs = {
        knob: {group: _counted(pairs) for group, pairs in sorted(groups.items()) if _large(group, pairs)}
        for knob, groups in sorted(held.items())
    }
    reference = {
        "configurations": len(rows),
        "repositories": len({row["repository"] for row in rows}),
        "excerpts": len(excerpts),
        "knobs": {knob: groups for knob, groups in knobs.items() if groups},
        "schedules": dict(Counter(row["schedule"] for row in rows if row["schedule"]).most_common()),
        "precisions": dict(Counter(row["precision"] for row in rows if row["precision"]).most_common()),
    }
    text = json.dumps(reference, separators=(",", ":"))
    (PACKAGE / "reference.json").write_text(text + "\n")
    sources = sorted({(row["repository"], row["commit"], row["path"]) for row in rows})
    lines = ["repository,commit,path", *(",".join(part.replace(",", "%2C") for part in row) for row in sources)]
    (HERE / "practice_sources.csv").write_text("\n".join(lines) + "\n")
    print(
        f"{len(rows)} configurations, {reference['repositories']} repositories, {len(text):,} bytes, {len(knobs)} knobs"
    )


def _excerpts() -> list[tuple[str, float, str, str]]:
    """Single settings read by hand from excerpts of public files (practice_excerpts.csv), for knobs that few
    configurations set. A file has a number in the index it was found in; each counts as a repository of its own."""
    with (HERE / "practice_excerpts.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    return [(row["setting"], float(row["value"]), row["optimizer"], row["file"]) for row in rows]


def _without_copies(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A configuration with the numbers of another repository's is a copy or a fork, when it has enough of them."""
    seen: set[str] = set()
    out = []
    for row in rows:
        mark = json.dumps(row["numbers"])
        if mark in seen and len(row["numbers"]) >= 6:
            continue
        seen.add(mark)
        out.append(row)
    return out


def _groups(row: dict[str, Any]) -> set[str]:
    optimizers, families, modes = ({"", row[key] or ""} for key in ("optimizer", "family", "mode"))
    groups = {f"{o}|{f}|{m}" for o in optimizers for f in families for m in modes}
    return {group for group in groups if not re.fullmatch(r"\|[^|]+\|[^|]+", group)}


def _large(group: str, pairs: list[tuple[float, str]]) -> bool:
    return len(pairs) >= (20 if group == "||" else SMALLEST_GROUP)


def _counted(pairs: list[tuple[float, str]]) -> dict[str, Any]:
    """Values with their counts; neighbours are joined where there are too many of them, never the outermost."""
    counts = sorted(Counter(value for value, _ in pairs).items())
    while len(counts) > MOST_VALUES:
        at = min(range(5, len(counts) - 6), key=lambda i: counts[i][1] + counts[i + 1][1])
        larger = max(counts[at], counts[at + 1], key=lambda pair: pair[1])[0]
        counts[at : at + 2] = [(larger, counts[at][1] + counts[at + 1][1])]
    return {
        "v": [_short(value) for value, _ in counts],
        "c": [count for _, count in counts],
        "r": len({repository for _, repository in pairs}),
    }


def _short(value: float) -> float:
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


if __name__ == "__main__":
    if sys.argv[1] == "mine":
        mine(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        build(Path(sys.argv[2]))
