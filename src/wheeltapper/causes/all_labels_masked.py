"""Every target is masked out, so there is nothing to learn.

## What happens
A chat template whose answer part is never found, a wrong ignore index, truncation before the answer: every
label is ignored. The mean over no element is 0/0, or a guard turns it into exactly zero.

## How it shows
The training loss is exactly 0 from the first row, or the validation loss is NaN at every evaluation while
the training loss is finite.

## What else looks like this
A logger that replaces NaN (Hugging Face prints 0.0 once the weights are NaN): there the loss was normal
before. A term of the loss that cannot apply.

## When this is wrong
The loss was above zero for some rows, with the same labels.

## Fix
Count the valid labels of a few batches; mend the template, the ignore index or the length limit.

## Trial
Count the labels that are not ignored in the first hundred items: none decides.

## References
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
- huggingface/trl issues 5662 and 6668 (every label masked after truncation).
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Finding, Remedy
from wheeltapper.run.model import Series

ID = "all-labels-masked"
AREA = "data"
EXPLAINS = ("loss-exactly-zero", "not-finite")
PRIOR = -2.0
TRIAL = "count the labels that are not ignored in the first hundred training items: none decides"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    train: Series | None = case.get("train_loss")
    out = []
    zero = [f for f in case.found("loss-exactly-zero", severity="ill") if _whole(case, f)]
    if zero and train is not None:
        if zero[0].onset is not None and zero[0].onset > train.at[0]:
            return Excluded("the loss was above zero before, with the same labels")
        out.append(Evidence(5.0, "the whole training loss is exactly 0 from the first row", "zero", zero[0].places))
    bad = case.found("not-finite", severity="ill")
    if bad and train is not None and train.finite.all():
        val: Series | None = case.get("val_loss")
        if val is not None and not val.finite.any() and not zero:
            out.append(Evidence(4.0, f"{val.name} is NaN at all {len(val)} evaluations, training is finite", "eval"))
    elif bad and not zero and train is not None and train.finite.any():
        return Excluded("the loss was finite before, with the same labels")
    return out or Excluded("no loss is exactly zero from the start, and none is NaN from the start")


def _whole(case: Case, finding: Finding) -> bool:
    series = case.run.series.get(finding.series or "")
    return series is not None and not series.part


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Print one batch with its labels and see that some are not ignored.", (), "safe",
               "the first loss is that of an untrained model"),
    )  # fmt: skip
