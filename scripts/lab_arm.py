"""One run of the lab as a training command: what `wheeltapper trial` starts for an arm of a lab system.

    python scripts/lab_arm.py --config arm.yaml --seed 3 --out folder

The config is one flat YAML file: `system`, `size`, `fault` (an id whose patch is applied to the script, or none),
`onset`, `patch` (a further patch, in the manner of lab/faults), and every setting of the system. An arm that
changes a setting changes one line of it. `config_of` makes one for a fault.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from wheeltapper.lab.faults import patched
from wheeltapper.lab.launch import Plan, leave_stale_checkpoint, plan_run, train
from wheeltapper.lab.systems import system

OWN = ("system", "size", "fault", "onset", "patch")


def config_of(name: str, fault: str | None, seed: int = 0, size: str = "test", **base: Any) -> dict[str, Any]:
    """The settings that a fault makes of the recipe, drawn with `seed` once for all arms and repeats."""
    plan = plan_run(name, size, seed, fault, base or None)  # type: ignore[arg-type]
    settings = {key: value for key, value in plan.settings.items() if key != "seed"}
    return {"system": name, "size": size, "fault": fault or "none", "onset": plan.onset, "patch": "", **settings}


def plan_of(config: dict[str, Any], seed: int) -> Plan:
    home = system(config["system"])
    settings = {key: value for key, value in config.items() if key not in OWN} | {"seed": seed}
    fault = None if config["fault"] in (None, "none") else config["fault"]
    plan = Plan(config["system"], config["size"], seed, settings, fault, config["onset"], "", True)
    text = home.SCRIPT.read_text(encoding="utf-8")
    if plan.fault is not None:
        text = patched(text, plan.fault.patch, plan.onset)
    text = patched(text, config.get("patch") or "")
    return Plan(config["system"], config["size"], seed, settings, fault, config["onset"], text, True)


def run(config: dict[str, Any], seed: int, out: Path) -> str:
    """Train in `out`; gives how it ended."""
    import torch

    torch.set_num_threads(1)
    plan, home = plan_of(config, seed), system(config["system"])
    out.mkdir(parents=True, exist_ok=True)
    if getattr(plan.fault, "stale", False):
        leave_stale_checkpoint(plan, home, out)
    return train(plan, home, out)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    ended = run(yaml.safe_load(args.config.read_text(encoding="utf-8")), args.seed, args.out.resolve())
    print(ended)
    return 0 if ended == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
