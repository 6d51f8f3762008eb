"""The evaluation sees other observations than training.

What it sees
------------
An environment wrapped in VecNormalize for training, and an evaluation environment without it.

Why it matters
--------------
The policy learned on scaled observations and is judged on raw ones: the score says nothing about it.

How it decides
--------------
The environment given to the algorithm is a VecNormalize with norm_obs, the one given to the evaluation is not one.

When it is wrong
----------------
If the scaling is done in the environment itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "eval-env-not-normalised"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True


JUDGES = ("EvalCallback", "evaluate_policy")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    wrapped = [c for c in story.named("VecNormalize") if _scales(c)]
    if not any(c is v for c in wrapped for made in story.calls for a in made.args[1:2] for v in made_of(a, deep=False)):
        return
    for call in story.named(*JUDGES):
        env = call.arg("eval_env", 0) if call.name == "EvalCallback" else call.arg("env", 1)
        if (
            env is None
            or env.op not in ("call", "obj")
            or any(v.name in ("VecNormalize", "load") for v in made_of(env))
        ):
            continue
        yield code.seen(
            ID,
            "The training environment scales its observations and the one of the evaluation does not.",
            env,
            call,
            wrapped[0],
        )
        return


def _scales(call: Val) -> bool:
    told = call.kwargs.get("norm_obs")
    return told is None or told.data is not False
