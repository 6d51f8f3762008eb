"""How records are prepared before a network gets them: what scales them, and what changes them at random."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from wheeltapper.program.play.elements import SAME_ELEMENTS
from wheeltapper.program.play.lineage import SCALES, STATISTICS
from wheeltapper.program.play.value import MAX_WALK, Val, made_of, number

RANDOMLY = re.compile(
    r"^(Random(?!State|Sampler|Forest|\w*Split|ized)\w+|ColorJitter|AutoAugment|TrivialAugment\w*|RandAugment|AugMix|(Horizontal|Vertical)Flip|"
    r"ShiftScaleRotate|GaussNoise|ElasticTransform|random_(crop|flip\w*|brightness|contrast|hue|saturation|rotation|zoom\w*)|stateless_random_\w+)$"
)
PIPELINES = {"Compose", "Sequential", "AugmentationSequential", "ImageSequential"}
NORMALIZES = {"Normalize", "Normalization", "Rescaling", "preprocess_input", "per_image_standardization"}
IMPURE = {"RandomState", "RandomSampler", "RandomForestClassifier", "RandomForestRegressor"}


def ways(value: Val) -> Iterator[Val]:
    """Everything that data passes on its way, the transforms of pipelines too; not what only picks rows."""
    seen: set[int] = set()
    queue = [value]
    for one in queue:
        if id(one) in seen or len(seen) > MAX_WALK:
            continue
        seen.add(id(one))
        yield one
        queue += _before(one)


def _before(value: Val) -> list[Val]:
    match value.op:
        case "net" | "call" if value.args and (pipeline := _pipeline(value.args[0])):
            return [*pipeline, *value.args[1:]]
        case "net":
            return [value.args[0], *value.args[1:2]] if value.args and value.args[0].op == "call" else list(value.args[1:2])
        case "item" | "elem" | "batch" | "split" | "attr" | "unary":
            return list(value.args[:1])
        case "gen" if value.name == "map":
            return list(value.args)
        case "gen" | "comp":
            return list(value.args[:1])
        case "list" | "tuple":
            return list(value.items or ())[:1] if value.op == "tuple" else list(value.items or ())
        case "dict":
            return [v for k, v in value.fields.items() if not k.startswith("@")]
        case "bin":
            return list(value.args[1:] if number(value.args[0]) is not None else value.args[:1])
        case "phi":
            return list(value.args)
        case "call":
            given = [a for a in value.args if number(a) is None] if value.name not in SAME_ELEMENTS else value.args[:1]
            return [*given, *(v for k, v in value.kwargs.items() if k in ("transform", "image", "dataset"))]
    return []


def _pipeline(value: Val) -> list[Val]:
    """The transforms of `Compose([...])`."""
    if value.op == "call" and value.name in PIPELINES and value.args:
        return list(value.args[0].items or value.args)
    return []


def random_steps(value: Val) -> list[Val]:
    return [v for v in ways(value) if v.op in ("call", "net") and RANDOMLY.match(v.name) and v.name not in IMPURE]


def scaling(value: Val) -> Counter[str]:
    """What scales the records on their way: division by 255, by a spread, a scaler, Normalize; each as often as it is done."""
    out: Counter[str] = Counter()
    for one in ways(value):
        if one.op == "bin" and one.name in ("Sub", "Div", "Mult") and len(one.args) == 2:
            worth = number(one.args[1])
            if worth is not None and worth not in (0, 1) and abs(worth) > 2:
                out[f"{one.name} {worth:g}"] += 1
            elif worth is None and _is_statistic(one.args[1]):
                out[f"{one.name} by a statistic"] += 1
        elif one.op in ("call", "net") and one.name in NORMALIZES:
            out[one.name] += 1
        elif one.op == "call" and one.name in SCALES and len(one.args) > 1 and one.args[0].op in ("call", "obj", "attr"):
            out["a scaler"] += 1
    return out


def _is_statistic(value: Val) -> bool:
    near = [v for v in made_of(value, deep=False) if v.op == "call"][:3]
    return any(v.name in STATISTICS for v in near)
