"""Faults of losses and of what single families are built of."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import both, edit, fault, put

fault(
    "double_softmax",
    "code",
    "learning",
    "softmax before cross entropy",
    "give logits to the loss",
    edit(
        (
            "    logits = model(x)\n    loss = F.cross_entropy(logits, y",
            "    logits = model(x).softmax(1)\n    loss = F.cross_entropy(logits, y",
        )
    ),
    "cls",
)
fault(
    "double_softmax_head",
    "code",
    "learning",
    "the network ends in a softmax and the loss applies another",
    "give logits to the loss",
    edit(("        return self.head(h)\n", "        return self.head(h).softmax(dim=1)\n")),
    "seg",
    "cls",
    cause="double_softmax",
)
fault(
    "double_softmax_last",
    "code",
    "learning",
    "the network ends in a softmax and the loss applies another",
    "give logits to the loss",
    edit(("        return self.head(h)\n", "        return self.head(h).softmax(dim=-1)\n")),
    "gpt",
    "mlm",
    "s2s",
    "ctc",
    "distill",
    cause="double_softmax",
)
fault(
    "double_softmax_graph",
    "code",
    "learning",
    "softmax before cross entropy",
    "give logits to the loss",
    edit(("        return self.head(h)[nodes]", "        return self.head(h)[nodes].softmax(-1)")),
    "gnn",
    cause="double_softmax",
)
fault(
    "output_activation_wrong",
    "code",
    "learning",
    "the output passes a ReLU, so half of the targets cannot be reached",
    "a linear output",
    edit(("        return self.head(h)", "        return F.relu(self.head(h))")),
    "tab",
    "forecast",
    "inr",
    also=("dead_network", "objective_mismatch"),
)
fault(
    "objective_mismatch",
    "code",
    "learning",
    "the shapes broadcast: each prediction is compared with every target",
    "squeeze the output",
    edit(
        ("        return self.head(h).squeeze(1)", "        return self.head(h)"),
        (
            "    loss = F.mse_loss(prediction, y)\n    return loss",
            "    loss = ((prediction - y) ** 2).mean()\n    return loss",
        ),
        (
            "    prediction = model(x)\n    loss = F.mse_loss(prediction, y)\n    r2",
            "    prediction = model(x).squeeze(1)\n    loss = F.mse_loss(prediction, y)\n    r2",
        ),
    ),
    "tab",
    also=("shape_broadcast", "labels_shuffled"),
)
fault(
    "ignore_index_real_class",
    "setting",
    "learning",
    "the background class is ignored in the loss",
    "ignore_index 255",
    put(ignore_index=0),
    "seg",
    cause="all_labels_masked",
    also=("ignore_index_real_class", "objective_mismatch"),
)
fault(
    "target_misaligned",
    "code",
    "data",
    "images are flipped, masks are not",
    "flip both",
    edit(("    y[flip] = y[flip].flip(-1)\n", "")),
    "seg",
    also=("labels_broken", "labels_shuffled"),
)
fault(
    "label_smoothing_too_strong",
    "setting",
    "learning",
    "targets are almost uniform",
    "label smoothing 0.1",
    put(label_smoothing=[0.97, 1.0]),
    "cls",
    also=("objective_mismatch",),
)
fault(
    "box_format_mixed",
    "code",
    "data",
    "boxes of corners are learned as centre and size",
    "convert the boxes",
    edit(
        (
            "    box_loss = F.smooth_l1_loss(predicted, box, beta=0.1)\n    cls_loss",
            "    box_loss = F.smooth_l1_loss(predicted, corners(box), beta=0.1)\n    cls_loss",
        )
    ),
    "det",
    cause="objective_mismatch",
    also=("box_format_mixed", "labels_broken"),
)
fault(
    "box_weight_zero",
    "setting",
    "learning",
    "the box term weighs nothing",
    "box_weight 5",
    put(box_weight=[0.0, 1e-4]),
    "det",
    cause="loss_terms_conflict",
    also=("box_weight_zero",),
)
fault(
    "blank_mismatch",
    "code",
    "learning",
    "the loss and the decoder use different blanks",
    "one blank",
    edit(("target_lengths, blank=BLANK", "target_lengths, blank=logits.shape[-1] - 1")),
    "ctc",
    cause="objective_mismatch",
    also=("blank_mismatch", "eval_broken"),
)
fault(
    "ctc_no_log",
    "code",
    "learning",
    "probabilities are given where log-probabilities belong",
    "log_softmax",
    edit(("    log_probs = logits.log_softmax(-1)", "    log_probs = logits.softmax(-1)")),
    "ctc",
    cause="objective_mismatch",
    also=("ctc_no_log", "double_softmax"),
)
fault(
    "stride_too_large",
    "setting",
    "learning",
    "so few frames are left that the targets do not fit",
    "a smaller stride",
    put(stride=[8, 12]),
    "ctc",
    cause="objective_mismatch",
    also=("stride_too_large", "input_too_short"),
)
fault(
    "depth_oversmooths",
    "setting",
    "learning",
    "so many rounds of averaging that all nodes look alike",
    "2 layers",
    put(depth=[16, 24]),
    "gnn",
    cause="output_collapse",
    also=("oversmoothing", "depth_oversmooths"),
)
fault(
    "adjacency_not_normalised",
    "code",
    "learning",
    "sums over neighbours are not divided by their number",
    "normalise",
    edit(("    adjacency = degree[:, None] * adjacency * degree[None, :]\n", "")),
    "gnn",
    also=("lr_too_high", "init_too_large"),
)
fault(
    "features_missing",
    "code",
    "data",
    "all nodes get the same features",
    "load the features",
    edit(("        h = FEATURES\n", "        h = torch.ones_like(FEATURES)\n")),
    "gnn",
    cause="dead_input_channels",
    also=("features_missing", "output_collapse"),
)
fault(
    "mask_rate_extreme",
    "setting",
    "learning",
    "nearly every token is hidden",
    "mask 15 %",
    put(mask_prob=[0.97, 0.99]),
    "mlm",
    also=("objective_mismatch",),
)
fault(
    "softmax_wrong_axis",
    "code",
    "code",
    "attention is normalised over the wrong axis",
    "dim=-1",
    edit(("        weights = scores.softmax(dim=-1)", "        weights = scores.softmax(dim=0)")),
    "gpt",
    "mlm",
    cause="objective_mismatch",
    also=("softmax_wrong_axis", "train_val_leak"),
    measure="claim",
)
fault(
    "attention_missing_scale",
    "code",
    "learning",
    "attention scores are multiplied where they should be divided",
    "divide by sqrt(d)",
    edit(("/ math.sqrt(q.shape[-1])", "* 40 * math.sqrt(q.shape[-1])")),
    "gpt",
    "mlm",
    cause="attention_logit_growth",
    also=("init_too_large",),
)
fault(
    "ids_swapped",
    "code",
    "data",
    "user and item are swapped on the way into the network in training",
    "the same order as in evaluation",
    edit(
        (
            "    user, item, rating = batch\n",
            "    user, item, rating = batch\n    user, item = item % cfg.n_users, user % cfg.n_items\n",
        )
    ),
    "rec",
    cause="train_val_shift",
    also=("ids_swapped", "labels_broken", "eval_normalisation_mismatch"),
)
fault(
    "aux_weight_too_high",
    "setting",
    "learning",
    "the balance term drowns the task",
    "aux_weight 0.01",
    put(aux_weight=[300.0, 1000.0]),
    "moe",
    cause="loss_terms_conflict",
    also=("aux_weight_too_high",),
)
fault(
    "router_collapse",
    "setting",
    "learning",
    "the balance term has the wrong sign and one expert takes all",
    "a positive aux_weight",
    put(aux_weight=[-1.0, -2.0]),
    "moe",
    cause="output_collapse",
    also=("router_collapse", "aux_weight_negative"),
)
fault(
    "teacher_not_trained",
    "setting",
    "learning",
    "the teacher knows nothing",
    "a trained teacher",
    put(teacher_steps=0, alpha=1.0),
    "distill",
    cause="objective_mismatch",
    also=("teacher_not_trained", "labels_shuffled"),
)
fault(
    "kd_temperature_too_high",
    "setting",
    "learning",
    "the temperature flattens the teacher to nothing",
    "temperature 2 to 4",
    both(
        put(temperature=[200.0, 500.0], alpha=1.0), edit(("cfg.alpha * cfg.temperature**2 * soft", "cfg.alpha * soft"))
    ),
    "distill",
    cause="temperature_too_high",
    also=("lr_too_low",),
)
fault(
    "kd_teacher_logits_as_probs",
    "code",
    "learning",
    "the logits of the teacher are negated and the soft loss has full weight",
    "softmax of the teacher",
    edit(
        ("F.softmax(teacher / cfg.temperature, -1)", "F.softmax(-teacher / cfg.temperature, -1)"),
        ("cfg.alpha * cfg.temperature**2", "cfg.temperature**2"),
    ),
    "distill",
    cause="wrong_loss_sign",
    also=("objective_mismatch",),
)
fault(
    "temperature_too_high",
    "setting",
    "learning",
    "the contrastive temperature is far too high",
    "temperature 0.1",
    put(temperature=[5.0, 20.0, 50.0]),
    "con",
)
fault(
    "positives_off_by_one",
    "code",
    "learning",
    "the positives are those of the next sample",
    "arange without the roll",
    edit(("    targets = torch.arange(len(a))", "    targets = torch.arange(len(a)).roll(1)")),
    "con",
    cause="labels_shuffled",
    also=("target_misaligned", "objective_mismatch"),
)
fault(
    "same_view_twice",
    "code",
    "learning",
    "both views are the same, so there is nothing to learn",
    "two views",
    edit(
        ("    first, second = view(x, noise), view(x, noise)", "    first = view(x, noise)\n    second = first"),
        ("/ cfg.temperature\n    targets", "/ cfg.temperature\n    targets"),
    ),
    "con",
    cause="objective_mismatch",
    also=("same_view_twice",),
)
fault(
    "collapse_no_negatives",
    "code",
    "learning",
    "views only attract: everything collapses to a point",
    "negatives or a stop-gradient",
    edit(
        (
            "    loss = (F.cross_entropy(similarity, targets) + F.cross_entropy(similarity.t(), targets)) / 2",
            "    loss = 2 - 2 * (a * b).sum(-1).mean()",
        )
    ),
    "con",
    cause="output_collapse",
    also=("collapse_no_negatives", "objective_mismatch"),
)
fault(
    "kl_collapse",
    "setting",
    "learning",
    "the KL term is so heavy that the code carries nothing",
    "kl_weight below 0.1",
    put(kl_weight=[5.0, 30.0, 100.0]),
    "vae",
    also=("kl_weight_too_high",),
)
fault(
    "logvar_as_std",
    "code",
    "code",
    "the noise has a fixed spread of 6 and the learned variance is ignored",
    "exp of half the log-variance",
    edit(("torch.randn_like(mean) * (0.5 * logvar).exp()", "torch.randn_like(mean) * 6.0")),
    "vae",
    cause="objective_mismatch",
    also=("logvar_as_std",),
)
fault(
    "recon_mean_reduction",
    "code",
    "learning",
    "reconstruction is averaged over pixels, KL is summed",
    "one reduction for both",
    edit(
        ("    recon = ((output - x) ** 2).sum(1).mean()", "    recon = ((output - x) ** 2).mean()"),
        ("cfg.kl_weight * kl", "20 * cfg.kl_weight * kl"),
    ),
    "vae",
    measure="scaled",
    cause="kl_collapse",
    also=("loss_terms_conflict",),
)
fault(
    "predicts_wrong_target",
    "code",
    "code",
    "the network learns the clean point, the sampler takes it for the noise",
    "predict the noise",
    edit(("    return F.mse_loss(model(noisy, t), noise)", "    return F.mse_loss(model(noisy, t), x)")),
    "ddpm",
    cause="objective_mismatch",
)
fault(
    "schedule_noise_weak",
    "setting",
    "learning",
    "the noise never covers the data: sampling starts from what was never trained",
    "a larger beta_end",
    put(beta_end=[0.004, 0.008]),
    "ddpm",
    cause="sigma_max_cut",
    also=("schedule_noise_weak",),
)
fault(
    "time_not_given",
    "code",
    "code",
    "the network is always told time zero",
    "pass t",
    edit(
        (
            "    return F.mse_loss(model(noisy, t), noise)",
            "    return F.mse_loss(model(noisy, torch.zeros_like(t)), noise)",
        )
    ),
    "ddpm",
    cause="objective_mismatch",
    also=("train_val_shift",),
)
