"""Learning rates computed by hand: what they are read as, and what is said when they are not set or given another unit."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from reading_text import code_of, findings_of, ids

HEAD = """
import math
import torch
import torch.nn.functional as F
from nets import Net, train_loader
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
learning_rate, min_lr = 3e-4, 3e-5
warmup_iters, max_iters = 100, 5000
epochs, warmup_epochs = 90, 5
"""
NANO = """
def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)
"""
LINEAR = """
def lr_at(step):
    warm = min(1.0, step / max(1, warmup_iters))
    return learning_rate * warm * max(0.0, 1 - step / max_iters)
"""
BY_EPOCH = """
def adjust_lr(epoch):
    if epoch < warmup_epochs:
        return learning_rate * epoch / warmup_epochs
    return learning_rate * (1 - (epoch - warmup_epochs) / (epochs - warmup_epochs)) ** 2
"""
LOOP = """
step = 0
for epoch in range(epochs):
    {at_epoch}
    for x, y in train_loader:
        {at_batch}
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        step += 1
"""


def script(rule: str, at_epoch: str = "pass", at_batch: str = "pass") -> str:
    body = LOOP.format(
        at_epoch=dedent(at_epoch).strip().replace("\n", "\n    "),
        at_batch=dedent(at_batch).strip().replace("\n", "\n        "),
    )
    return HEAD + rule + body


def sets(name: str, counter: str) -> str:
    return f"""
        lr = {name}({counter})
        for group in optimizer.param_groups:
            group["lr"] = lr
    """


@pytest.mark.parametrize(
    ("rule", "kind", "horizon", "warmup"),
    [
        (NANO, "cosine", "max_iters", "warmup_iters + 1"),
        (LINEAR, "linear", "max_iters", "warmup_iters"),
        (BY_EPOCH, "polynomial", "epochs", "warmup_epochs"),
    ],
)
def test_what_a_rule_is(rule: str, kind: str, horizon: str, warmup: str) -> None:
    (found,) = code_of(script(rule)).rules
    assert found.horizon is not None
    assert found.warmup is not None
    assert (found.kind, ast.unparse(found.horizon), ast.unparse(found.warmup)) == (kind, horizon, warmup)


@pytest.mark.parametrize(("rule", "name", "counter"), [(NANO, "get_lr", "step"), (LINEAR, "lr_at", "step")])
def test_a_rate_must_be_set(rule: str, name: str, counter: str) -> None:
    assert ids(script(rule, at_batch=sets(name, counter))) == set()
    (shown,) = findings_of(script(rule, at_batch=f"lr = {name}({counter})\nprint(step, lr)"))
    assert (shown.id, shown.severity, shown.grade) == ("scheduler-never-stepped", "ill", "is")
    (uncalled,) = findings_of(script(rule))
    assert (uncalled.id, uncalled.severity) == ("scheduler-never-stepped", "watch")


def test_units_of_counter_and_length() -> None:
    assert ids(script(NANO, at_epoch=sets("get_lr", "epoch"))) == {"scheduler-wrong-unit"}
    assert ids(script(BY_EPOCH, at_batch=sets("adjust_lr", "step"))) == {"scheduler-wrong-unit"}
    assert ids(script(BY_EPOCH, at_epoch=sets("adjust_lr", "epoch"))) == set()
    assert ids(script(BY_EPOCH, at_batch=sets("adjust_lr", "epoch + step % 100 / 100"))) == set()


LAMBDA = "sched = torch.optim.lr_scheduler.LambdaLR(optimizer, {given})\n"


@pytest.mark.parametrize(
    "given",
    [
        "lambda s: min(1.0, (s + 1) / 100) * max(0.0, 1 - s / (epochs * len(train_loader)))",
        "lr_lambda=lambda s: 0.5 * (1 + math.cos(math.pi * s / (len(train_loader) * epochs)))",
    ],
)
def test_a_lambda_laid_out_in_batches(given: str) -> None:
    make = LAMBDA.format(given=given)
    assert ids(script(make, at_epoch="sched.step()")) == {"scheduler-wrong-unit"}
    assert ids(script(make, at_batch="sched.step()")) == set()


def test_a_function_given_to_lambda_lr_in_epochs() -> None:
    make = "def factor(e):\n    return (1 - e / epochs) ** 0.9\n" + LAMBDA.format(given="factor")
    assert ids(script(make, at_epoch="sched.step()")) == set()
    assert ids(script(make, at_batch="sched.step()")) == {"scheduler-wrong-unit"}


def test_other_schedules_are_no_learning_rates() -> None:
    noise = "def beta_schedule(step):\n    return 0.5 * (1 + math.cos(step / max_iters))\nprint(beta_schedule(3))\n"
    assert code_of(script(noise)).rules == []
    assert ids(script(noise)) == set()
