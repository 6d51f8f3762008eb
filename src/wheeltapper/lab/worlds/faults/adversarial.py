"""Faults of GANs."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import both, edit, fault, put, scale

fault(
    "discriminator_wins",
    "setting",
    "learning",
    "the discriminator learns far faster than the generator",
    "balance the rates",
    both(scale("d_lr", 10.0, 20.0), scale("g_lr", 0.02, 0.01)),
    "gan",
    also=("lr_too_low",),
)
fault(
    "gan_lr_too_high",
    "setting",
    "learning",
    "both rates are tens of times too high",
    "lower rates",
    both(scale("d_lr", 60.0, 100.0), scale("g_lr", 60.0, 100.0)),
    "gan",
    cause="lr_too_high",
    also=("mode_collapse",),
)
fault(
    "gan_lr_too_low",
    "setting",
    "learning",
    "both rates are hundreds of times too low",
    "higher rates",
    both(scale("d_lr", 0.005), scale("g_lr", 0.005)),
    "gan",
    cause="lr_too_low",
)
fault(
    "generator_sign",
    "code",
    "code",
    "the generator is rewarded for being found out",
    "softplus of minus the score",
    edit(("g_loss = F.softplus(-discriminator(fake)).mean()", "g_loss = F.softplus(discriminator(fake)).mean()")),
    "gan",
    cause="wrong_loss_sign",
    also=("discriminator_wins",),
)
fault(
    "generator_detached",
    "code",
    "code",
    "the fake samples are detached, so the generator gets no gradient",
    "no detach in the generator's step",
    edit(
        (
            "        g_loss = F.softplus(-discriminator(fake)).mean()",
            "        g_loss = F.softplus(-discriminator(fake.detach())).mean()",
        )
    ),
    "gan",
    cause="frozen_parameters",
    also=("params_not_in_optimizer", "discriminator_wins"),
)
fault(
    "generator_not_in_optimizer",
    "code",
    "code",
    "both optimizers hold the discriminator",
    "the generator's parameters",
    edit(
        (
            "g_optimizer = torch.optim.Adam(generator.parameters()",
            "g_optimizer = torch.optim.Adam(discriminator.parameters()",
        )
    ),
    "gan",
    cause="params_not_in_optimizer",
    also=("frozen_parameters",),
)
fault(
    "mode_collapse",
    "code",
    "learning",
    "the generator's noise is one and the same, so it can make one point only",
    "draw new noise",
    edit(
        (
            "        fake = generator(torch.randn(cfg.batch_size, cfg.latent))\n        g_loss",
            "        fake = generator(torch.zeros(cfg.batch_size, cfg.latent))\n        g_loss",
        ),
        (
            "fake = generator(torch.randn(cfg.batch_size, cfg.latent)).detach()",
            "fake = generator(torch.zeros(cfg.batch_size, cfg.latent)).detach()",
        ),
    ),
    "gan",
    also=("objective_mismatch",),
)
fault(
    "discriminator_same_labels",
    "code",
    "code",
    "real and fake are both called real",
    "one of each",
    edit(
        (
            "F.softplus(-d_real).mean() + F.softplus(d_fake).mean()",
            "F.softplus(-d_real).mean() + F.softplus(-d_fake).mean()",
        )
    ),
    "gan",
    cause="labels_broken",
    also=("wrong_loss_sign",),
)
fault(
    "discriminator_graph_shared",
    "code",
    "code",
    "the discriminator's gradients of the generator's step are never cleared",
    "clear before each step",
    edit(("            d_optimizer.zero_grad()\n", "")),
    "gan",
    cause="zero_grad_missing",
    script="always",
)
fault(
    "gan_no_critic_steps",
    "setting",
    "learning",
    "the discriminator is trained zero times a step",
    "n_critic 1",
    both(
        put(n_critic=0),
        edit(
            (
                '    log_metrics("val", 0, 0, evaluate(generator, held_out))\n',
                '    log_metrics("val", 0, 0, evaluate(generator, held_out))\n    d_loss, d_real, d_fake = torch.zeros(1), torch.zeros(1), torch.zeros(1)\n',
            )
        ),
    ),
    "gan",
    cause="frozen_parameters",
    also=("gan_no_critic_steps", "params_not_in_optimizer"),
)
