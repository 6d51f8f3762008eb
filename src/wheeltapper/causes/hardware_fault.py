"""A device, its memory or a link is faulty.

## What happens
Uncorrectable memory errors, a device that falls off the bus, a link that drops: the program dies, hangs or
computes wrong numbers.

## How it shows
The driver says so (Xid, ECC, NVLink); it comes again on the same machine and not on another.

## What else looks like this
Bugs that only show on an accelerator (illegal memory access by an index out of range), a network time-out because
one rank had crashed for another reason.

## When this is wrong
It comes again at the same step on another machine.

## Fix
Take the machine out, run the vendor's diagnosis, go on from the last checkpoint before the onset.

## Trial
The same steps from the same checkpoint on another machine: passing there decides.

## References
- NVIDIA, Xid errors (GPU deployment guide).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), debugging and performance.
"""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import messages_like
from wheeltapper.finding import Evidence, Place, Remedy

ID = "hardware-fault"
AREA = "system"
EXPLAINS = ("crashed", "not-finite", "spiked", "throughput-fall")
PRIOR = -6.0  # rare, and never concluded without a word of the driver
TRIAL = "the same steps from the same checkpoint on another machine: passing there decides"

SURE = r"\bxid\b|uncorrectable|double.bit ecc|\becc error|fallen off the bus|nvlink.{0,20}(error|down)|hardware error"
WEAK = r"unspecified launch failure|cuda error: unknown error|device-side.{0,20}hang|link flap"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    sure, weak = messages_like(case.run, SURE), messages_like(case.run, WEAK)
    out = []
    if sure:
        out.append(_told(9.0, sure[-1].text, Place(sure[-1].file, sure[-1].line)))
    elif weak:
        out.append(_told(3.0, weak[-1].text, Place(weak[-1].file, weak[-1].line)))
    return out


def _told(bits: float, text: str, place: Place) -> Evidence:
    return Evidence(bits, f"the log says: {text.strip().splitlines()[-1][:160]}", "driver", (place,))


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Take the machine out and resume before the onset on another.", (), "safe", "the run passes the onset"),
    )  # fmt: skip
