"""The weight average remembers longer than the run lasts.

What it sees
------------
An average of constant decay d, updated every k steps, whose horizon k / (1 − d) is long against the run: at the
end a good part of it is still the weights of the first step.

Why it matters
--------------
Such an average scores near chance and looks like a broken model or broken batch-norm statistics. Updating every
10th step makes 0.9999 a horizon of 100,000 steps.

How it decides
--------------
d and k are read from the code. Where the number of steps is known, the share left of the first copy is d^(steps/k);
above 5 % it is reported as a fact. Where it is not known but epochs and batch are, the claim is turned round:
it is suspected if the data set would have to be larger than ImageNet (1.28 million) for less than 5 % to be left.
Averages that ramp their decay up are not judged.

When it is wrong
----------------
If the data set is very large (suspected only), or the average is not used before a longer second phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.averages import Average, averages_of
from wheeltapper.program.checks.accumulation_not_implemented import loader_batch
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.reading import Code

ID = "ema-horizon-too-long"
CAUSE = "ema-horizon-too-long"
DECIDES = True
LEFT = 0.05  # below this the first weights no longer move a metric visibly (EMA-01: 0.9999 is sound from 3 horizons on)
IMAGENET = 1_281_167
EPOCHS = ("epochs", "num_epochs", "max_epochs", "n_epochs", "num_train_epochs", "total_epochs")
STEPS = (
    "max_steps",
    "total_steps",
    "n_iters",
    "max_iters",
    "num_steps",
    "train_steps",
    "num_train_steps",
    "total_iter",
    "total_iters",
    "iters",
    "iterations",
    "steps",
)
BATCHES = ("batch_size", "global_batch_size", "total_batch_size", "train_batch_size")


def check(code: Code) -> Iterator[Finding]:
    for average in averages_of(code):
        if average.horizon is None or average.every is None:
            continue
        if average.part is not None and not part_reachable(code, average.part.call):
            continue
        numbers = {"decay": average.decay, "every": average.every, "horizon": average.horizon}
        told = f"The average (decay {average.decay:g}, updated every {average.every:g} steps) has a horizon of {average.horizon:,.0f} steps"
        steps = first_known(code, STEPS)
        if steps is not None:
            left = average.decay ** (steps / average.every)
            if left > LEFT:
                yield code.finding(
                    ID,
                    f"{told}; the run has {steps:,.0f}: at its end {left:.0%} of the average is still the first weights.",
                    average.made,
                    average.updated,
                    numbers={**numbers, "steps": steps, "left": left},
                )
            continue
        needed = images_needed(code, average)
        if needed is not None and needed > IMAGENET:
            yield code.finding(
                ID,
                f"{told}: unless an epoch has more than {needed / 1e6:.1f} million samples, more than {LEFT:.0%} of the average is "
                "still the first weights when the run ends.",
                average.made,
                average.updated,
                grade="suspected",
                numbers={**numbers, "samples_needed": needed},
            )


def images_needed(code: Code, average: Average) -> float | None:
    """Samples an epoch must have for the first weights to fade below LEFT."""
    epochs, batch = first_known(code, EPOCHS), first_known(code, BATCHES) or loader_batch(code)
    if epochs is None or batch is None or average.every is None:
        return None
    steps = average.every * math.log(LEFT) / math.log(average.decay)
    return steps / epochs * batch


def first_known(code: Code, names: tuple[str, ...]) -> float | None:
    for name in names:
        value = code.values.option(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
    return None
