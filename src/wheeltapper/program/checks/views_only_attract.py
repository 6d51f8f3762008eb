"""Two views attract each other and nothing keeps them apart.

What it sees
------------
A loss that only makes two outputs of the same trained network alike, with gradients on both sides.

Why it matters
--------------
The least loss is reached where every input gives the same output: the embedding collapses to a point.

How it decides
--------------
All that the loss is made of is a product, a cosine or a distance of two applications of the same network. No side is
detached or made by a copy or a predictor, and nothing else (negatives, a variance, a decorrelation, a reconstruction)
is in the loss.

When it is wrong
----------------
If something else keeps the outputs apart, as a whitening layer does.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, breaks_graph, made_of, plain
from wheeltapper.program.reading import Code

ID = "views-only-attract"
CAUSE: str | None = "output-collapse"
DECIDES = True

ALIKE = {"cosine_similarity", "mse_loss", "l1_loss", "smooth_l1_loss", "dot", "inner", "pairwise_distance"}
APART = {
    "cross_entropy", "log_softmax", "logsumexp", "softmax", "nll_loss", "std", "var", "cov", "relu", "margin_ranking_loss", "exp",
    "triplet_margin_loss", "binary_cross_entropy_with_logits", "matmul", "mm", "einsum", "bmm", "logsigmoid", "sigmoid", "softplus", "log",
}  # fmt: skip


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        near = list(made_of(loss, deep=False, stop=lambda v: v.op == "net"))
        if any(v.op == "call" and v.name in APART for v in near) or any(
            v.op == "bin" and v.name == "MatMult" for v in near
        ):
            continue
        sides = [v for v in near if v.op == "net"]
        if len({v.order for v in sides}) < 2 or not _same_network(story, sides) or any(breaks_graph(v) for v in near):
            continue
        joined = [v for v in near if _joins(story, v)]
        if joined and not any(v.op in ("batch", "elem", "param", "free") for v in near):
            yield code.seen(
                ID,
                "The loss only makes two views alike, and nothing keeps different samples apart.",
                joined[0],
                *sides[:2],
            )
            return


def _same_network(story: Story, sides: list[Val]) -> bool:
    first = sides[0].args[0]
    return story.is_trained(first) and all(s.args[0] is first and not s.no_grad for s in sides)


def _joins(story: Story, value: Val) -> bool:
    """A product, cosine or distance of two outputs, element by element, of views of the same samples."""
    known = story.squared(value)
    if known is not None:
        parts = known.args
    elif value.op == "bin" and value.name == "Mult":
        parts = value.args
    elif value.op == "call" and value.name in ALIKE and len(value.args) > 1:
        parts = value.args[:2]
    else:
        return False
    nets = [_output(p) for p in parts[:2]]
    if nets[0] is None or nets[1] is None or nets[0].order == nets[1].order:
        return False
    ways = [
        {id(v) for a in n.args[1:2] for v in lineage(a) if v.op not in ("const", "free")} for n in nets if n is not None
    ]
    return bool(ways[0] & ways[1])


def _output(value: Val) -> Val | None:
    """The output of a network, as it is or brought to length one."""
    value = plain(value)
    if value.op == "call" and value.name == "normalize" and value.args:
        value = plain(value.args[0])
    return value if value.op == "net" else None
