"""Preflight finds planted mistakes, is quiet on sound models, and leaves no trace."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from wheeltapper.errors import InputError  # noqa: E402
from wheeltapper.finding import Clear, Finding, Unknown  # noqa: E402
from wheeltapper.guard.before import preflight  # noqa: E402
from wheeltapper.guard.preflight_checks import learning  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    monkeypatch.setattr(learning, "STEPS", 60)  # enough for models this small


def images(n: int = 16, classes: int = 4) -> tuple[Any, Any]:
    return torch.randn(n, 3, 8, 8), torch.arange(n) % classes


def net(classes: int = 4, *last: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(128, classes),
        *last,
    )


def ask(model: Any, batch: Any, loss_fn: Any = None, optimizer: Any = None, **options: Any) -> dict[str, Any]:
    """The answers by name; of two under one name the worse."""
    done = preflight(model, batch, loss_fn, optimizer, seconds=options.pop("seconds", 60.0), **options)
    return dict(sorted(done.answers, key=lambda item: isinstance(item[1], Finding)))


def ills(answers: dict[str, Any]) -> set[str]:
    return {name for name, a in answers.items() if isinstance(a, Finding) and a.severity in ("ill", "watch")}


CE = nn.CrossEntropyLoss()


def test_a_sound_classifier_is_ready() -> None:
    model = net()
    done = preflight(model, images(), CE, torch.optim.SGD(model.parameters(), 0.05), samples=1000, seconds=60)
    assert done.ok, str(done)
    assert [f for f in done.findings if f.severity != "note"] == []
    asked = {name for name, _ in done.answers}
    assert {
        "inputs", "targets", "initial-loss", "gradients", "optimizer", "update", "mixing", "determinism", "overfit",
        "train-eval", "precision", "pace",
    } <= asked  # fmt: skip
    assert str(done).startswith("preflight: ready (")
    assert "ln 4 = 1.386" in str(done)


def test_nothing_is_left_behind() -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    x, y = images()
    CE(model(x), y).backward()
    optimizer.step()  # state, gradients and running statistics are there
    model[3].eval()  # an odd mode of one module
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict(), [p.grad for p in model.parameters()]))
    modes = [m.training for m in model.modules()]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    batch = (x.clone(), y.clone())
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    preflight(model, batch, CE, optimizer, seconds=0.5)
    assert random.getstate() == state[0]
    assert np.random.get_state()[1].tolist() == state[1]
    assert torch.equal(torch.get_rng_state(), state[2])
    after = (model.state_dict(), optimizer.state_dict(), [p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(before[0].values(), after[0].values(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(before[2], after[2], strict=True))
    for key, state_ in before[1]["state"].items():
        assert all(torch.equal(v, after[1]["state"][key][name]) for name, v in state_.items())
    assert [m.training for m in model.modules()] == modes
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()] == hooks
    assert torch.equal(batch[0], x)


def test_softmax_before_cross_entropy() -> None:
    found = ask(net(4, nn.Softmax(-1)), images(), CE)["double-softmax"]
    assert found.severity == "ill"
    assert found.numbers["floor"] == pytest.approx(math.log(1 + 3 / math.e))


def test_shapes_that_broadcast() -> None:
    x, _ = images()
    assert ask(net(1), (x, torch.randn(16)), nn.MSELoss())["shapes-broadcast"].severity == "ill"
    assert ask(net(1), (x, torch.randn(16, 1)), nn.MSELoss()).get("shapes-broadcast") is None


def test_logits_too_large_at_the_start() -> None:
    model = net()
    with torch.no_grad():
        model[5].weight *= 100
    found = ask(model, images(), CE)["initial-loss"]
    assert isinstance(found, Finding)
    assert "standard deviation" in found.summary


def test_a_sum_is_told_from_a_mean() -> None:
    assert "loss-summed" in ask(net(), images(), nn.CrossEntropyLoss(reduction="sum"))


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lambda x: x.index_fill(0, torch.tensor([2]), math.nan), "inputs-not-finite"),
        (lambda x: x * torch.tensor([1.0, 0.0, 1.0]).view(1, 3, 1, 1), "dead-input"),
        (lambda x: x[:1].expand(16, 3, 8, 8).clone(), "same-samples"),
        (lambda x: torch.zeros_like(x), "dead-input"),
        (lambda x: (x * 40 + 120).clamp(0, 255).round(), "input-range"),
    ],
)
def test_inputs_that_carry_nothing(spoil: Any, name: str) -> None:
    x, y = images()
    assert name in ills(ask(net(), (spoil(x), y), CE, seconds=0.3))


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (torch.arange(16) % 4 + 1, "step"),  # torch itself refuses, before we can look
        (torch.full((16,), -100), "all-labels-masked"),
        (torch.full((16,), 2), "one-class-batch"),
    ],
)
def test_targets_that_cannot_be(labels: Any, name: str) -> None:
    x, _ = images()
    assert name in ills(ask(net(), (x, labels), CE, seconds=0.3))


def test_parameters_that_nothing_trains() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = net(), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    model = Forgetful()
    answers = ask(model, images(), CE, torch.optim.SGD(model.used[:5].parameters(), 0.1))
    assert "unused.weight" in answers["no-gradient"].summary
    assert "used.5.weight" in answers["params-not-in-optimizer"].summary
    stranger = ask(net(), images(), CE, torch.optim.SGD(net().parameters(), 0.1), seconds=0.3)
    assert stranger["params-not-in-optimizer"].severity == "ill"


def test_a_cut_graph() -> None:
    def step(model: Any, batch: Any) -> Any:
        return CE(model(batch[0]).detach(), batch[1])

    done = ask(net(), images(), step=step)
    assert done["gradients"].severity == "ill"
    assert "overfit" not in done


def test_a_model_that_ignores_its_input_cannot_learn_the_batch() -> None:
    class Dead(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()

        def forward(self, x: Any) -> Any:
            return self.inner(x) * 0.0 + self.inner[5].bias * 0.0

    assert ask(Dead(), images(), CE)["overfit"].severity == "ill"


def test_a_step_that_uses_another_model_is_refused() -> None:
    model = net()
    with pytest.raises(InputError, match="not the one that it was given"):
        preflight(model, images(), step=lambda _model, batch: CE(model(batch[0]), batch[1]))


def test_a_step_that_raises_is_a_fault_not_a_crash() -> None:
    done = preflight(net(), (torch.randn(4, 5), torch.zeros(4).long()), CE)
    assert not done.ok
    assert "FAULT" in str(done)


class Tokens(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 11)
        self.causal = causal

    def forward(self, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.head(self.layer(self.embed(x), src_mask=mask, is_causal=self.causal))


def test_a_language_model_that_sees_ahead() -> None:
    text = torch.randint(0, 11, (6, 9))
    batch = (text[:, :-1], text[:, 1:])

    def loss(out: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(out.reshape(-1, 11), target.reshape(-1))

    assert ask(Tokens(False), batch, loss, seconds=0.5)["looks-ahead"].severity == "ill"
    sound = ask(Tokens(True), batch, loss, seconds=0.5)
    assert ills(sound) == set()
    assert "ln 11" in sound["initial-loss"].why


def test_samples_that_mix() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(12, 4)

        def forward(self, x: Any) -> Any:
            return self.line(x.t().reshape(x.shape))  # a view where a transpose was meant

    assert "samples-mix" in ask(Mixed(), (torch.randn(12, 12), torch.arange(12) % 4), CE, seconds=0.5)


def test_running_statistics_that_never_follow() -> None:
    model = net()
    model[1].momentum = 0.0
    model[1].running_mean += 30.0
    assert "train-eval" in ills(ask(model, images(), CE))


def test_dropout_that_is_never_switched_off() -> None:
    class Always(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()

        def forward(self, x: Any) -> Any:
            return nn.functional.dropout(self.inner(x), 0.5, training=True)

    assert "eval-random" in ask(Always(), images(), CE)


def test_state_between_steps_is_no_determinism() -> None:
    class Counts:
        n = 0

    def step(model: Any, batch: Any) -> Any:
        Counts.n += 1
        return CE(model(batch[0]), batch[1]) * (1 + 0.1 * (Counts.n % 7))

    assert isinstance(ask(net(), images(), step=step, seconds=0.3)["determinism"], Finding)


def test_half_precision_weights() -> None:
    model = nn.Linear(64, 64).to(torch.bfloat16)
    batch = (torch.randn(8, 64).to(torch.bfloat16), torch.randn(8, 64).to(torch.bfloat16))
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    assert "weights-too-coarse" in ask(model, batch, nn.MSELoss(), optimizer, seconds=0.3)


def test_large_activations_are_named() -> None:
    model = net()
    with torch.no_grad():
        model[0].weight *= 1e5
    found = ask(model, images(), CE, seconds=0.3)["fp16-overflow"]
    assert "activations reach" in found.summary


def test_a_model_that_returns_its_loss() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(5, 3)

        def forward(self, x: Any, labels: Any) -> Any:
            logits = self.line(x)
            return {"loss": CE(logits, labels), "logits": logits}

    answers = ask(Own(), {"x": torch.randn(9, 5), "labels": torch.arange(9) % 3}, seconds=0.5)
    assert isinstance(answers["initial-loss"], Clear)
    assert "ln 3" in answers["initial-loss"].why


def test_a_noisy_loss_has_one_batch_to_learn() -> None:
    """A diffusion step draws its own noise; with the draws held fixed the batch can be learned."""

    def step(model: Any, batch: Any) -> Any:
        noise = torch.randn_like(batch)
        return (model(batch + noise) - noise).pow(2).mean()

    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 6))
    done = ask(model, torch.randn(12, 6), step=step, head="epsilon")
    assert ills(done) == set()
    assert isinstance(done["overfit"], Clear)


def test_wrong_use_is_told_with_what_to_do() -> None:
    model, batch = nn.Linear(5, 3), (torch.randn(9, 5), torch.arange(9) % 3)
    with pytest.raises(InputError, match="model is a int"):
        preflight(3, batch, CE)
    with pytest.raises(InputError, match="optimizer is a str"):
        preflight(model, batch, CE, optimizer=["adam"])
    with pytest.raises(InputError, match="without loss_fn"):
        preflight(model, batch)


def test_nothing_is_called_well_that_nan_does_not_let_one_see() -> None:
    x, y = torch.randn(9, 5), torch.arange(9) % 3
    answers = ask(nn.Linear(5, 3), (x * math.nan, y), CE, seconds=0.3)
    assert isinstance(answers["inputs-not-finite"], Finding)
    assert isinstance(answers["mixing"], Unknown)
    assert isinstance(answers["precision"], Unknown)
