"""Which numbers public configurations give to a key, by the words of the key: written to settings/sanity/observed.json.

    python scripts/observe_settings.py FOLDER_OF_BARE_REPOSITORIES

Only keys that several repositories know are kept, each with the smallest and largest number seen and whether 0, a negative or a
broken number was. No value of a single project can be told from it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

from wheeltapper.settings.parse import format_of, parse_text
from wheeltapper.settings.parse_python import sets_only
from wheeltapper.settings.sanity.observed import HERE, name_of
from wheeltapper.settings.sanity.sheet import Sheet

ENDINGS = (".yaml", ".yml", ".toml", ".json", ".ini", ".cfg", ".gin", ".prototxt", ".conf", ".sh", ".py")
SKIP = (".github", "test", "docker", "readthedocs", "mkdocs", "pre-commit", "environment", "setup.cfg", "pyproject", "metafile", "model-index", "decode", "tox.ini", "package", "debug")
MOST_FILES = 300  # of one repository
LEAST_FILES, LEAST_REPOSITORIES = 6, 3


def main() -> None:
    seen: dict[str, dict[str, list[tuple[float, ...]]]] = defaultdict(lambda: defaultdict(list))
    keys: dict[str, Counter[str]] = defaultdict(Counter)
    words: dict[str, set[str]] = defaultdict(set)
    for repository in sorted(Path(sys.argv[1]).iterdir()):
        for name, text in _files(repository / "repo"):
            kind = format_of(name, text)
            if kind is None or (name.endswith(".py") and not sets_only(text)):
                continue
            for setting in Sheet([parse_text(text, name, kind)]).settings:
                keys[setting.key][repository.name] += 1
                for part in setting.path:
                    for word in part.lower().replace("-", "_").split("_"):
                        words[word].add(repository.name)
                key = name_of(setting)
                numbers = [setting.number] if setting.number is not None else setting.numbers
                if key and numbers and not isinstance(setting.value, bool) and len(numbers) < 20:
                    seen[key][repository.name].append(tuple(float(n) for n in numbers))
    table = {key: _row(found) for key, found in sorted(seen.items()) if _enough(found)}
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in table.items())
    names = sorted(key for key, found in keys.items() if 6 <= len(key) <= 40 and len(found) >= LEAST_REPOSITORIES and sum(found.values()) >= LEAST_FILES)
    HERE.write_text('{"numbers": {\n' + rows + '\n},\n"keys": ' + json.dumps(" ".join(n for n in names if n.replace("_", "").isalnum())) + ',\n"words": ' + json.dumps(" ".join(sorted(w for w, who in words.items() if len(who) > 1 and w.isalpha() and 4 <= len(w) <= 20))) + "}\n")
    print(len(table), "numbers", len(names), "keys")


def _enough(found: dict[str, list[tuple[float, ...]]]) -> bool:
    return len(found) >= LEAST_REPOSITORIES and sum(map(len, found.values())) >= LEAST_FILES


def _row(found: dict[str, list[tuple[float, ...]]]) -> list[float]:
    """Files, repositories, least and most above zero, shares of zero, negative and broken numbers."""
    numbers = [n for values in found.values() for group in values for n in group if n == n and abs(n) < 1e30]
    above = [n for n in numbers if n > 0] or [0.0]
    share = [sum(map(test, numbers)) / max(len(numbers), 1) for test in (lambda n: n == 0, lambda n: n < 0, lambda n: n % 1 != 0)]
    files = sum(map(len, found.values()))
    return [files, len(found), float(f"{min(above):.3g}"), float(f"{max(above):.3g}"), *(round(s, 3) for s in share)]


def _files(repository: Path) -> list[tuple[str, str]]:
    listed = subprocess.run(["git", "-C", str(repository), "ls-tree", "-r", "-l", "HEAD"], capture_output=True, text=True, check=False).stdout
    names = []
    for line in listed.splitlines():
        meta, _, name = line.partition("\t")
        size, low = meta.split()[-1], name.lower()
        if low.endswith(ENDINGS) and size.isdigit() and 100 < int(size) < 40_000 and not any(word in low for word in SKIP) and (not low.endswith((".py", ".json", ".sh")) or any(word in low for word in ("conf", "param", "args", "train", "hparam"))):
            names.append(name)
    random.Random(0).shuffle(names)
    show = [subprocess.run(["git", "-C", str(repository), "show", f"HEAD:{name}"], capture_output=True, check=False).stdout for name in names[:MOST_FILES]]
    return [(name, raw.decode("utf-8", "replace")) for name, raw in zip(names, show, strict=False)]


if __name__ == "__main__":
    main()
