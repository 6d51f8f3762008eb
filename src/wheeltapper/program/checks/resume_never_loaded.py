"""A resume option is accepted, and no checkpoint is ever loaded.

What it sees
------------
An option to resume that decides something (a message, a start step), in a program that loads no checkpoint.

Why it matters
--------------
The run starts from fresh weights while its log says that it resumes.

How it decides
--------------
The option's value only decides which lines run; it is handed to nothing; and no call in the program loads
weights or a checkpoint. An option that does nothing at all is option-never-used.

When it is wrong
----------------
If the framework finds the checkpoint by itself once it is told to resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program import vocabulary as words
from wheeltapper.program.reading import Code

ID = "resume-never-loaded"
CAUSE = None
DECIDES = True
LOADS = re.compile(r"load|restore|resume|from_pretrained|from_checkpoint", re.I)
NOT_WEIGHTS = re.compile(r"dataset|loader|dotenv|yaml|safe_load|config|image|data|text|tokenizer|^loads$", re.I)


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or any(
        LOADS.search(n) and not NOT_WEIGHTS.search(n) and not _only_config(code, n) for n in code.program.calls
    ):
        return
    for usage in code.usages:
        if not words.RESUME.match(usage.option.name) or usage.escapes or not usage.trace.acts:
            continue
        if all(why.startswith("decides") for _, why in usage.trace.acts):
            yield code.finding(
                ID,
                f"{usage.option.flag} decides what is run or logged, and nothing in the program loads a checkpoint.",
                usage.option.node,
                usage.trace.acts[0][0],
            )


def _only_config(code: Code, name: str) -> bool:
    """`load` of yaml, json and the like."""
    origins = {code.program.origin(c.func) for c in code.program.calls[name]}
    return name == "load" and all(
        o.split(".")[0] in ("yaml", "json", "toml", "tomllib", "np", "numpy") for o in origins
    )
