"""Faults of LoRA and DPO."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import edit, fault, put, scale

fault(
    "adapters_frozen",
    "code",
    "code",
    "the adapters are frozen with the base",
    "freeze first, then add adapters",
    edit(
        (
            "    trainable = sum(",
            "    for parameter in model.parameters():\n        parameter.requires_grad = False\n    model.norm.bias.requires_grad = True\n    trainable = sum(",
        )
    ),
    "lora",
    cause="frozen_parameters",
    also=("params_not_in_optimizer", "adapters_frozen"),
)
fault(
    "lora_both_zero",
    "code",
    "learning",
    "both factors start at zero and get no gradient",
    "one factor random",
    edit(
        (
            "self.a = nn.Parameter(torch.randn(base.in_features, cfg.lora_r) / math.sqrt(base.in_features))",
            "self.a = nn.Parameter(torch.zeros(base.in_features, cfg.lora_r))",
        )
    ),
    "lora",
    cause="dead_network",
    also=("frozen_parameters", "init_zero"),
)
fault(
    "lora_alpha_too_high",
    "setting",
    "learning",
    "the adapter's scale is hundreds of times too large",
    "alpha of twice the rank",
    put(lora_alpha=[2048, 8192]),
    "lora",
    cause="lr_too_high",
    also=("lora_alpha_too_high", "init_too_large"),
)
fault(
    "lora_alpha_too_low",
    "setting",
    "learning",
    "the adapter's scale is almost nothing",
    "alpha of twice the rank",
    put(lora_alpha=[0.001, 0.0001]),
    "lora",
    cause="lr_too_low",
    also=("lora_alpha_too_low",),
)
fault(
    "pairs_swapped_loss",
    "code",
    "code",
    "the loss prefers the rejected answer",
    "chosen minus rejected",
    edit(
        (
            "    chosen, rejected = preference(model, batch)\n    loss = -F.logsigmoid(chosen - rejected).mean()",
            "    chosen, rejected = preference(model, batch)\n    loss = -F.logsigmoid(rejected - chosen).mean()",
        )
    ),
    "dpo",
    cause="labels_broken",
    also=("wrong_loss_sign", "pairs_swapped"),
)
fault(
    "reference_is_policy",
    "code",
    "code",
    "the reference is the policy itself, so there is never a difference",
    "a frozen copy",
    edit(("    reference = copy.deepcopy(model).eval()", "    reference = model")),
    "dpo",
    cause="objective_mismatch",
    also=("reference_is_policy", "frozen_parameters"),
)
fault(
    "prompt_only",
    "code",
    "code",
    "the log-probabilities are those of the prompt",
    "leave the prompt out",
    edit(("    return each[:, cfg.prompt_len - 1 :].sum(-1)", "    return each[:, : cfg.prompt_len - 1].sum(-1)")),
    "dpo",
    cause="all_labels_masked",
    also=("objective_mismatch", "prompt_only"),
)
fault(
    "dpo_lr_too_high",
    "setting",
    "learning",
    "a pretraining rate and more in preference tuning",
    "a rate a hundred times lower",
    scale("lr", 60.0, 100.0),
    "dpo",
    cause="lr_too_high",
)
fault(
    "beta_too_small",
    "setting",
    "learning",
    "beta is so small that nothing pulls",
    "beta 0.1",
    put(beta=[1e-6, 1e-7]),
    "dpo",
    cause="lr_too_low",
    also=("beta_too_small", "temperature_too_high"),
    want={"optimizer": "adamw"},
)
