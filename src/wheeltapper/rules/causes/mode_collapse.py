"""The generator makes a few kinds of images only.

## What happens
It finds some images that fool the discriminator and leaves the rest of the data out.

## How it shows
Diversity falls (recall, coverage, the spread between samples) while the look of single images (precision) holds;
FID turns and rises.

## What else looks like this
A discriminator that won (its loss is near zero), overfitting of the discriminator on little data, a metric that
is broken.

## When this is wrong
Recall holds while FID rises: then quality fell, not diversity.

## Fix
A checkpoint before the turn; a gradient penalty, a larger batch, augmentation of the discriminator's inputs.

## Trial
A thousand samples of the last checkpoint: the share of near-duplicates against that of the best checkpoint.

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Kynkäänniemi et al. 2019, Improved Precision and Recall Metric for Assessing Generative Models
  (arXiv:1904.06991).
- Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule (arXiv:1706.08500), the definition of
  FID.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "mode-collapse"
AREA = "adversarial"
ABOUT = "learning"
EXPLAINS = ("declined-after-peak", "collapsed")
SHOWS = {"score-lost": "high", "collapsed": "seen"}
PROVED_BY = ("generator-without-noise",)
TRIAL = "a thousand samples of the last checkpoint: the share of near-duplicates against the best checkpoint"
REMEDY = Remedy(
    "Return to the checkpoint before the turn; augment the discriminator's inputs or add a penalty.",
    (),
    "try",
    "recall holds while FID falls",
)
