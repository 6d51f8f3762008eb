"""`wheeltapper practice`: what people really run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from wheeltapper.cli.output import add_look_options, console_for, write
from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.settings.practice import Rank, Spread

DESCRIPTION = """\
Shows which values public training runs use for a setting, and where yours stands.
KNOB is the meaning of a setting, such as optimizer.lr, or any key that means it
(learning_rate). The counts are of public configurations, at most five of a repository.
"""
EXAMPLES = """\
examples:
  wheeltapper practice optimizer.lr --optimizer adamw --family lm
  wheeltapper practice clip.norm --value 1e-6
  wheeltapper practice ema_decay --json

exit codes: 0 the distribution is known, 3 too few public runs set it
"""
BARS = 12
WIDTH = 40
CANNOT_TELL = 3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("practice", help="what do others run?", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("knob", metavar="KNOB", help="a setting by its meaning, or a key that means it")
    parser.add_argument("--optimizer", metavar="NAME", help="only runs with this optimizer, where there are enough")
    parser.add_argument("--family", metavar="NAME", help="only runs of this family: lm, image, rl, diffusion, gan, ...")
    parser.add_argument("--mode", choices=("scratch", "fine-tuned", "adapter"), help="how the run starts")
    parser.add_argument("--value", type=_number, metavar="X", help="mark this value")
    parser.add_argument("--json", action="store_true", help="the values, their counts and the rank as JSON")
    add_look_options(parser)


def _number(text: str) -> float:
    from math import isfinite

    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return number


def run(args: argparse.Namespace) -> int:
    from wheeltapper.settings.practice import Kind, counts, place_in_practice, spread_of

    knob = _knob(args.knob)
    spread = spread_of(knob, Kind(args.optimizer, args.family, args.mode))
    rank = None
    if spread is not None and args.value is not None:
        rank = place_in_practice(knob, args.value, optimizer=args.optimizer, family=args.family, mode=args.mode)
    if args.json:
        from wheeltapper.report.json_out import dumps

        write(dumps(_object(knob, spread, rank, args.value, counts())), args.output)
    else:
        with console_for(args) as out:
            for line in _lines(knob, spread, rank, args.value, counts()):
                out.print(line, markup=False, highlight=False)
    return 0 if spread is not None else CANNOT_TELL


def _knob(name: str) -> str:
    """The knob that is meant; an error with near ones where none is."""
    from wheeltapper.settings.practice import IDS
    from wheeltapper.settings.understand import guess_of

    if name in IDS:
        return name
    meant = guess_of(name.rsplit(".", 1)[-1])
    if meant in IDS:
        return meant
    from wheeltapper.report.close import close_matches

    near = close_matches(name, sorted(IDS))
    hint = f"Did you mean {', '.join(near)}?" if near else f"There are: {', '.join(sorted(IDS))}."
    raise InputError(f"no setting is named {name!r}.", do=hint)


def _object(
    knob: str, spread: Spread | None, rank: Rank | None, value: float | None, made_of: tuple[int, int]
) -> dict[str, Any]:
    from wheeltapper.settings.practice import meaning_of

    out: dict[str, Any] = {"knob": knob, "meaning": meaning_of(knob)}
    out["reference"] = {"configurations": made_of[0], "repositories": made_of[1]}
    if spread is None:
        return {**out, "n": 0}
    shares = {f"{share:g}": spread.quantile(share) for share in (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)}
    out |= {"group": spread.group, "n": spread.n, "repositories": spread.repositories, "quantiles": shares}
    out |= {"values": list(spread.values), "counts": list(spread.counts)}
    if rank is not None and value is not None:
        out["rank"] = {
            "value": value,
            "below": rank.below,
            "above": rank.above,
            "beyond": rank.beyond,
            "sentence": rank.sentence(value),
        }
    return out


def _lines(
    knob: str, spread: Spread | None, rank: Rank | None, value: float | None, made_of: tuple[int, int]
) -> list[str]:
    from wheeltapper.settings.practice import meaning_of

    lines = [f"{knob}: {meaning_of(knob)}"]
    if spread is None:
        return [*lines, "Too few public runs set it to say what is usual."]
    lines.append(f"{spread.n:,} public runs of {spread.repositories:,} repositories ({spread.group})")
    lines += ["", *_bars(spread, value), ""]
    low, middle, high = (spread.quantile(share) for share in (0.05, 0.5, 0.95))
    lines.append(f"half of them at or below {middle:g}; nine in ten from {low:g} to {high:g}")
    if rank is not None and value is not None:
        lines.append(rank.sentence(value))
    lines.append(f"(from {made_of[0]:,} configurations of {made_of[1]:,} repositories)")
    return lines


def _bars(spread: Spread, value: float | None) -> list[str]:
    """A histogram with the value marked; in powers where the values span many."""
    from itertools import pairwise

    edges = _edges(spread, value)
    counts = [0] * (len(edges) - 1)
    marked = None
    for at, (low, high) in enumerate(pairwise(edges)):
        last = at == len(counts) - 1
        counts[at] = sum(
            count
            for one, count in zip(spread.values, spread.counts, strict=True)
            if low <= one and (one < high or (last and one <= high))
        )
        if value is not None and low <= value and (value < high or (last and value <= high)):
            marked = at
    most = max(counts) or 1
    lines = []
    for at, count in enumerate(counts):
        bar = "█" * round(WIDTH * count / most) or ("▏" if count else "")
        mark = f"  ◀ {value:g}" if at == marked else ""
        lines.append(f"{edges[at]:>10.3g} {count:>6,} {bar}{mark}")
    return lines


def _edges(spread: Spread, value: float | None) -> list[float]:
    from math import log10

    held = [*spread.values, *([] if value is None else [value])]
    low, high = min(held), max(held)
    if low == high:
        return [low, high + abs(high) * 0.01 + 1e-12]
    positive = [one for one in held if one > 0]
    if positive and low >= 0 and max(positive) / min(positive) > 50:
        first, last = log10(min(positive)), log10(max(positive))
        powers = [10 ** (first + (last - first) * i / BARS) for i in range(BARS + 1)]
        powers[0], powers[-1] = min(positive), max(positive)
        return [0.0, *powers] if low == 0 else powers
    return [low + (high - low) * i / BARS for i in range(BARS)] + [high]
