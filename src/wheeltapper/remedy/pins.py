"""The settings that a user keeps, by whatever name he calls them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from wheeltapper.errors import InputError
from wheeltapper.judge.model import Diagnosis
from wheeltapper.remedy.studied import study_of
from wheeltapper.settings.dialects.generic import meaning_of
from wheeltapper.settings.knobs import KNOBS, KnobValue

# Areas whose name means nothing else: "gradient-clip" is about the clip, "loss-foo" may be about anything.
OWN_WORDS = ("clip.", "ema.", "schedule.", "curriculum.", "amp.", "augment.")


def pins(keep: Sequence[str], diagnosis: Diagnosis) -> tuple[str, ...]:
    """The knobs that stay, named by id, by last part, by area ("schedule"), by the user's own config key, or as programs
    usually call them ("learning-rate", "gradient-clip"). Dashes, dots and underscores are one."""
    knobs: Mapping[str, KnobValue] = study_of(diagnosis).maybe("knobs") or {}
    keys = [leaf.path for tree in diagnosis.run.configs for leaf in tree.leaves]
    out: list[str] = []
    for name in keep:
        want = _parts(name)
        found = [k for k in KNOBS if want in (_parts(k), _parts(k.split(".")[-1]), _area(k))]
        own = [id_ for id_, value in knobs.items() if value.leaf is not None and _under(value.leaf.path, name)]
        unknown = not found and not own and not any(_under(path, name) for path in keys)
        found = _usually(want) if unknown else found
        if unknown and not found:
            known = dict.fromkeys([*KNOBS, *(".".join(map(str, path)) for path in keys)])
            near = difflib.get_close_matches(name, list(known), n=5, cutoff=0.5)
            raise InputError(
                f"--keep {name}: no knob and no key of the config has this name.",
                do=f"Near ones: {', '.join(near)}."
                if near
                else "Name a key as your config spells it, or a knob such as lr or schedule.",
            )
        out += [*found, *own]
    return tuple(dict.fromkeys(out))


def _area(knob: str) -> list[str]:
    """The words of the area that a knob lies in; none for a knob without one.

    >>> _area("clip.norm"), _area("precision")
    (['clip'], [])
    """
    return knob.split(".")[:1] if "." in knob else []


def _usually(words: Sequence[str]) -> list[str]:
    """The knobs that programs call so, with the rest of an area that the name holds.

    >>> _usually(["gradient", "clip"]), _usually(["learning", "rate"]), _usually(["my", "thing"])
    (['clip.norm', 'clip.value', 'clip.mode', 'clip.enabled'], ['optimizer.lr'], [])
    """
    known = meaning_of("_".join(words))
    named = [k for k in KNOBS if k.split(".")[0] in words and k.startswith(OWN_WORDS)]
    return list(dict.fromkeys([*([known] if known else []), *named]))


def _parts(name: str) -> list[str]:
    """
    >>> _parts("--Weight-decay") == _parts("weight_decay") == ["weight", "decay"]
    True
    """
    return [part for part in re.split(r"[-_.\s]+", name.lower()) if part]


def _under(path: Sequence[str | int], name: str) -> bool:
    """Whether a key is `name`, ends in it or lies inside it.

    >>> _under(("train", "optim_g", "lr"), "optim_g"), _under(("train", "optim_g", "lr"), "optim_g.lr"), _under(("lr",), "r")
    (True, True, False)
    """
    parts, want = [_parts(str(p)) for p in path], [_parts(part) for part in name.split(".")]
    return any(parts[i : i + len(want)] == want for i in range(len(parts) - len(want) + 1))
