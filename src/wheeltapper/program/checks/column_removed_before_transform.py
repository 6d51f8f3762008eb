"""The trainer removes a column that the transform needs.

What it sees
------------
A dataset with a transform that is applied when records are read, given to a Hugging Face Trainer that removes the
columns its model does not know.

Why it matters
--------------
The column is gone before the transform reads it: the first batch fails, or is empty.

How it decides
--------------
The dataset given for training was made with `with_transform` or `set_transform`, its function reads a column that is
no argument of a model, and `remove_unused_columns` is not False.

When it is wrong
----------------
If the model's forward takes that column.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "column-removed-before-transform"
CAUSE: str | None = "crash-at-end"
DECIDES = True

OF_MODELS = {"input_ids", "attention_mask", "labels", "label", "label_ids", "pixel_values", "token_type_ids", "input_values", "input_features", "decoder_input_ids"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        data, args = call.kwargs.get("train_dataset"), call.kwargs.get("args")
        if call.op != "call" or data is None or args is None or not args.name.endswith("Arguments") or "**" in args.kwargs:
            continue
        kept = args.kwargs.get("remove_unused_columns")
        if (kept is not None and kept.data is not True) or not _is_transformed(data):
            continue
        raw = [c for c in _columns(code) if c not in OF_MODELS]
        if raw:
            yield code.seen(ID, f"The trainer removes the column {raw[0]} before the transform reads it (remove_unused_columns).", _end(args), call, data)
            return


def _end(args: Val) -> Val:
    """The last of the arguments: where the setting is missing."""
    node = args.node
    last = node.keywords[-1].value if isinstance(node, ast.Call) and node.keywords else node
    return Val("const", node=last)


def _is_transformed(data: Val) -> bool:
    while data.op == "item":
        data = data.args[0]  # a part of it
    return data.op == "gen" and data.name == "map" and isinstance(data.node, ast.Call) and getattr(data.node.func, "attr", "") == "with_transform"


def _columns(code: Code) -> list[str]:
    """The columns that functions given to with_transform read."""
    out = []
    for call in code.program.calls.get("with_transform", []):
        for name in {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}:
            for func in code.program.functions.get(name, []):
                out += [
                    n.slice.value for n in ast.walk(func.node)
                    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str)
                ]  # fmt: skip
    return out
