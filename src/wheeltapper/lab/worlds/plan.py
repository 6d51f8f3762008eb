"""Which runs are made: faults and controls in turn, families as evenly as the faults allow, and the two splits."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass

from wheeltapper.lab.worlds.controls import CONTROLS
from wheeltapper.lab.worlds.families import FAMILIES
from wheeltapper.lab.worlds.faults import FAULTS, LOOP, Fault

HEALTHY_SHARE = 0.45
SEALED_FAMILIES = ("dqn", "det", "moe", "ddpm")
SEALED_FAULTS = (
    "plateau_wrong_mode", "optimizer_recreated", "mask_rate_extreme", "advantages_forward", "generator_detached",
    "reference_is_policy", "adapters_frozen", "decoder_sees_target", "blank_mismatch", "train_val_shift",
    "ema_never_updated", "same_view_twice", "step_once_per_epoch", "targets_not_normalised_series", "stale_resume",
    "teacher_not_trained", "logvar_as_std", "ids_swapped",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    id: str
    family: str
    what: str  # id of the fault or control
    seed: int
    split: str


def families_of(fault: Fault) -> list[str]:
    return [n for n, f in FAMILIES.items() if n in fault.families or (LOOP in fault.families and not f.own_loop)]


def split_of(family: str, what: str, code: str) -> str:
    """Whole families and faults are sealed, and a share of everything else."""
    if family in SEALED_FAMILIES or what in SEALED_FAULTS:
        return "sealed"
    return "sealed" if int(code[:4], 16) % 100 < 12 else "fit"


def things() -> dict[str, Fault]:
    return {f.id: f for f in [*FAULTS, *CONTROLS]}


def jobs(seed: int, count: int) -> list[Job]:
    """The first `count` jobs of a seed; a longer list begins with the shorter one."""
    r = random.Random(f"plan-{seed}")
    used: Counter[tuple[str, str]] = Counter()
    decks: dict[str, list[Fault]] = {"fault": [], "control": []}
    made = []
    for number in range(count):
        kind = "control" if r.random() < HEALTHY_SHARE else "fault"
        if not decks[kind]:
            decks[kind] = sorted(CONTROLS if kind == "control" else FAULTS, key=lambda f: f.id)
            r.shuffle(decks[kind])
        thing = decks[kind].pop()
        family = min(families_of(thing), key=lambda n: used[kind, n] + r.random())
        used[kind, family] += 1
        code = hashlib.sha256(f"{seed}-{number}".encode()).hexdigest()
        made.append(Job(f"w-{code[:8]}", family, thing.id, int(code[8:14], 16), split_of(family, thing.id, code)))
    return made
