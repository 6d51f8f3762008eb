"""What well-known calls do with a value: show it, pass it on, keep it in a box, or name a file with it.

Anything not listed here counts as acting on the value. So a missing name costs a finding, never a
false accusation; a wrong name here could cost one, and each set says why its members are safe.
"""

from __future__ import annotations

import re

# A logger by its name. `log` alone is excluded as a callee (math.log), not as a receiver.
LOGGER = re.compile(
    r"(^|[._])(_?logger|logging|log|LOG|LOGGER|_log|console|rich_console|epoch_logger|tqdm|warnings|click|typer|logzero|loguru)$"
)
LOG_METHODS = {
    "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "success", "trace", "notice",
    "print", "write", "echo", "secho", "msg", "message", "info_once", "warning_once", "rule",
}  # fmt: skip
# Receivers that record numbers for people: TensorBoard, wandb, mlflow, comet, accelerate trackers.
RECORDER = re.compile(
    r"(^|[._])(wandb|writer|tb|tb_writer|summary_writer|tensorboard|mlflow|experiment|tb_logger|run|tracker|logger|clearml|neptune|comet|swanlab|aim_run|progress_bar|pbar|bar|progress|wandb_run|accelerator|fabric)$"
)
RECORD_METHODS = {
    "add_scalar", "add_scalars", "add_text", "add_hparams", "add_histogram", "add_image", "log", "log_param",
    "log_params", "log_metric", "log_metrics", "log_hyperparams", "log_dict", "log_text", "set_postfix", "log_artifact",
    "set_postfix_str", "set_description", "set_description_str", "summary", "watch", "alert", "set_tag", "set_tags",
    "log_hyperparameters", "init_trackers", "add_config", "print",
}  # fmt: skip
SHOWS = {
    "print",
    "pprint",
    "pp",
    "rprint",
    "cprint",
    "print_rank_0",
    "rank_zero_info",
    "rank_zero_warn",
    "warn",
    "secho",
    "echo",
}
# Written to a file for later reading. Counts as shown only where nothing in the program starts another
# program that might read the file back (subprocess, deepspeed, sbatch).
SAVES = {
    "save",
    "dump",
    "safe_dump",
    "dumps_to_file",
    "write_text",
    "write",
    "writelines",
    "writerow",
    "writerows",
    "to_json",
    "to_csv",
    "to_yaml",
    "save_checkpoint_config",
}
SAVERS = re.compile(
    r"(^|[._])(torch|pickle|json|yaml|OmegaConf|np|numpy|toml|f|fh|fp|file|out|writer|joblib|dill|fout|outfile|csv_writer|xm|log_file)$"
)
STARTS_PROGRAMS = {"Popen", "system", "check_call", "check_output", "run_command", "execvp", "srun"}

# The result is the argument, or a number, text or truth made of it.
PASSES = {
    "int", "float", "bool", "abs", "min", "max", "sum", "round", "list", "tuple", "set", "frozenset", "sorted",
    "reversed", "enumerate", "zip", "len", "isinstance", "type", "ceil", "floor", "log2", "sqrt", "pow", "Path",
    "PurePath", "expanduser", "abspath", "basename", "dirname", "exists", "isfile", "isdir", "splitext", "join", "copy", "deepcopy",
    "range", "complex", "divmod", "any", "all", "filter", "map", "iter", "next", "id", "cast", "realpath",
}  # fmt: skip
TEXTS = {"str", "repr", "format", "dumps", "pformat", "hash", "ascii", "to_yaml", "md5", "sha256", "sha1", "hexdigest"}
# Methods of a value whose result is still that value: of strings, lists, numbers and dictionaries.
VALUE_METHODS = {
    "lower", "upper", "strip", "split", "replace", "startswith", "endswith", "rstrip", "lstrip", "join", "format",
    "items", "keys", "values", "copy", "index", "count", "item", "title", "encode", "zfill", "is_integer", "exists",
    "is_file", "is_dir", "as_posix", "with_suffix", "resolve", "joinpath", "get", "removeprefix", "removesuffix",
}  # fmt: skip
# Names given to a thing people look at. A number turned into text and used here names a run, it does not act.
NAMES_THINGS = {
    "makedirs", "mkdir", "open", "Path", "join", "SummaryWriter", "FileHandler", "init", "exists", "isdir",
    "isfile", "savefig", "title", "suptitle", "getLogger", "setup_logger", "TensorBoardLogger", "WandbLogger",
    "CSVLogger", "set_experiment", "start_run", "create_experiment", "xlabel", "ylabel", "legend", "set_title",
}  # fmt: skip

# Calls whose result holds the fields of their argument.
BOXES = {
    "vars", "dict", "Namespace", "SimpleNamespace", "EasyDict", "edict", "AttrDict", "DotDict", "dotdict", "Munch",
    "munchify", "DotMap", "Box", "ConfigDict", "asdict", "deepcopy", "copy", "DictConfig", "OrderedDict", "defaultdict",
    "ChainMap", "MappingProxyType", "CfgNode", "Dict", "HParams", "bunchify", "Bunch",
}  # fmt: skip
OMEGACONF_BOXES = {"create", "to_container", "to_object", "merge", "structured", "unsafe_merge", "masked_copy"}
BOX_METHODS = {
    "items",
    "values",
    "copy",
    "_asdict",
    "to_dict",
    "clone",
    "as_dict",
    "model_dump",
    "dict",
    "todict",
    "model_copy",
}
# Methods of a box that read nothing from it, or only its names.
BOX_SILENT = {
    "keys", "update", "setdefault", "freeze", "defrost", "clear", "print_help", "merge_from_file", "merge_from_list",
    "set_defaults", "pop", "popitem", "__setitem__", "__setattr__", "__contains__", "set_struct", "unlock", "lock",
    "merge_update",
}  # fmt: skip
LOADS_CONFIG = {"safe_load", "load", "full_load", "unsafe_load", "loads", "load_config", "fromfile", "parse_config"}
# Base classes that never read an attribute a subclass sets on itself.
INERT_BASES = {
    "object", "Module", "Dataset", "IterableDataset", "ABC", "Protocol", "Generic", "NamedTuple", "TypedDict",
    "Enum", "Exception", "dict", "Thread", "Sampler", "Function", "BatchSampler",
}  # fmt: skip
CONFIG_NAMES = re.compile(r"^(_?(args?|cfg|config|conf|options?|opts|hparams|hps?|flags|settings|kwargs|train_config|train_cfg|params|hyperparams|run_config|model_config|config_dict|cfg_dict|configs?|hyperparameters|.*_(?:args|cfg|config|kwargs|opts|params)))$", re.I)  # fmt: skip

# Settings that shape a training run. Only these are judged where a name alone says "option" (a key of a
# dictionary, a field of a dataclass): an `author` key nobody reads is no defect.
KNOB = re.compile(
    r"(?:^|_)(lr|learning_rate|warm_?up\w*|scheduler|lr_scheduler|lr_schedule|schedule|clip\w*|grad_clip\w*|gradient_clip\w*|max_grad_norm|"
    r"accum\w*|accumulate\w*|grad_accum\w*|gradient_accumulation\w*|ema\w*|amp|fp16|bf16|precision|mixed_precision|weight_decay|wd|momentum|"
    r"betas?|beta1|beta2|eps|epochs?|num_epochs|max_epochs|steps|max_steps|total_steps|n_iters|max_iters|num_steps|milestones|gamma|batch_size|"
    r"resume\w*|checkpoint_path|pretrained|label_smoothing|dropout|drop_path|mixup\w*|cutmix\w*|seed|optimizer|patience|t_max|eta_min|min_lr|"
    r"swa\w*|gradient_checkpointing|loss_scale|decay|image_size|resolution|curriculum\w*)(?:_|$)",
    re.I,
)
ACCUMULATION = re.compile(
    r"^(gradient_?accumulation(_steps|_iters?)?|grad_?accum(ulation)?(_steps|_iters?)?|accum(ulation|ulate)?(_steps|_iters?|_grad(ient)?(s|_batches|_steps)?)?"
    r"|acc_steps|accumulate_grad_batches|iter_size|update_freq|n_accum|num_accum\w*|accum_iter|gas|grad_acc(_steps)?|ga_steps)$",
    re.I,
)
RESUME = re.compile(
    r"^(resume\w*|\w*_resume|auto_resume|resume_from\w*|load_checkpoint|checkpoint_resume|restart_from|continue_from)$",
    re.I,
)

# The settings a run is known by. Not wired, they make it another run than was declared.
# What changes the course of the optimisation itself, where it is set to something; accumulation has a check of its own.
OPTIMISES = re.compile(
    r"^(lr_?scheduler\w*|scheduler|lr_schedule|(lr_)?warm_?up\w*|\w*_warmup(_steps|_epochs|_ratio)?|grad(ient)?_clip\w*|clip_grad\w*|clip(_norm|_value)?"
    r"|max_grad_norm|ema_decay|use_ema|weight_decay|momentum)$",
    re.I,
)
CORE = re.compile(
    r"^(lr|learning_rate|base_lr|max_lr|min_lr|lr_?scheduler\w*|scheduler|lr_schedule|(lr_)?warm_?up\w*|\w*_warmup(_steps|_epochs|_ratio)?|grad(ient)?_clip\w*|clip_grad\w*|clip(_norm|_value)?"
    r"|max_grad_norm|ema_decay|use_ema|mixed_precision|use_amp|amp|fp16|bf16|precision|weight_decay|momentum|(train_)?batch_size|(num_|max_)?epochs|max_steps|seed"
    r"|optimizer|label_smoothing|dropout|resume\w*|\w*_resume|auto_resume|restart_from|continue_from)$|"
    + ACCUMULATION.pattern,
    re.I,
)
