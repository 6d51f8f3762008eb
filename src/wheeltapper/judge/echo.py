"""Findings that only repeat another: kept, but no longer counted as trouble of their own.

A run that never left chance has no peak to decline from; a run whose loss is NaN has no rising component.
Each rule names the sign that speaks and the signs that echo it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from wheeltapper.finding import Finding

Rule = tuple[str, Callable[[Finding], bool], tuple[str, ...]]


def _always(_: Finding) -> bool:
    return True


RULES: tuple[Rule, ...] = (
    # speaks, when, echoes
    (
        "at-chance",
        lambda f: not f.numbers.get("fell"),
        ("collapsed", "declined-after-peak", "constant-metric", "stuck-from-start", "at-prior", "barely-learned"),
    ),
    (
        "not-finite",
        lambda f: f.severity == "ill",
        (
            "part-rises",
            "diverged",
            "spiked",
            "constant-metric",
            "loss-exactly-zero",
            "stuck-from-start",
            "collapsed",
            "at-chance",
            "at-prior",
            "declined-after-peak",
            "train-val-gap",
            "above-start",
            "crashed",
        ),
    ),
    ("at-prior", _always, ("stuck-from-start", "plateau")),
    ("barely-learned", _always, ("stuck-from-start", "plateau", "too-slow")),
    ("collapsed", _always, ("declined-after-peak",)),
    (
        "diverged",
        lambda f: f.severity == "ill",
        ("part-rises", "spiked", "slow-rise", "plateau", "train-val-gap", "above-start"),
    ),
    ("never-left-zero", _always, ("collapsed", "declined-after-peak", "constant-metric")),
    ("below-baseline", _always, ("declined-after-peak", "collapsed", "constant-metric", "train-val-gap")),
    ("impossible-value", lambda f: f.severity == "ill", ("declined-after-peak", "collapsed")),
)


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """Ill findings that echo another become watches; the sentence stays."""
    quiet: set[str] = set()
    for speaker, holds, echoes in RULES:
        if any(f.id == speaker and f.severity == "ill" and holds(f) for f in findings):
            quiet.update(echoes)
    return [replace(f, severity="watch") if f.id in quiet and f.severity == "ill" else f for f in findings]
