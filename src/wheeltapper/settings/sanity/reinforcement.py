"""Agents and policies: discounts, replay, targets, exploration, groups of answers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.lengths import length_near
from wheeltapper.settings.sanity.sheet import Doubt, Sheet, same_section


def _agents(sheet: Sheet) -> bool:
    return bool(sheet.themes & {"rl", "onpolicy"}) or sheet.says("mlppolicy", "cnnpolicy", "env_id", "timesteps")


def discounts(sheet: Sheet) -> Iterator[Doubt]:
    """A discount of 1 or less, and one that sees further than a few steps; lambda within 0 to 1."""
    if not _agents(sheet):
        return
    for s in sheet.settings:
        value = s.number
        if value is None or isinstance(s.value, bool):
            continue
        discount = s.key in ("gamma", "discount", "discount_factor", "discount_rate", "reward_discount", "gamma_discount") and not s.above & {"sched", "scheduler", "lr", "loss"}
        if discount and value > 1:
            yield Doubt("gamma-too-low", f"`{s.name}` is {value:g}: a discount above 1 has no finite return", (s,))
        elif discount and value < 0.6:
            yield Doubt("gamma-too-low", f"`{s.name}` is {value:g}: rewards more than {1 / (1 - value):.1f} steps ahead do not count", (s,))
        if (s.key in ("gae_lambda", "lam", "lambda_", "gae_lam", "lambd", "td_lambda", "gae_tau") or s.has("gae lambda/lam/coef")) and not 0 <= value <= 1:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {value:g}: lambda lies between 0 and 1", (s,))


def targets(sheet: Sheet) -> Iterator[Doubt]:
    """A target network that never moves, or has no lag."""
    if not _agents(sheet):
        return
    for s in sheet.settings:
        value = s.number
        named = s.key in ("tau", "polyak", "soft_tau", "target_tau", "soft_update_tau", "tau_target") and not s.above & {"loss"}
        if value is None or not named or isinstance(s.value, bool):
            continue
        rarely = any(o.has("target interval/freq/frequency/update") and (o.number or 0) > 1 for o in sheet.settings)
        actor_critic = sheet.says("sac", "td3", "ddpg", "redq", "tqc")
        if s.key == "polyak":
            value = 1 - value
        if value <= 0:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.value}: the target network never moves", (s,))
        elif value > 1 or (value > 0.5 and actor_critic and not rarely):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.value}: the target network has no lag", (s,))


def replay(sheet: Sheet) -> Iterator[Doubt]:
    """A replay that holds a few batches."""
    if not _agents(sheet):
        return
    for s in sheet.settings:
        named = s.knob == "rl.buffer_size" or (s.key in ("buffer_size", "replay_size", "capacity", "memory_size", "replay_buffer_size", "buffer_capacity") and s.around & {"buffer", "replay", "memory"})
        if not named or not s.number or s.number <= 0:
            continue
        batch = sheet.nearest(s, [o for o in sheet.settings if o.key in ("batch_size", "batch", "minibatch_size") and o.number])
        size = batch.number if batch is not None and batch.number else 32
        if s.number < max(6 * size, 500) and not sheet.says("ppo", "a2c", "grpo"):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}, with batches of {size:g}: the samples of a batch follow each other", (s,) if batch is None else (s, batch))


def rollouts(sheet: Sheet) -> Iterator[Doubt]:
    """A batch larger than the rollout that it is drawn from."""
    if not _agents(sheet):
        return
    for s in sheet.settings:
        if s.key not in ("n_steps", "num_steps", "rollout_length", "nsteps", "rollout_steps", "steps_per_rollout") or not s.number:
            continue
        beside = [o for o in sheet.settings if same_section(s, o)]
        batch = next((o for o in beside if o.key in ("batch_size", "minibatch_size") and o.number), None)
        envs = next((o for o in beside if o.key in ("n_envs", "num_envs", "nenvs") and o.number), None)
        whole = s.number * ((envs.number or 1) if envs is not None else 1)
        if batch is not None and (batch.number or 0) > 6 * whole and any(o.own & {"gae", "clip", "epochs", "ent"} for o in beside):
            yield Doubt("setting-beyond-practice", f"a batch of {batch.number:g} (`{batch.name}`) from a rollout of {whole:g} (`{s.name}`)", (s, batch), "range")


def exploration(sheet: Sheet) -> Iterator[Doubt]:
    """Actions that stay random, or never are."""
    if not _agents(sheet):
        return
    for s in sheet.settings:
        value = s.number
        if value is None or isinstance(s.value, bool):
            continue
        if s.has("eps/epsilon final/end/min", "adam opt clip norm") and s.around & {"exploration", "eps", "epsilon"} and value > 0.5:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {value:g}: most actions stay random to the end", (s,))
        if re.search(r"(?:expl|exploration|action|act)_?noise", s.key) and value == 0 and sheet.says("td3", "ddpg"):
            yield Doubt("policy-collapse", f"`{s.name}` is 0: a policy without chance never tries anything else", (s,))
        if re.search(r"(?:policy|target|expl|exploration|action)_?noise", s.key) and value > 2:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {value:g}: actions lie between -1 and 1", (s,))
        if s.has("ent/entropy coef/coeff/coefficient/beta/bonus", "target_ cross") and value > 1:
            yield Doubt("loss-terms-conflict", f"`{s.name}` is {value:g}: chance is worth more than any reward", (s,), "hint" if value >= 5 else "range")
        if s.key == "target_entropy" and value > 20:
            yield Doubt("policy-collapse", f"`{s.name}` is {value:g}: no policy has that entropy (usual is minus the number of actions)", (s,))
        if s.knob == "rl.clip_range" or s.key in ("clip_range", "clip_coef", "clip_ratio", "cliprange", "clip_param", "eps_clip"):
            if 0 < value < 2e-3:
                yield Doubt("clip-too-small", f"`{s.name}` is {value:g}: the policy may hardly move", (s,))
            elif value > 3:
                yield Doubt("policy-collapse", f"`{s.name}` is {value:g}: nothing holds the policy near the one that acted", (s,), "range")


def groups(sheet: Sheet) -> Iterator[Doubt]:
    """Answers to one prompt are compared with each other: it takes two."""
    grouped = any(s.text.lower() in ("grpo", "rloo", "gspo", "dr_grpo") or (re.search(r"(?i)grpo|rloo", s.text) and s.own & {"trainer", "algorithm", "algo", "method", "type"}) for s in sheet.settings)
    if not grouped:
        return
    for s in sheet.settings:
        named = s.key in ("num_generations", "group_size", "num_samples_per_prompt", "n_samples_per_prompt", "rollout_n", "num_return_sequences") or (s.key == "n" and s.above & {"rollout"} and not s.above & {"val", "valid", "eval", "kwargs"})
        if named and s.number is not None and s.number <= 1:
            yield Doubt("policy-collapse", f"`{s.name}` is {s.number:g}: the advantage of a group of one is zero", (s,))


def reference_pull(sheet: Sheet) -> Iterator[Doubt]:
    """The pull to the reference policy, in preference and reward training."""
    tuned = sheet.themes & {"dpo", "onpolicy"} or sheet.says("grpo", "dpo", "rlhf", "trlx", "trl")
    for s in sheet.settings:
        if not tuned or s.number is None or isinstance(s.value, bool):
            continue
        if s.has("kl coef/coeff/beta/penalty/weight", "target ctrl_type vae horizon") and s.number > 20:
            yield Doubt("policy-collapse", f"`{s.name}` is {s.number:g}: the reference holds the policy where it is", (s,))
        if (s.key in ("beta", "dpo_beta", "kl_beta") and "dpo" in sheet.themes | ({"dpo"} if sheet.says("dpo", "ref") else set()) and not s.above & {"adam", "opt", "optimizer"}) and (s.number > 10 or 0 < s.number < 1e-4):
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: the reference holds the policy where it is, or not at all", (s,))
        if s.own & {"max", "new"} and s.own & {"tokens", "length"} and s.around & {"gen", "rollout", "response", "completion", "new"} and 0 < s.number < 8 and not s.number % 1 and not s.own & {"ratio", "batch"}:
            yield Doubt("setting-beyond-practice", f"`{s.name}` is {s.number:g}: no answer fits", (s,))


def policies(sheet: Sheet) -> Iterator[Doubt]:
    """A network for vectors on stacked pictures."""
    for s in sheet.settings:
        if s.key == "policy" and s.text == "MlpPolicy" and any((same_section(o, s) and o.own & {"frame", "frames"}) or (o.path[:-1] == (*s.path[:-1], "env_wrapper") and "atari" in str(o.value).lower()) for o in sheet.settings):
            yield Doubt("objective-mismatch", f"`{s.name}` is {s.text}, and the frames are stacked pictures", (s,))


def late_updates(sheet: Sheet) -> Iterator[Doubt]:
    """What is updated less often than the run has steps."""
    for s in sheet.settings:
        if s.key in ("policy_frequency", "policy_freq", "policy_delay", "actor_update_freq", "train_freq", "target_network_frequency") and s.number and _agents(sheet):
            total = length_near(sheet, s, "steps")
            if total is not None and total.number and s.number > total.number:
                yield Doubt("frozen-parameters", f"`{s.name}` is {s.number:g} in a run of {total.number:g} (`{total.name}`): it is never updated", (s, total))


CHECKS = (discounts, targets, replay, rollouts, exploration, groups, reference_pull, policies, late_updates)
