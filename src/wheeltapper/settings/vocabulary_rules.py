"""The rules of the vocabulary, one a line:

knob  unit  words needed (a/b: either; the first stands in the key itself)
  + words allowed besides   @ one of these in the key or a section above   ! none of these there
  ? one of these themes   ~ none of these themes

Units: `-` none, `*` told by a word of the key (steps, epochs, fraction, samples), else the one named.
"""

from __future__ import annotations

RULES = """
optimizer.lr - lr + base peak max start nominal target opt adam adamw sgd value default 0 initial ! discriminator generator d g critic actor warmup min end decay sched lora head backbone encoder decoder layer scale scaled coef text valid policy adapt bias embed emb embedding step epoch ratio interval plus ref teacher student inner meta alpha controller range finder
optimizer.lr_d - lr discriminator + opt net d
optimizer.lr_d - d lr + opt net
optimizer.lr_d - lr critic + opt net ~ rl
optimizer.lr_g - lr generator + opt net g
optimizer.lr_g - g lr + opt net
optimizer.lr_base - blr
optimizer.lr - lr local/client ? fed
optimizer.lr - rate + start base peak max @ train training opt optim ! decay drop dropout warmup ema sample sampling frame mask growth learning
optimizer.auto_scale - scale/scaled/scaling lr auto/linear + by batch world device
optimizer.auto_scale - scale/scaling/scaled lr + linear rule enable enabled
optimizer.weight_decay - wd + opt adam adamw sgd value l2 coef rate ! end start head bias norm embed emb discriminator d
optimizer.weight_decay - l2 + reg coef lambda opt value ! dropout norm
optimizer.weight_decay - decay coef opt
optimizer.weight_decay - wdecay
optimizer.weight_decay - l2 + embedding embed emb reg coef
optimizer.weight_decay - reg + coef l2 value strength ! l1 kl alpha tv grad gp r entropy orth label loss ~ gan rl
optimizer.weight_decay - alpha ? sklearn ! lora dirichlet mixup focal
optimizer.momentum - mom + opt sgd value ! ema bn batchnorm norm teacher sched start base max m key cycle target warmup
optimizer.nesterov - nesterov + opt sgd mom
optimizer.betas - betas + opt adam adamw
optimizer.eps - eps adam/adamw/opt + value ! norm layer greedy
optimizer.name - opt + name type class kind algorithm algo method ! lr wd state sched discriminator d path args
optimizer.name - name/type/class/target/algorithm/algo opt + kind ! sched loss
schedule.name - sched + name type class kind lr policy method strategy ! interval step epoch gamma noise beta sampler sampling
schedule.name - name/type/class/target/kind/policy sched + lr ! noise beta
schedule.name - policy/mode lr ! rl plateau
schedule.warmup * warmup + n lr opt sched linear len ! start ema kl beta momentum mom lr_ min end bias power factor coef type kind mode method iterator temperature noise discriminator batch curriculum init
schedule.warmup_start - warmup lr/start + start min lr coef ! step epoch ratio
schedule.min_lr - min lr + opt sched value end eta ! ratio coef warmup
schedule.min_lr - end lr + sched value ! ratio coef div
schedule.min_lr - eta min + lr
schedule.min_lr_ratio fraction min lr ratio/coef + sched
schedule.milestones * milestone + lr sched decay ! loss
schedule.milestones epochs decay lr epoch + sched at ! n rate coef ema interval total
schedule.gamma - gamma lr/sched + decay ! rl focal
schedule.gamma - coef/rate/ratio lr decay + sched ! weight layer wd
schedule.gamma - coef sched + decay lr reduce plateau ! warmup min max end start
schedule.gamma - gamma ? sched ! rl focal
schedule.step_size unknown size step sched/lr + decay
schedule.step_size unknown decay interval @ sched
schedule.gamma - decay coef @ sched ! lr wd weight
schedule.step_size * decay interval lr + sched
schedule.t_max * t max + sched cosine annealing
schedule.t_max * t 0 @ sched cosine annealing restart lr
schedule.t_max steps step cosine/cos + annealing lr sched decay n total t
schedule.t_max epochs epoch cosine/cos + annealing lr sched decay n total t
schedule.total steps total step sched/lr + n decay
schedule.total steps step decay lr/sched + n total max ! ema eps epsilon coef gamma size interval warmup
schedule.total steps step decay @ sched lr ! ema eps
schedule.total steps total step @ onecycle cycle sched scheduler lr
schedule.max_lr - max lr @ sched onecycle cyclic cycle
schedule.pct_start - ratio start + sched lr cycle one onecycle @ sched onecycle cycle pct
schedule.power - power @ sched poly polynomial lr decay + poly polynomial lr decay sched
schedule.patience * patience @ sched plateau lr reduce + lr sched plateau reduce on scheduler ! earlystop
schedule.plateau_mode - mode @ sched plateau ! earlystop
schedule.interval - interval sched + lr unit
schedule.interval - step epoch sched ! n
run.epochs epochs epoch + n max total nb end until stop num to limit full ! warmup per decay save valid log interval every start early earlystop freeze unfreeze patience eval lr ema cycle current resume sched step size critic curriculum kl steps pretrain distill phase stage
run.total_steps steps step + n max total end number global opt limit until ! per warmup epoch decay save valid log interval every start early earlystop diffusion noise sampling rollout accum lr ema sched size time inner critic d discriminator kl curriculum env eval rl gan ramp warm beta inference attack pgd anneal generation dstep learningstarts buffer mem history memory skip print ckpt checkpoint cosine ode solver integration ~ rl
run.total_steps steps step env n + total max train ? rl
run.total_steps steps step total/max + n train env ? rl ! episode per warmup valid log save eval
run.total_steps steps timestep/timesteps total + n max ? rl
run.total_tokens tokens token total/max/budget train + n ! len seq new vocab batch per prompt length completion
run.total_samples samples sample total/seen + n max train ! data dataset
run.epochs epochs round/rounds + n comm communication total max global ? fed
run.seed - seed + random rng manual torch global base ! split data valid
run.seed - state random + seed
run.early_stop * patience earlystop + n ! delta
run.early_stop * patience + n max ! plateau sched lr reduce
run.early_stop * earlystop + patience rounds n after ! delta mode min metric monitor use enable
run.early_stop_mode - mode earlystop
run.early_stop_delta - delta min + earlystop @ earlystop early delta patience ! huber smooth
batch.global - batch global/total/effective/overall + target n
batch.per_device - batch per/micro device + n ! valid
batch.per_device - batch micro/mini + n ! valid rl
batch.per_device - batch per/micro + n gpu rank worker core ! valid
batch.per_device - batch + n default ! valid rl_ teacher sampling generation replay_ gan_ norm first per_ step epoch accum ramp test prefetch queue memory buffer scale scaled ref reference nominal nbs group inner lr prompt rollout
batch.global - batch ims per
batch.nominal - nominal batch
batch.per_device - batch local/client ? fed
batch.per_device - batch sample/seq + n per ! valid accum
batch.accumulation - accum + grad step n interval iter batch batches opt every freq for ! use enable
batch.accumulation - step to accum + grad n
world_size - device + ids_ @ trainer ! id type per name local
world_size - world size
world_size - n device + process node total ! per
world_size - n process + total train proc ! data worker preprocessing dataset
clip.norm - clip norm/grad + max value threshold val thresh opt by global gradient ! enable enabled use mode type algorithm rl_ per discriminator d start_ valid_ kl range
clip.norm - clip ~ rl onpolicy contrast gan diffusion
clip.norm - norm grad max + value clip
clip.norm - gradnorm_ max
clip.norm - clip + threshold max @ grad gradient opt ! use enable model text embed range
clip.value - value clip grad + max min opt ! norm
clip.mode - clip algorithm/mode/type + grad
ema.decay - ema decay/rate/beta/mom/alpha/gamma/coef + model weight base max halflife_ ! warmup start step interval target teacher_ codebook loss kl lr vq
ema.decay - decay ema
ema.enabled - ema + enable enabled on
ema.every steps interval ema + step n
ema.start steps start ema step + n after
ema.buffers - buffer ema + copy track sync step average include update
ema.ramp - warmup/ramp ema + enabled decay on
precision - precision + training compute ! amp matmul score metric average
amp.init_scale - scale start + loss amp fp16 grad scaler power @ loss amp fp16 scaler grad growth train trainer training scale
amp.growth_interval steps interval growth + scale amp scaler
amp.static_scale - loss scale + fp16 static fixed amp ! start min window
loss.label_smoothing - labelsmooth + value eps loss coef cross entropy ce
loss.label_smoothing - smoothing label + eps loss value coef
loss.label_smoothing - smoothing @ loss label ce
loss.temperature - temperature + loss contrastive ntxent nce info infonce simclr supcon start softmax logit clip contrast value ce base ! distill teacher student sampling generation generate gen rollout gumbel policy anneal decay sampler llm prompt decode decoding min max target polyak soft chat attention openai judge kwargs agent ~ rl generation dpo
loss.temperature - tau @ loss contrastive nce info infonce contrast ~ rl
loss.margin - margin + loss triplet contrastive ranking arcface cosface ! right left top bottom
loss.kl_weight - kl coef/beta/rate + loss vae max end reg term ! dpo start warmup anneal controller target ref rlhf min distill actor ppo ~ onpolicy dpo
loss.kl_weight - beta vae + loss coef kl
loss.kl_weight - beta ? vae @ loss model kl vae ! start end adam opt 1 2 dpo rl sched controller noise diffusion smooth huber
loss.kl_weight - beta ? vae ! start end adam opt 1 2 dpo rl sched controller noise diffusion commitment
loss.kl_warmup * warmup/anneal/annealing/ramp kl/beta + n len cyc period @ kl beta vae ! adam lr
loss.kl_target - target kl/beta controller + value
loss.kl_target - target kl ? vae ! rl
loss.kl_rate - rate/speed/gain/lr controller kl/beta
loss.kl_start steps start controller kl/beta + step
loss.kl_max - max controller kl/beta + coef
loss.free_bits - free bits/nats/bit + kl per
loss.dynamic_eta - eta/lr/rate/alpha dynamic + coef loss adaptive
loss.dynamic_max - max/ratio dynamic + coef loss ratio limit
loss.dynamic_start steps start dynamic + coef loss step
loss.dynamic_weights - dynamic + coef loss enabled enable adaptive
loss.ignore_index - ignoreindex + loss label value
loss.ignore_index - ignore label/index + value loss
loss.focal_gamma - gamma focal + loss
loss.focal_gamma - gamma @ focal loss ? focal
augment.mixup - mixup + alpha ! prob off mode switch epoch
augment.cutmix - cutmix + alpha ! prob off mode switch epoch minmax
augment.mixup_prob fraction prob mixup/cutmix + mix
augment.dropout - dropout + rate prob p value head classifier fc hidden residual resid ratio ! lora path attention attn emb embed embedding word variational adapter input patch token modality label cond condition cfg layer caption text context sensor
augment.drop_path - droppath + rate prob max ratio
augment.dropout - drop p/prob/rate + value ! path end last connect token word
augment.random_erasing fraction erasing/erase + random prob ratio p
model.classes - n class + total output target
model.classes - n label/labels + total output ! pos neg noise smooth
model.image_size - size image/img/input/crop/resolution + train h w height width ! patch batch valid random min max dataset vocab hidden channel dim feature_
model.lora_rank - r/rank lora + dim n
model.lora_rank - r/rank ? lora @ lora peft adapter ! process node local
model.lora_rank - r ? lora ! process node local
lora.alpha - alpha lora
lora.alpha - alpha ? lora @ lora peft adapter
lora.dropout - dropout lora
lora.dropout - dropout ? lora @ lora peft adapter
dpo.beta - beta dpo/kto/ipo/orpo/cpo/simpo + loss
dpo.beta - beta ? dpo @ loss trainer train training dpo algorithm preference rlhf ! adam opt 1 2 start end kl
dpo.beta - beta ? dpo ! adam opt 1 2 start end kl vae
vocab_size - vocab/vocabulary size + n token
seq_len - len seq/context/block/sequence + max train model n ! pred label min gen prompt valid
seq_len - size block/context + max ! sparse cnn res
seq_len - cutoff len
data.train_size samples n train sample/data/size/point + set total data max ! valid eval per step batch few token worker
data.train_size samples train n + set ! epoch step batch valid token seed env worker device
data.train_size samples train size/len + n set data dataset sample ! valid batch image img crop patch resolution input max token ratio seq split test gt env
data.train_size samples train n sample + set total subset data dataset ! valid per seen
data.val_size samples valid n + set sample data ! epoch step batch class worker interval token env beam new
data.val_size samples valid size + set n data sample ! batch image crop interval patch
data.workers - worker + n loader dataloader data ! actor env rollout preprocessing tokenizer server ray
data.shuffle - shuffle + data train dataset loader ! buffer
data.drop_last - drop end + data loader
eval.every * interval valid + n check in
checkpoint.every * interval save/checkpoint/ckpt + n model ! valid
resume.optimizer - opt resume/load/restore + state
resume.scheduler - sched resume/load/restore + state lr
curriculum.steps * ramp/warmup/len/total/rampup curriculum + n step
curriculum.steps steps step curriculum ramp + n
curriculum.start steps start curriculum step ! len mask p
curriculum.enabled - curriculum + enabled enable
curriculum.length_end - end curriculum len
curriculum.mask_rate_end fraction end curriculum mask rate/ratio/prob
curriculum.P_mean_end - end curriculum p mean
curriculum.P_std_end - end curriculum p std
diffusion.sigma_min - sigma min + diffusion noise sde ve edm
diffusion.sigma_max - sigma max + diffusion noise sde ve edm
diffusion.sigma_data - data sigma + diffusion noise edm
diffusion.P_mean - p mean + diffusion noise sigma lognormal
diffusion.P_std - p std + diffusion noise sigma lognormal
diffusion.steps - timestep/timesteps + n diffusion train max ? diffusion ! sampling inference valid total ~ rl
diffusion.steps - step/t diffusion + n train noise ! max rl sampling inference start accum
diffusion.beta_start - beta start + linear diffusion noise ? diffusion ! adam kl
diffusion.beta_end - beta end/max + linear diffusion noise ? diffusion ! adam kl
diffusion.beta_start - start/min linear + beta ? diffusion
diffusion.beta_end - end linear + beta ? diffusion
mask.rate fraction mask ratio/prob/rate + mlm token patch span ! curriculum start end attention cross random_ replace keep key text_
mask.rate fraction prob/ratio mlm
contrast.negatives - negative n + sample per hard random ! weight coef
contrast.queue - queue size/len + moco ? contrast ! prefetch data event
contrast.queue - moco k
forecast.lookback - lookback + window size len n step
forecast.lookback - len seq/input/history/encoder + window size max n ? forecast ! pred label batch
forecast.lookback - window input/history/in + size len n step ? forecast
forecast.horizon - horizon + forecast pred len size n step output ? forecast ! rl
forecast.horizon - len pred + n size max
forecast.horizon - len output/decoder + pred n chunk max ? forecast
moe.experts - n expert + total local routed moe ! per top k tok token active selected shared
moe.top_k - top k + moe expert router gate gating n ? moe ! sampling generation
moe.top_k - n expert per/active/selected/k + tok token top moe
moe.balance_weight - coef balance/aux/auxiliary/load + loss router moe expert load aux z ? moe
moe.balance_weight - aux/auxiliary/balance loss coef/alpha + router moe load ? moe
moe.capacity - capacity + coef moe expert train ? moe
distill.temperature - temperature/t/tau distill + loss student teacher kl
distill.temperature - temperature teacher + loss student
distill.temperature - temperature ? distill @ loss distill train student teacher
distill.temperature - temperature/t ? distill
distill.alpha - alpha/coef distill + loss
distill.alpha - alpha ? distill ! lora focal mixup
gan.n_critic - ncritic + step per
gan.n_critic - dstep + n per ? gan
gan.n_critic - n discriminator step + per
gan.n_critic - step discriminator per/n/ratio + generator d g
gan.gp_weight - gp + coef loss
gan.gp_weight - coef gp + loss
gan.gp_weight - r 1 gamma/coef/reg + loss
rl.gamma - gamma/discount + coef rate rl value ? rl ! lr sched decay focal mixup
rl.gae_lambda - gaelambda + value
rl.gae_lambda - coef/tau gae
rl.gae_lambda - lambd ? onpolicy
rl.gae_lambda - tau ? onpolicy ! target soft polyak
rl.gae_lambda - coef ? rl @ gae advantage td
rl.clip_range - clip range + ppo eps
rl.clip_range - clip eps/coef/param/ratio/policy + ppo loss value_ ? rl ! grad norm value vf reward
rl.clip_range - eps clip + ppo ? rl
rl.clip_range - cliprange/clipping
rl.entropy_coef - entropy coef/beta/bonus/reg + loss start policy ppo rl ? rl dpo ! end decay target cross anneal
rl.value_coef - value coef + loss function ppo critic ? rl ! clip weight_
rl.value_coef - coef critic/value + loss ? rl
rl.rollout steps rollout + len step n size per fragment ? rl ! env thread worker batch
rl.rollout steps step n + rollout per ? onpolicy ! env ! total max epoch td multi return look time
rl.rollout steps horizon + ppo len rollout ? rl ! forecast
rl.envs - n env + parallel vec train ! valid
rl.update_epochs - epoch step/ppo/k/sgd/policy + n per opt ? rl
rl.minibatches - mini batch n ? rl
rl.target_kl - target kl + ppo max ? rl ! vae controller
rl.buffer_size samples buffer size/capacity + replay memory max rl experience n ! shuffle prefetch timing ~ onpolicy
rl.buffer_size samples memory/replay size/capacity + n buffer max experience ? rl
rl.buffer_size samples buffer/replay/memory + replay n ? rl ! gpu cpu pin
rl.learning_starts steps learningstarts + step n
rl.learning_starts steps start step + learning train random exploration n before ? rl ! lr epoch sched eps total stage stages data kl
rl.target_update steps target interval/step + network net n sync q hard soft rate ? rl ! kl entropy value tau
rl.tau - tau + soft target step polyak network ? rl ! gae temperature gumbel ~ onpolicy
rl.tau - ema/soft tau/coef + target step ? rl
rl.epsilon_start - eps start/max + exploration greedy ? rl
rl.epsilon_end - eps end/min + exploration greedy ? rl
rl.epsilon_end - exploration end + eps ? rl
rl.epsilon_start - exploration start + eps ? rl
rl.epsilon_decay * eps decay + exploration greedy rate n len ? rl
rl.epsilon_decay steps eps step + exploration greedy n anneal ? rl
rl.epsilon_decay fraction exploration ratio + eps ? rl
rl.train_freq steps interval train/learn + step n ? rl ! target valid save log policy checkpoint
rl.kl_coef - kl coef/beta + start loss ppo reward ref penalty adaptive ? onpolicy dpo ! target ~ vae
"""
