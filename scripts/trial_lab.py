"""Trials of known faults: is the true cause confirmed, and is a plausible wrong one ever?

    python scripts/trial_lab.py [-o FOLDER] [--only NAME]

Each case is a fault of the lab at size "test", cut to 25 to 40 % of its length. The right arm takes the fault away; the wrong ones change what
people blame instead. Healthy runs are put to the same arms: nothing may be confirmed there. Figures in LOG.md.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from lab_pairs import Bench, Case, ill, run_case

from wheeltapper.lab.systems import system

COSINE = {"scheduler": "CosineAnnealingLR"}


def case(name: str, fault: str, right: dict[str, Any], kind: str = "difference", base: dict[str, Any] | None = None,
         **wrong: dict[str, Any]) -> Case:  # fmt: skip
    config = ill(name, fault, **(base or {}))
    return Case(f"{name}/{fault}", config, {"right": right, **wrong}, frozenset({"right"}), kind)


def ill_cases() -> list[Case]:
    no_fault = {"fault": "none"}
    return [
        case("sr-nano", "lr-too-low", {"lr": 0.01}, fp16={"use_amp": False}, ema={"ema_decay": 0.9}),
        case("sr-nano", "ema-horizon", {"ema_decay": 0.98, "ema_power": 0.75}, warmup={"warmup_iter": 24}, clip={"grad_clip": False}),
        case("sr-nano", "val-64px", no_fault, fp16={"amp_bf16": True}, cosine=COSINE, loss_scheduling={"dynamic_loss_scheduling": False}),
        case("sr-nano", "nan-batch", no_fault, kind="symptom", lr={"lr": 0.003}, fp16={"use_amp": False}),
        case("resnet-ddp", "lr-too-low", {"lr": 0.3}, smoothing={"label_smoothing": 0.0}, mixup={"mixup_alpha": 0.0}),
        case("resnet-ddp", "ema-horizon", {"ema_decay": 0.95, "ema_every": 1}, lr={"lr": 0.1}, warmup={"warmup_epochs": 2}),
        case("resnet-ddp", "weight-decay-too-strong", {"weight_decay": 5e-4}, smoothing={"label_smoothing": 0.0}, mixup={"mixup_alpha": 0.0}),
        case("sedd-protein", "lr-too-high", {"lr": 0.012}, dropout={"dropout": 0.0}, ema={"ema": 0.95}),
        case("sedd-protein", "warmup-in-micro-steps", {"warmup": 12}, clip={"grad_clip": 10.0}, dropout={"dropout": 0.0}),
        case("sedd-protein", "bad-shard", no_fault, clip={"grad_clip": 0.5}, decay={"weight_decay": 0.0}),
        case("edm-prior", "lr-too-high", {"learning_rate": 0.01}, ema={"ema_decay": 0.95}, accumulation={"gradient_accumulation_steps": 2}),
        case("edm-prior", "precond-mismatch", no_fault, batch={"batch_size": 16}, lr={"learning_rate": 0.003}),
    ]  # fmt: skip


def healthy_cases() -> list[Case]:
    """Delta is three spreads over seeds of the system: less is no illness (lab/manifest.py)."""
    blamed: dict[str, dict[str, dict[str, Any]]] = {
        "sr-nano": {"fp16": {"amp_bf16": True}, "ema": {"ema_decay": 0.95}},
        "resnet-ddp": {"clip": {"gradient_clip": 1.0}, "smoothing": {"label_smoothing": 0.0}},
        "sedd-protein": {"clip": {"grad_clip": 0.5}, "dropout": {"dropout": 0.0}},
        "edm-prior": {"ema": {"ema_decay": 0.95}, "warmup": {"warmup_steps": 18}},
    }
    # The spread of what the log reports, which for edm-prior is a loss and not the decibels of its score.
    spread = {name: float(system(name).NOISE) for name in blamed} | {"edm-prior": 0.01}
    varied: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in reversed(blamed)]
    varied += [("resnet-ddp", {"scheduler": "cosine", "warmup_epochs": 3, "mixup_alpha": 0.4})]
    varied += [("sedd-protein", {"curriculum": True, "lr": 0.01})]
    return [
        Case(f"{name}/healthy{' varied' if base else ''}", ill(name, None, **base), blamed[name], delta=3 * spread[name])
        for name, base in varied
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/trial_lab"))
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--pairs", type=int, default=8, help="most pairs of an arm")
    args = parser.parse_args()
    bench, began = Bench(args.out), time.monotonic()
    results = []
    for one in [*ill_cases(), *healthy_cases()]:
        if args.only not in one.name:
            continue
        found = run_case(one, bench, most_pairs=args.pairs)
        results.append(found)
        for arm, verdict in found["arms"].items():
            print(
                f"{found['case']:34} {arm:16} {verdict['answer']:12} {verdict['pairs']} pairs  {verdict['why']}",
                flush=True,
            )
        (args.out / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    tally(results)
    print(f"{bench.runs} runs, {bench.seconds:.0f} s of training, {time.monotonic() - began:.0f} s in all")


def tally(results: list[dict[str, Any]]) -> None:
    ill = [one for one in results if "healthy" not in one["case"]]
    right = [arm for one in ill for arm in one["arms"].values() if arm["right"]]
    wrong = [arm for one in results for arm in one["arms"].values() if not arm["right"]]
    for title, group in (("right causes", right), ("wrong causes", wrong)):
        counts = {
            answer: sum(one["answer"] == answer for one in group) for answer in ("confirmed", "refuted", "cannot-tell")
        }
        print(
            f"{title}: {len(group)}, {counts}, pairs used {sum(one['pairs'] for one in group) / max(1, len(group)):.1f}"
        )


if __name__ == "__main__":
    main()
