"""What a dialect's own table leaves open, by the words of the keys; and what is not understood, with a guess."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wheeltapper.settings.dialects._lookup import known_key
from wheeltapper.settings.dialects._nearest import SIDE, distance, settings_of
from wheeltapper.settings.dialects.generic import fill_precision, known_names, meanings_of, of_a_rollout, takes
from wheeltapper.settings.dialects.schema import ASIDE, View, as_bool, as_number, rank, unresolved
from wheeltapper.settings.knob_table import BY_WORDS, KNOBS
from wheeltapper.settings.loss_weights import loss_weights
from wheeltapper.settings.tree import ConfigTree, Leaf
from wheeltapper.settings.vocabulary import Meaning, meaning_of_path, misspelt, themes_of
from wheeltapper.settings.words import word_set, words_of

if TYPE_CHECKING:
    from wheeltapper.settings.knobs import Found

MOST_KEYS = 20_000
MOST_FOREIGN = 4  # steering keys that the framework does not know, and more than it does
NAMES_SAY = word_set("model algo algorithm name type task loss opt method target agent class env arch dataset")
_NEGATIONS = word_set("ignore skip reset no disable without discard drop dont")
_STATE = {"run.total_steps": ("step", "iteration", "iter", "global_step"), "run.epochs": ("current_epoch",)}
ADAM = {"1": 0.9, "2": 0.999}  # of the two decay rates the one that is not set
_SIDED = frozenset({"optimizer.lr_d", "optimizer.lr_g", "distill.temperature", "distill.alpha", "gan.n_critic"})


def themes_in(view: View) -> frozenset[str]:
    """What the configuration is about: its keys, and its values that are names."""
    texts: list[str] = []
    for path, leaf in view.plain():
        texts.append(path[-1])
        texts += path[:-1]
        if isinstance(leaf.value, str) and len(leaf.value) < 60 and set(words_of(path[-1])) & NAMES_SAY:
            texts.append(leaf.value)
        if len(texts) > MOST_KEYS:
            break
    return themes_of(dict.fromkeys(texts))


def foreign(module: ModuleType, view: View) -> bool:
    """A framework that knows few of the steering keys did not read this configuration: a program of one's own may
    print lines like the framework's and share some of its names."""
    if module.UNKNOWN == "unknown" or not module.KEYS or _open(module, view):
        return False
    known = other = 0
    for path, _ in view.plain():
        if meaning_of_path(path) is None:
            continue
        if known_key(module, path) is not None:
            known += 1
        else:
            other += 1
    return other > known and other >= MOST_FOREIGN


def _meaning(path: tuple[str, ...], themes: frozenset[str]) -> Meaning | None:
    """By words, and where they do not tell, by the list of usual spellings."""
    by_words = meaning_of_path(path, themes)
    if by_words is not None:
        return by_words
    exact = meanings_of(path)
    return Meaning(*exact[0]) if exact and not misspelt(path[-1]) else None


def complete(view: View, found: Found, module: ModuleType, about: frozenset[str] = frozenset()) -> None:
    """Knobs by the words of their keys, for what is not set yet. Two values for one knob: neither is believed."""
    themes = themes_in(view) | about
    held: dict[str, list[tuple[int, Any, Leaf, str | None]]] = {}
    read = {value.leaf.path for value in found.values() if value.leaf is not None}
    for path, value, leaf in settings_of(view)[:MOST_KEYS]:
        if leaf.path in read or of_a_rollout(view, path):
            continue
        meant = _meaning(path, themes)
        if (
            meant is None
            or _of_dialect(module, view, path, meant.knob)
            or not _fits(meant.knob, value, path)
            or near_miss(module, view, path, meant.knob)
        ):
            continue
        held.setdefault(meant.knob, []).append((distance(path), value, leaf, meant.unit))
    for knob, candidates in held.items():
        if knob in found and not found[knob].default:
            continue
        nearest = min(candidate[0] for candidate in candidates)
        best = [candidate for candidate in candidates if candidate[0] == nearest]
        if len({repr(value) for _, value, _, _ in best}) == 1:
            _, value, leaf, unit = best[0]
            _give(found, knob, value, leaf, unit)
    _betas(view, found, themes)
    _sklearn(found, themes)
    peak = found.get("schedule.max_lr")
    if peak is not None and not peak.default and "optimizer.lr" not in found:  # the peak is the rate, where no other is told
        found.give("optimizer.lr", peak.value, peak.leaf)
    loss_weights(view, found)
    _nulls(view, found, themes)
    _negated(view, found, themes)
    if "precision" not in found or found["precision"].default:
        kept = found.pop("precision", None)
        fill_precision(view, found)
        if kept is not None and "precision" not in found:
            found["precision"] = kept


def _of_dialect(module: ModuleType, view: View, path: tuple[str, ...], knob: str) -> bool:
    """The dialect knows this key itself: what it does not say of it, it withholds for a reason."""
    if knob in BY_WORDS:
        return False
    key = known_key(module, path)
    return key is not None and len(key.parts) == len(path) and not _open(module, view)


def _give(found: Found, knob: str, value: Any, leaf: Leaf, unit: str | None) -> None:
    number = as_number(value)
    if knob == "schedule.interval":
        value = {"step": "steps", "iter": "steps", "epoch": "epochs"}.get(str(value).lower().rstrip("s"), value)
    if unit == "unknown" and knob == "schedule.warmup" and number is not None and 0 < number < 1:
        unit = "fraction"
    if knob == "clip.norm" and number is not None:
        found.give("clip.enabled", number > 0, leaf)
        if number <= 0:
            return
    found.give(knob, value, leaf, unit=unit)


def _fits(knob: str, value: Any, path: tuple[str, ...]) -> bool:
    """Is this value one for the knob? A switch in one program is a number in another."""
    kind = KNOBS[knob].kind
    above = ".".join(path[:-1])
    if SIDE.search(above) and knob not in _SIDED:
        return False
    if not takes(knob, value) or path[-1].lower() in _STATE.get(knob, ()):
        return False
    if knob == "rl.epsilon_decay" and 0.5 < (as_number(value) or 0) < 1:  # a factor of each step, not a length
        return False
    if knob == "mask.rate" and (as_number(value) or 0) > 1:  # a size, as in YOLO's mask_ratio
        return False
    if knob == "rl.rollout" and "update" in path[-1].lower():  # counts updates, not steps of an environment
        return False
    if kind in ("number", "count"):
        return as_number(value) is not None
    if kind == "bool":
        return as_bool(value) is not None
    return kind == "list" or not isinstance(value, (list, dict))


def _betas(view: View, found: Found, themes: frozenset[str]) -> None:
    """Adam's two decay rates as keys of their own: beta1, beta_2, adam_beta1, b1. A diffusion has betas of its own."""
    if "optimizer.betas" in found and not found["optimizer.betas"].default:
        return
    pair: dict[str, Leaf] = {}
    for path, leaf in view.plain():
        words = tuple(word for word in words_of(path[-1]) if word not in ("adam", "adamw", "opt", "g"))
        bare = len(words) == len(words_of(path[-1])) and not any("opt" in words_of(part) for part in path[:-1])
        if bare and "diffusion" in themes:
            continue
        if len(words) == 2 and words[0] in ("beta", "b") and words[1] in "12" and not SIDE.search(".".join(path[:-1])):
            pair.setdefault(words[1], leaf)
    if pair and all(as_number(leaf.value) is not None for leaf in pair.values()):
        values = [pair[which].value if which in pair else usual for which, usual in ADAM.items()]
        found.give("optimizer.betas", values, next(iter(pair.values())))


def _sklearn(found: Found, themes: frozenset[str]) -> None:
    """scikit-learn's max_iter counts passes over the data."""
    steps = found.get("run.total_steps")
    if "sklearn" in themes and steps is not None and steps.leaf is not None and str(steps.leaf.path[-1]) == "max_iter":
        found.drop("run.total_steps")
        found.give("run.epochs", steps.value, steps.leaf, unit="epochs")


def _nulls(view: View, found: Found, themes: frozenset[str]) -> None:
    """`max_grad_norm: null` says that nothing is clipped."""
    if "clip.enabled" in found and not found["clip.enabled"].default:
        return
    if "clip.norm" in found and not found["clip.norm"].default:
        return
    for path, leaf in view.plain():
        if leaf.value is None or leaf.value is False:
            meant = meaning_of_path(path, themes)
            if meant is not None and meant.knob == "clip.norm":
                found.give("clip.enabled", False, leaf)
                found.drop("clip.norm")
                return


def _negated(view: View, found: Found, themes: frozenset[str]) -> None:
    """`ignore_optimizer_state: true`, `reset_scheduler`: a switch told by its opposite."""
    for path, leaf in view.plain():
        truth = as_bool(leaf.value)
        if truth is None or unresolved(leaf):
            continue
        words = words_of(path[-1])
        rest = [word for word in words if word not in _NEGATIONS]
        if len(rest) == len(words) or not rest:
            continue
        for guess in ("_".join(rest), "_".join(["resume", *rest])):
            meant = meaning_of_path((*path[:-1], guess), themes)
            if meant is not None and KNOBS[meant.knob].kind == "bool" and meant.knob not in found:
                found.give(meant.knob, not truth, leaf)
                break


def near_miss(module: ModuleType, view: View, path: tuple[str, ...], knob: str) -> str | None:
    """The framework's own key for this knob, where it stands beside this unknown one and is not set: the unknown
    one is not applied."""
    if module.UNKNOWN == "unknown" or known_key(module, path) is not None or _open(module, view) or path[-1] == "r":
        return None  # `r` is how PEFT spells the rank of an adapter, beside any trainer
    for key in module.KEYS.values():
        if "*" in key.path or key.parts[:-1] != path[:-1]:
            continue
        meant = key.knob or getattr(meaning_of_path(key.parts), "knob", None)
        if meant == knob:
            return None if view.has(key.path) else str(key.path)
    return None


def _open(module: ModuleType, view: View) -> bool:
    """A saved hparams.yaml holds the program's own names, whatever framework wrote it."""
    return module.NAME in ("lightning", "hydra") and any(tree.file.endswith("hparams.yaml") for tree in view.trees)


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A key that set no knob. `guess`: what it may be, None where nothing comes near."""

    leaf: Leaf
    guess: str | None = None


def not_understood(trees: Sequence[ConfigTree], found: Any, most: int = 500) -> list[NotUnderstood]:
    """Keys whose meaning is not known, for `show`. `found` maps ids to KnobValues. Texts that are paths or names of
    things are left out: they steer nothing that we judge."""
    read = {value.leaf.path for value in found.values() if value.leaf is not None}
    heads = {path[:-1] for path in read if path and isinstance(path[-1], int)}
    out: list[NotUnderstood] = []
    for leaf in _steering(trees):
        if leaf.path in read or leaf.path[:-1] in heads:
            continue
        out.append(NotUnderstood(leaf, guess_of(str(leaf.path[-1]))))
        if len(out) >= most:
            break
    return out


def _steering(trees: Sequence[ConfigTree]) -> Iterator[Leaf]:
    seen = set()
    for tree in sorted(trees, key=rank, reverse=True):
        for leaf in tree:
            name = next((str(part) for part in reversed(leaf.path) if not isinstance(part, int)), "")
            if not name or leaf.path in seen or leaf.path[0] in ASIDE or isinstance(leaf.value, (str, dict)):
                continue
            seen.add(leaf.path)
            yield leaf


def guess_of(name: str) -> str | None:
    """What an unknown key may mean: a usual name with one slip, or the knob with most of its words.

    >>> guess_of("learing_rate"), guess_of("clip_norm_"), guess_of("frobnicate")
    ('optimizer.lr', 'clip.norm', None)
    """
    plain = name.lower().strip("_").replace("-", "_")
    meant = meaning_of_path((plain,))
    if meant is not None:
        return meant.knob
    near = difflib.get_close_matches(plain, known_names(), 1, 0.84)
    if near:
        exact = meanings_of((near[0],))
        return exact[0][0] if exact else None
    words = words_of(plain)
    for left_out in range(len(words)):  # one word too many
        fewer = "_".join(word for at, word in enumerate(words) if at != left_out)
        meant = meaning_of_path((fewer,)) if len(words) > 1 else None
        if meant is not None:
            return meant.knob
    return None
