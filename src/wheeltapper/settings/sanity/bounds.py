"""Single settings: what a number of this name can be at all, and where it stops to make sense.

One line each: words of the key | words that make it something else | interval | grade | cause | why. `a/b`: either word; `@a`: in the
key or in a section above; `?a`: a theme of the project; `=`: the whole key, as a pattern; `[` and `]` include the end, `(` and `)` do not. The intervals are far wider
than what recipes use: they are left by a slip of the pen, not by a bold choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import cast

from wheeltapper.settings.sanity.sheet import Doubt, Grade, Setting, Sheet

BEYOND = "setting-beyond-practice"
TABLE = r"""
# Probabilities and shares.
prob/probability | n top log temperature threshold | [0,1] | hint | - | a probability lies between 0 and 1
dropout/droppath/droprate | seed n layer epoch start end interval no step application apply | [0,0.95) | hint | dropout-too-high | nothing is left of the layer
drop rate/p/prob/path | lr learning step epoch seed last | [0,0.95) | hint | dropout-too-high | nothing is left of the layer
fraction/frac/proportion | n log percent gpu memory mem | [0,1] | hint | - | a share lies between 0 and 1
warmup ratio/prop/proportion | lr learning mom power start init | [0,1] | hint | warmup-longer-than-run | the warm-up is a share of the run
warmup ratio | lr learning mom power start init | [0,0.7] | range | warmup-longer-than-run | the rate hardly arrives within the run
mixup/cutmix prob | n | [0,1] | hint | - | a probability lies between 0 and 1
=(?:random_|horizontal_|vertical_|h|v)?flip(?:_?(?:prob|p|ratio|lr|ud))? | n | [0,1] | hint | - | a probability lies between 0 and 1
mosaic | n close scale | [0,1] | hint | - | a probability lies between 0 and 1
=oversample_(?:foreground|positive|fg)\w* | percent | [0,1] | range | - | it is a share of the samples
noise density | - | (0,0.85] | hint | - | too little of the text is left to predict from
=masked_lm_prob|mlm_prob(?:ability)?|mlm_mask_prop|mlm_ratio | n | (0,0.85] | hint | - | too little is left to predict from, or nothing is masked
=mask_prob(?:ability)?|mask_prop | channel time feature | [0,0.95] | hint | - | too little is left to predict from, or nothing is masked
=label_?smooth(?:ing)?(?:_(?:factor|eps|epsilon|rate|value))?|smoothing|ls_eps | dice laplace data | [0,0.5) | hint | label-smoothing-too-strong | the wrong answers get as much as the right one
label smoothing | dice | [0,0.5) | hint | label-smoothing-too-strong | the wrong answers get as much as the right one
top p | k n | [0,1] | hint | - | the nucleus is a share of the probability
# Sizes that cannot be so small.
embed/embedding/embeddings/emb/latent/hidden/bottleneck/projection/feat/feature dim/size/width/dims/channels/units | n kernel patch batch image drop layer | [2,) | hint | - | one number cannot tell things apart
z/w/latent/code/embed/moco dim | n drop | [2,) | hint | - | one number cannot tell things apart
nz | - | [2,) | hint | - | one number cannot tell things apart
d model | n sched scheduler | [4,) | hint | - | the network is too narrow to hold anything
codebook/embed/embeddings n | dim size width layer drop | [3,) | hint | - | so few codes hold nothing
codebook size | - | [3,) | hint | - | so few codes hold nothing
=(?:\w+_)?vocab_size|n_vocab | multiple type | [4,) | hint | - | so few symbols spell nothing
cluster/clusters/prototype/prototypes n | - | [2,) | hint | - | one group holds everything
# Initial weights.
=(?:\w+_)?(?:init|initializer|initialization)(?:_method)?_?(?:std|stddev|range)|initializer_range | log noise sigma | [0,0.8] | hint | init-too-large | weights of this size saturate every layer
init method std | - | [0,0.8] | hint | init-too-large | weights of this size saturate every layer
init gain | - | [0,8] | hint | init-too-large | weights of this size saturate every layer
init/initializer gain | amp loss grad logit fp16 scaler log layer alpha temperature lora weight_ growth | [0,50] | hint | init-too-large | weights of this size saturate every layer
param init | glorot xavier | [0,2] | hint | init-too-large | weights of this size saturate every layer
log std init/start/initial | - | [-10,3] | hint | init-too-large | the first actions are all noise, or none
std init/start/initial | log weights_ | [0,20] | hint | init-too-large | the first values are all noise
# Normalisation.
eps/epsilon @norm/layernorm/batchnorm/rmsnorm/groupnorm/bn/ln/layer | adam opt optimizer greedy clip exploration adversarial smooth label drop | [0,0.05] | hint | - | what is divided by is the epsilon and not the spread
leaky/negative slope | - | [0,0.99] | hint | - | the activation is linear or grows the wrong way
# Averages and momenta.
=(?:model_)?ema_decay(?:_rate)? | codebook quantizer | [0.4,1) | hint | ema-horizon-too-long | an average with this weight of the old never moves, or holds only the last step
=(?:model_)?ema(?:_decay|_rate|_momentum|_beta)? | codebook quantizer | [0,1) | hint | ema-horizon-too-long | an average with this weight of the old never moves
teacher/target/key/center/encoder momentum/mom | lr sched bn final warmup n | (0.01,1) | hint | - | with this weight of the old it never moves, or is a plain copy
moco m | k t | (0.01,1) | hint | - | with this weight of the old the key encoder never moves, or is a plain copy
=n_critic|d_steps(?:_per_g)?|disc_steps|critic_iters|n_dis|d_iters|num_d_steps|dis_iters|discriminator_steps | n | [0,100] | hint | discriminator-wins | the generator gets one update for so many
sample n @neg/negative/negatives | - | (0,) | hint | - | without negatives there is nothing to tell apart
noise std/stddev/sigma | max min diffusion log init learn edm data range schedule | [0,200] | hint | - | the noise drowns the signal
initial scale power | - | [0,40] | hint | fp16-overflow | the first loss scale is two to this power
# Losses.
temperature/temp/tau @teacher/student/distill | n epoch step warmup | (0,100] | hint | temperature-too-high | all answers look alike
moco t | k m | [0.005,2] | range | temperature-too-high | all answers look alike, or only the hardest pair counts
temperature/temp @contrastive/ntxent/nt/infonce/nce/simclr/supcon/clip | n epoch step warmup | [0.005,4.5] | range | temperature-too-high | all answers look alike, or only the hardest pair counts
=(?:init|initial|max)_logit_scale|logit_scale_init(?:_value)? | n | [-12,8] | range | temperature-too-high | the logarithm of the scale: its exponential is what multiplies
=(?:loss_|triplet_|arcface_|angular_|contrastive_)?margin | left right top bottom | [-5,200] | range | - | no pair of embeddings can keep that distance
dice/smooth @dice/tversky | weight coef label l1 | [0,1e4] | hint | - | the smoothing drowns the overlap itself
eos/no/background coef/weight @eos/object/background | n | (0,5] | range | class-imbalance | the background outweighs every object
=(?:num|n)_(?:object_)?queries | support episode | [5,) | range | - | hardly anything can be found in a picture
=(?:n|num|number_of|train)_?(?:neg|negs|negatives|negative_samples|neg_samples)|neg(?:ative)?_sample(?:s|_size|_num)?|neg_ratio|(?<=neg_)sample_num | hard | (0,) | hint | - | without negatives there is nothing to tell apart
min snr gamma | - | (0,100] | hint | wrong-loss-sign | the weight of the loss would be negative or nothing
snr gamma | - | (0,100] | hint | wrong-loss-sign | the weight of the loss would be negative or nothing
free bits | - | [0,50] | range | kl-collapse | the latent costs nothing
=(?:arcface_|angular_|cosface_)margin|margin_arc | n | [0,3] | hint | - | an angle is at most 3.14
# Noise.
noise offset | - | [0,0.6] | hint | - | the offset drowns the picture
neftune/noise alpha/neftune | n sched beta conditional | [0,100] | hint | - | the noise drowns the embeddings
=(?:router_|gate_|gating_|moe_)?(?:input_)?jitter(?:_noise|_eps)? | color coords augment transform | [0,1] | hint | - | the choice is all noise
=(?:cfg|guidance|unconditional_guidance)_scale | rescale drop | (0,60] | hint | - | such guidance burns every sample
=cfg|guidance | drop path file | (0,60] | range | - | such guidance burns every sample
=(?:vae_|latent_)(?:scale|scaling)_factor|vae_scale\w*|latent_scale | down up image upscale | [0.02,3] | hint | sigma-mismatch | the latents would be far from unit variance
img/image range | n size min max ratio | (0,65536] | hint | input-not-normalised | pictures are divided or multiplied by it
max wav value | - | [1000,) | range | input-not-normalised | samples of 16 bits are divided by 32768
# Diffusion.
=(?:num_)?(?:train_)?(?:diffusion_)?(?:timesteps|diffusion_steps)|diffusion_steps | sampling sample inference ddim env total | [4,) | range | - | the noise goes in leaps
beta start @diffusion/beta | adam kl opt controller | (0,0.1] | hint | sigma-mismatch | the first step destroys the picture
beta end @diffusion/beta | adam kl opt | [1e-3,1) | hint | sigma-mismatch | a variance beyond 1 is no noise schedule
# Lengths of texts.
=(?:max_|model_max_)?(?:seq|sequence|context|source|target|input|src|tgt|text|train)_?(?:seq_)?len(?:gth)?|max_len(?:gth)?|block_size|cutoff_len|n_ctx|context_(?:size|length)|(?:max_)?(?:source|target)_positions|max_position_embeddings|n_positions|max_seq_len(?:gth)? | valid n pred label queue image img audio forecast | [3,) | hint | - | hardly a sentence fits
=(?:generation_|gen_|max_)(?:max_|response_|completion_|target_|new_|gen_)?(?:len|length|tokens|new_tokens) | min batch per vocab n seq prompt source context | [2,) | hint | - | nothing can be said in it
=max_tokens_per_batch|tokens_per_batch|batch_tokens | generation sampling | [64,) | hint | - | hardly a sentence fits into a batch
# Pictures.
=(?:train_|input_)?(?:img|image|crop|im)_?(?:size|sz|resolution|height|width|side)|imgsz|image_res(?:olution)? | n min max scale latent local patch valid_ feature | [8,) | hint | - | nothing can be seen in it
gt size | - | [16,) | hint | - | nothing can be seen in it
# Counts that stop everything.
epoch/epochs n/max/train/total/num | warmup start freeze close per save valid log every decay patience resume last current mixup drop n_decay pretrain critic off cooldown restart cycle frozen eval check ema distill min swa begin | (0,) | hint | too-few-updates | nothing is trained
repeat/repeats n/num/dataset/data | aug edge | (0,) | hint | - | the data set is empty
batch | n_ norm scale workers | [-1,) | hint | - | a batch has at least one sample
=max_(?:train_)?(?:samples|examples)|num_train_(?:samples|examples)|train_(?:samples|examples)|n_train_samples|limit_train_samples | env runner valid eval test per step epoch | [10,) | range | too-few-updates | so few samples teach nothing
accum/accumulation | lr n_ dtype type metric use fp32 allreduce reduce | [0,2048] | hint | too-few-updates | that many batches make one update
patience | lr sched plateau reduce cooldown | [0,) | range | - | it stops at the first evaluation that is not better
=loss_scale |  dynamic | [0.9,) | range | static-loss-scale | a scale below one flushes the gradients to zero
# Boosted trees and forests.
=subsample|colsample_\w+|bagging_fraction|feature_fraction|colsample | freq | (0.02,1] | hint | - | each tree sees hardly a row or a column
max depth ?trees | - | [-1,30] | range | - | such trees learn single rows by heart
leaves n ?trees | - | [2,65536] | hint | - | a tree with one leaf is a constant
trees/estimators/rounds n ?trees | early stop stopping | [1,) | hint | too-few-updates | nothing is trained
# Mixtures of experts.
capacity factor/coef ?moe | - | [0.3,30] | range | - | most tokens are dropped
"""
_MORE_THEMES = {"trees": {"xgboost", "lightgbm", "lgbm", "gbdt", "catboost", "boosting", "boost", "leaf", "colsample"}}


@dataclass(frozen=True, slots=True)
class Bound:
    """One line of the table."""

    needs: str
    never: str
    themes: frozenset[str]
    low: float
    high: float
    low_in: bool
    high_in: bool
    grade: Grade
    cause: str
    why: str
    interval: str

    def names(self, setting: Setting) -> bool:
        """Whether the line is about this setting."""
        if self.needs.startswith("="):
            return re.fullmatch(self.needs[1:], setting.key) is not None and not setting.around & set(self.never.split())
        return setting.has(self.needs, self.never)

    def holds(self, number: float) -> bool:
        above = number >= self.low if self.low_in else number > self.low
        return above and (number <= self.high if self.high_in else number < self.high)


@cache
def bounds() -> tuple[Bound, ...]:
    """The table, read."""
    out = []
    for line in TABLE.strip().splitlines():
        if line.startswith("#"):
            continue
        needs, never, interval, grade, cause, why = (part.strip() for part in line.split(" | "))
        low, high = interval[1:-1].split(",")
        words = needs.split()
        out.append(
            Bound(
                " ".join(w for w in words if not w.startswith("?")), "" if never == "-" else never.replace("@", ""),
                frozenset(w[1:] for w in words if w.startswith("?")), float(low) if low else -math.inf, float(high) if high else math.inf,
                interval[0] == "[", interval[-1] == "]", cast("Grade", grade), BEYOND if cause == "-" else cause, why, interval,
            )
        )  # fmt: skip
    return tuple(out)


def themes_of_sheet(sheet: Sheet) -> frozenset[str]:
    more = {theme for theme, words in _MORE_THEMES.items() if sheet.says(*words)}
    return sheet.themes | more


def beyond_bounds(sheet: Sheet) -> Iterator[Doubt]:
    """Numbers outside what a setting of this name can be."""
    themes = themes_of_sheet(sheet)
    for setting in sheet.settings:
        number = setting.number
        values = [number] if number is not None else setting.numbers
        if not values or any(value != value for value in values):
            continue
        for bound in bounds():
            if (bound.themes and not bound.themes & themes) or not bound.names(setting):
                continue
            if bound.cause == "too-few-updates" and values == [0] and _other_length(sheet, setting):
                continue
            if setting.key == "loss_scale" and not sheet.says("fp16", "half", "float16"):
                continue
            if "sentence" in bound.why and not _of_text(sheet, setting, values):
                continue
            wrong = [value for value in values if not bound.holds(value) and not _stands_for_nothing(setting, value, bound)]
            if wrong:
                yield Doubt(bound.cause, f"`{setting.name}` is {wrong[0]:g}: {bound.why}", (setting,), bound.grade)
                break


def _of_text(sheet: Sheet, setting: Setting, values: list[float]) -> bool:
    """Lengths of sequences are also those of actions, frames and blocks."""
    if any(value % 1 for value in values) or setting.above & {"pipeline"}:
        return False
    return sheet.says("vocab", "tokenizer", "token", "tokens", "prompt", "embd", "context", "model_name_or_path", "lang", "text")


def _other_length(sheet: Sheet, setting: Setting) -> bool:
    """No epochs are asked for where steps are."""
    return any(o.knob in ("run.total_steps", "run.epochs", "run.total_samples") and o is not setting and (o.number or 0) > 0 for o in sheet.settings)


def _stands_for_nothing(setting: Setting, value: float, bound: Bound) -> bool:
    """-1, and 0 where the interval begins above it, stand for "off", "not set" or "all" in many programs; a truth value is no number."""
    if isinstance(setting.value, bool):
        return True
    if value == -1 and bound.low >= 0:
        return True
    if value == 0 and bound.low > 0 and (bound.low_in or "ema" in setting.own):
        return True
    # a percentage, or a count under the name of a share: a program that means it so divides by 100
    return bound.high == 1 and value > 1 and bool(setting.own & {"percent", "percentage", "percentile"})


CHECKS = (beyond_bounds,)
