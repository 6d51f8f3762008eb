"""A setting is known by the words of its key, in any spelling; a key with a word too many is not."""

from __future__ import annotations

import pytest

from wheeltapper.settings.knobs import KNOBS, read_knobs
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.understand import guess_of, not_understood
from wheeltapper.settings.vocabulary import _ALL, meaning_of_path, themes_of

KNOWN = """
optimizer.lr - lr learning_rate learningRate LEARNING-RATE base_lr init_lr optimizer.lr train.optimizer.lr peak_learning_rate
optimizer.lr_d - lr_d d_lr discriminator_lr optimizer_discriminator.lr
optimizer.lr_g - lr_g G_lr generator_learning_rate
optimizer.weight_decay - wd weight_decay weightDecay optimizer.weight-decay adamw_weight_decay
optimizer.momentum - momentum optimizer.momentum sgd_momentum
optimizer.auto_scale - auto_scale_lr scale_lr model_config.auto_scale_lr
schedule.warmup steps warmup_steps warm_up_iters numWarmUpSteps lr_warmup_iterations scheduler.warmup-steps
schedule.warmup epochs warmup_epochs warm_up_epoch lr_scheduler.num_warmup_epochs
schedule.warmup fraction warmup_ratio warmup_fraction warmupProportion
schedule.t_max steps cosine_steps scheduler.cosine_steps
schedule.t_max unknown T_max train.scheduler.T_max lr_scheduler_kwargs.t_max
schedule.total steps sched_total_steps lr_schedule.total_steps lr_decay_steps scheduler.decay_steps
schedule.milestones unknown milestones lr_schedule.milestones
schedule.interval - sched_interval scheduler.interval
clip.norm - max_grad_norm grad_clip clip_grad_norm gradient_clip_val optimizer.clipnorm clipGradNorm grad-clip-norm
ema.decay - ema_decay ema_rate train.ema_decay ema.decay model_ema_decay
ema.every steps ema_every ema_update_every ema.update_interval
ema.buffers - ema_buffers ema_use_buffers trainer.ema_update_buffers
loss.label_smoothing - label_smoothing labelSmoothing loss.smoothing label_smooth_eps
loss.temperature - temperature loss.temperature contrastive_temperature nce_temp
loss.kl_weight - kl_weight kld_weight lambda_kl loss.kl_beta kl-coef
loss.kl_target - beta_controller_target_kl loss.beta_controller.target_kl
loss.kl_rate - beta_controller_rate loss.beta_controller.rate
loss.kl_max - loss.beta_controller.max_beta
loss.dynamic_eta - dynamic_weights_eta train.loss.dynamic_weights.eta
augment.dropout - dropout model.dropout dropout_rate drop_out
data.train_size samples n_train num_train data.n_train train_size num_train_samples
data.val_size samples n_val num_val data.val_size
model.classes - num_classes n_classes nClasses num_labels
batch.accumulation - gradient_accumulation_steps grad_accum accumulate_grad_batches accumIter
world_size - world_size worldSize num_gpus model_config.world_size
amp.init_scale - init_scale train.init_scale
amp.growth_interval steps growth_interval train.growth_interval
lora.alpha - lora_alpha lora.alpha
model.lora_rank - lora_r lora_rank
lora.dropout - lora_dropout lora.dropout
dpo.beta - dpo_beta dpo.beta
rl.buffer_size samples buffer_size replay_buffer_size replayBufferCapacity
gan.n_critic - n_critic nCritic
mask.rate fraction mask_ratio mlm_probability mask_rate
contrast.negatives - num_negatives n_neg negative_samples_num
loss.ignore_index - ignore_index loss.ignore_index ignore_label
forecast.lookback - lookback look_back_window
forecast.horizon - pred_len
moe.experts - num_experts n_experts
distill.temperature - distill_temperature kd_T distillation.temperature
distill.alpha - distill_alpha kd_alpha
run.early_stop_mode - early_stopping_mode early_stopping.mode
curriculum.steps steps curriculum_ramp_steps curriculum.ramp_steps
curriculum.start steps curriculum_start_step curriculum.start_step
diffusion.P_mean - P_mean diffusion_P_mean train.diffusion.P_mean
diffusion.sigma_max - sigma_max diffusion.sigma_max noise.sigma_max
resume.optimizer - resume_optimizer load_optimizer_state
resume.scheduler - resume_scheduler load_lr_scheduler
"""


def rows() -> list[tuple[str, str | None, str]]:
    out = []
    for line in KNOWN.strip().splitlines():
        knob, unit, *keys = line.split()
        out += [(knob, None if unit == "-" else unit, key) for key in keys]
    return out


@pytest.mark.parametrize(("knob", "unit", "key"), rows())
def test_a_key_in_any_spelling(knob: str, unit: str | None, key: str) -> None:
    meant = meaning_of_path(tuple(key.split(".")), frozenset())
    assert meant is not None
    assert (meant.knob, meant.unit) == (knob, unit)


UNKNOWN = """
eval_lr val.lr lr_decay_mult num_workers_per_node hidden_size n_layers eval_batch_size clip_norm_ grad_clip_
text_clip_model norm_eps attention_dropout max_new_tokens bn_momentum teacher_momentum sampling.temperature image_temperature_map epoch_size weight_dtype beta gamma alpha tau
"""


@pytest.mark.parametrize("key", UNKNOWN.split())
def test_a_word_too_many_or_too_few_is_not_read(key: str) -> None:
    meant = meaning_of_path(tuple(key.split(".")))
    assert meant is None or meant.knob in ("run.seed",)


def test_every_rule_names_a_knob() -> None:
    assert {rule.meaning.knob for rule in _ALL} <= KNOBS.keys()


@pytest.mark.parametrize(
    ("text", "knob", "value"),
    [
        ("algo: dqn\ngamma: 0.97\n", "rl.gamma", 0.97),
        ("replay_buffer_size: 10\ntau: 0.01\n", "rl.tau", 0.01),
        ("model: vae\nbeta: 31.0\n", "loss.kl_weight", 31.0),
        ("loss:\n  type: dpo\n  beta: 0.2\n", "dpo.beta", 0.2),
        ("model:\n  latent_dim: 8\nloss:\n  beta: 4\n", "loss.kl_weight", 4),
        ("teacher: r50\nstudent: r18\ntemperature: 4\n", "distill.temperature", 4),
        ("ignore_optimizer_state: true\n", "resume.optimizer", False),
        ("optimizer:\n  beta_1: 0.9\n  beta_2: 0.95\n", "optimizer.betas", [0.9, 0.95]),
        ("max_grad_norm: null\nlr: 0.1\n", "clip.enabled", False),
        ("lora:\n  r: 16\n  alpha: 32\n", "lora.alpha", 32),
    ],
)
def test_what_the_file_is_about_settles_a_word(text: str, knob: str, value: object) -> None:
    assert read_knobs([parse_text(text, "config.yaml", "yaml")]).value(knob) == value


def test_a_sampling_temperature_is_not_one_of_a_loss() -> None:
    text = "temperature: 0.7\ntop_p: 0.9\nmax_new_tokens: 256\nprompt: hello\n"
    assert "loss.temperature" not in read_knobs([parse_text(text, "config.yaml", "yaml")])


def test_two_values_for_one_knob_are_not_believed() -> None:
    text = "a:\n  num_negatives: 5\nb:\n  num_negatives: 6\n"
    assert "contrast.negatives" not in read_knobs([parse_text(text, "config.yaml", "yaml")])


def test_what_is_not_understood_is_listed_with_a_guess() -> None:
    trees = [parse_text("lr: 0.1\nlearing_rate: 3\nfrobnicate: 7\n", "config.yaml", "yaml")]
    told = {str(one.leaf.path[-1]): one.guess for one in not_understood(trees, read_knobs(trees))}
    assert told == {"learing_rate": "optimizer.lr", "frobnicate": None}


def test_guesses_and_themes() -> None:
    assert guess_of("max_gradnorm_") == "clip.norm"
    assert themes_of(["algo", "a2c"]) >= {"rl", "onpolicy"}
    assert themes_of(["lr", "epochs"]) == frozenset()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"task_weights": {"a": 1.0, "b": 40.0}}', {"a": 1.0, "b": 40.0}),
        ('{"loss_weights": [1, 2, 3]}', {"0": 1, "1": 2, "2": 3}),
        ('{"lambda_rec": 10, "lambda_cyc": 5, "lr": 0.1}', {"rec": 10, "cyc": 5}),
        ('{"w_ce": 1.0, "w_dice": 0.5}', {"ce": 1.0, "dice": 0.5}),
        ('{"class_weights": [1, 2]}', None),
        ('{"lambda_rec": 10}', None),
        ('{"weight_decay": 0.1, "kl_weight": 2}', None),
    ],
)
def test_weights_of_several_losses(text: str, wanted: object) -> None:
    assert read_knobs([parse_text(text, "a.json", "json")]).value("loss.weights") == wanted


def test_the_parameters_of_scikit_learn() -> None:
    text = "{'alpha': 150.0, 'learning_rate_init': 0.005, 'max_iter': 60, 'nesterovs_momentum': True, 'solver': 'sgd', 'random_state': 1}"
    knobs = read_knobs([parse_text(text, "a.log", "namespace")])
    assert (knobs.value("optimizer.weight_decay"), knobs.value("run.epochs"), knobs.value("run.seed")) == (150.0, 60, 1)
    assert "run.total_steps" not in knobs
    repeated = read_knobs([parse_text(text.replace("60", "1"), "a.log", "namespace")])
    assert "run.total_steps" not in repeated


def test_the_settings_of_a_federated_run() -> None:
    text = "rounds: 60\nclients: 20\nlocal_lr: 0.1\nlocal_bs: 16\nserver_lr: 1.0\ndirichlet_alpha: 0.5\n"
    knobs = read_knobs([parse_text(text, "a.yml", "yaml")])
    assert [knobs.value(k) for k in ("run.epochs", "optimizer.lr", "batch.per_device")] == [60, 0.1, 16]


def test_what_one_source_leaves_out_another_completes() -> None:
    printed = read_knobs([parse_text('{"lr": 0.1}', "a.json", "json")])
    script = read_knobs([parse_text('{"lr": 0.5, "optimizer": "adam"}', "b.json", "json")])
    both = printed.completed(script)
    assert (both.value("optimizer.lr"), both.value("optimizer.name")) == (0.1, "adam")
