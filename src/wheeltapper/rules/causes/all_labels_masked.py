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

from wheeltapper.finding import Remedy

ID = "all-labels-masked"
AREA = "data"
ABOUT = "learning"
EXPLAINS = ("loss-exactly-zero", "not-finite")
SHOWS = {"loss-exactly-zero": "seen", "skill": "low"}
PROVED_BY = ("ignore-index-is-a-class", "prompt-scored")
TRIAL = "count the labels that are not ignored in the first hundred training items: none decides"
REMEDY = Remedy(
    "Print one batch with its labels and see that some are not ignored.",
    (),
    "safe",
    "the first loss is that of an untrained model",
)
