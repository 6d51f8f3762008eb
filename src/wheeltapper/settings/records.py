"""Files that a framework or the script writes and never reads back: an edit of them changes nothing in the next run.

A model's `config.json`, an adapter's, Lightning's `hparams.yaml`, whatever lies in a checkpoint's or a logger's folder:
known by name, by place and by what only such a file holds. `wheeltapper fix` must never offer one of them.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from wheeltapper.settings.tree import ConfigTree

# Folders of what a run left; nothing is started from them.
FOLDERS = {".hydra", "lightning_logs", "wandb", "mlruns", "checkpoints", "vis_data"}
_FOLDER = re.compile(r"(?:checkpoint|version|epoch|step)[-_]\d+\Z|events\.out")
# Written by save_pretrained, by the Trainer, by Lightning's loggers.
NAMES = {
    "adapter_config.json", "generation_config.json", "preprocessor_config.json", "tokenizer_config.json",
    "trainer_state.json", "training_args.json", "all_results.json", "train_results.json", "eval_results.json", "hparams.yaml",
}  # fmt: skip
# Keys that only the configuration of a saved model has.
OF_A_MODEL = {"transformers_version", "architectures", "model_type", "_name_or_path", "torch_dtype", "dtype"}


def is_record(tree: ConfigTree) -> bool:
    """Whether a framework wrote this file. What the user's own script writes is told by the script, not here."""
    path = PurePath(tree.file)
    if path.name in NAMES or FOLDERS & set(path.parts) or any(_FOLDER.match(part) for part in path.parts[:-1]):
        return True
    top = {str(leaf.path[0]) for leaf in tree.leaves if leaf.path}
    return tree.format == "json" and len(top & OF_A_MODEL) >= 2
