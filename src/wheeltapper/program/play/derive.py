"""Small derivations that several checks share: where a value comes from, how far a window reaches, what a target is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wheeltapper.program.play.story import RANDOM, Story, with_gradient
from wheeltapper.program.play.value import Val, made_of, number, plain, text_of

PARAMETER_LAYERS = {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "Bilinear", "LazyLinear", "Embedding"}
ATTENDS = {
    "MultiheadAttention",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "Transformer",
}


def produced(value: Val, depth: int = 0) -> list[Val]:
    """The operations a value comes straight from: through shapes, selections, and what networks return."""
    value = plain(value)
    if depth > 30:
        return [value]
    if value.op == "phi":
        return [p for v in value.args for p in produced(v, depth + 1)]
    if value.op == "net" and isinstance(value.data, Val):
        return produced(value.data, depth + 1)
    if value.op == "item" and value.args[0].op not in ("batch", "elem", "index", "param", "free", "attr"):
        return produced(value.args[0], depth + 1)
    if value.op == "comp" and value.args:
        return produced(value.args[0], depth + 1)
    if value.op == "elem" and value.args and value.args[0].op == "call" and value.args[0].name in ("chunk", "split", "unbind"):
        return produced(value.args[0], depth + 1)
    if value.op == "call" and value.name in ("masked_select", "gather", "clone", "dropout", "chunk", "split", "unbind") and value.args:
        return produced(value.args[0], depth + 1)
    return [value]


def is_raw_layer(value: Val) -> bool:
    """The output of a layer with weights, with nothing after it."""
    return value.op == "net" and value.args[0].op == "call" and value.args[0].name in PARAMETER_LAYERS


def nets_of(value: Val | None) -> list[Val]:
    """The networks applied in making a value."""
    return [v for v in made_of(value) if v.op == "net"] if value is not None else []


def learns_through(story: Story, value: Val) -> list[Val]:
    """The applications of trained networks that a gradient reaches from this value."""
    return [v for v in with_gradient(value) if v.op == "net" and story.is_trained(v.args[0])]


def is_frozen(story: Story, network: Val) -> bool:
    """Whether its parameters are told not to want gradients."""
    told = [c for c in story.named("setattr") if c.args[1].data == "requires_grad" and c.args[2].data is False]
    told += [c for c in story.named("requires_grad_") if len(c.args) > 1 and c.args[1].data is False]
    return any(v is network or any(a is network for a in v.args) for c in told for v in made_of(c.args[0]))


# -- numbers with names ------------------------------------------------------------------------------------------


def linear(value: Val | None, depth: int = 0) -> dict[Any, float]:
    """A value as a sum of unknowns with their factors; the number alone stands under ""."""
    if value is None or (value.op == "const" and value.data is None):
        return {}
    known = number(value)
    if known is not None:
        return {"": float(known)}
    if value.op == "bin" and value.name in ("Add", "Sub") and depth < 12:
        a, b = linear(value.args[0], depth + 1), linear(value.args[1], depth + 1)
        sign = 1 if value.name == "Add" else -1
        return {k: v for k in {*a, *b} if (v := a.get(k, 0.0) + sign * b.get(k, 0.0))}
    if value.op == "bin" and value.name == "Mult" and depth < 12:
        for one, other in (value.args, reversed(value.args)) if len(value.args) == 2 else ():
            factor = number(one)
            if factor is not None:
                return {k: factor * v for k, v in linear(other, depth + 1).items()}
    if value.op == "call" and value.name == "len" and value.args:
        return {("len", id(plain(value.args[0]))): 1.0}
    if value.op == "attr" and value.args:
        return {("attr", value.name, id(value.args[0])): 1.0}
    return {id(value): 1.0}


def difference(a: Val | None, b: Val | None) -> float | None:
    """a - b, where what is not known in them cancels."""
    left, right = linear(a), linear(b)
    rest = {k: left.get(k, 0.0) - right.get(k, 0.0) for k in {*left, *right}}
    return rest.pop("", 0.0) if all(abs(v) < 1e-9 for k, v in rest.items() if k != "") else None


def window(value: Val, axis: int | None = None) -> tuple[Val, Val | None, Val | None] | None:
    """What is cut from what: (base, first, end) of `base[first:end]`; `axis` picks one of several cuts."""
    value = plain(value)
    if value.op != "item":
        return None
    base, index = value.args
    if index.op == "tuple" and index.items:
        cuts = [(i, v) for i, v in enumerate(index.items) if v.op == "slice"]
        wanted = [v for i, v in cuts if i == axis] if axis is not None else [v for _, v in cuts if not _whole(v)]
        if len(wanted) != 1:
            return None
        index = wanted[0]
    elif axis not in (None, 0):
        return None
    if index.op != "slice":
        return None
    first, end = index.args[0], index.args[1]
    return plain(base), _given(first), _given(end)


def _whole(cut: Val) -> bool:
    return all(_given(a) is None for a in cut.args[:2])


def _given(value: Val) -> Val | None:
    return None if value.op == "const" and value.data is None else value


# -- targets and products ----------------------------------------------------------------------------------------


def bootstrap(value: Val) -> Iterator[tuple[Val, Val, Val]]:
    """`reward + discount * value of the next state` inside a value: the sum, the discount, and the net applied."""
    for one in made_of(value):
        if one.op != "bin" or one.name != "Add":
            continue
        for side, other in (one.args, tuple(reversed(one.args))):
            factors = list(_factors(side))
            nets = [f for f in factors if any(v.op == "net" for v in made_of(f, stop=_chosen))]
            discounts = [f for f in factors if _is_discount(f)]
            if nets and discounts and not any(v.op == "net" for v in with_gradient(other)):
                yield one, discounts[0], nets[0]


def _is_discount(value: Val) -> bool:
    known = number(value)
    if known is not None:
        return 0 <= known <= 1.5
    name = value.data if value.op == "item" and isinstance(value.data, str) else value.name
    return value.op in ("attr", "item", "free", "param") and bool(re.search(r"gamma|discount", name, re.I))


def _chosen(value: Val) -> bool:
    """Something picked by a network, an action say, or made in its shape: what comes of it is data again."""
    if value.op == "attr" and value.name in ("shape", "device", "dtype"):
        return True
    return value.op == "call" and (value.name in ("item", "argmax", "numpy", "tolist", "sample", "multinomial") or value.name in RANDOM)


def _factors(value: Val, depth: int = 0) -> Iterator[Val]:
    value = plain(value)
    if value.op == "bin" and value.name == "Mult" and depth < 8 and number(value) is None:
        for one in value.args:
            yield from _factors(one, depth + 1)
    else:
        yield value


factors = _factors


def is_log_prob(value: Val) -> bool:
    """The log-probability of what was done: asked of a distribution, or picked from a log-softmax."""
    if value.op != "call" or not value.args:
        return False
    picked = value.name == "gather" and any(v.op == "call" and v.name == "log_softmax" for v in produced(value.args[0]))
    return picked or value.name in ("log_prob", "log_probs", "evaluate_actions")


def is_random(value: Val) -> bool:
    return value.op == "call" and value.name in RANDOM and (value.origin.count(".") > 0 or value.name.endswith("_like"))


# -- what a score is ---------------------------------------------------------------------------------------------


def direction(value: Val) -> str | None:
    """ "low" for what is better when low (a loss), "high" for a share of right answers; None if that is not seen."""
    if any(
        v.op == "bin" and v.name == "Sub" and number(v.args[0]) == 1 and is_overlap(v.args[1]) for v in made_of(value)
    ):
        return "low"
    found = {d for v in made_of(value) for d in (_direction(v),) if d}
    return found.pop() if len(found) == 1 else None


def _direction(value: Val) -> str | None:
    if value.op == "call" and value.name in LOW:
        return "low"
    if (
        value.op == "cmp"
        and value.name == "Eq"
        and any(v.op == "call" and v.name in ("argmax", "max", "topk", "round") for v in made_of(value))
    ):
        return "high"
    if (value.op == "call" and value.name in HIGH) or is_overlap(value):
        return "high"
    return None


def is_overlap(value: Val) -> bool:
    """(2 * sum(prediction * target) + e) / (sum + sum + e), or its mean."""
    while value.op == "call" and value.name in ("mean", "sum") and value.args:
        value = value.args[0]
    if (
        value.op != "bin"
        or value.name != "Div"
        or not any(v.op == "bin" and v.name == "Add" for v in made_of(value.args[1], deep=False))
    ):
        return False
    products = [
        v
        for v in made_of(value.args[0], deep=False, stop=_is_distance)
        if v.op == "bin" and v.name == "Mult" and all(number(a) is None for a in v.args)
    ]
    return any(p.args[0] is not p.args[1] and any(n.op == "net" for n in made_of(p, stop=_is_distance)) for p in products)


def _is_distance(value: Val) -> bool:
    """A difference, its square or its size: what is summed of it is an error, no overlap."""
    return (value.op == "bin" and value.name in ("Sub", "Pow")) or (
        value.op == "call" and value.name in ("abs", "pow", "square", "sqrt", "norm")
    )


LOW = {
    "cross_entropy", "mse_loss", "l1_loss", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "smooth_l1_loss",
    "huber_loss", "ctc_loss", "mean_squared_error", "mean_absolute_error", "kl_div", "log_loss",
}  # fmt: skip
HIGH = {
    "accuracy_score",
    "f1_score",
    "roc_auc_score",
    "average_precision_score",
    "balanced_accuracy_score",
    "r2_score",
    "multiclass_accuracy",
}
NAMED_LOW = re.compile(
    r"(^|[/_.])(loss|perplexity|ppl|nll|mse|rmse|mae|mape|wer|cer|fid|error|err|bpb|bpc)($|[/_.])", re.I
)
NAMED_HIGH = re.compile(
    r"(^|[/_.])(acc|accuracy|f1|auc|auroc|map|map50|miou|iou|dice|bleu|rouge\w*|psnr|ssim|r2|reward|return|precision|recall|ndcg\w*|hit\w*|top1|top5)($|[/_.\d@])",
    re.I,
)


def direction_by_name(name: str) -> str | None:
    if NAMED_LOW.search(name):
        return "low"
    return "high" if NAMED_HIGH.search(name) else None


# -- words -------------------------------------------------------------------------------------------------------


def words_on(value: Val, limit: int = 60) -> set[str]:
    """Keys, fields and names that a value passed on its way from the data; networks are not followed into."""
    import ast

    out: set[str] = set()
    for count, one in enumerate(made_of(value, deep=False)):
        if count > limit:
            break
        if one.op in ("attr", "param") and one.name:
            out.add(one.name.lower())
        if one.op in ("item", "const") and isinstance(one.data, str):
            out.add(one.data.lower())
        if isinstance(one.node, ast.Name) and one.op in ("item", "batch", "elem", "net"):
            out.add(one.node.id.lower())
    return out


def first_text(call: Val, *names: str) -> str | None:
    return next((t for n in names if (t := text_of(call.kwargs.get(n))) is not None), None)


# -- attention ---------------------------------------------------------------------------------------------------


def is_attention(value: Val) -> bool:
    if value.op == "net":
        return value.args[0].op == "call" and value.args[0].name in ATTENDS
    if value.op == "call" and value.name == "scaled_dot_product_attention":
        return True
    return value.op == "call" and value.name == "softmax" and bool(value.args) and _is_scores(value.args[0])


def _is_scores(value: Val) -> bool:
    """A product of two projections of activations."""
    for one in made_of(value, deep=False, stop=lambda v: v.op == "net"):
        if (one.op == "bin" and one.name == "MatMult") or (
            one.op == "call" and one.name in ("matmul", "bmm", "einsum")
        ):
            sides = one.args[-2:]
            return len(sides) == 2 and all(any(v.op == "net" for v in made_of(s)) for s in sides)
    return False
