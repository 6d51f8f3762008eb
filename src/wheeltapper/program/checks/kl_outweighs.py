"""The KL term is summed and the reconstruction is averaged.

What it sees
------------
A variational autoencoder whose reconstruction error is averaged over all pixels while its KL term is summed over the
latent numbers, with a weight that does not make up for it.

Why it matters
--------------
The KL term then weighs as many times more as there are pixels. The encoder learns to say nothing, and every output is
the mean of the data.

How it decides
--------------
The squared error or the loss of torch is reduced with a mean over everything, the KL term with a sum; the product of its
weight and the number of outputs, where the last layer tells it, is 20 and more. Without that number it is suspected.

When it is wrong
----------------
If the data's spread is far above 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.kl_weight_extreme import divergence
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.story import NUMBER_LOSSES, Story, Term
from wheeltapper.program.play.value import Val, made_of, number, text_of
from wheeltapper.program.reading import Code

ID = "kl-outweighs"
CAUSE: str | None = "kl-collapse"
DECIDES = True

BOUND = 20.0  # times the weight of a plain autoencoder's bound
BINARY = {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
OPEN = 0.1  # weight above which it is worth a look where the number of outputs is not known


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        kl = divergence(loss)
        if kl is None or not _summed(loss, kl):
            continue
        for value in made_of(loss):
            fit = _averaged(story, value)
            weight = _weight(story, loss, kl)
            if fit is None or weight is None:
                continue
            outputs = _outputs(fit)
            if outputs is not None and weight * outputs >= BOUND:
                text = f"The reconstruction is averaged over {outputs:,.0f} outputs and the KL term is summed with a weight of {weight:g}: it weighs {weight * outputs:,.0f} times as much as it should."
                yield code.seen(ID, text, value, kl)
                return
            if outputs is None and weight >= OPEN:
                yield code.seen(
                    ID, "The reconstruction is averaged and the KL term is summed.", value, kl, grade="suspected"
                )
                return


def _summed(loss: Val, kl: Val) -> bool:
    """Whether the KL term is summed over the latent numbers, and not averaged over everything."""
    way = [
        v
        for v in made_of(loss)
        if v.op == "call" and v.name in ("sum", "mean") and any(k is kl for k in made_of(v, deep=False))
    ]
    around = [v for v in way if not any(n.op == "net" and any(k is kl for k in made_of(n)) for n in v.args[:1])]
    return any(v.name == "sum" for v in around)


def _averaged(story: Story, value: Val) -> Val | None:
    """The error that a plain mean is taken of: the loss call, or the squared difference written out."""
    if value.op == "call" and value.name in NUMBER_LOSSES | BINARY:
        how = text_of(value.kwargs.get("reduction"))
        return value if how in (None, "mean") and value.args else None
    if value.op == "call" and value.name == "mean" and len(value.args) == 1 and not value.kwargs:
        inner = value.args[0]
        kept = inner.op == "call" and inner.name in BINARY and text_of(inner.kwargs.get("reduction")) == "none"
        return inner if kept else story.squared(inner)
    return None


def _weight(story: Story, loss: Val, kl: Val) -> float | None:
    """The known factor in front of the KL term, without the half that belongs to it."""
    mine = [t for t in story.terms(loss) if _is_part(t, kl)]
    return max(t.factor for t in mine) / 0.5 if mine else None


def _is_part(term: Term, kl: Val) -> bool:
    return any(term.value is v for v in made_of(kl, deep=False))


def _outputs(fit: Val) -> float | None:
    """How many numbers one output has, as the last layer says."""
    for last in produced(fit.args[0]):
        if last.op == "net" and last.args[0].op == "call" and last.args[0].name == "Linear":
            return number(last.args[0].arg("out_features", 1))
        if last.op == "call" and last.name in ("sigmoid", "tanh") and last.args:
            return _outputs(Val("call", args=last.args))
    return None
