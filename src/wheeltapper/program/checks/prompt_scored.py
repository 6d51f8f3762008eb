"""The prompt is scored, not the answer.

What it sees
------------
Log-probabilities of tokens that are summed over the part before the end of the prompt, in a loss that compares answers.

Why it matters
--------------
Both answers have the same prompt, so that their difference says nothing: nothing about the answers is learned.

How it decides
--------------
The log-probabilities that the loss is made of are cut at a length that is called one of the prompt (or context, or
instruction), and the part before the cut is kept.

When it is wrong
----------------
If the length has the name of the prompt and is another one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_log_prob, window
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "prompt-scored"
CAUSE: str | None = "all-labels-masked"
DECIDES = True

PROMPT = re.compile(r"prompt|instruction|prefix|context_len|source_len|query_len", re.I)


def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            if value.op != "item" or not any(is_log_prob(v) for v in made_of(value.args[0], deep=False)):
                continue
            cut = window(value)
            if cut is not None and cut[1] is None and cut[2] is not None and _names_prompt(value):
                yield code.seen(
                    ID, "The log-probabilities are those of the prompt; those of the answer are cut off.", value
                )
                return


def _names_prompt(value: Val) -> bool:
    """Whether the end of the cut is written with the prompt's length."""
    node = value.node
    ends = (
        [n.upper for n in ast.walk(node) if isinstance(n, ast.Slice) and n.upper is not None]
        if isinstance(node, ast.Subscript)
        else []
    )
    return any(PROMPT.search(ast.unparse(end)) for end in ends)
