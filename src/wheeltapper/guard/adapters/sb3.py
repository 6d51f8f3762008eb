"""The guard in Stable-Baselines3.

    from wheeltapper.guard.adapters.sb3 import GuardCallback
    model = PPO("MlpPolicy", "CartPole-v1")
    model.learn(100_000, callback=GuardCallback())      # incidents go to the folder of the model's logger

The optimizer of the policy is guarded (of an actor and a critic, the critic's); its steps are seen by torch's hooks. What the
logger knows at the end of each rollout (losses, the mean return) is told to the signs.
"""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from wheeltapper.guard.session import Session, guarded, harmless


class GuardCallback(BaseCallback):  # type: ignore[misc]
    """Options are those of `guarded`; run_dir is the folder of the model's logger unless given."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.session: Session | None = None

    @harmless
    def _on_training_start(self) -> None:
        if self.session is not None:
            self.session.close()
        module, optimizer = _learner(self.model)
        if optimizer is None:
            return
        folder = self.logger.get_dir()
        options: dict[str, Any] = {"clip_norm": getattr(self.model, "max_grad_norm", None)}
        options |= {"run_dir": folder} if folder else {}
        self.session = guarded(module, optimizer, **(options | self.options))

    def _on_step(self) -> bool:
        return self.session is None or not self.session.stopping

    @harmless
    def _on_rollout_end(self) -> None:
        if self.session is not None:
            known = dict(self.logger.name_to_value)
            if len(self.model.ep_info_buffer or ()):
                known["rollout/ep_rew_mean"] = sum(e["r"] for e in self.model.ep_info_buffer) / len(self.model.ep_info_buffer)
            self.session.metric({name: float(v) for name, v in known.items() if isinstance(v, (int, float))}, self.num_timesteps)

    @harmless
    def _on_training_end(self) -> None:
        if self.session is not None:
            self.session.close()


def _learner(model: Any) -> tuple[Any, Any]:
    """The module that learns and its optimizer."""
    for module in (getattr(model, "critic", None), model.policy):
        optimizer = getattr(module, "optimizer", None)
        if optimizer is not None:
            return module, optimizer
    return model.policy, None
