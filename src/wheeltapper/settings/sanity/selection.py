"""How the best checkpoint is chosen: which way is better, what is watched, and whether it is there to be watched."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet

UP = re.compile(r"(?i)acc|auc|aupr|f1|f_1|bleu|rouge|meteor|map\b|m_?ap|miou|iou|dice|psnr|ssim|recall|precision|ndcg|mrr|hit|top_?[15]|reward|return|r2\b|kappa|matthews|mcc|pearson|spearman|em\b|exact|score|ap50|ap\b|elo|win|average_precision|cider|sensitivity|specificity|knn|ips\b|sisdr|si_sdr|pesq|stoi")
DOWN = re.compile(r"(?i)loss|error|err\b|wer|cer\b|ppl|perplexity|mse|mae|rmse|fid|lpips|nll|bpc|bpb|elbo_loss|mape|logloss|kl\b|eer\b|epe\b|abs_rel|wmape|crps|hausdorff|hd95|mpjpe|per\b|ter\b|niqe|brier")
WAYS = {"max": "up", "min": "down", "higher": "up", "lower": "down", "maximize": "up", "minimize": "down", "maximise": "up", "minimise": "down", "desc": "up", "up": "up", "down": "down", "increase": "up", "decrease": "down", "bigger": "up", "smaller": "down", "greater": "up", "less": "down"}  # fmt: skip
BIGGER = re.compile(r"greater_is_better|(?:is_)?(?:higher|bigger|larger)_(?:is_)?better|maximi[sz]e|metric_bigger|higher_better|bigger_better|larger_is_better")
SMALLER = re.compile(r"lower_is_better|smaller_is_better|minimi[sz]e|less_is_better")
_WATCHED = "monitor/metric/select/selection/best/watch/watched/quantity/early/earlystop/keep/criterion/save_best"
# What the benchmark's own script reports.
REPORTED = {
    "mnli": "accuracy", "sst2": "accuracy", "qnli": "accuracy", "rte": "accuracy", "wnli": "accuracy", "cola": "matthews_correlation",
    "mrpc": "accuracy f1 combined_score", "qqp": "accuracy f1 combined_score", "stsb": "pearson spearmanr combined_score",
}  # fmt: skip
GENERATED = re.compile(r"(?i)rouge|bleu|wer|cer|meteor|chrf|exact")


def way_of(metric: str) -> str:
    """Which way a metric is better, by its name; empty where it does not tell."""
    name = re.sub(r"(?i)^(?:val(?:id(?:ation)?)?|eval|dev|test|train)[/_.\-]", "", metric.strip())
    last = re.split(r"[/.]", name)[-1] or name
    for text in (last, name):
        down, up = DOWN.search(text), UP.search(text)
        if down and not up:
            return "down"
        if up and not down:
            return "up"
        if up and down:
            return "down" if re.search(r"(?i)loss|error", text) else ""
    return ""


def watched(sheet: Sheet, beside: Setting) -> Setting | None:
    """The setting that names what is watched, nearest to the one that says which way."""
    found = [
        s for s in sheet.settings
        if s is not beside and s.text and len(s.text) < 60 and s.text.lower() not in WAYS and s.own & set(_WATCHED.split("/")) and way_of(s.text)
        and not s.own & {"mode", "dir", "path", "order", "strategy"}
    ]  # fmt: skip
    return sheet.nearest(beside, found)


def directions(sheet: Sheet) -> Iterator[tuple[Setting, str]]:
    """Settings that say which way is better, with the way."""
    for s in sheet.settings:
        if (s.on is not None and not isinstance(s.value, str) and BIGGER.search(s.key)) or (s.on is not None and BIGGER.search(s.key)):
            yield s, "up" if s.on else "down"
        elif s.on is not None and SMALLER.search(s.key):
            yield s, "down" if s.on else "up"
        elif (s.text.lower() in WAYS and (s.key in ("mode", "better", "rule", "direction", "objective") or s.own & {"mode", "direction", "rule"})) and not s.own & {"clip", "pool", "pooling", "interpolation", "padding", "reduction"}:
            yield s, WAYS[s.text.lower()]


def wrong_way(sheet: Sheet) -> Iterator[Doubt]:
    """The best checkpoint is the one with the worst score."""
    for setting, way in directions(sheet):
        name = watched(sheet, setting)
        named_by_section = next((part for part in reversed(setting.path[:-1]) if not part.isdigit() and way_of(part)), "")
        metric = name.text if name is not None else named_by_section if setting.key == "better" else ""
        if setting.key == "better" and named_by_section:
            metric, name = named_by_section, None
        better = way_of(metric) if metric else ""
        if better and better != way:
            where = f"`{name.name}` is {metric}" if name is not None else metric
            text = f"`{setting.name}` is {setting.value}, and {where}, which is better when it goes {better}: the worst checkpoint would be the best"
            yield Doubt("early-stop-wrong-mode", text, tuple(s for s in (setting, name) if s is not None))


def flag_left_out(sheet: Sheet) -> Iterator[Doubt]:
    """fairseq takes the smallest value of the metric unless it is told to maximise; Lightning's callbacks take the minimum."""
    for setting in sheet.settings:
        if setting.key == "best_checkpoint_metric" and way_of(setting.text) == "up" and not any("maximize_best" in s.key for s in sheet.settings):
            text = f"`{setting.name}` is {setting.text} and nothing says to maximise it: the smallest value is taken for the best"
            yield Doubt("early-stop-wrong-mode", text, (setting,))
        if setting.key != "monitor":
            continue
        beside = [s for s in sheet.settings if s.path[:-1] == setting.path[:-1]]
        callback = {"EarlyStopping", "ModelCheckpoint"} & {part for s in beside for part in (*setting.path[:-1], s.text.rsplit(".", 1)[-1])}
        if callback and way_of(setting.text) == "up" and not any(s.key == "mode" for s in beside):
            yield Doubt("early-stop-wrong-mode", f"`{setting.name}` is {setting.text} without a mode: {min(callback)} takes the smallest value for the best", (setting,))


def not_computed(sheet: Sheet) -> Iterator[Doubt]:
    """A watched metric that is not among those which are computed."""
    for setting in sheet.settings:
        if not setting.text or not setting.own & {"monitor", "metric", "select"} or not way_of(setting.text):
            continue
        listed = [s for s in sheet.settings if s.key in ("metrics", "eval_metrics", "metric_list", "val_metrics") and isinstance(s.value, list) and s.leaf.file == setting.leaf.file]
        name, _, depth = setting.text.partition("@")
        if listed and "/" not in name and not _among(name, listed[0].value):
            yield Doubt("setting-beyond-practice", f"`{setting.name}` is {setting.text}, which is not among the metrics that are computed (`{listed[0].name}`)", (setting, listed[0]))
        depths = [s for s in sheet.settings if s.key in ("topk", "top_k", "ks", "k_list") and (s.numbers or s.number)]
        if listed and depth.isdigit() and depths and float(depth) not in (depths[0].numbers or [depths[0].number or 0.0]):
            yield Doubt("setting-beyond-practice", f"`{setting.name}` is {setting.text}, and only the top {depths[0].value} are computed", (setting, depths[0]))
        yield from _not_reported(sheet, setting)


def _among(name: str, listed: list[object]) -> bool:
    plain = re.sub(r"(?i)^(?:val|valid|eval|test)[_/]", "", name).lower().replace("_", "")
    known = [str(item).lower().replace("_", "") for item in listed]
    return plain.endswith("loss") or any(plain.startswith(item) or item.startswith(plain) or item in plain for item in known if item)


def _not_reported(sheet: Sheet, setting: Setting) -> Iterator[Doubt]:
    task = next((s for s in sheet.settings if s.has("task/dataset name/config") and s.text.lower().replace("-", "").replace("_", "") in REPORTED), None)
    name = re.sub(r"^eval_", "", setting.text)
    if setting.has("metric") and task is not None:
        told = REPORTED[task.text.lower().replace("-", "").replace("_", "")].split()
        if name not in told and name != "loss":
            yield Doubt("setting-beyond-practice", f"`{setting.name}` is {setting.text}; {task.text} reports {', '.join(told)} only", (setting, task))
    generates = next((s for s in sheet.settings if s.key == "predict_with_generate" and s.on is False), None)
    if generates is not None and GENERATED.search(name):
        yield Doubt("setting-beyond-practice", f"`{generates.name}` is off, and {setting.text} (`{setting.name}`) needs generated text", (generates, setting))


def best_never_saved(sheet: Sheet) -> Iterator[Doubt]:
    """The best checkpoint is to be loaded at the end, and none is saved when it is evaluated."""
    for setting in sheet.settings:
        if setting.key != "load_best_model_at_end" or not setting.on:
            continue
        strategies = {what: next((s for s in sheet.settings if re.fullmatch(pattern, s.key)), None) for what, pattern in (("save", r"save_strategy"), ("eval", r"eval(?:uation)?_strategy"))}
        for s in strategies.values():
            if s is not None and s.text.rsplit(".", 1)[-1].lower() == "no":
                yield Doubt("setting-beyond-practice", f"`{setting.name}` is on and `{s.name}` is no: there is no best checkpoint to load", (s, setting))
        save, evaluate = (next((s for s in sheet.settings if s.key == f"{what}_steps" and (s.number or 0) > 1), None) for what in ("save", "eval"))
        by_steps = all(s is None or s.text.rsplit(".", 1)[-1].lower() == "steps" for s in strategies.values())
        if save is not None and evaluate is not None and by_steps and save.number and evaluate.number and save.number % evaluate.number:
            text = f"it is saved every {save.number:g} steps and evaluated every {evaluate.number:g}: `{setting.name}` needs a multiple"
            yield Doubt("setting-beyond-practice", text, (save, evaluate))


def chosen_on_test(sheet: Sheet) -> Iterator[Doubt]:
    """The checkpoint is chosen by the test or training score."""
    for setting in sheet.settings:
        if not setting.own & {"monitor", "select", "selection", "best", "early", "keep", "earlystop"} or not setting.text:
            continue
        split = re.match(r"(?i)(test)[/_.\-](?=\w)", setting.text)
        if split and way_of(setting.text) and _has_validation(sheet) and not sheet.says("rollout", "env", "runner"):
            yield Doubt("train-val-leak", f"`{setting.name}` is {setting.text}: the checkpoint is chosen on the {split[1].lower()} data", (setting,), "range")


def _has_validation(sheet: Sheet) -> bool:
    return any(s.own & {"val", "valid", "validation", "dev"} for s in sheet.settings)


CHECKS = (wrong_way, flag_left_out, not_computed, best_never_saved, chosen_on_test)
