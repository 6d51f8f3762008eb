"""Structural damage: a record is taken apart into tokens, rows, keys or opcodes, changed there, and put together again.

Every change is drawn from a `random.Random`, so an input is known by its number.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

TOKEN = re.compile(r"\s+|[A-Za-z_][\w/.]*|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|.", re.DOTALL)
NUMBERS = [
    "nan", "NaN", "-inf", "Infinity", "1e999", "-1e999", "1e-400", "0", "-0", "-1", "1", "2000000000", "9" * 25, "9" * 400,
    "0x10", "1_000", "1e5", "007", "1.", ".5", "--1", "1e", "+", "½", "²", "٣", "1,5", "1.2.3", "null", "None", "true", '"1"', "", "1e308",
    "9223372036854775808", "-9223372036854775809", "18446744073709551616", "4294967296",
]  # fmt: skip
WORDS = [
    'a"b', "a\\b", "a\tb", "a\x00b", "é", "\u2028", "\ud7ff", "\U0001f600", "", " ", "a b", "a.b", "a[0]", "a/b", "..", "__proto__", "epoch",
    "step", "loss", "lr", "val_loss", "time", "iter", "train", "%s", "{0}", "${x}", "$(x)", "`x`", "<b>", "&", "*", "[", "(", "{", "x" * 3000,
    "constructor", "nan", "self", "0", "-", "--", "=", ":", ",", ";", "|", "#", "//", "/*", "<<", ">>", "\r", "\x1b[31m", "\ufeff", "!!python/object",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, -1e308, float("nan"), float("inf"), 10**30, 10**400, "", "x", "nan", "1e-4", "1" * 500, [], {}, [[]],
    [1, 2], [None], {"a": 1}, {"a": {"b": []}}, ["x"] * 70, [0.5] * 70, {'a"b': 1}, {"": 2}, 2**63, -(2**63) - 1, "é\u2028",
]  # fmt: skip


def mutated(data: bytes, name: str, other: bytes, rng: random.Random) -> bytes:
    """One to three changes of the kinds that suit the file."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice(kinds_for(data, name))(data, other, rng)[:400_000]
    return data


Change = Callable[[bytes, bytes, random.Random], bytes]


def kinds_for(data: bytes, name: str) -> list[Change]:
    kinds: list[Change] = [cut, splice, flip]
    if data[:2] == b"PK":
        return [*kinds, zipped, zipped, lengths]
    if b"\x00" in data[:2000] or data[:1] == b"\x80":
        return [*kinds, lengths, lengths, pickled if data[:1] == b"\x80" else flip]
    kinds += [tokens, tokens, rows, quotes, longer]
    if name.endswith((".json", ".jsonl")) or data[:1] in b"{[":
        kinds += [json_tree, json_tree, json_tree]
    if name.endswith((".csv", ".log", ".txt")):
        kinds += [cells]
    return kinds


def cut(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.7 else data[at:]


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at, begin = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    piece = other[begin : begin + rng.choice([5, 60, 1000, 20_000])]
    return data[:at] + piece + data[at + rng.choice([0, 0, len(piece)]) :]


def flip(data: bytes, other: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 2, 10]) if out else 0):
        out[rng.randrange(len(out))] = rng.choice([0, 10, 34, 92, 128, 255, rng.randrange(256)])
    return bytes(out)


def lengths(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Numbers of a binary format: lengths, counts, offsets."""
    if len(data) < 9:
        return data
    at = rng.randrange(len(data) - 8)
    form = rng.choice(["<Q", "<I", "<H", "<B", ">I"])
    size = struct.calcsize(form)
    value = rng.choice([0, 1, (1 << 8 * size) - 1, (1 << (8 * size - 1)), rng.randrange(1 << 8 * size)])
    return data[:at] + struct.pack(form, value) + data[at + size :]


def tokens(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Words, numbers and marks of a text: replaced, doubled, dropped, swapped."""
    parts = TOKEN.findall(data.decode("utf-8", "replace"))
    for _ in range(rng.choice([1, 2, 6]) if parts else 0):
        at = rng.randrange(len(parts))
        what = rng.randrange(6)
        if what == 0 or (what < 3 and parts[at][:1].isdigit()):
            parts[at] = rng.choice(NUMBERS)
        elif what < 3:
            parts[at] = rng.choice(WORDS)
        elif what == 3:
            parts[at] = parts[at] * rng.choice([2, 3, 200])
        elif what == 4:
            parts[at] = ""
        else:
            to = rng.randrange(len(parts))
            parts[at], parts[to] = parts[to], parts[at]
    if rng.random() < 0.1 and parts:  # one word everywhere
        old, new = rng.choice(parts), rng.choice(WORDS + NUMBERS)
        parts = [new if part == old else part for part in parts]
    return "".join(parts).encode("utf-8", "replace")


def rows(data: bytes, other: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(7)
    if what == 0:
        lines[at:at] = [lines[at]] * rng.choice([1, 3, 300])
    elif what == 1:
        del lines[min(at, to) : max(at, to)]
    elif what == 2:
        lines[at], lines[to] = lines[to], lines[at]
    elif what == 3:
        rng.shuffle(lines)
    elif what == 4:
        lines[at] = lines[at] + lines[to]
    elif what == 5:
        lines[at] = b" " * rng.randrange(9) + lines[at].lstrip()
    else:
        return rng.choice([b"\r\n", b"\r", b"\n\n", b" "]).join(lines)
    return b"\n".join(lines)


def quotes(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    mark = rng.choice([b'"', b"'", b"\\", b"`", b'"""', b"{", b"}", b"[", b"]", b"(", b")", b",", b":", b"\n", b"\t", b"#", b"|", b"&a ", b"*a", b"!x "])
    return data[:at] + mark * rng.choice([1, 1, 2, 50]) + data[at + rng.choice([0, 1]) :]


def longer(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """One stretch many times over: what is more than linear shows."""
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.choice([1, 2, 5, 30])]
    return data[:at] + piece * rng.choice([10, 300, 3000]) + data[at:]


def cells(data: bytes, other: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    mark = max(b",", b";", b"\t", b" ", key=data.count)
    column = rng.randrange(8)
    new = rng.choice(NUMBERS + WORDS).encode("utf-8", "replace")
    first = rng.randrange(len(lines))
    for i in range(first, min(len(lines), first + rng.choice([1, 10, 10_000]))):
        parts = lines[i].split(mark)
        if column < len(parts):
            parts[column] = rng.choice([new, new, parts[column] + mark + new])
        lines[i] = mark.join(parts)
    return b"\n".join(lines)


def json_tree(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Keys, types and nesting of JSON or JSON lines."""
    lines = data.split(b"\n") if b"\n{" in data else [data]
    spots = [rng.randrange(len(lines)) for _ in range(rng.choice([1, 1, 5, len(lines)]))]
    for at in spots[:200]:
        try:
            tree = json.loads(lines[at])
        except (ValueError, RecursionError):
            return tokens(data, other, rng)
        try:
            lines[at] = json.dumps(_changed(tree, rng), ensure_ascii=rng.random() < 0.5).encode("utf-8", "replace")
        except (ValueError, RecursionError):
            return data
    return b"\n".join(lines)


def _changed(tree: Any, rng: random.Random, depth: int = 0) -> Any:
    if isinstance(tree, dict) and tree and rng.random() < 0.9:
        keys = list(tree)
        key = rng.choice(keys)
        what = rng.randrange(6)
        if what == 0:
            return {(rng.choice(WORDS) if k == key else k): v for k, v in tree.items()}
        if what == 1:
            return {k: v for k, v in tree.items() if k != key}
        if what == 2:
            return {**tree, key: rng.choice(VALUES)}
        if what == 3:
            return {**tree, rng.choice(WORDS): rng.choice(VALUES)}
        return {**tree, key: _changed(tree[key], rng, depth + 1)} if depth < 50 else tree
    if isinstance(tree, list) and tree and rng.random() < 0.9:
        at = rng.randrange(len(tree))
        what = rng.randrange(4)
        if what == 0:
            return tree[:at] + tree[at + 1 :]
        if what == 1:
            return [*tree[:at], rng.choice(VALUES), *tree[at:]]
        return [*tree[:at], _changed(tree[at], rng, depth + 1), *tree[at + 1 :]] if depth < 50 else tree
    return rng.choice([rng.choice(VALUES), [tree], {"x": tree}])


OPCODES = b"(.012FIJKLMNPQRSTUVXabcd}ehijl]opqrst)uGBC\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98"


def pickled(data: bytes, other: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 3, 20])):
        at = rng.randrange(len(out) + 1)
        out[at : at + rng.choice([0, 1])] = bytes([rng.choice(OPCODES)])
    return bytes(out)


def zipped(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """An archive with other content, names or entries."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            entries = [(info.filename, old.read(info)) for info in old.infolist()[:50]]
    except Exception:
        return flip(data, other, rng)
    new = io.BytesIO()
    at = rng.randrange(len(entries)) if entries else 0
    with zipfile.ZipFile(new, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for i, (name, body) in enumerate(entries):
            if i == at:
                what = rng.randrange(4)
                body = pickled(body, other, rng) if what < 2 and body else other if what == 2 else body
                name = rng.choice([name, name, name + "x", "a/" + name])
            archive.writestr(name, body)
    return new.getvalue()


def binary_seeds() -> list[tuple[str, bytes]]:
    """Small files of the binary formats, made here."""
    import numpy as np

    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "__metadata__": {"step": "5"}}).encode()
    out = [("model_5.safetensors", struct.pack("<Q", len(header)) + header + bytes(16))]
    state = {"epoch": 3, "global_step": 5, "state_dict": {"w": [1.0]}, "optimizer": {"state": {0: {"step": 5}}, "param_groups": [{"lr": 0.1}]}, "args": {"lr": 0.1}}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("net/data.pkl", pickle.dumps(state, 2))
        file.writestr("net/data/0", bytes(16))
    out += [("net_5.pth", archive.getvalue()), ("last.ckpt", pickle.dumps(state, 4)), ("history.pkl", pickle.dumps({"loss": [2.0, 1.0, 0.5], "val_loss": np.ones(4)}, 2))]
    curve = io.BytesIO()
    np.savez(curve, loss=np.linspace(2, 1, 30), val_loss=np.linspace(2, 1, 30))
    one = io.BytesIO()
    np.save(one, np.linspace(2, 1, 30))
    return [*out, ("losses.npz", curve.getvalue()), ("train_loss.npy", one.getvalue())]
