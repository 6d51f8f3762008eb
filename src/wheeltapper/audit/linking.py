"""Which program made this run. A program that is not linked to a run is charged with nothing.

A folder may hold the script of this run, of its neighbours, or a whole repository. What speaks for a program: it lies in the
run's own folder and no other program does; it and the run are the only ones in the folder that was given (a tracker keeps its
files in folders of its own, below the script); it names the quantities that were logged; it names a file or folder of the run.
One program among several that nothing ties to the run is not linked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.program.reading import Code
from wheeltapper.run.model import Run

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*")
COMMON = {"epoch", "step", "iter", "time", "train", "val", "test", "it", "s", "lr", "the", "of", "data"}
CLEARLY = 0.5  # of the logged names that a program must name, where it is not alone in the run's folder


@dataclass(frozen=True, slots=True)
class Link:
    """Whether a program made the run, and why we think so."""

    program: str
    linked: bool
    reason: str


def links_of(run: Run, codes: Sequence[Code]) -> list[Link]:
    """Every training program beside a run, with whether it made the run."""
    training = [code for code in codes if code.trains]
    own = [code for code in training if _in_folder(code, run)]
    shares = {code.program.entry.name: _share(run, code) for code in training}
    named = {code.program.entry.name: _names_output(run, code) for code in training}
    if len(training) == 1 and own:
        return [_alone(training[0], shares[training[0].program.entry.name])]
    if len(training) == 1 and run.alone and _above(training[0], run):
        return [
            Link(training[0].program.entry.name, True, "the only training program here, and this is the only run here")
        ]
    out = []
    best = max(shares.values(), default=0.0)
    leaders = [name for name, share in shares.items() if share == best]
    for code in training:
        name = code.program.entry.name
        others = sum(1 for n in named.values() if n is not None)
        if named[name] is not None and others == 1:
            out.append(Link(name, True, f"it names {named[name]}, which belongs to the run"))
        elif (
            not others
            and shares[name] == best
            and best >= CLEARLY
            and len(leaders) == 1
            and (len(own) <= 1 or code in own)
        ):
            out.append(
                Link(name, True, f"it names {best:.0%} of the quantities in the log, more than any other program here")
            )
        elif len(training) == 1 and best >= CLEARLY:
            out.append(Link(name, True, f"it names {best:.0%} of the quantities in the log"))
        else:
            out.append(Link(name, False, f"one of {len(training)} programs here, and nothing ties it to this run"))
    return out


def _alone(code: Code, share: float) -> Link:
    """The only program in the run's own folder made the run: people and trackers keep the script there."""
    more = f" and names {share:.0%} of the quantities in the log" if share else ""
    return Link(code.program.entry.name, True, f"the only training program in the run's folder{more}")


def _in_folder(code: Code, run: Run) -> bool:
    try:
        home, root = Path(code.program.entry.name).resolve().parent, Path(run.root).resolve()
    except OSError:
        return False
    return home == root or root in home.parents or (root.is_file() and home == root.parent)


def _above(code: Code, run: Run) -> bool:
    """Whether the program lies in a folder that holds the run's own."""
    try:
        return Path(code.program.entry.name).resolve().parent in Path(run.root).resolve().parents
    except OSError:
        return False


def _wanted(run: Run) -> set[str]:
    """The last word of every logged name that says something."""
    found = set()
    for series in run.series.values() if isinstance(run.series, dict) else run.series:
        words = [w.lower() for w in WORD.findall(getattr(series, "raw", str(series)))]
        found.update(words[-1:])
    return found - COMMON


def _share(run: Run, code: Code) -> float:
    wanted = _wanted(run)
    return len(wanted & _logged(code)) / len(wanted) if wanted else 0.0


def _logged(code: Code) -> set[str]:
    """Words in the strings and names of a program's entry: what it may print or log."""
    words: set[str] = set()
    for script in code.program.scripts:
        for node in script.parents:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 400:
                words.update(w.lower() for w in WORD.findall(node.value))
            elif isinstance(node, ast.keyword) and node.arg is not None:
                words.add(node.arg.lower())  # set_postfix(loss=...)
    return words


def _names_output(run: Run, code: Code) -> str | None:
    """A file or folder of the run that a string of the program names."""
    texts = {
        node.value
        for node in code.program.entry.parents
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 3 < len(node.value) < 200
    }
    stems = {Path(f).name for f in run.files if Path(f).suffix not in (".py", ".sh")} | {Path(run.root).name}
    found = sorted(
        s for s in stems if len(s) > 5 and any(s == Path(t).name or t.rstrip("/").endswith("/" + s) for t in texts)
    )
    return found[0] if found else None
