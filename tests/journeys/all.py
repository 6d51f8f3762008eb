"""Every journey, one after the other, with a table at the end: `just journeys`, or some: `just journeys hf_trainer keras_fit`.

Needs the libraries; a program whose library is missing is left out and said so. Takes about half a minute a journey.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from journeys.itinerary import name_of, trips
from journeys.travel import Journey, missing, travel


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="programs, or program:fault")
    parser.add_argument("--out", type=Path, help="a file that takes one line of JSON a journey")
    parser.add_argument("--keep", type=Path, help="a folder that keeps what the trainings wrote")
    args = parser.parse_args()
    done: list[Journey] = []
    for program, fault in trips():
        name = name_of(program, fault)
        if args.only and not {name, program.name} & set(args.only):
            continue
        if lacks := missing(program):
            print(f"{name:38s} left out: {lacks} is not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder) if args.keep is None else args.keep / name.replace(":", "/")
            one = travel(program, fault, base)
        done.append(one)
        print(row(one), flush=True)
        if args.out is not None:
            with args.out.open("a") as file:
                file.write(json.dumps(asdict(one)) + "\n")
    print("\n".join(summary(done)))
    return 0


def row(one: Journey) -> str:
    first = f"{one.causes[0][0]} {one.causes[0][1]:.0%}" if one.causes else "-"
    mark = {True: "right", False: "WRONG", None: ""}[one.right]
    gain = f"{one.before:.3g} → {one.after:.3g} {'better' if one.better else 'NOT BETTER'}" if one.better is not None else ""
    applies = {True: "applies", False: "DOES NOT APPLY", None: one.state}[one.applies]
    follow = {True: "ok", False: "WRONG", None: ""}[one.follow_right]
    notes = "; ".join(one.notes).replace("\n", " ")
    return f"{one.name:38s} {one.verdict:11s} {first:32s} {mark:6s} {applies:16s} {gain:30s} {one.follow} {follow} {one.seconds:.0f}s {notes}"


def summary(done: Sequence[Journey]) -> list[str]:
    ill = [one for one in done if one.right is not None]
    sound = [one for one in done if one.right is None]
    edits = [one for one in done if one.applies is not None]
    ran = [one for one in edits if one.better is not None]

    def share(held: Sequence[object], of: Sequence[object]) -> str:
        return f"{len(held)} of {len(of)}"

    return [
        "",
        f"faults:                  {share([o for o in ill if o.verdict == 'ill'], ill)} called ill, {share([o for o in ill if o.verdict == 'sound'], ill)} called sound",
        f"first cause right:       {share([o for o in ill if o.right], ill)}; among those called ill {share([o for o in ill if o.right and o.verdict == 'ill'], [o for o in ill if o.verdict == 'ill'])}",
        f"healthy called ill:      {share([o for o in sound if o.verdict == 'ill'], sound)}; called sound {share([o for o in sound if o.verdict == 'sound'], sound)}",
        f"edits that apply:        {share([o for o in edits if o.applies], edits)}",
        f"fixed runs better:       {share([o for o in ran if o.better], ran)}",
        f"follow-ups right:        {share([o for o in ran if o.follow_right], ran)}",
    ]


if __name__ == "__main__":
    sys.exit(main())
