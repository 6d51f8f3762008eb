"""The training data is not shuffled.

What it sees
------------
A training loader without `shuffle=True` and without a sampler.

Why it matters
--------------
Batches come in the same order in every epoch. If the data is sorted, by class or by time, each batch holds one kind
only.

How it decides
--------------
The dataset of the training loop is read by a DataLoader that does not shuffle. A proof where the dataset is sorted by
class (a folder of classes) ; else worth a look.

When it is wrong
----------------
If the dataset is shuffled when it is made, or samples at random.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.story import CLASS_LOSSES
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "not-shuffled"
CAUSE: str | None = "data-not-shuffled"
DECIDES = True

SORTED = {"ImageFolder", "DatasetFolder", "sorted", "sort", "sort_values", "argsort"}

KNOWN = {"torch", "torchvision", "torchaudio", "datasets", "sklearn", "numpy", "np", ""}  # whose functions are known not to shuffle


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call, _ in story.backwards:
        for turn in call.loops:
            loader = (
                next((v for v in made_of(turn.over) if v.op == "call" and v.name == "DataLoader"), None)
                if turn.over is not None
                else None
            )
            if loader is None or not _in_order(loader):
                continue
            dataset = loader.arg("dataset", 0)
            if (
                dataset is None
                or any(is_random(v) for v in made_of(loader.fields.get("batch")))
                or _streams(code, dataset)
            ):
                continue
            sorted_ = any(v.op == "call" and v.name in SORTED for v in (dataset, *made_of(dataset)))
            classes = any(c.name in CLASS_LOSSES for c in story.loss_calls)
            yield code.seen(
                ID,
                "The training data is read in the same order in every epoch.",
                loader,
                call,
                grade="is" if sorted_ and classes else "suspected",
            )
            return


def _in_order(loader: Val) -> bool:
    shuffle = loader.arg("shuffle", 2)
    if not loader.origin.startswith(("torch.", "DataLoader")):
        return False  # of another library, whose pipe may shuffle
    if any(k in loader.kwargs for k in ("sampler", "batch_sampler", "**")):
        return False
    return shuffle is None or (shuffle.op == "const" and shuffle.data is False)


def _streams(code: Code, dataset: Val) -> bool:
    names = code.story.player.bases(dataset.name) if dataset.op == "obj" else {dataset.name}
    return (
        bool(names & {"IterableDataset", "IterDataPipe", "WebDataset"})
        or dataset.op in ("gen", "comp", "param", "free")
        or (dataset.op == "call" and dataset.name[:1].islower() and dataset.origin.split(".")[0] not in KNOWN)
        or any(v.op == "call" and v.name in ("shuffle", "permutation", "randperm") for v in made_of(dataset))
    )
