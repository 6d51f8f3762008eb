"""Configurations printed in logs: found here, parsed by `config`, every leaf with its line in the log.

Known prints: an echoed YAML file, BasicSR's `key:[ ... ]`, argparse `Namespace(...)`, CycleGAN's Options
table, Megatron's dotted table, aligned `key: value` blocks, `Configuration: {...}`, YOLO's `k=v, k=v`
lines and command lines.
"""

from __future__ import annotations

import re
from copy import copy

from wheeltapper.reading._text import prefix_of
from wheeltapper.settings.dialects.generic import meanings_of
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import ConfigTree, Leaf, Path
from wheeltapper.settings.vocabulary import meaning_of_path

MAX_CONFIGS = 40  # a log appended to by many launches echoes its configuration every time
MAX_BLOCK = 5000  # lines
MAX_LINE = 20_000  # characters; only a Namespace is ever longer
_PROGRAM = "python x.py "
LEAST = 5  # fewer key: value lines in a row are talk, not a configuration

_LINE_STARTS = (
    (re.compile(r"(?:^|[\s:=])(Namespace\(.+)$"), "namespace"),
    (re.compile(
        r"^\W*(?:\w+\s)?(?:config\w*|options?|arg(?:ument)?s|hyper-?param\w*"
        r"|hparams|settings?|cfg|opt|flags|spec|params?|setup|hp)\s*[:=]?\s*(\{.+)$", re.I), "namespace"),
    (re.compile(r"^(\{['\"][A-Za-z_][\w.-]*['\"]\s*:.+)$"), "namespace"),
    (re.compile(
        r"(?:^|[+$#>]\s*)((?:CUDA_VISIBLE_DEVICES=\S+\s+)?(?:\S*/)?(?:python[\d.]*"
        r"|torchrun|accelerate|deepspeed)\s+\S.*\s--?\w.*)$"), "argv"),
    # Options without the program: what a script logs of its own command line.
    (re.compile(r"^(?:[\w ]{1,30}[:=]\s*)?((?:--?[A-Za-z][\w-]*(?:[= ][^\s-]\S*|[= ]-\d\S*)?\s+){2,}--?[A-Za-z][\w-]*(?:[= ]\S+)?)\s*$"), "options"),
    (re.compile(
        r"^(?:hyperparameters|train|engine/trainer|\S*trainer):\s+((?:[\w.]+=[^,=]*,\s*){4,}[\w.]+=.*)$"), "namespace"),
)  # fmt: skip
# nanoGPT's configurator echoes, one a line, what the command line changed.
_OVERRIDE = re.compile(r"^Overrid(?:ing|e|den)(?: \w+)?:\s+(?P<key>[A-Za-z_][\w.]*)\s*=\s*(?P<value>[^\s=].*)$")
_OPTIONS_OPEN = re.compile(r"^-{3,}\s*(?:Options|Arguments|Config\w*|Hyper\w*)\s*-{3,}", re.I)
_OPTIONS_CLOSE = re.compile(r"^-{3,}\s*End\b|^-{10,}\s*$", re.I)
_DOTTED = re.compile(r"^\s*(?P<key>[A-Za-z_][\w-]*) \.{2,} ?(?P<value>.*?)\s*$")
_PAIR = re.compile(r"^\s*(?:[-*] )?(?P<key>[A-Za-z_][\w./-]*)\s*(?P<sep>[:=])(?P<value>(?:\s.*|\[|(?<==)[^\s=].*)?)$")
_YAMLISH = re.compile(r"^\s*(?:#.*|- .*|[*] [\w./-]+\s*[:=].*|[\w.\"'/-]+(?::(?:\s.*|\[)?|\s+:\s.*|\s*=\s*[^\s=].*)|\]|\})\s*$")
_ON_LINE = re.compile(r"(?<![\w./-])([^\W\d][\w.-]*) ?= ?([^\s,;|=]+)")
_MADE = re.compile(r"(?:^|[\s:=])([A-Z]\w*\([A-Za-z_]\w*=.+\))\s*$")  # a dataclass as Python prints it: "Args(lr=0.003, bsz=256)"
# A printed object that goes on over further lines: its first line ends after a comma or the opening bracket.
_OPEN_MADE = re.compile(r"(?:^|[\s:=])((?:Namespace|[A-Z]\w*(?:Arg\w*|Config|Conf|Params|Options|Settings|Hparams))\((?:[A-Za-z_]\w*=[^()]*(?:\([^()]*\)[^()]*)*,)?)\s*$")
_RESULT = re.compile(r"(?i)(?:^|_)(?:loss|acc|accuracy|ppl|perplexity|f1|auc|runtime|per_second)$")
_OPEN_DICT = re.compile(r"^\{['\"][A-Za-z_][\w.-]*['\"]\s*:[^{}]*,\s*$")  # as pprint begins a dict that spans lines
_CELLS = re.compile(r"(?:^|\s)[|│┃]\s*([A-Za-z_][\w.-]*)\s*[|│┃]\s*([^|│┃]*?)\s*[|│┃]\s*$")  # a row of a drawn table of settings
_OWN_WORD = re.compile(r"^\W*[^\s{]{1,24}\s*[:=]?\s*(\{['\"][A-Za-z_].*\})\s*$")  # a dict behind a word of any language
_KEYS = re.compile(r"['\"]([A-Za-z_][\w.-]*)['\"]\s*:(\s)")
_CALLED = re.compile(r"(?i)^\W*(?:\w+ )?(?:options?|arg(?:ument)?s|flags|config\w*|settings?|hyper-?param\w*|hparams|params|setup|cfg)\b")
_DEFAULT = re.compile(r"\s*\[default: .*\]\s*$")


def scalar(text: str) -> object:
    """What a printed scalar meant: Python words and numbers; anything else stays text.

    >>> scalar("1e-06"), scalar("True"), scalar("None"), scalar("[0, 1]"), scalar("resnet50")
    (1e-06, True, None, [0, 1], 'resnet50')
    """
    text = text.strip()
    words = {"True": True, "False": False, "true": True, "false": False, "None": None, "null": None, "~": None}
    if text in words:
        return words[text]
    for kind in (int, float):
        try:
            return kind(text) if "_" not in text else text
        except ValueError:
            continue
    if text[:1] in "[(" and text[-1:] in ")]" and not any(c in text[1:-1] for c in "[({"):
        parts = [part.strip() for part in text[1:-1].split(",")]
        return [scalar(part) for part in parts if part]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def _is_number(value: object) -> bool:
    return isinstance(scalar(value) if isinstance(value, str) else value, int | float)


def _steers(pairs: list[tuple[str, str]]) -> bool:
    """Are two of the names settings that steer a training? The layers of a printed model have arguments, too."""
    return sum(meaning_of_path((key,)) is not None for key, _ in pairs) >= 2


def _settings_in(body: str) -> list[tuple[str, str, int]]:
    """The settings on one line of talk, "lr=0.01 wd=5e-4 bs=64": three or more, two of them steering ones by their names, and
    most of them where nothing on the line calls them settings."""
    found = [(hit[1], hit[2].rstrip(",;|)"), hit.start(2)) for hit in _ON_LINE.finditer(body)]
    known = sum(meaning_of_path((key,)) is not None or bool(meanings_of((key,))) for key, _, _ in found)
    enough = known >= 2 and (2 * known >= len(found) or _CALLED.match(body) is not None)
    return found if len(found) >= 3 and enough else []


class EchoScanner:
    """Feeds on the lines that are not rows; `configs` are what it recognised."""

    def __init__(self, file: str, *, numbered: bool = False) -> None:
        self.file = file
        self._numbered = numbered
        self.configs: list[ConfigTree] = []
        self._seen: set[str] = set()
        self._block: list[tuple[int, str]] = []
        self._mode = ""  # options | dotted | pairs | json

    def feed(self, lines: list[tuple[int, str]]) -> None:
        for n, text in lines:
            if len(self.configs) < MAX_CONFIGS and len(text) < 200_000:
                self._line(n, text)

    def finish(self) -> tuple[ConfigTree, ...]:
        """What was recognised so far. A block still open is closed in a copy only, for more lines may be fed."""
        told = copy(self)
        told.configs, told._seen = list(self.configs), set(self._seen)
        told._close()
        return tuple(told.configs)

    def _line(self, n: int, text: str) -> None:
        if self._mode == "json" or (text == "{" and not self._mode):
            self._mode = "json"
            self._block.append((n, text))
            if text == "}" or len(self._block) > MAX_BLOCK:
                self._close()
            return
        if self._mode == "dict" or (not self._mode and _OPEN_DICT.match(text)):
            self._mode = "dict"
            self._block.append((n, text))
            if text.rstrip().endswith("}") or len(self._block) > MAX_BLOCK:
                self._close()
            return
        if self._mode == "options":
            if _OPTIONS_CLOSE.match(text):
                self._close()
            else:
                self._block.append((n, _DEFAULT.sub("", text)))
            return
        if self._mode == "made":
            self._block.append((n, text))
            if text.rstrip().endswith(")") or len(self._block) > MAX_BLOCK:
                self._close()
            return
        prefix = prefix_of(text, numbered=self._numbered)
        body = text[prefix.end :]
        if opened := _OPEN_MADE.search(body):
            self._close()
            self._mode = "made"
            self._block.append((n, " " * (prefix.end + opened.start(1)) + opened[1]))
            return
        if _OPTIONS_OPEN.match(body):
            self._close()
            self._mode = "options"
            return
        if changed := _OVERRIDE.match(body):
            self._close()
            leaf = self._leaf((changed["key"],), changed["value"], n, text, prefix.end + changed.start("value"))
            self._keep([leaf], body, least=1)
            return
        if _DOTTED.match(body):
            self._extend("dotted", n, " " * prefix.end + body)
            return
        if body.count("=") > 2 and len(body) < MAX_LINE and "(" not in body and (pairs := _settings_in(body)):
            self._close()
            self._keep([self._leaf((k,), v, n, text, prefix.end + at) for k, v, at in pairs], body, least=len(pairs))
            return
        if (" --" in body or ": {" in body or "={" in body or _MADE.search(body)) and self._whole_line(n, body, prefix.end):
            return
        if self._mode in ("", "pairs") and (cells := _CELLS.search(text)):
            self._extend("pairs", n, f"{' ' * cells.start(1)}{cells[1]} = {cells[2]}")
            return
        logged = prefix.time is not None or prefix.level is not None
        if not logged and self._mode in ("", "pairs") and _YAMLISH.match(body):
            self._extend("pairs", n, body)
            return
        if logged and self._mode == "pairs" and _PAIR.match(body):  # a logger that writes its prefix before every setting
            self._extend("pairs", n, " " * prefix.end + body)
            return
        self._close()
        if self._whole_line(n, body, prefix.end):
            return
        if logged and _YAMLISH.match(body.strip() or "x") and not body.startswith(" "):
            self._extend("pairs", n, " " * prefix.end + body)  # the first line of a block carries the prefix

    def _whole_line(self, n: int, body: str, begin: int) -> bool:
        """Settings that stand on one line. True if they do."""
        for pattern, form in _LINE_STARTS if len(body) < MAX_LINE else _LINE_STARTS[:1]:
            if found := pattern.search(body):
                self._close()
                self._parse(found[1], n, begin + found.start(1), form)
                return True
        own = _OWN_WORD.match(body) if len(body) < MAX_LINE else None
        if own and _steers(_KEYS.findall(own[1])):
            self._close()
            self._parse(own[1], n, begin + own.start(1), "namespace")
            return True
        made = _MADE.search(body) if len(body) < MAX_LINE else None
        if made and _steers(_ON_LINE.findall(made[1])):
            self._close()
            self._parse(made[1], n, begin + made.start(1), "namespace")
            return True
        return False

    def _extend(self, mode: str, n: int, text: str) -> None:
        if self._mode != mode or (self._block and n - self._block[-1][0] > 3) or len(self._block) > MAX_BLOCK:
            self._close()
            self._mode = mode
        self._block.append((n, text))

    def _close(self) -> None:
        block, mode = self._block, self._mode
        self._block, self._mode = [], ""
        if mode == "made":
            self._parse("\n".join(t for _, t in block), block[0][0], 0, "namespace")
        if mode == "made" or len(block) < LEAST:
            return
        if mode in ("dotted", "options"):
            found = max((self._flat(block, pattern) for pattern in (_PAIR, _DOTTED)), key=len)
            self._keep(found, "\n".join(t for _, t in block))
        elif mode == "dict":
            self._parse("\n".join(t for _, t in block), block[0][0], 0, "namespace")
        elif mode == "json":
            self._parse("\n".join(t for _, t in block), block[0][0], 0, "json")
        elif mode == "pairs":
            self._pairs(block)

    def _pairs(self, block: list[tuple[int, str]]) -> None:
        pairs = sum(1 for _, t in block if _PAIR.match(t))
        if pairs < LEAST or pairs < 0.3 * len(block):
            return
        texts = [t for _, t in block]
        whole = "\n".join(texts)
        if any(t.rstrip().endswith(":[") for t in texts):
            self._keep(self._bracketed(block), whole)
        elif any(m["value"].strip() == "" and m["sep"] == ":" for t in texts if (m := _PAIR.match(t))):
            if whole in self._seen:
                return
            first = block[0][0]
            rows = [""] * (block[-1][0] - first + 1)
            for n, t in block:
                rows[n - first] = t
            self._parse("\n".join(rows), first, 0, "yaml")
        else:
            self._keep(self._flat(block, _PAIR), whole)

    def _flat(self, block: list[tuple[int, str]], pattern: re.Pattern[str]) -> list[Leaf]:
        return [
            self._leaf((found["key"],), found["value"], n, text, found.start("value"))
            for n, text in block
            if (found := pattern.match(text))
        ]

    def _bracketed(self, block: list[tuple[int, str]]) -> list[Leaf]:
        """BasicSR's dict2str: `key:[` opens a level, `]` closes it."""
        path: list[str] = []
        leaves = []
        for n, text in block:
            word = text.strip()
            if word == "]":
                path = path[:-1]
            elif word.endswith(":[") and len(path) < 50:
                path = [*path, word[:-2].strip()]
            elif found := _PAIR.match(text):
                leaves.append(self._leaf((*path, found["key"]), found["value"], n, text, found.start("value")))
        return leaves

    def _leaf(self, path: Path, raw: str, line: int, text: str, column: int) -> Leaf:
        raw = raw.strip()
        if raw.endswith(",") and not isinstance(scalar(raw[:-1]), str | list):  # a line of a call that spans lines: "lr=0.002,"
            raw = raw[:-1]
        lead = len(text[column:]) - len(text[column:].lstrip())
        return Leaf(path, scalar(raw), raw, self.file, line, column + lead + 1)

    def _keep(self, leaves: list[Leaf], text: str, least: int = LEAST) -> None:
        if len(leaves) < least or text in self._seen:
            return
        self._seen.add(text)
        self.configs.append(ConfigTree(self.file, "keyvalue", tuple(leaves), kind="echoed in log"))

    def _parse(self, text: str, line: int, column: int, form: str) -> None:
        if text in self._seen:
            return
        self._seen.add(text)
        bare = form == "options"  # the parser of command lines wants a program
        tree = parse_text(f"{_PROGRAM}{text}" if bare else text, self.file, "argv" if bare else form, first_line=line)
        column -= len(_PROGRAM) if bare else 0
        if form == "namespace" and text.startswith("{") and any(_RESULT.search(str(x.path[-1])) and _is_number(x.value) for x in tree):
            return  # a row of results, printed once
        if len(tree) < (2 if form in ("argv", "namespace", "options") else LEAST):
            return
        kind = "command" if form in ("argv", "options") else "echoed in log"
        moved = tuple(
            Leaf(x.path, x.value, x.raw, x.file, x.line, x.column + (column if x.line == line else 0), note=x.note)
            for x in tree
            if not (bare and x.path[0] in ("launcher", "script"))
        )
        self.configs.append(ConfigTree(self.file, tree.format, moved, problems=tree.problems, kind=kind))
