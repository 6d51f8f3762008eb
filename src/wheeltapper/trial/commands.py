"""How a training is started, where nobody says it; and settings as its command line spells them.

Without `--cmd` the launch script beside the run is started, else its one training script. An edit then reaches the training in
a copy of the folder: through the file of settings that it reads, or through the script itself. `{set}` in a command stands for
the edits as options or overrides: `--lr 0.001` for argparse, `optim.lr=0.001` for Hydra.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.program.reading import read_code
from wheeltapper.remedy.loads import declared_options
from wheeltapper.run.model import Run
from wheeltapper.settings.dialects.generic import meaning_of
from wheeltapper.settings.knobs import read_knobs

NEED = 'Give it as --cmd "python train.py --config {config} --out {out}".'


def found_command(run: Run) -> str:
    """The command that starts this training, from what lies beside the run; InputError where that is not one."""
    launches = [tree for tree in run.configs if tree.kind == "command" and tree.format == "shell" and tree.text is not None]
    files = sorted({tree.file for tree in launches if os.path.isfile(tree.file)})
    if len(files) == 1:
        return f"bash {shlex.quote(PurePath(files[0]).name)}"
    if len(files) > 1:
        held = ", ".join(PurePath(file).name for file in files)
        raise InputError(f"several launch scripts lie beside the run: {held}.", do='Say which: --cmd "bash NAME".')
    entries = [code.program.entry.path for code in read_code(run.scripts, run.configs)[0] if code.trains]
    if len(entries) != 1:
        held = "no training script lies" if not entries else f"{len(entries)} training scripts lie"
        raise InputError(f"{held} beside the run, so how it is started is not known.", do=NEED)
    python = "python" if shutil.which("python") else shlex.quote(sys.executable)
    return f"{python} {shlex.quote(entries[0].name)}"


def home_of(run: Run) -> Path | None:
    """The folder that the found command is started in: where the script lies."""
    codes = [code for code in read_code(run.scripts, run.configs)[0] if code.trains]
    return codes[0].program.entry.path.resolve().parent if len(codes) == 1 else None


def overrides(run: Run, edits: Sequence[Edit]) -> str:
    """The edits as words of the command line."""
    return " ".join(_override(run, edit) for edit in edits)


def _override(run: Run, edit: Edit) -> str:
    knobs = read_knobs(run.configs, run_formats=run.formats)
    known = knobs.get(edit.knob)
    if knobs.dialect.NAME == "hydra" and known is not None and known.leaf is not None:
        return shlex.quote(f"{known.leaf.dotted}={_word(edit.new)}")
    flags = declared_options(run)
    for name, flag in flags.items():
        if edit.knob in (name, meaning_of(name)):
            on, _, off = flag.partition("/")
            if isinstance(edit.new, bool):
                if edit.new or off:
                    return on if edit.new else off
                continue
            return f"{on} {shlex.quote(_word(edit.new))}"
    raise InputError(
        f"{{set}}: neither an option of the script nor a key of Hydra is known for {edit.knob}.",
        do="Leave {set} out: the change is then made in a copy of the folder.",
    )


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_word(one) for one in value)}]"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
