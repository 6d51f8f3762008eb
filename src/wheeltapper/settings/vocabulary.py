"""Which knob a key is, by its words: for every spelling that a person would guess, not for a list of names.

A rule names the words that make a knob. It fits a key when they all stand in the key or in the sections above it, and
the key has no further word that the rule does not allow: `eval_batch_size` is no `batch_size`. A wrong reading is
worse than none, so a word with several meanings is believed only in a section or a theme that settles it.

>>> meaning_of_path(("model_config", "curriculum", "rampSteps")), meaning_of_path(("eval_lr",))
(Meaning(knob='curriculum.steps', unit='steps'), None)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from wheeltapper.settings.vocabulary_rules import RULES
from wheeltapper.settings.words import LONGEST, word_set, words_of

_TOKEN = re.compile(r"[a-z0-9]+")
UNITS = {"step": "steps", "epoch": "epochs", "ratio": "fraction", "sample": "samples", "token": "tokens"}
# Words that say where a setting belongs and nothing about what it is.
_NO_SAMPLES = word_set("token frame second time step epoch point pixel valid n_ loss log grad accum save device micro max")
_FILLER = word_set("train training trainer model config cfg args hparams params hyper main own the use my")
# Sections and names whose settings are not those of the training itself.
ELSEWHERE = word_set(
    "valid inference sampling generation generate sampler wandb tensorboard slurm logger visualization plot"
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a key sets. `unit`: what it counts, "unknown" where the key does not tell, None where it counts nothing."""

    knob: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    meaning: Meaning
    needs: tuple[frozenset[str], ...]  # one of each
    allowed: frozenset[str]
    within: frozenset[str]  # one of these in a section above or in the name; empty: anywhere
    never: frozenset[str]
    themes: frozenset[str]  # one of these themes; empty: any
    unlike: frozenset[str]  # none of these themes

    def fits(self, name: tuple[str, ...], above: frozenset[str], themes: frozenset[str]) -> int:
        """How many words of the name the rule explains; 0 when it does not fit."""
        own = frozenset(name)
        both = own | above
        if ELSEWHERE & above and not any(choice & ELSEWHERE for choice in self.needs):
            return 0
        if self.never & both or (self.within and not self.within & both) or _off(self, themes):
            return 0
        told = 0
        for choice in self.needs:
            if not choice & both:
                return 0
            told += bool(choice & own)
        if not told or not self.needs[0] & own:
            return 0
        known = self.allowed | _FILLER
        if any(word not in known and not any(word in choice for choice in self.needs) for word in own):
            return 0
        return 2 * len(self.needs) + told + bool(self.within) + bool(self.themes)


def _off(rule: _Rule, themes: frozenset[str]) -> bool:
    return bool(rule.unlike & themes) or (bool(rule.themes) and not rule.themes & themes)


def _rules() -> list[_Rule]:
    out = []
    for line in RULES.strip().splitlines():
        if line.startswith("#"):
            continue
        knob, unit, *rest = line.split()
        parts: dict[str, list[str]] = {"": []}
        mark = ""
        for word in rest:
            if word in ("+", "@", "!", "?", "~"):
                mark = word
                parts.setdefault(mark, [])
            else:
                parts[mark].append(word)
        needs = tuple(frozenset(choice.split("/")) for choice in parts[""])
        sets = {key: frozenset(parts.get(key, ())) for key in "+@!?~"}
        for meant, needed in _units(unit, needs):
            out.append(_Rule(Meaning(knob, meant), needed, sets["+"], sets["@"], sets["!"], sets["?"], sets["~"]))
    return out


def _units(unit: str, needs: tuple[frozenset[str], ...]) -> Iterator[tuple[str | None, tuple[frozenset[str], ...]]]:
    """`*`: the key's own word tells the unit, and without one it is not told."""
    if unit != "*":
        yield (None if unit == "-" else unit), needs
        return
    yield "unknown", needs
    for word, counted in UNITS.items():
        yield counted, (*needs, frozenset({word}))


_ALL = _rules()


def _by_word() -> dict[str, list[_Rule]]:
    """Rules by the words that their key itself must hold one of: most keys concern few rules."""
    out: dict[str, list[_Rule]] = {}
    for rule in _ALL:
        for word in rule.needs[0]:
            out.setdefault(word, []).append(rule)
    return out


_STARTING = _by_word()


def misspelt(name: str) -> bool:
    """`clip_norm_`: a name that no loader looks for."""
    return name.endswith("_") and not name.startswith("_") and len(name) > 2


@lru_cache(maxsize=50_000)
def meaning_of_path(path: tuple[str, ...], themes: frozenset[str] = frozenset()) -> Meaning | None:
    """The knob of a dotted path, or None where its words do not tell or tell two things."""
    name = words_of(path[-1])
    if not name or misspelt(path[-1]):
        return None
    if name[-2:] == ("per", "batch") and 2 < len(name) <= 4 and not _NO_SAMPLES & set(name):
        return Meaning("batch.per_device", "samples")  # queries_per_batch, functions per batch: of whatever the data are
    above = frozenset(word for part in path[:-1] for word in words_of(part))
    best: dict[Meaning, int] = {}
    for rule in (rule for word in set(name) for rule in _STARTING.get(word, ())):
        score = rule.fits(name, above, themes)
        if score:
            best[rule.meaning] = max(best.get(rule.meaning, 0), score)
    if not best:
        return None
    top = max(best.values())
    winners = {meaning for meaning, score in best.items() if score == top}
    return winners.pop() if len(winners) == 1 else None


_THEMES = {
    # theme: one of these words settles it | or two of these
    "rl": (
        "gae gaelambda ppo dqn ddqn sac td3 ddpg a2c a3c trpo impala rainbow rollout rollouts replay gym gymnasium "
        "stable baselines mujoco atari learningstarts",
        "env envs environment episode episodes agent agents policy actor critic discount reward rewards",
    ),
    "vae": ("vae vqvae elbo betavae cvae", "latent reconstruction recon kl beta"),
    "dpo": ("dpo ipo kto orpo simpo cpo rejected preference", "chosen reference sft rlhf"),
    "gan": ("gan wgan dcgan stylegan cyclegan pix2pix esrgan discriminator ncritic adversarial", "generator real fake"),
    "distill": ("distill", "teacher student"),
    "lora": ("lora qlora peft dora loraplus", "adapter adapters"),
    "moe": ("moe expert", "router gating gate"),
    "forecast": ("lookback informer autoformer patchtst nbeats etth forecast", "pred series timesteps horizon window seasonality covariates"),
    "contrast": ("simclr moco ntxent infonce supcon simcse contrastive byol triplet arcface", "negative projection"),
    "diffusion": ("diffusion ddpm ddim unet2d edm", "snr sampler noise sigma timesteps denoising"),
    "generation": ("vllm nucleus beams sglang", "top p prompt beam new repetition chat"),
    "onpolicy": ("ppo gae gaelambda a2c grpo", ""),
    "sched": ("steplr multisteplr exponentiallr milestone", ""),
    "focal": ("focal", ""),
    "fed": ("federated fedavg fedprox fedopt dirichlet flower flwr", "clients client rounds round local server"),
    "sklearn": ("nesterovs eta0 sklearn mlpclassifier mlpregressor sgdclassifier sgdregressor", ""),
}


def themes_of(texts: Iterable[str]) -> frozenset[str]:
    """What a configuration is about, by the words of its keys and names.

    >>> sorted(themes_of(["replay_buffer_size", "lora_r"]))
    ['lora', 'rl']
    """
    words: set[str] = set()
    for text in texts:
        words.update(words_of(text))
        words.update(_TOKEN.findall(text[:LONGEST].lower()))  # a2c, td3: names that hold a digit
    out = set()
    for theme, (strong, weak) in _THEMES.items():
        if words & set(strong.split()) or len(words & set(weak.split())) >= 2:
            out.add(theme)
    return frozenset(out)
