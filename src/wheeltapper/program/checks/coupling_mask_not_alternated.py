"""Every coupling layer leaves the same half as it is.

What it sees
------------
A flow of coupling layers that all get the same mask.

Why it matters
--------------
What a coupling layer does not change, the next one must. With one mask for all, a part of the input is never
transformed, and its density stays the base.

How it decides
--------------
A class whose forward uses both a mask and one minus it is made several times in a comprehension with a mask that
does not depend on the turn.

When it is wrong
----------------
If a permutation between the layers moves the halves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "coupling-mask-not-alternated"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("ModuleList", "Sequential"):
        for comp in (
            v for a in call.args for v in made_of(a) if v.op in ("comp", "gen") and v.args and v.args[0].op == "obj"
        ):
            layer = comp.args[0]
            given = layer.fields.get("@args")
            if given is None or not given.items or _mask_of(code, layer) is None or _permutes(code):
                continue
            fixed = not any(
                v.op in ("index", "elem") or (v.op == "bin" and v.name == "Mod")
                for i in given.items
                for v in made_of(i)
            )
            several = len(comp.args) < 2 or number(comp.args[1].args[0] if comp.args[1].args else None) != 1
            if (
                fixed
                and several
                and any(
                    v.op == "call" and v.name in ("tensor", "arange", "zeros", "ones")
                    for i in given.items
                    for v in made_of(i)
                )
            ):
                text = "All coupling layers get the same mask: a part of the input is never transformed."
                yield code.seen(ID, text, layer, call)
                return


def _mask_of(code: Code, layer: Val) -> str | None:
    """The field that the layer uses as itself and as one minus itself."""
    cls = code.program.classes.get(layer.name)
    for node in ast.walk(cls.node) if cls is not None else ():
        match node:
            case ast.BinOp(op=ast.Sub(), left=ast.Constant(value=1), right=ast.Attribute(attr=name)):
                return name
    return None


def _permutes(code: Code) -> bool:
    return code.calls_any("flip", "permute", "roll") or any("ermut" in name for name in code.program.classes)
