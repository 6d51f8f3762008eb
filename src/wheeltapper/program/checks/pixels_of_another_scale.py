"""Pixels are normalised with the numbers of another scale.

What it sees
------------
Mean and spread for pixels between 0 and 1 (0.485, 0.229) applied to pixels between 0 and 255, or the other way round.

Why it matters
--------------
The inputs are hundreds of times too large, or all alike.

How it decides
--------------
A pipeline of transforms that normalises with numbers for 0..1 and in which nothing brings pixels there (ToTensor,
ToDtype with scale, a division); preprocessors of the mm libraries, which get pixels of 0 to 255.

When it is wrong
----------------
If the pictures are stored as fractions.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import configures_a_runner
from wheeltapper.program.play.value import Val, number, text_of
from wheeltapper.program.reading import Code

ID = "pixels-of-another-scale"
CAUSE: str | None = "input-not-normalised"
DECIDES = True

PREPROCESSORS = ("DetDataPreprocessor", "SegDataPreProcessor", "ImgDataPreprocessor", "ClsDataPreprocessor", "ActionDataPreprocessor", "Normalize")
SCALES = {"ToTensor", "ConvertImageDtype", "convert_image_dtype", "to_tensor", "Lambda", "ToFloat", "AutoImageProcessor"}


def check(code: Code) -> Iterator[Finding]:
    for pipeline in code.story.named("Compose"):
        steps = list(pipeline.args[0].items or []) if pipeline.args else []
        raw = [s for s in steps if s.name in ("ToDtype", "PILToTensor", "ToImage", "pil_to_tensor")]
        scaled = any(s.name in SCALES or _scales(s) or s.op not in ("call", "lib") for s in steps)
        normal = [s for s in steps if s.name == "Normalize"]
        if raw and normal and not scaled and not _is_large(normal[0]):
            yield code.seen(ID, "Pixels of 0 to 255 are normalised with numbers for 0 to 1: nothing scales them before.", raw[-1], normal[0], pipeline)
            return
    names = code.story.player.modules[code.program.entry.name].names if configures_a_runner(code.program) else {}
    for made in (d for n in ("model", "data_preprocessor", "train_pipeline") if n in names for d in _inside(names[n])):
        yield from _configured(code, made)


def _inside(value: Val, depth: int = 0) -> Iterator[Val]:
    """Every dictionary in a configuration."""
    if value.op == "dict" and depth < 8:
        yield value
    held = [v for k, v in value.fields.items() if not k.startswith("@")] if value.op == "dict" else []
    for inner in (*held, *(value.items or ())):
        if depth < 8:
            yield from _inside(inner, depth + 1)


def _scales(step: Val) -> bool:
    given = step.kwargs.get("scale")
    return step.name == "ToDtype" and given is not None and given.data is not False


def _is_large(normal: Val) -> bool:
    mean = normal.arg("mean", 0)
    worth = [number(v) for v in (mean.items or [])] if mean is not None else []
    return any(w is not None and w > 2 for w in worth)


def _configured(code: Code, made: Val) -> Iterator[Finding]:
    """`dict(type="DetDataPreprocessor", mean=[...], std=[...])`"""
    if text_of(made.fields.get("type")) not in PREPROCESSORS or not {"mean", "std"} <= made.fields.keys():
        return
    if text_of(made.fields["type"]) == "Normalize" and "to_rgb" not in made.fields:
        return
    worth = [number(v) for name in ("mean", "std") for v in made.fields[name].items or []]
    if len(worth) == 6 and all(w is not None and 0 < w < 1 for w in worth):
        yield code.seen(ID, "The preprocessor gets pixels of 0 to 255 and has mean and spread for 0 to 1.", made.fields["mean"], made)
