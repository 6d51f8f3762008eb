"""Faults of PPO and DQN."""

from __future__ import annotations

from wheeltapper.lab.worlds.faults.table import both, edit, fault, put, scale, share_of_total

fault(
    "reward_sign",
    "code",
    "code",
    "the reward has the wrong sign",
    "the reward as it is",
    edit(("torch.tensor(reward * cfg.reward_scale", "torch.tensor(-reward * cfg.reward_scale")),
    "ppo",
    "dqn",
    cause="wrong_loss_sign",
    also=("reward_sign",),
)
fault(
    "ent_coef_too_high",
    "setting",
    "learning",
    "the entropy bonus drowns the reward",
    "ent_coef 0.01",
    put(ent_coef=[2.0, 5.0]),
    "ppo",
    cause="loss_terms_conflict",
    also=("ent_coef_too_high",),
)
fault(
    "clip_range_too_small",
    "setting",
    "learning",
    "the policy may hardly move",
    "clip_range 0.2",
    both(
        put(clip_range=[1e-4, 1e-5], max_grad_norm=0.5),
        edit(
            (
                "policy_loss = -torch.min(ratio * a, clipped * a).mean()",
                "policy_loss = -torch.min(ratio * a, clipped * a)[(ratio - 1).abs() <= cfg.clip_range].sum() / len(a)",
            )
        ),
    ),
    "ppo",
    cause="clip_too_small",
    also=("clip_range_too_small", "lr_too_low"),
)
fault(
    "gamma_too_low",
    "setting",
    "learning",
    "the discount looks one step ahead only",
    "gamma 0.98",
    put(gamma=0.0, gae_lambda=0.0),
    "ppo",
    also=("gamma_too_low", "objective_mismatch"),
)
fault(
    "gamma_too_low_q",
    "setting",
    "learning",
    "the discount looks one step ahead only",
    "gamma 0.95",
    put(gamma=0.0),
    "dqn",
    cause="gamma_too_low",
    also=("objective_mismatch",),
)
fault(
    "advantages_forward",
    "code",
    "code",
    "advantages are gathered from the first step to the last",
    "go backwards",
    edit(
        ("for t in reversed(range(len(rewards))):", "for t in range(len(rewards)):"),
        (
            "running = delta + cfg.gamma * cfg.gae_lambda * alive * running",
            "running = delta + cfg.gamma * cfg.gae_lambda * running",
        ),
    ),
    "ppo",
    cause="objective_mismatch",
    also=("advantages_forward", "labels_broken"),
)
fault(
    "policy_loss_sign",
    "code",
    "code",
    "the policy's loss has the wrong sign",
    "minus the surrogate",
    edit(
        (
            "policy_loss = -torch.min(ratio * a, clipped * a).mean()",
            "policy_loss = torch.min(ratio * a, clipped * a).mean()",
        )
    ),
    "ppo",
    cause="wrong_loss_sign",
    also=("policy_collapse",),
)
fault(
    "actions_shuffled",
    "code",
    "code",
    "stored actions do not belong to the stored states",
    "store what was done",
    edit(
        (
            '            store["action"].append(action)',
            '            store["action"].append(action[torch.randperm(len(action))])',
        )
    ),
    "ppo",
    cause="labels_shuffled",
    also=("labels_broken",),
)
fault(
    "obs_not_stored",
    "code",
    "data",
    "the observation given to the policy is all zeros",
    "give the observation",
    edit(("        return self.policy(obs).log_softmax(-1)", "        return self.policy(0 * obs).log_softmax(-1)")),
    "ppo",
    cause="dead_input_channels",
    also=("obs_not_stored",),
)
fault(
    "policy_collapse",
    "setting",
    "learning",
    "many passes at a high rate with a wide clip wreck the policy",
    "fewer epochs, lower rate",
    put(n_epochs=12, lr=[0.1, 0.2], clip_range=5.0, max_grad_norm=100.0),
    "ppo",
    also=("lr_too_high",),
)
fault(
    "ppo_params_missing",
    "code",
    "code",
    "the optimizer holds the value head only",
    "agent.parameters()",
    edit(("optimizer = torch.optim.Adam(agent.parameters()", "optimizer = torch.optim.Adam(agent.value.parameters()")),
    "ppo",
    cause="params_not_in_optimizer",
    also=("frozen_parameters",),
)
fault(
    "buffer_of_one",
    "setting",
    "data",
    "the replay buffer holds one step",
    "a larger buffer",
    put(buffer_size=[1, 2, 4]),
    "dqn",
    cause="replay_buffer_too_small",
    also=("buffer_of_one", "data_not_shuffled"),
)
fault(
    "target_never_updated",
    "code",
    "code",
    "the target network stays at its start",
    "update it",
    edit(
        (
            "                target.load_state_dict(online.state_dict())\n",
            "                target.load_state_dict(target.state_dict())\n",
        )
    ),
    "dqn",
    cause="frozen_parameters",
    also=("target_never_updated", "option_not_wired"),
)
fault(
    "target_interval_too_long",
    "setting",
    "learning",
    "the target network is renewed after the end of the run",
    "100 updates",
    put(target_update_interval=[50000, 100000]),
    "dqn",
    cause="frozen_parameters",
    also=("target_never_updated", "target_interval_too_long"),
)
fault(
    "epsilon_never_falls",
    "setting",
    "learning",
    "actions stay random to the end",
    "epsilon_end 0.05",
    put(epsilon_end=[0.9, 1.0]),
    "dqn",
    also=("epsilon_never_falls", "curriculum_longer_than_run"),
)
fault(
    "learning_starts_too_late",
    "setting",
    "schedule",
    "learning begins near the end of the run",
    "learning_starts 1 %",
    share_of_total("learning_starts", 0.95, 2.0),
    "dqn",
    also=("warmup_longer_than_run", "learning_starts_too_late"),
)
fault(
    "q_takes_min",
    "code",
    "code",
    "the following value is the smallest in place of the largest",
    "max",
    edit(("following = target(s2).max(1).values", "following = target(s2).min(1).values")),
    "dqn",
    cause="objective_mismatch",
    also=("wrong_loss_sign",),
)
fault(
    "rl_lr_too_high",
    "setting",
    "learning",
    "the rate is a hundred times too high",
    "a lower lr",
    scale("lr", 60.0, 100.0),
    "dqn",
    cause="lr_too_high",
)
