"""Validation shrinks the images before it compares them.

## What happens
To save memory the validation code resizes inputs and targets, mostly without filtering. A network that was
trained on real pixels is then judged on aliased thumbnails.

## How it shows
PSNR lies below plain interpolation from the first evaluation on, near that of a constant image, while the
training loss is that of a network that works. It may fall slowly as the network learns real detail.

## What else looks like this
Images of another range or order of channels, a shift by a few pixels, pairs that do not belong together.

## When this is wrong
The score of plain interpolation through the same code is right: then the images are right too.

## Fix
Validate on whole images (in tiles, if memory is short), and print the size that is compared.

## Trial
Bicubic interpolation through the validation code: it must give its known 26 to 34 dB for a factor of two.

## References
- delafer/traiNNer-redux, commits 069b6d59 and 95d13e03: validation on images shrunk to 64 pixels, and its
  repair.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import OFF, ends, settings_like
from wheeltapper.config.dialects.schema import place_of
from wheeltapper.finding import Evidence, Remedy

ID = "eval-resized-images"
AREA = "evaluation"
EXPLAINS = ("below-baseline",)
PRIOR = -2.0
TRIAL = "plain interpolation through the validation code: it must give its known score (minutes)"

LEARNED = 0.1  # an L1 or L2 loss of pixels between 0 and 1 below this is far from a constant image (about 0.2)

# SSIM of unrelated pictures is 0.05 to 0.15, of one picture in two ranges 0.2 to 0.36; validation at 64 pixels gave 0.47 in the case
# it is named after and gives 0.77 to 0.89 in the lab (LOG.md).
SHARED = 0.4


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    below = case.found("below-baseline", severity="ill")
    if not below:
        return Excluded("the score is not below plain interpolation")
    if any("input itself" in f.summary for f in below):
        return Excluded("the log compares with the input, picture by picture")
    out = [Evidence(4.0, below[0].summary, "level", below[0].places)]
    train = case.get("train_loss")
    levels = ends(train) if train is not None else None
    if levels is not None and 0 <= levels[1] < LEARNED:
        out.append(
            Evidence(2.0, f"the training loss ends at {levels[1]:.3g}: the network works on its own crops", "training")
        )
    elif levels is not None and levels[1] > 0.95 * levels[0]:
        out.append(Evidence(-3.0, "the training loss did not fall either", "training"))
    ssim = next((s for s in case.run.series.values() if s.quantity == "ssim" and s.split != "train" and s.finite.any()), None)
    if ssim is not None and (most := float(np.nanmax(ssim.values))) < SHARED:
        text = f"{ssim.name} is at most {most:.2f}: the two pictures share no structure, and smaller copies of one picture would"
        out.append(Evidence(-4.0, text, "structure", (ssim.place(int(np.nanargmax(ssim.values))),)))
    resized = [leaf for leaf in settings_like(case.run, r"(val|test|eval)\w*\..*(resize|max_?size|downscale)")
               if leaf.value not in OFF]  # fmt: skip
    if resized:
        leaf = resized[0]
        out.append(Evidence(4.0, f"{leaf.dotted} is {leaf.value!r}", "setting", (place_of(leaf),)))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Mend the evaluation: validate on whole images and print the compared size; leave the optimizer alone.", (), "safe",
               "plain interpolation gives its known score through the same code"),
    )  # fmt: skip
