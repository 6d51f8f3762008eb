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

from wheeltapper.finding import Remedy

ID = "hardware-fault"
AREA = "system"
ABOUT = "crash"
EXPLAINS = ("crashed", "not-finite", "spiked", "throughput-fall")
SHOWS = {"crashed": "seen", "throughput-fall": "seen"}
TRIAL = "the same steps from the same checkpoint on another machine: passing there decides"
REMEDY = Remedy("Take the machine out and resume before the onset on another.", (), "safe", "the run passes the onset")
