"""Before training: a minute of questions that save a day of it.

    from wheeltapper.guard import preflight
    print(preflight(model, batch, loss_fn=nn.CrossEntropyLoss(), optimizer=optimizer))

Everything happens on copies. The model, its gradients and buffers, the optimizer, the batch and every random generator
are to the bit what they were before.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from wheeltapper.errors import InputError
from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.guard import rng
from wheeltapper.guard.preflight_checks import first_loss, gradients, inputs, learning, ranges
from wheeltapper.guard.preflight_checks.bench import Batch, Bench, Criterion, Step, make_bench, untouched

__all__ = ["Preflight", "preflight"]

Asked = tuple[str, Answer]


@dataclass(frozen=True, slots=True)
class Preflight:
    """The answers in the order they were asked, and how long it took."""

    answers: tuple[Asked, ...]
    seconds: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(answer for _, answer in self.answers if isinstance(answer, Finding))

    @property
    def ok(self) -> bool:
        """Nothing that makes the training unsound was found. What could not be asked is not counted."""
        return not any(f.severity == "ill" for f in self.findings)

    def __str__(self) -> str:
        ill = sum(f.severity == "ill" for f in self.findings)
        watch = sum(f.severity == "watch" for f in self.findings)
        if ill:
            head = f"do not start: {ill} fault{'s' if ill > 1 else ''}"
        else:
            head = "ready" if not watch else f"ready; look at {watch} thing{'s' if watch > 1 else ''} first"
        lines = [f"preflight: {head} ({self.seconds:.1f} s)"]
        for name, answer in self.answers:
            if isinstance(answer, Finding):
                mark = {"ill": "FAULT", "watch": "look", "note": "note"}[answer.severity]
                lines.append(f"  {mark:5}  {name}: {answer.summary}")
            elif isinstance(answer, Clear):
                lines.append(f"  ok     {name}: {answer.why}")
            else:
                needs = f" (needs {', '.join(answer.needs)})" if answer.needs else ""
                lines.append(f"  ?      {name}: {answer.why}{needs}")
        return "\n".join(lines)


def preflight(
    model: Any,
    batch: Batch,
    loss_fn: Criterion | None = None,
    optimizer: Any = None,
    *,
    step: Step | None = None,
    head: str | None = None,
    classes: int | None = None,
    autocast: Any = None,
    samples: int | None = None,
    seconds: float = 10.0,
) -> Preflight:
    """Ask everything that one batch can answer.

    loss_fn     called as loss_fn(model(inputs), targets), the batch being (inputs, targets) or a dict with labels
    step        instead: called as step(model, batch), returns the loss; for any other training step
                (neither: the model returns its loss itself, as Hugging Face models do)
    optimizer   one, or several in a list: are all parameters in it, how far does its first update go
    head        the kind of loss where it cannot be told from output and targets (simulate.baselines.initial_loss)
    classes     the number of classes or tokens, likewise
    autocast    torch.float16 or torch.bfloat16, if the training runs in mixed precision
    samples     in an epoch, for the estimate of its duration
    seconds     spent on learning one batch by heart, at most; everything else takes a few steps
    """
    began = time.perf_counter()
    optimizers = () if optimizer is None else tuple(optimizer) if isinstance(optimizer, Sequence) else (optimizer,)
    with rng.kept(), torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same warning for every one of some hundred steps
        bench = make_bench(model, batch, loss_fn=loss_fn, step=step, optimizers=optimizers, autocast=autocast)
        with untouched(bench.owner):  # after the copy, which would copy the hook
            answers = _ask(bench, optimizers, head=head, classes=classes, samples=samples, seconds=seconds)
    return Preflight(tuple(answers), time.perf_counter() - began)


def _ask(
    bench: Bench,
    optimizers: Sequence[Any],
    *,
    head: str | None,
    classes: int | None,
    samples: int | None,
    seconds: float,
) -> list[Asked]:
    answers = _safely("inputs", lambda: inputs.check_inputs(bench.batch))
    model, _ = bench.fresh()
    model.train()
    try:
        with torch.no_grad():
            seen = bench.run(model)
    except InputError:
        raise
    except Exception as error:
        text = f"the step raises {type(error).__name__}: {error}"
        return [*answers, inputs.found("step", text, "ill")]
    answers += _safely("targets", lambda: inputs.check_targets(bench.batch, seen.output))
    answers += _safely(
        "initial-loss", lambda: first_loss.check_first_loss(seen, bench.batch, head=head, classes=classes)
    )
    ranged: list[Asked] = []

    def backward() -> list[Asked]:
        found, graded = gradients.check_gradients(bench)
        ranged.extend(_safely("precision", lambda: ranges.check_precision(bench, graded)))
        return found

    answers += _safely("gradients", backward)
    answers += _safely("optimizer", lambda: gradients.check_optimizer(bench, optimizers))
    answers += _safely("update", lambda: gradients.check_update(bench))
    answers += _safely("mixing", lambda: gradients.check_mixing(bench))
    answers += _safely("determinism", lambda: gradients.check_determinism(bench))
    learned: list[learning.Learned] = []

    def overfit() -> list[Asked]:
        found, best = learning.check_overfit(bench, seconds)
        learned.extend([best] if best is not None else [])
        return found

    if not any(isinstance(a, Finding) and a.id == "gradients" for _, a in answers):
        answers += _safely("overfit", overfit)
    if learned:
        answers += _safely("dead-parameters", lambda: learning.check_not_moving(bench, learned[0]))
        answers += _safely("train-eval", lambda: learning.check_train_eval(bench, learned[0]))
    answers += ranged
    answers += _safely("pace", lambda: ranges.check_pace(bench, seconds=min(2.0, seconds), samples=samples))
    return answers


def _safely(name: str, ask: Callable[[], list[Asked]]) -> list[Asked]:
    """A check that breaks on an unusual model answers that it does not know; the others still speak."""
    try:
        return ask()
    except InputError:
        raise
    except Exception as error:
        return [(name, Unknown(f"could not be asked: {type(error).__name__}: {error}"))]
