"""The words of a setting's name, in one spelling.

>>> words_of("numWarmUpIters"), words_of("per-device-train-batch-size")
(('n', 'warmup', 'step'), ('per', 'device', 'train', 'batch'))
"""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
LONGEST = 120  # a longer name is data, not a setting

_SAME = """
n: num nb number count cnt nr
step: steps iter iters iteration iterations update updates its itr niter nsteps niters
epoch: epochs nepochs nepoch epoches passes epochen durchlaeufe durchlaufe epoques
ratio: fraction frac pct percent percentage proportion portion
sample: samples example examples instances items rows utts utt utterances utterance sentences sents
lr: learningrate lrate lernrate
grad: gradient gradients grads
clip: clipping clipped clipper
accum: accumulation accumulate accumulated accumulating accumulates
opt: optimizer optim optimiser optimizers optims solver optimisation optimization
sched: scheduler schedule schedulers scheduling
dropout: dropouts droprate ausfall
seed: saat graine semilla
wd: gewichtsabfall
batch: stapel stapelgroesse
prob: probability probs probabilities
coef: coefficient coeff coeffs coefs weight weights lambda lam lamda lmbda multiplier factor poids gewicht gewichte peso pesos
temperature: temp temper temps
discriminator: disc discrim netd discr
generator: netg
smoothing: smooth smoothness
decay: decays decayed
max: maximum maximal
min: minimum minimal
start: initial init starting begin begins starts first
end: final finish ending last stop
size: sizes
interval: freq frequency every period cadence
class: classes classnum categories category ncls
expert: experts
worker: workers
milestone: milestones
buffer: buffers
negative: negatives neg negs
layer: layers
head: heads
target: targets tgt
entropy: ent
value: vf
reg: regularization regularisation regularizer penalty
device: devices gpu gpus accelerator
world: nproc
kl: kld kldiv
mask: masking masked masks
token: tokens toks
teacher: teachers
distill: distillation distilled kd
balance: balancing balanced
discount: discounting
eps: epsilon
rank: ranks
alpha: alphas
loss: losses criterion
ema: ewma polyak
crop: cropping cropped
seq: sequence sequences
len: length lengths
pred: prediction predict forecast forecasting
valid: val validation validate eval evaluation evaluate dev test testing
mom: momentum momenta
horizon: horizons
trunc: truncation
warmup: warmups wramup warump
"""
# Written together, or as several words, and one thing.
_PHRASES = """
learning rate: lr
warm up: warmup
rampup: warmup
drop out: dropout
drop path: droppath
weight decay: wd
coef decay: wd
batch size: batch
batchsize: batch
minibatch: mini batch
bs: batch
bsz: batch
label smoothing: labelsmooth
adam w: adamw
pas apprentissage: lr
taux apprentissage: lr
start learning: learningstarts
l 2: l2
l 1: l1
labelsmoothing: labelsmooth
clipnorm: clip norm
clip valid: clip norm
clipvalue: clip value
gradclip: grad clip
gradnorm: grad norm
gradaccum: grad accum
maxlr: max lr
minlr: min lr
baselr: base lr
numepochs: n epoch
maxepochs: max epoch
maxsteps: max step
numclasses: n class
nclass: n class
numworkers: n worker
worldsize: world size
topk: top k
ignore index: ignoreindex
early end: earlystop
earlystopping: earlystop
early stopping: earlystop
look back: lookback
exponential moving average: ema
moving average: ema
model ema: ema
grad reg: gp
replay size: replay buffer size
buffersize: buffer size
mixed precision: amp
multistep: multi step
n critic: ncritic
d step: dstep
critic step: ncritic
gae coef: gaelambda
learning starts: learningstarts
learning start: learningstarts
"""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set that is easy to write and to read."""
    return frozenset(text.split())


def _same() -> dict[str, str]:
    pairs = (line.split(":") for line in _SAME.strip().splitlines())
    return {other: one for one, others in pairs for other in others.split()}


_ONE = _same()


def _phrases() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    pairs = (line.split(":") for line in _PHRASES.strip().splitlines())
    return sorted(((tuple(a.split()), tuple(b.split())) for a, b in pairs), key=lambda pair: -len(pair[0]))


_SEVERAL = _phrases()


@lru_cache(maxsize=20_000)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name: snake, kebab, camel, dotted or with blanks; synonyms made one."""
    pieces = [piece.lower() for piece in _PIECE.findall(name[:LONGEST])]
    out = [_ONE.get(piece, piece) for piece in pieces]
    for wanted, made in _SEVERAL:
        at = 0
        while at + len(wanted) <= len(out):
            if tuple(out[at : at + len(wanted)]) == wanted:
                out[at : at + len(wanted)] = made
                at += len(made)
            else:
                at += 1
    return tuple(out)
