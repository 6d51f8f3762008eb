"""Lengths and intervals against the length of the run, in the same unit: what begins after the end never happens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.context import is_noam, is_tuned
from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet
from wheeltapper.settings.words import word_set

UNITS = {"epoch": "epochs", "step": "steps", "timestep": "steps", "timesteps": "steps", "kimg": "kimg", "ticks": "ticks"}
# What a key of these words counts from the start of the run, and the cause when it lies beyond the end.
KINDS = (
    ("learningstarts/start/starts/begin @learning/learn/train/policy/random/start/buffer/learningstarts", "lr warmup decay eps exploration disc kl end_ stage data weight token valid init initial amp scale", "too-few-updates", "learning begins"),
    ("warmup", "lr_ mom ratio bias init start power coef type method mode valid rate temperature teacher temp iterator", "warmup-longer-than-run", "the warm-up ends"),
    ("warmup/ramp/anneal/annealing/rampup", "lr mom ratio bias init start power coef type method mode rate strategy cycles", "setting-beyond-practice", "the rise ends"),
    ("start/begin/from/after", "lr learning init initial amp scale end_ seed date year time n_ epoch_count weight checkpoint token value dim eps noise beta size char temp ratio resume", "setting-beyond-practice", "it begins"),
    ("freeze/frozen/unfreeze", "stages layers trainable n n_ bn norm param text use", "frozen-parameters", "they are thawed"),
    ("target interval/freq/frequency/update/every", "kl entropy eval valid", "setting-beyond-practice", "the target network is updated first"),
    ("valid interval/freq/frequency/every/check", "batch size per_ num iters_ n_", "setting-beyond-practice", "it is evaluated first"),
    ("save/checkpoint/snapshot/ckpt/saveckp interval/freq/frequency/every/ticks/steps/period/save/checkpoint/snapshot/epochs", "limit total max keep last n_best per image_ best strategy total_limit num top", "setting-beyond-practice", "it is saved first"),
    ("policy/actor interval/freq/frequency/delay", "lr", "frozen-parameters", "the policy is updated first"),
)  # fmt: skip
_NOT_LENGTH = frozenset({"factor", "coef", "lr", "ratio", "fraction", "prob", "rate", "decay_rate", "momentum", "gamma", "multiplier"})
_RUN = word_set("n max total train training num step epoch timestep timesteps env kimg end trainer duration iters run limit until")
SHORT, LONG = 0.5, 4.0  # of the run: where a schedule is over, or hardly begun
LIKE_STEPS = 3.0  # times the epochs: a place without a unit that lies so far beyond them is told in steps


def unit_of(setting: Setting) -> str | None:
    """What the key says that it counts."""
    if setting.meaning is not None and setting.meaning.unit in ("steps", "epochs"):
        return setting.meaning.unit
    return next((unit for word, unit in UNITS.items() if word in setting.own), None)


def run_lengths(sheet: Sheet) -> list[tuple[Setting, str]]:
    """Settings that say how long the run is, with their unit."""
    if "lengths" not in sheet.memo:
        sheet.memo["lengths"] = _run_lengths(sheet)
    found: list[tuple[Setting, str]] = sheet.memo["lengths"]
    return found


def _run_lengths(sheet: Sheet) -> list[tuple[Setting, str]]:
    out = []
    for s in sheet.settings:
        number = s.number
        if number is None or isinstance(s.value, bool) or number <= 0:
            continue
        if s.knob == "run.epochs" or (s.knob == "run.total_steps"):
            out.append((s, "epochs" if s.knob == "run.epochs" else "steps"))
        elif (set(s.words) <= _RUN and (unit := unit_of(s)) is not None and {"max", "total", "train", "n"} & set(s.words) and not s.above & {"sched", "schedule", "scheduler", "sampler", "env", "valid", "diffusion", "sampling", "probe"}) and not (s.own & {"step", "steps"} and sheet.themes & {"rl"} and "n" in s.words and "total" not in s.words and "train" not in s.words):
            out.append((s, unit))
    return [(s, unit) for s, unit in out if not s.above & {"sched", "schedule", "scheduler", "probe", "lincls", "sampler"}]


def length_near(sheet: Sheet, setting: Setting, unit: str) -> Setting | None:
    """The length of the run in this unit, as set nearest to a setting."""
    return sheet.nearest(setting, [s for s, counted in run_lengths(sheet) if counted == unit])


def only_unit(sheet: Sheet, setting: Setting) -> str | None:
    """The unit of the run, where it has one only."""
    units = {unit for s, unit in run_lengths(sheet) if s.leaf.file == setting.leaf.file}
    return units.pop() if len(units) == 1 else None


def after_the_end(sheet: Sheet) -> Iterator[Doubt]:
    """Intervals and starts beyond the end of the run."""
    lengths = {id(s) for s, _ in run_lengths(sheet)}
    for setting in sheet.settings:
        value = setting.number
        if value is None or isinstance(setting.value, bool) or value <= 0 or id(setting) in lengths or setting.own & _NOT_LENGTH:
            continue
        kind = next((k for k in KINDS if setting.has(k[0], k[1])), None)
        if kind is None:
            continue
        unit = unit_of(setting) or only_unit(sheet, setting)
        if unit == "epochs" and unit_of(setting) is None and not setting.own & {"freeze", "frozen"}:
            continue  # an interval of a run that counts epochs may well count steps
        total = length_near(sheet, setting, unit) if unit else None
        if total is None or total.number is None or (unit == "steps" and total.number < 1000) or not _beyond(value, total.number, kind[3]):
            continue
        text = f"`{setting.name}` is {value:g}: {kind[3]} after the end of the run (`{total.name}` {total.number:g})"
        yield Doubt(kind[2], text, (setting, total))


def _beyond(value: float, total: float, what: str) -> bool:
    return value >= total if "learning begins" in what else value > total


def milestones(sheet: Sheet) -> Iterator[Doubt]:
    """Cuts of the rate that all lie beyond the end of the run."""
    for setting in sheet.settings:
        cuts = setting.numbers or ([setting.number] if setting.number is not None and not isinstance(setting.value, bool) else [])
        if not cuts or not _is_milestones(setting):
            continue
        unit = _unit_by_flag(sheet, setting) or unit_of(setting)
        total = length_near(sheet, setting, unit) if unit else None
        if total is None and unit is None:
            totals = [length_near(sheet, setting, u) for u in ("epochs", "steps")]
            known = [t for t in totals if t is not None and t.number]
            total = known[0] if len(known) == 1 else None
        if total is None or total.number is None or min(cuts) <= 1.5 * total.number:
            continue
        if unit is None and unit_of(total) == "epochs" and min(cuts) > LIKE_STEPS * total.number:
            continue  # more likely in steps, and how many there are is not known
        text = f"the rate is cut first at {min(cuts):g} (`{setting.name}`), and the run has {total.number:g} (`{total.name}`)"
        yield Doubt("milestones-never-reached", text, (setting, total), "hint" if min(cuts) > 3 * total.number else "range")


def _is_milestones(setting: Setting) -> bool:
    if setting.knob == "schedule.milestones" or setting.own & {"milestone", "milestones"}:
        return True
    return setting.has("lr drop", "rate path out last") or (setting.key in ("schedule", "lr_schedule", "steps", "lr_steps", "step") and len(setting.numbers) > 0 and setting.around & {"lr", "schedule", "sched", "policy"} != set())


def _unit_by_flag(sheet: Sheet, setting: Setting) -> str | None:
    """`by_epoch=True` beside it."""
    beside = [s for s in sheet.settings if s.key == "by_epoch" and s.path[:-1] == setting.path[:-1] and s.on is not None]
    return None if not beside else "epochs" if beside[0].on else "steps"


def horizons(sheet: Sheet) -> Iterator[Doubt]:
    """A schedule laid out for another length than the run has."""
    for setting in sheet.settings:
        value = setting.number
        if value is None or isinstance(setting.value, bool) or value <= 0 or not _is_horizon(setting):
            continue
        unit = _unit_by_flag(sheet, setting) or unit_of(setting) or only_unit(sheet, setting)
        total = length_near(sheet, setting, unit) if unit else None
        if total is None or not total.number or total is setting or is_noam(sheet, setting):
            continue
        share = value / total.number
        guessed = _unit_by_flag(sheet, setting) is None and unit_of(setting) is None
        if guessed and unit == "epochs" and share > LIKE_STEPS:
            continue  # more likely in steps
        if (unit == "steps" and total.number < 1000) or _one_of_several(sheet, setting, total.number):
            continue  # a trial run, or one phase of many
        told = f"the schedule is laid out for {value:g} (`{setting.name}`), the run for {total.number:g} (`{total.name}`)"
        if _is_warm_up(sheet, setting):
            if share > 1:
                yield Doubt("schedule-unit-mismatch", f"the warm-up ends at {value:g} (`{setting.name}`) and the run at {total.number:g} (`{total.name}`)", (setting, total))
        elif share < SHORT and not _restarts(sheet, setting):
            yield Doubt("schedule-too-short", f"{told}: the rest runs at the lowest rate", (setting, total), "range" if share > 0.3 else "hint")
        elif share > LONG:
            yield Doubt("schedule-never-decays", f"{told}: the rate hardly falls", (setting, total), "range" if share < 8 else "hint")


def _one_of_several(sheet: Sheet, setting: Setting, total: float) -> bool:
    """A schedule of several phases, of which another one goes on, or which make up the run together."""
    path = tuple(part for part in setting.path if not part.isdigit())
    phases = [s.number or 0 for s in sheet.settings if s.number and tuple(part for part in s.path if not part.isdigit()) == path]
    return len(phases) > 1 and (max(phases) > (setting.number or 0) or sum(phases) >= SHORT * total)


def _is_horizon(setting: Setting) -> bool:
    if setting.knob == "schedule.total" or setting.key in ("t_max", "tmax", "t_total"):
        return "restart" not in setting.around
    if setting.key in ("end", "total_iters") and setting.above & {"sched", "scheduler", "schedule"}:
        return True
    return bool(setting.above & {"sched", "scheduler", "schedule"}) and re.fullmatch(r"(?:max|total|num|decay)_?(?:train_|training_)?(?:steps|epochs|iters|iterations|updates)", setting.key) is not None


def _beside(sheet: Sheet, setting: Setting) -> list[Setting]:
    return [s for s in sheet.settings if s.path[:-1] == setting.path[:-1] and s.leaf.file == setting.leaf.file]


def _is_warm_up(sheet: Sheet, setting: Setting) -> bool:
    return "warmup" in setting.around or any(
        (s.key in ("type", "name", "_target_") and s.text in ("LinearLR", "ConstantLR", "linear_warmup")) or s.key == "start_factor" for s in _beside(sheet, setting)
    )


def _restarts(sheet: Sheet, setting: Setting) -> bool:
    """A schedule that begins anew, or a linear decay that comes after a constant part."""
    if any("restart" in s.text.lower() or "cycl" in s.text.lower() for s in sheet.settings if s.text and s.around & {"sched", "lr", "type", "name"}):
        return True
    return any(s.own & {"restart", "restarts", "cycle", "cycles", "mult"} and (s.number or 0) > 1 for s in sheet.settings) or bool(
        setting.own & {"decay"} and any(s.text.lower() in ("linear", "step", "wsd", "trapezoidal", "multistep", "plateau", "warmup_stable_decay") for s in sheet.settings if s.around & {"sched", "policy", "lr", "schedule"} or s.key in ("type", "name", "decay"))
    )


def exponential(sheet: Sheet) -> Iterator[Doubt]:
    """A factor that is applied so often that nothing of the rate is left."""
    for setting in sheet.settings:
        factor = setting.number
        named = setting.knob == "schedule.gamma" or setting.key in ("lr_decay", "lr_decay_rate", "decay_rate")
        if factor is None or isinstance(setting.value, bool) or not named or not 0 < factor < 1:
            continue
        if any(s.knob in ("schedule.milestones", "schedule.step_size") or s.own & {"milestone", "milestones"} or s.has("step size @lr/sched/scheduler") or s.has("lr step/steps/epochs/drop/interval") or s.has("decay step/epoch") for s in sheet.settings):
            continue
        unit = _applied(sheet, setting)
        total = length_near(sheet, setting, unit) if unit else None
        if total is not None and total.number and factor**total.number < 1e-9:
            per = "step" if unit == "steps" else "epoch"
            text = f"`{setting.name}` is {factor:g} per {per}: after the {total.number:g} of the run (`{total.name}`) nothing is left of the rate"
            yield Doubt("schedule-unit-mismatch", text, (setting, total))


def _applied(sheet: Sheet, setting: Setting) -> str | None:
    interval = [s for s in sheet.settings if s.has("interval @sched/scheduler/lr", "log save valid eval") and s.text]
    if interval:
        return {"step": "steps", "epoch": "epochs", "steps": "steps", "epochs": "epochs"}.get(interval[0].text.lower())
    exponential_ = any("exponential" in s.text.lower() for s in sheet.settings if s.text and s.around & {"sched", "lr", "type", "name", "decay", "policy"})
    return "epochs" if setting.key == "lr_decay" or exponential_ else None


def whole_steps(sheet: Sheet) -> Iterator[Doubt]:
    """A warm-up of Noam's schedule is counted in steps, and a number of steps is whole."""
    for setting in sheet.settings:
        value = setting.number
        if value is None or isinstance(setting.value, bool) or not setting.has("warmup step/steps/iters/updates", "ratio lr per"):
            continue
        if value > 50_000 and is_tuned(sheet) and not any(unit == "steps" for _, unit in run_lengths(sheet)):
            yield Doubt("warmup-longer-than-run", f"`{setting.name}` is {value:g}: hardly a pretrained network is tuned for so many steps", (setting,), "range")
        if (0 < value < 1 and not sheet.says("allow_fraction")) or (value in (0, 1) and is_noam(sheet, setting)):
            yield Doubt("schedule-unit-mismatch", f"`{setting.name}` is {value:g}: it counts steps, and so the rate is at its peak at once", (setting,))


def too_often(sheet: Sheet) -> Iterator[Doubt]:
    """An evaluation after every step of a run that counts steps."""
    for setting in sheet.settings:
        named = re.fullmatch(r"(?:test|eval|val|valid|validation)_(?:interval|freq|every|steps|every_n_steps|interval_steps)", setting.key)
        if not named or setting.number != 1 or isinstance(setting.value, bool):
            continue
        total = length_near(sheet, setting, "steps")
        if total is not None and (total.number or 0) >= 1000 and only_unit(sheet, setting) == "steps":
            yield Doubt("eval-too-often", f"`{setting.name}` is 1: it is evaluated after each of {total.number:g} steps (`{total.name}`)", (setting, total), "range")


def step_decay(sheet: Sheet) -> Iterator[Doubt]:
    """A cut that comes so often that nothing of the rate is left."""
    for setting in sheet.settings:
        named = setting.knob == "schedule.step_size" or setting.key in ("stepsize", "lr_step_size", "decay_interval")
        if not named or not setting.number or isinstance(setting.value, bool):
            continue
        factor = sheet.nearest(setting, [s for s in sheet.settings if s.key in ("gamma", "lr_gamma", "decay_rate", "lr_decay_rate", "lr_decay_factor") and s.number and 0 < s.number < 1])
        totals = [total for unit in ("steps", "epochs") if (total := length_near(sheet, setting, unit)) is not None]
        if factor is not None and factor.number and len(totals) == 1 and totals[0].number and factor.number ** (totals[0].number / setting.number) < 1e-9:
            text = f"the rate is multiplied by {factor.number:g} every {setting.number:g} (`{setting.name}`) of {totals[0].number:g}: nothing is left of it"
            yield Doubt("schedule-unit-mismatch", text, (setting, factor))


_TIMES = re.compile(r"(\d+(?:\.\d+)?)(ba|ep|tok|sp|iter)\Z")  # Composer's way to write a length


def written_times(sheet: Sheet) -> Iterator[Doubt]:
    """Lengths with their unit behind them: 24800ba, 100ep."""
    times = {s: (float(found[1]), found[2]) for s in sheet.settings if s.text and (found := _TIMES.match(s.text))}
    total = next((s for s in times if s.key in ("max_duration", "max_train_duration")), None)
    if total is None:
        return
    length, unit = times[total]
    if unit in ("tok", "sp") and length < (1e6 if unit == "tok" else 1e3):
        yield Doubt("too-few-updates", f"`{total.name}` is {total.text}: the run ends in its first batches", (total,))
    for s, (value, counted) in times.items():
        warm = "warmup" in s.own
        if s is not total and counted == unit and value > length:
            yield Doubt("warmup-longer-than-run" if warm else "setting-beyond-practice", f"`{s.name}` is {s.text} in a run of {total.text} (`{total.name}`)", (s, total))
        elif warm and counted == "ep" and unit != "ep" and value > 10:
            yield Doubt("warmup-longer-than-run", f"`{s.name}` is {s.text}, and the run is counted otherwise ({total.text})", (s, total))


CHECKS = (too_often, step_decay, written_times, after_the_end, milestones, horizons, exponential, whole_steps)
