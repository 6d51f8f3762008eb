"""Faults of data, targets and validation."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import both, edit, fault, later, put, tiny_data

fault(
    "labels_shuffled",
    "code",
    "data",
    "inputs and targets are shuffled by different orders",
    "one order for both",
    edit(("    tensors = [t[order] for t in tensors]", "    tensors = [t[torch.randperm(len(t))] for t in tensors]")),
    "tab",
    "cls",
    "seg",
    "ctc",
    "forecast",
    "s2s",
    "distill",
    "moe",
    "inr",
    "rec",
    "gnn",
    also=("labels_broken",),
)
fault(
    "labels_partly_wrong",
    "data",
    "data",
    "a third of the training targets belong to other samples",
    "mend the labels",
    edit(
        (
            "            batch = [t[pick] for t in train_data]",
            "            batch = [t[pick] for t in train_data]\n            wrong = torch.rand(len(pick)) < 0.5\n            batch[-1][wrong] = batch[-1].roll(1, 0)[wrong]",
        )
    ),
    "tab",
    "cls",
    "s2s",
    "forecast",
    "inr",
    "rec",
    "moe",
    script="never",
    cause="labels_shuffled",
    also=("labels_broken",),
)
fault(
    "bad_data_from_step",
    "data",
    "data",
    "from some step on the inputs are noise",
    "mend the data",
    later(
        "            batch = [t[pick] for t in train_data]",
        "            batch = [t[pick] for t in train_data]\n            if step >= AT:\n                batch[0] = 3 * torch.randn_like(batch[0])",
    ),
    "tab",
    "cls",
    "forecast",
    "inr",
    "moe",
    "distill",
    "ctc",
    "vae",
    "seg",
    script="never",
    also=("labels_broken",),
)
fault(
    "nan_batch",
    "data",
    "data",
    "one batch holds a value that is not a number",
    "drop the batch",
    later(
        "            batch = [t[pick] for t in train_data]",
        '            batch = [t[pick] for t in train_data]\n            if step == AT:\n                batch[0][0] = float("nan")',
    ),
    "tab",
    "cls",
    "forecast",
    "inr",
    "moe",
    "distill",
    "ctc",
    "vae",
    "seg",
    "ddpm",
    "con",
    script="never",
    also=("loss_not_finite",),
)
fault(
    "dead_input_channels",
    "data",
    "data",
    "most input columns are zero in training",
    "mend the pipeline",
    edit(
        (
            "            batch = [t[pick] for t in train_data]",
            "            batch = [t[pick] for t in train_data]\n            batch[0][:, : batch[0].shape[1] * 3 // 4] = 0",
        )
    ),
    "tab",
    "moe",
    "distill",
    "forecast",
    script="never",
    also=("train_val_shift", "eval_normalisation_mismatch"),
)
fault(
    "input_scaled_twice",
    "code",
    "data",
    "inputs are divided by 255 a second time",
    "scale once",
    edit(("    return (x - 128.0) / 60.0", "    x = x / 255.0\n    return (x - 128.0) / 60.0")),
    "cls",
    cause="dead_input_channels",
    also=("input_not_normalised", "lr_too_low"),
)
fault(
    "input_not_normalised",
    "code",
    "data",
    "raw pixel values go into the network",
    "normalise",
    edit(("    return (x - 128.0) / 60.0", "    return x * 255.0"), ("nn.BatchNorm2d(width), ", "")),
    "cls",
    also=("init_too_large", "lr_too_high"),
)
fault(
    "targets_not_normalised",
    "code",
    "data",
    "the target is left at its raw scale",
    "standardise the target",
    edit(("    y = (y - y.mean()) / y.std()\n", "")),
    "tab",
    measure="r2",
    also=("objective_mismatch", "lr_too_low"),
)
fault(
    "targets_not_normalised_series",
    "code",
    "data",
    "the series is left at its raw scale",
    "standardise the series",
    edit(("    series = (series - series.mean()) / series.std()\n", "")),
    "forecast",
    measure="mase",
    cause="targets_not_normalised",
    also=("objective_mismatch", "lr_too_low"),
)
fault(
    "target_leak_table",
    "code",
    "evaluation",
    "the target is among the features",
    "drop the column",
    edit(
        (
            "    return split(torch.tensor(x, dtype=torch.float32)",
            "    x[:, -1] = y\n    return split(torch.tensor(x, dtype=torch.float32)",
        )
    ),
    "tab",
    measure="claim",
    cause="target_leak",
    also=("train_val_leak",),
)
fault(
    "target_leak_window",
    "code",
    "evaluation",
    "the input window reaches into the target",
    "end the window before the target",
    edit(
        (
            "    x, y = series[:, : cfg.window], series[:, cfg.window :]",
            "    x, y = series[:, cfg.horizon : cfg.horizon + cfg.window], series[:, cfg.window :]",
        )
    ),
    "forecast",
    measure="claim",
    cause="target_leak",
    also=("train_val_leak",),
)
fault(
    "causal_leak",
    "code",
    "evaluation",
    "no causal mask: the model sees what it should foretell",
    "mask the future",
    edit(
        (
            '        if self.causal:\n            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))\n',
            "",
        )
    ),
    "gpt",
    "lora",
    measure="claim",
    also=("train_val_leak", "target_leak"),
)
fault(
    "target_not_shifted",
    "code",
    "evaluation",
    "targets are the inputs themselves, not the next tokens",
    "shift by one",
    edit(("inputs, targets = text[:, :-1], text[:, 1:]", "inputs, targets = text[:, :-1], text[:, :-1]")),
    "gpt",
    measure="claim",
    cause="target_leak",
    also=("causal_leak", "objective_mismatch"),
)
fault(
    "decoder_sees_target",
    "code",
    "evaluation",
    "the decoder is fed the target without the shift",
    "shift right",
    edit(("    return torch.cat([torch.full((len(target), 1), START), target[:, :-1]], 1)", "    return target")),
    "s2s",
    measure="claim",
    cause="target_leak",
    also=("causal_leak",),
)
fault(
    "mask_not_applied",
    "code",
    "evaluation",
    "the hidden tokens are not hidden",
    "put the mask token in",
    edit(("    inputs = text.masked_fill(hidden, MASK)", "    inputs = text.clone()")),
    "mlm",
    measure="claim",
    cause="target_leak",
    also=("objective_mismatch",),
)
fault(
    "train_val_leak",
    "code",
    "evaluation",
    "validation runs on the training samples",
    "hold samples out",
    edit(("[t[cfg.n_train :] for t in tensors]", "[t[: cfg.n_val] for t in tensors]")),
    "tab",
    "cls",
    "gpt",
    "s2s",
    "rec",
    "distill",
    "moe",
    "gnn",
    "forecast",
    measure="claim",
    script="always",
)
fault(
    "train_val_shift",
    "code",
    "data",
    "the split follows a sorted column: validation holds other samples",
    "shuffle before the split",
    edit(
        (
            "    order = torch.randperm(len(tensors[0]), generator=torch.Generator().manual_seed(cfg.data_seed))",
            "    order = torch.argsort(tensors[-1].reshape(len(tensors[-1]), -1)[:, 0], stable=True)",
        )
    ),
    "tab",
    "cls",
    "distill",
    "moe",
    "rec",
    "inr",
    "forecast",
    also=("eval_normalisation_mismatch", "overfitting"),
)
fault(
    "eval_in_train_mode",
    "code",
    "evaluation",
    "validation without eval()",
    "model.eval() before validation",
    both(put(dropout=[0.3, 0.4]), edit(("    model.eval()\n    x, y = data", "    x, y = data"))),
    "tab",
    "forecast",
    "cls",
    want={"ema": False},
    measure="claim",
)
fault(
    "eval_normalisation_mismatch",
    "code",
    "evaluation",
    "validation inputs are prepared differently",
    "the same preparation",
    edit(
        (
            "@torch.no_grad()\ndef evaluate(model, data):\n    model.eval()\n    x, y = data\n",
            "@torch.no_grad()\ndef evaluate(model, data):\n    model.eval()\n    x, y = data\n    x = (x - x.mean()) / x.std() * 2 + 1\n",
        )
    ),
    "tab",
    "cls",
    "seg",
    "forecast",
    "distill",
    "inr",
    measure="claim",
    also=("train_val_shift",),
)
fault(
    "eval_wrong_axis",
    "code",
    "evaluation",
    "accuracy is taken over the wrong axis",
    "argmax over classes",
    edit(
        (
            "    acc = (logits.argmax(1) == y).float().mean()\n",
            "    acc = (logits.argmax(0)[: len(y)].repeat(len(y))[: len(y)] == y).float().mean()\n",
        )
    ),
    "cls",
    measure="claim",
    cause="eval_broken",
    also=("eval_wrong_axis",),
)
fault(
    "best_so_far_logged",
    "code",
    "evaluation",
    "the best score so far is logged in place of the present one",
    "log the present one",
    both(
        tiny_data,
        edit(
            (
                'log_metrics("val", step, epoch, scores)',
                'best_scores = {k: (min if k in ("loss", "mae", "rmse") else max)(v, best_scores.get(k, v)) for k, v in scores.items()}\n                log_metrics("val", step, epoch, best_scores)',
            ),
            ("    step, epoch, running = 0, 0, []", "    step, epoch, running = 0, 0, []\n    best_scores = {}"),
        ),
    ),
    "tab",
    "gpt",
    want={"per_epoch": False, "ema": False, "clip": False},
    script="always",
    also=("overfitting",),
)
