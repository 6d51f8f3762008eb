"""The agent is judged on an environment that is normalised otherwise.

What it sees
------------
An evaluation on a VecNormalize that does not normalise observations as in training, has statistics of its own, or
reports normalised rewards.

Why it matters
--------------
The policy sees inputs of another scale than those it was trained on, or the return is not that of the task.

How it decides
--------------
The wrappers of the environments of training and of evaluation, with their flags as given or set later. For a call
after training (evaluate_policy) the statistics must have been loaded or copied, and rewards must not be normalised.
EvalCallback copies the statistics itself.

When it is wrong
----------------
If the environment is normalised inside.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of, text_of
from wheeltapper.program.reading import Code

ID = "agent-judged-otherwise"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    trained = [n for call in story.named("learn") if call.args and (n := _normaliser(call.args[0].arg("env", 1))) is not None]
    if not trained:
        return
    mine = trained[0]
    for call in story.named("EvalCallback", "evaluate_policy"):
        env = call.arg("eval_env", 0) if call.name == "EvalCallback" else call.arg("env", 1)
        theirs = _normaliser(env)
        if theirs is None or theirs is mine:
            continue
        found = _wrong(story, mine, theirs, call)
        if found is not None:
            yield code.seen(ID, found, theirs, call, *_settings(story, theirs))
            return


def _wrong(story: Story, mine: Val, theirs: Val, call: Val) -> str | None:
    if _flag(story, mine, "norm_obs", True) is True and _flag(story, theirs, "norm_obs", True) is False:
        return "The agent is trained on normalised observations and judged on raw ones."
    if call.name != "evaluate_policy":
        return None
    copied = any(text_of(c.args[1]) in ("obs_rms", "ret_rms") for c in story.named("setattr") if len(c.args) > 2 and c.args[0] is theirs)
    if theirs.name == "VecNormalize" and not copied and not story.named("sync_envs_normalization"):
        return "The environment of the evaluation has fresh statistics: its observations are not those of training."
    if _flag(story, theirs, "norm_reward", True) is True:
        return "The return that is reported is made of normalised rewards."
    return None


def _settings(story: Story, env: Val) -> list[Val]:
    return [c for c in story.named("setattr") if len(c.args) > 2 and c.args[0] is env][:2]


def _flag(story: Story, env: Val, name: str, default: bool) -> bool | None:
    """A switch of a wrapper: as set last, as given, else its default."""
    set_ = [c.args[2].data for c in story.named("setattr") if len(c.args) > 2 and c.args[0] is env and text_of(c.args[1]) == name]
    if set_:
        return set_[-1] if isinstance(set_[-1], bool) else None
    if env.name == "load":
        return default
    given = env.kwargs.get(name)
    return default if given is None else given.data if isinstance(given.data, bool) else None


def _normaliser(env: Val | None) -> Val | None:
    for one in made_of(env, deep=False):
        if one.op == "call" and (one.name == "VecNormalize" or (one.name == "load" and "VecNormalize" in one.origin)):
            return one
    return None
