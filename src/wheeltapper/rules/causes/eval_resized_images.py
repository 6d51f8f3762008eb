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

from wheeltapper.finding import Remedy

ID = "eval-resized-images"
AREA = "evaluation"
ABOUT = "evaluation"
EXPLAINS = ("below-baseline",)
SHOWS = {"error-in-pixels": "high", "below-baseline": "seen"}
FORBIDS = {"below-baseline": "clear"}
PROVED_BY = ("resize-not-applied",)
TRIAL = "plain interpolation through the validation code: it must give its known score (minutes)"
REMEDY = Remedy(
    "Mend the evaluation: validate on whole images and print the compared size; leave the optimizer alone.",
    (),
    "safe",
    "plain interpolation gives its known score through the same code",
)
