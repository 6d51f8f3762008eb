"""traiNNer-redux: a YAML file decoded into strict structs; an unknown or misplaced key stops it at load.

Keys from traiNNer/utils/redux_options.py, every commit from 2024-07-10 to 2026-06 (upstream, the-database)
and the 2025 fork (marked fork). `iter` counts optimizer updates: accumulation happens inside one.
"""

from __future__ import annotations

from wheeltapper.settings.dialects._torch import check_optimizer, check_scheduler, optimizer_knobs, scheduler_knobs
from wheeltapper.settings.dialects.schema import Layout, Policy, Problem, View, names, place_of, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "trainner"
TITLE = "traiNNer-redux"
UNKNOWN: Policy = "refuse"
STRICT_TYPES = True  # msgspec.yaml.decode(..., strict=True)
# The first four by the struct itself. The others by assertions of train.py, once there is a `train` section.
REQUIRED = (
    "name",
    "scale",
    "num_gpu",
    "path",
    "train.total_iter",
    "val.val_enabled",
    "val.save_img",
    "logger.print_freq",
    "logger.save_checkpoint_freq",
    "logger.use_tb_logger",
    "datasets.*.name",
    "datasets.*.type",
)
LAYOUT = Layout(
    config=("*.yml", "*.yaml"),
    metrics=("train_*.log", "../../tb_logger/*/events.out.tfevents.*"),
    checkpoints=("models/net_*.safetensors", "models/resume_models/net_*", "training_states/*.state"),
    note="models/net_g_ema_* is the average, models/resume_models/net_g_* the raw network; no best is saved",
)
FORMATS = ("traiNNer",)
LAST_FORK = "2025-12-29"  # newest state of the fork that we have read
SECTIONS = ("train", "val", "logger", "path", "datasets", "onnx", "network_g")

KEYS = {
    **table("""
    name                   str
    scale                  int      -      sr.scale
    num_gpu                int|str
    input_pixel_format     str      'rgb'  - - 2025-04-01
    output_pixel_format    str      'rgb'  - - 2025-04-01
    network_g              map?
    network_g_teacher      map?     None   - - 2026-01-08
    network_d              map?
    network_ae             map?     None   - - 2025-01-20
    manual_seed            int?     None   run.seed
    deterministic          bool     False  run.deterministic
    use_amp                bool     False
    amp_bf16               bool     False
    use_channels_last      bool     True   - - 2024-12-13
    fast_matmul            bool     False
    use_compile            bool     False  model.compile - 2024-11-03
    compile_mode           str      -      - - 2025-12-10
    detect_anomaly         bool     False  - - 2024-09-27
    watch                  bool     False  - - 2025-02-02
    start_iter             int      0      - - 2025-06-21
    switch_iter_per_epoch  int      1      - - 2025-02-21
    auto_resume            bool?    None   resume.auto
    dist                   bool?
    launcher               str?
    rank                   int?
    world_size             int?
    is_train               bool?
    root_path              str?
    contents               str?     None   - - 2025-03-17
    find_unused_parameters bool     False
    dist_params            map?
    resume                 int      0      - - 2024-09-20..2025-01-20
    auto_vram_management   map?     None   - - fork:2025-12-02
    predefined_sequences   map      -      - - fork:2025-10-29
    """),
    **names(
        "bool",
        "high_order_degradation high_order_degradations_debug lq_usm enable_sequences",
    ),
    **names("int", "high_order_degradations_debug_limit queue_size"),
    **names(
        "float",
        "dataroot_lq_prob blur_prob thicklines_prob gaussian_noise_prob gray_noise_prob jpeg_prob blur_prob2 "
        "gaussian_noise_prob2 gray_noise_prob2 jpeg_prob2 p_clean webp_prob avif_prob oversharpen_prob "
        "chromatic_aberration_prob demosaic_prob aliasing_prob motion_blur_prob lens_distort_prob exposure_prob "
        "color_temp_prob sensor_noise_prob rolling_shutter_prob heif_prob editing_prob editing_exposure_prob "
        "editing_oversharpen_prob sequence_probability recompression_prob",
    ),
    **names(
        "list",
        "lq_usm_radius_range resize_prob resize_mode_list resize_mode_prob resize_range noise_range "
        "poisson_scale_range jpeg_range resize_prob2 resize_mode_list2 resize_mode_prob2 resize_range2 noise_range2 "
        "poisson_scale_range2 jpeg_range2 resize_mode_list3 resize_mode_prob3 webp_range avif_range "
        "oversharpen_strength aliasing_scale_range motion_blur_kernel_size motion_blur_angle_range "
        "lens_distort_strength_range exposure_factor_range color_temp_shift_range sensor_noise_std_range "
        "rolling_shutter_strength_range heif_range editing_exposure_range editing_oversharpen_strength "
        "compression_formats compression_weights compression_jpeg_range compression_webp_range "
        "compression_avif_range compression_heif_range recompression_formats recompression_weights "
        "force_high_order_degradation_filename_masks force_dataroot_lq_filename_masks",
    ),
    **table(
        """
    total_iter              int    -      run.total_steps steps
    adaptive_d              bool   False  - - 2025-02-08
    adaptive_d_ema_decay    float  0.999  - - 2025-02-09
    adaptive_d_threshold    float  1.02   - - 2025-02-09
    optim_g                 map?
    optim_d                 map?
    optim_ae                map?   None   - - 2025-01-20
    ema_decay               float  0
    ema_switch_iter         float  0      - - 2025-02-12
    ema_switch_epoch        int    0      - - 2025-02-15..2025-02-21
    ema_update_after_step   int    0      ema.start steps 2025-03-08
    ema_power               float  10     ema.warmup_power - 2025-02-27
    grad_clip               bool   False  clip.enabled - 2024-09-11
    grad_clip_max_norm      float  100.0  - - 2026-02-18
    warmup_iter             int    -1
    restart_scheduler       bool   False  schedule.restart - 2026-02-15
    scheduler               map?
    losses                  list?  None   - - 2024-10-25
    use_moa                 bool   False
    moa_augs                list
    moa_probs               list
    moa_debug               bool   False
    moa_debug_limit         int    100
    eco                     map    -      - - 2026-04-19
    dynamic_loss_scheduling map?   None   - - fork:2025-11-29
    training_automations    map?   None   - - fork:2025-12-01
    """,
        "train.",
    ),
    **names(
        "map?",
        "pixel_opt mssim_opt ms_ssim_l1_opt mssim_l1_opt perceptual_opt contextual_opt dists_opt hr_inversion_opt "
        "dinov2_opt topiq_opt pd_opt fd_opt ldl_opt hsluv_opt gan_opt color_opt luma_opt avg_opt bicubic_opt",
        "train.",
    ),
    **table(
        """
    val_enabled     bool
    save_img        bool
    tile_size       int   0     - - 2025-05-22
    tile_overlap    int   0     - - 2025-05-22
    val_freq        int?  None  eval.every steps
    suffix          str?
    metrics_enabled bool  False
    metrics         map?
    pbar            bool  True
    """,
        "val.",
    ),
    **table(
        """
    print_freq             int  -  log.every steps
    save_checkpoint_freq   int  -  checkpoint.every steps
    use_tb_logger          bool
    save_checkpoint_format str  'safetensors'
    wandb                  map?
    """,
        "logger.",
    ),
    **table(
        """
    pretrain_network_g      str?  None  finetune.from
    resume_state            str?  None  resume.from
    strict_load_g           bool  True
    strict_load_d           bool  True
    ignore_resume_networks  list?
    """,
        "path.",
    ),
    **names(
        "str?",
        "experiments_root models resume_models training_states log visualization results_root "
        "pretrain_network_g_teacher pretrain_network_g_path pretrain_network_ae_path param_key_g "
        "pretrain_network_g_ema pretrain_network_d param_key_d pretrain_network_ae pretrain_network_ae_ema "
        "pretrain_network_ae_decoder pretrain_network_ae_decoder_ema",
        "path.",
    ),
    **names("bool", "dynamo verify optimize use_static_shapes fp16 bf16_exclude_depthwise wrap_5d_to_4d", "onnx."),
    **names("any", "opset shape dtype calibration_data calibration_samples int8_calibration_method", "onnx."),
    **names("str", "name type filename_tmpl", "datasets.*."),
    **names("bool", "use_hflip use_rot pin_memory persistent_workers", "datasets.*."),
    **names("int", "accum_iter num_prefetch_queue blur_kernel_size blur_kernel_size2", "datasets.*."),
    **names(
        "int?",
        "num_worker_per_gpu batch_size_per_gpu gt_size lq_size scale prefetch_factor clip_size",
        "datasets.*.",
    ),
    **names("str?", "color phase prefetch_mode meta_info lq_resize_mode", "datasets.*."),
    **names("list|str?", "dataroot_gt dataroot_lq", "datasets.*."),
    **names("list?", "mean std", "datasets.*."),
    **names("float", "sinc_prob sinc_prob2 final_sinc_prob", "datasets.*."),
    **names(
        "list",
        "kernel_list kernel_prob kernel_range blur_sigma betag_range betap_range kernel_list2 kernel_prob2 "
        "kernel_range2 blur_sigma2 betag_range2 betap_range2 final_kernel_range",
        "datasets.*.",
    ),
    **names("map", "io_backend", "datasets.*."),
    **names("int|str", "dataset_enlarge_ratio", "datasets.*."),
}


def recognise(tree: ConfigTree) -> float:
    """What BasicSR does not have: AMP at the top, lq_size, a list of losses, val_enabled."""
    family = share(tree, ("datasets.train", "network_g", "train.optim_g", "train.total_iter", "logger", "val"), 2)
    own = share(
        tree,
        (
            "use_amp",
            "amp_bf16",
            "fast_matmul",
            "use_channels_last",
            "train.losses",
            "train.grad_clip",
            "train.ema_power",
            "val.val_enabled",
            "datasets.train.lq_size",
            "datasets.train.accum_iter",
            "logger.save_checkpoint_format",
            "train.dynamic_loss_scheduling",
            "high_order_degradation",
        ),
        2,
    )
    return family * own if tree.format in ("yaml", "json") else 0.0


def knobs(view: View, found: Found) -> None:
    optimizer_knobs(view, found, "train.optim_g")
    scheduler_knobs(view, found, "train.scheduler", "steps")
    found.take("optimizer.lr_d", view, "train.optim_d.lr")
    found.take("model.name", view, "network_g.type")
    found.take("batch.per_device", view, "datasets.train.batch_size_per_gpu")
    found.take("data.workers", view, "datasets.train.num_worker_per_gpu")
    found.take("data.name", view, "datasets.train.name")
    found.take("data.enlarge", view, "datasets.train.dataset_enlarge_ratio")
    found.take("sr.patch", view, "datasets.train.lq_size", "datasets.train.gt_size")
    if found.take("batch.accumulation", view, "datasets.train.accum_iter") is None:
        found.give("batch.accumulation", 1, default=True)
    if isinstance(view.value("num_gpu"), int):
        found.take("world_size", view, "num_gpu")
    warmup = view.number("train.warmup_iter")
    if warmup is not None:
        found.give("schedule.warmup", max(warmup, 0), view.leaf("train.warmup_iter"), unit="steps")
    _ema(view, found)
    _precision(view, found)
    _clip(view, found)
    _losses(view, found)
    dynamic = view.leaf("train.dynamic_loss_scheduling.enabled")
    if dynamic is not None:
        found.give("loss.dynamic_weights", dynamic.value, dynamic)


def _ema(view: View, found: Found) -> None:
    leaf = view.leaf("train.ema_decay")
    decay = view.number("train.ema_decay") or 0.0
    found.give("ema.enabled", decay > 0, leaf, default=leaf is None)
    if decay > 0:
        found.give("ema.decay", decay, leaf)
        found.give("ema.every", 1, default=True)
        found.give("ema.impl", "ema-pytorch", default=True)
    else:
        found.drop("ema.warmup_power", "ema.start")


def _precision(view: View, found: Found) -> None:
    amp, bf16 = view.value("use_amp", False), view.value("amp_bf16", False)
    leaf = view.leaf("amp_bf16") if amp and bf16 else view.leaf("use_amp")
    found.give("precision", "bf16" if amp and bf16 else "fp16" if amp else "fp32", leaf, default=leaf is None)
    # enable_gradscaler = use_amp and not amp_bf16; torch's default GradScaler otherwise
    found.give("amp.scaler", bool(amp and not bf16), leaf, default=True)
    if amp and not bf16:
        found.give("amp.init_scale", 65536.0, default=True)
        found.give("amp.growth_interval", 2000, default=True)


def _clip(view: View, found: Found) -> None:
    leaf = view.leaf("train.grad_clip")
    if not view.value("train.grad_clip", False):
        return
    norm = view.leaf("train.grad_clip_max_norm")
    if norm is not None:
        found.give("clip.norm", norm.value, norm)
    elif _is_fork(view):
        found.give("clip.norm", 1.0, leaf, note="hard-coded in the fork, and upstream before 2026-02-18")
    # Upstream: 1.0 hard-coded before b834bf2f (2026-02-18), 100.0 by default since. Unknown without the version.


def _losses(view: View, found: Found) -> None:
    weights, kinds, first = {}, [], None
    for index in range(32):
        kind = view.leaf(f"train.losses.{index}.type")
        if kind is None:
            break
        first = first or kind
        kinds.append(str(kind.value))
        weights[str(kind.value)] = view.value(f"train.losses.{index}.loss_weight")
    for path, leaf in view.index.items():
        if len(path) == 3 and path[0] == "train" and path[1].endswith("_opt") and path[2] == "type":
            first = first or leaf
            kinds.append(str(leaf.value))
            weights[str(leaf.value)] = view.value(f"train.{path[1]}.loss_weight")
    if kinds:
        found.give("loss.name", kinds, first)
        found.give("loss.weights", weights, first)
        found.give("gan.enabled", any("gan" in kind.lower() for kind in kinds), first)


def _is_fork(view: View) -> bool:
    return any(key.fork and view.has(key.path) for key in KEYS.values())


def check(view: View) -> list[Problem]:
    out = []
    for section in ("train.optim_g", "train.optim_d", "train.optim_ae"):
        out += check_optimizer(view, section)
    out += check_scheduler(view, "train.scheduler")
    out += _missing_sections(view)
    norm = view.leaf("train.grad_clip_max_norm")
    if norm is not None and _is_fork(view):
        text = (
            "`train.grad_clip_max_norm` exists upstream since 2026-02-18; the fork this file is written for does not "
            f"have it (read up to {LAST_FORK}), and refuses to load a key it does not know"
        )
        hint = "In the fork, `grad_clip: true` clips at 1.0."
        out.append(Problem("unknown-key", text, place_of(norm), "suspected", hint, "train.grad_clip_max_norm"))
    for name in sorted({path[1] for path in view.index if len(path) > 2 and path[0] == "datasets"}):
        both = view.number(f"datasets.{name}.lq_size"), view.number(f"datasets.{name}.gt_size")
        leaf = view.leaf(f"datasets.{name}.gt_size")
        if None not in both and leaf is not None and name.startswith("train"):
            text = "exactly one of lq_size and gt_size may be given"
            out.append(
                Problem("conflict", text, place_of(leaf), "is", "Leave out gt_size.", f"datasets.{name}.gt_size")
            )
    return out


def _missing_sections(view: View) -> list[Problem]:
    """train.py asserts these as soon as it is to train."""
    anchor = next((leaf for path, leaf in view.index.items() if path[0] == "train"), None)
    if anchor is None:
        return []
    out = []
    for section in ("datasets", "network_g", "logger"):
        if not view.has(section) and not (section == "network_g" and view.has("network_ae")):
            text = f"there is no `{section}` section: training does not start"
            out.append(Problem("missing", text, place_of(anchor), "is", f"Add the section `{section}`.", section))
    return out
