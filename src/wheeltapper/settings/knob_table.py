"""The table of knobs: what a setting means, in which unit it usually counts, what kind of value it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "count", "bool", "name", "list", "any"]


@dataclass(frozen=True, slots=True)
class Knob:
    id: str
    meaning: str
    unit: str | None  # the usual one; a KnobValue carries its own: steps micro_steps epochs samples fraction
    kind: Kind


def _table(text: str) -> dict[str, Knob]:
    out = {}
    for line in text.strip().splitlines():
        id_, kind, unit, meaning = line.split(None, 3)
        out[id_] = Knob(id_, meaning, None if unit == "-" else unit, kind)  # type: ignore[arg-type]
    return out


_BY_DIALECTS = _table("""
optimizer.name            name   -        which optimizer
optimizer.lr              number -        peak (nominal) learning rate of the main network
optimizer.lr_base         number -        learning rate per reference batch; the real one is scaled by the batch
optimizer.lr_base_size    count  samples  the reference batch of lr_base
optimizer.lr_d            number -        learning rate of the discriminator
optimizer.momentum        number -        momentum of SGD
optimizer.nesterov        bool   -        Nesterov momentum
optimizer.betas           list   -        Adam's decay rates
optimizer.eps             number -        Adam's epsilon
optimizer.weight_decay    number -        weight decay
optimizer.layer_decay     number -        learning rate factor from layer to layer
schedule.name             name   -        how the learning rate changes
schedule.total            count  steps    length the schedule is laid out for
schedule.warmup           number steps    length of the rise at the start
schedule.warmup_start     number -        learning rate at the very start of the warm-up
schedule.cooldown         number steps    length at the lowest rate after the schedule
schedule.milestones       list   steps    where the rate is cut
schedule.gamma            number -        factor of each cut
schedule.step_size        number steps    distance between cuts
schedule.t_max            number steps    half period of a cosine
schedule.min_lr           number -        lowest learning rate
schedule.min_lr_ratio     number -        lowest learning rate as a fraction of the peak
schedule.max_lr           number -        top of a one-cycle schedule
schedule.pct_start        number fraction part of a one-cycle schedule that rises
schedule.div_factor       number -        one-cycle: peak over first rate
schedule.final_div_factor number -        one-cycle: first over last rate
schedule.power            number -        exponent of a polynomial schedule
schedule.cycles           number -        cycles of a cosine with restarts
schedule.patience         number epochs   evaluations without progress before a plateau schedule cuts
schedule.interval         name   -        what the schedule counts: steps or epochs
schedule.restart          bool   -        on resume, follow the file instead of the saved schedule
batch.per_device          count  samples  samples per device and micro-step
batch.global              count  samples  samples per optimizer update over all devices
batch.accumulation        count  micro_steps micro-steps per optimizer update
batch.nominal             count  samples  batch that the framework accumulates up to
world_size                count  -        processes that train together
run.epochs                number epochs   length of the run in epochs
run.total_steps           count  steps    length of the run in optimizer updates
run.total_samples         number samples  length of the run in samples
run.seed                  count  -        random seed
run.deterministic         bool   -        deterministic kernels
run.early_stop            number epochs   stop after this long without progress
clip.norm                 number -        gradients are clipped to this norm
clip.value                number -        gradients are clipped element by element
clip.mode                 name   -        norm, value or agc
clip.enabled              bool   -        whether gradients are clipped at all
ema.enabled               bool   -        whether an average of the weights is kept
ema.decay                 number -        weight of the OLD average in each update (near 1)
ema.every                 count  steps    steps between updates of the average
ema.warmup_power          number -        exponent of ema-pytorch's rising decay
ema.start                 count  steps    first step of the average
ema.halflife              number samples  half-life of the average
ema.impl                  name   -        which implementation keeps it
precision                 name   -        fp32, fp16, bf16 or tf32
amp.enabled               bool   -        mixed precision is on
amp.scaler                bool   -        whether a gradient scaler is used
amp.init_scale            number -        first loss scale
amp.growth_interval       count  steps    clean steps before the scale doubles
amp.static_scale          number -        fixed loss scale
loss.name                 any    -        which loss
loss.weights              any    -        weights of several losses
loss.label_smoothing      number -        label smoothing
loss.dynamic_weights      bool   -        loss weights that change during training
augment.mixup             number -        mixup strength
augment.cutmix            number -        cutmix strength
augment.mixup_prob        number fraction probability of mixing a batch
augment.dropout           number -        dropout
augment.drop_path         number -        stochastic depth
augment.random_erasing    number fraction probability of random erasing
augment.progressive       bool   -        image size grows during training
model.name                name   -        which network
model.classes             count  -        number of classes
model.params              number -        number of parameters
model.image_size          any    -        input resolution
model.lora_rank           count  -        rank of a LoRA adapter
model.compile             bool   -        torch.compile
model.checkpointing       bool   -        activation checkpointing
vocab_size                count  -        size of the vocabulary
seq_len                   count  -        tokens per sequence
data.name                 any    -        data set
data.train_size           count  samples  training samples
data.workers              count  -        loader processes, per training process
data.shuffle              bool   -        shuffled
data.drop_last            bool   -        last short batch dropped
data.enlarge              any    -        times the data set is repeated in an epoch
eval.every                number steps    distance between evaluations
eval.batch                count  samples  batch of the evaluation
checkpoint.every          number steps    distance between checkpoints
checkpoint.keep           count  -        how many checkpoints are kept
log.every                 number steps    distance between log lines
resume.from               any    -        checkpoint the run continues
resume.auto               bool   -        continue from the newest checkpoint found
finetune.from             any    -        pretrained weights the run starts from
diffusion.sigma_min       number -        smallest noise
diffusion.sigma_max       number -        largest noise
diffusion.sigma_data      number -        standard deviation of the data, as assumed
diffusion.P_mean          number -        mean of the log noise level
diffusion.P_std           number -        spread of the log noise level
diffusion.noise           name   -        noise schedule
diffusion.precond         name   -        preconditioning
diffusion.graph           name   -        what tokens turn into: a mask (absorb) or any token (uniform)
curriculum.enabled        bool   -        difficulty rises during training
curriculum.steps          count  steps    length of the rise
curriculum.ramp           name   -        shape of the rise
sr.scale                  count  -        super-resolution factor
sr.patch                  count  -        low-resolution patch size
gan.enabled               bool   -        an adversarial loss is used
logging.nan_filter        bool   -        the logger replaces non-finite losses
""")
# No dialect speaks of these: they are read by the words of their keys everywhere.
BY_WORDS = _table("""
optimizer.lr_g            number -        learning rate of the generator
optimizer.auto_scale      bool   -        the program scales the rate by batch or processes itself
schedule.plateau_mode     name   -        whether a plateau schedule waits for a minimum or a maximum
run.total_tokens          number tokens   length of the run in tokens
run.early_stop_mode       name   -        whether early stopping waits for a minimum or a maximum
run.early_stop_delta      number -        progress smaller than this counts as none
ema.buffers               bool   -        buffers (batch norm statistics) are averaged or copied too
ema.ramp                  bool   -        the decay rises from small at the start
loss.temperature          number -        temperature of a contrastive or softmax loss
loss.margin               number -        margin of a ranking or metric loss
loss.kl_weight            number -        weight of the KL term (beta of a VAE)
loss.kl_warmup            number steps    length of the rise of the KL weight
loss.kl_target            number -        KL that a controller steers to
loss.kl_rate              number -        how fast that controller moves the weight
loss.kl_start             number steps    first step of that controller
loss.kl_max               number -        largest weight that controller may reach
loss.free_bits            number -        KL below this costs nothing
loss.dynamic_eta          number -        how fast dynamic loss weights move
loss.dynamic_max          number -        largest ratio of dynamic loss weights
loss.dynamic_start        number steps    first step of dynamic loss weights
loss.ignore_index         count  -        label that the loss leaves out
loss.focal_gamma          number -        exponent of the focal loss
curriculum.start          number steps    first step of the rise
curriculum.length_end     list   -        lengths at the end of the rise
curriculum.mask_rate_end  list   fraction mask rates at the end of the rise
curriculum.P_mean_end     number -        mean of the log noise level at the end of the rise
curriculum.P_std_end      number -        spread of the log noise level at the end of the rise
resume.optimizer          bool   -        the optimizer's state is loaded on resume
resume.scheduler          bool   -        the schedule's state is loaded on resume
lora.alpha                number -        scale of a LoRA adapter
lora.dropout              number -        dropout of a LoRA adapter
dpo.beta                  number -        strength of the pull to the reference policy
rl.gamma                  number -        discount factor
rl.gae_lambda             number -        lambda of the advantage estimate
rl.clip_range             number -        clip range of PPO
rl.entropy_coef           any    -        weight of the entropy bonus
rl.value_coef             number -        weight of the value loss
rl.rollout                count  steps    steps per environment and update
rl.envs                   count  -        environments that run together
rl.update_epochs          count  -        passes over one rollout
rl.minibatches            count  -        parts that a rollout is cut into
rl.target_kl              number -        KL at which PPO stops its passes
rl.buffer_size            count  samples  transitions the replay buffer holds
rl.learning_starts        count  steps    steps before the first update
rl.target_update          number steps    distance between updates of the target network
rl.tau                    number -        share of the new weights in each target update
rl.epsilon_start          number -        first share of random actions
rl.epsilon_end            number -        last share of random actions
rl.epsilon_decay          number steps    length of the fall of the share of random actions
rl.train_freq             number steps    environment steps between updates
rl.kl_coef                number -        weight of the KL penalty to the reference policy
gan.n_critic              count  -        discriminator updates per generator update
gan.gp_weight             number -        weight of the gradient penalty
mask.rate                 number fraction share of tokens or patches that are masked
diffusion.steps           count  -        noise levels of the forward process
diffusion.beta_start      number -        first variance of the forward process
diffusion.beta_end        number -        last variance of the forward process
contrast.negatives        count  -        negative samples per positive
contrast.queue            count  samples  length of the queue of negatives
forecast.lookback         count  -        input steps of a forecast
forecast.horizon          count  -        steps forecast ahead
moe.experts               count  -        number of experts
moe.top_k                 count  -        experts each token is sent to
moe.balance_weight        number -        weight of the load-balancing loss
moe.capacity              number -        capacity factor of an expert
distill.temperature       number -        temperature of the teacher's and student's softmax
distill.alpha             number -        weight of the distillation loss
data.val_size             number samples  validation samples
""")
KNOBS = {**_BY_DIALECTS, **BY_WORDS}
