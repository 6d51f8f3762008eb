"""Any configuration text to a ConfigTree. Never raises on content, never runs anything.

>>> tree = parse_text("lr: 1e-6\\n", "a.yml", "yaml")
>>> tree.get("lr"), tree.leaves[0].note
('1e-6', 'YAML 1.1 reads 1e-6 as a string, not a number (write 1.0e-6)')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from wheeltapper.limits import Failure, guarded, seconds_for
from wheeltapper.settings.parse_argv import override_leaves
from wheeltapper.settings.parse_json import parse_json
from wheeltapper.settings.parse_keyvalue import parse_keyvalue
from wheeltapper.settings.parse_prototxt import looks_like_prototxt, parse_prototxt
from wheeltapper.settings.parse_python import parse_python, sets_only
from wheeltapper.settings.parse_repr import parse_namespace
from wheeltapper.settings.parse_shell import parse_argv, parse_shell
from wheeltapper.settings.parse_toml import parse_toml
from wheeltapper.settings.parse_yaml import parse_yaml
from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree

MAX_BYTES = 8_000_000  # no configuration is larger; a metrics file with a .json name may be

FORMATS: dict[str, Callable[[Source], ConfigTree]] = {
    "yaml": parse_yaml,
    "json": parse_json,
    "toml": parse_toml,
    "python": parse_python,
    "namespace": parse_namespace,
    "argv": parse_argv,
    "shell": parse_shell,
    "keyvalue": parse_keyvalue,
    "prototxt": parse_prototxt,
}

_EXTENSIONS = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".jsonc": "json",
    ".json5": "json",
    ".toml": "toml",
    ".py": "python",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".pbs": "shell",
    ".ini": "keyvalue",
    ".cfg": "keyvalue",
    ".conf": "keyvalue",
    ".properties": "keyvalue",
    ".env": "keyvalue",
    ".gin": "keyvalue",
    ".prototxt": "prototxt",
    ".pbtxt": "prototxt",
}
_PAIR = re.compile(r"\s*[\w./\- ]+[:=](?:\s|\Z)|.*\w \.{3,} ")
_SHEBANG = re.compile(r"#!.*\b(?:ba|z|k|da)?sh\b")
_PROGRAMS = r"(?:python[\d.]*|torchrun|accelerate launch|deepspeed|srun|yolo|fairseq-train|composer|trl|tune run)"
_LAUNCH = re.compile(rf"\s*(?:\$ |> )?(?:[A-Z_]+=\S+ +)*{_PROGRAMS}\s")


def parse_text(text: str, file: str, format: str, first_line: int = 1) -> ConfigTree:
    """The tree of a text known to be in `format` (a key of FORMATS)."""
    tree = guarded(lambda: _parsed(text, file, format, first_line), seconds=seconds_for(len(text)))
    if isinstance(tree, Failure):
        return ConfigTree(file, format, (), text, (f"{file}: cannot be read as {format}: {tree.text}",))
    return tree


def _parsed(text: str, file: str, format: str, first_line: int) -> ConfigTree:
    tree = FORMATS[format](Source(text, file, first_line))
    return _hydra_overrides(tree) if format == "yaml" else tree


def parse_file(path: Path | str) -> ConfigTree | None:
    """The tree of a configuration file, by its extension and content; None when it is not one."""
    path = Path(path)
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    text = decode(data)
    if text is None:
        return None
    format_ = format_of(path.name, text)
    return None if format_ is None else parse_text(text, str(path), format_)


def configs_among(scripts: Sequence[Path | str]) -> list[ConfigTree]:
    """Python files that are nothing but settings (nanoGPT's and mmengine's configs), as configurations."""
    out = []
    for script in scripts:
        tree = parse_file(script) if Path(script).suffix.lower() == ".py" else None
        if tree is not None and tree.text is not None and len(tree) and sets_only(tree.text):
            out.append(tree)
    return out


def decode(data: bytes) -> str | None:
    """Text of a file's bytes, or None when it is binary. Line breaks stay as they are: offsets must fit."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    if b"\x00" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def format_of(name: str, text: str) -> str | None:
    """The format of a file, by its name first and then by how its text begins."""
    known = _EXTENSIONS.get(Path(name).suffix.lower())
    if known is not None:
        return known
    head = text[:4000].lstrip("\ufeff \t\r\n")
    if Path(name).suffix.lower() in (".config", ".solver", ".txt") and not head.startswith("{") and looks_like_prototxt(text):
        return "prototxt"
    if _SHEBANG.match(head):
        return "shell"
    if head.startswith("{"):
        return "json" if re.match(r'\{\s*(?:"|\}|//)', head) else "namespace"
    if re.match(r"(?:argparse\.)?[A-Z]\w*\(\s*\w+=", head):
        return "namespace"
    if _LAUNCH.match(head):
        return "argv"
    lines = [line for line in head.split("\n")[:40] if line.strip()]
    pairs = sum(bool(_PAIR.match(line)) for line in lines)
    return "keyvalue" if len(lines) >= 2 and pairs >= 0.6 * len(lines) else None


def _hydra_overrides(tree: ConfigTree) -> ConfigTree:
    """`.hydra/overrides.yaml` is a list of `a.b=c`: what the user changed on the command line."""
    texts = [leaf for leaf in tree if len(leaf.path) == 1 and isinstance(leaf.path[0], int)]
    pattern = re.compile(r"(?:\+{0,2}|~)[A-Za-z_][\w./@\-]*=")
    if not texts or len(texts) != len(tree) or tree.text is None:
        return tree
    if not all(isinstance(leaf.value, str) and pattern.match(leaf.value) for leaf in texts):
        return tree
    source = Source(tree.text, tree.file, tree.leaves[0].line - tree.text.count("\n", 0, tree.leaves[0].start))
    made = []
    for leaf in texts:
        inner = leaf.raw.find(leaf.value)
        if leaf.start is None or inner < 0:  # quoted with escapes: the place is the whole text
            continue
        made += override_leaves(source, leaf.value, leaf.start + inner)
    return replace(tree, leaves=tuple(made), kind="command")
