"""Asking while the run grows: each sign once, with its cause, at a bounded cost; and telling others."""

from __future__ import annotations

import http.server
import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from wheeltapper.errors import InputError
from wheeltapper.guard import Incident, StepRecord
from wheeltapper.guard import ask as ask_module
from wheeltapper.guard.ask import Asker, History
from wheeltapper.guard.notify import WAITING, Notifier

NAN = math.nan


class Guard:
    """What an asker and a notifier use of a guard."""

    def __init__(self, run_dir: Path | None = None) -> None:
        self.rank, self.at, self.run_dir = 0, 0, run_dir
        self.incidents: list[Incident] = []
        self.history: list[StepRecord] = []
        self.on_step: list[Callable[[StepRecord], None]] = []
        self.on_incident: list[Callable[[Incident], None]] = []

    def listen(self, step: Any = None, incident: Any = None) -> None:
        self.on_step += [step] if step else []
        self.on_incident += [incident] if incident else []

    def report(self, incident: Incident) -> None:
        self.incidents.append(incident)
        for call in self.on_incident:
            call(incident)

    def run(self, losses: Any, norms: Any = None, start: int = 0) -> None:
        for i, loss in enumerate(losses, start):
            norm = 1.0 if norms is None else norms[i - start]
            self.history.append(record(i, loss, norm))
            self.at = i + 1
            for call in self.on_step:
                call(self.history[-1])


def record(step: int, loss: float, norm: float = 1.0) -> StepRecord:
    return StepRecord(
        step, step, 0.0, float(loss), 1, float(norm), (), True, (1e-3,), 1e-3, 0, -1, None, NAN, False, step_s=0.1
    )


def healthy(n: int, seed: int = 0, noise: float = 0.03) -> Any:
    t = np.arange(n)
    return 2.5 * (1 + t / 40.0) ** -0.5 + 0.4 + noise * np.random.default_rng(seed).standard_normal(n)


@pytest.fixture(autouse=True)
def _fewer_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_module, "GROWTH", 0.4)


def asker(guard: Any, **options: Any) -> Asker:
    return Asker(guard, thread=False, share=10.0, **options)


def test_a_divergence_is_told_once_with_its_numbers() -> None:
    losses = healthy(700)
    losses[200:] += 0.02 * np.arange(500)
    guard = Guard()
    asking = asker(guard, total_steps=2000, config={"lr": 1e-3})
    guard.run(losses)
    asking.close()
    told = [i for i in guard.incidents if i.kind == "sign:diverged"]
    assert len(told) == 1
    assert 256 < told[0].step < 700
    assert told[0].severity == "error"
    assert told[0].onset is not None
    assert "rose from" in told[0].text
    assert told[0].facts["series"] == "train/loss"


def test_the_same_names_as_offline() -> None:
    guard = Guard()
    asking = asker(guard, total_steps=100)
    guard.run(healthy(60))
    asking.metric({"val/loss": 1.5, "eval_accuracy": 0.5, "note": "text", "flag": True}, step=50)
    run = asking.history.run(name="x", facts=asking.facts, config='{"learning_rate": 0.001}')
    assert {"train/loss", "grad_norm", "lr", "val/loss", "val/accuracy"} <= set(run.series)
    assert "note" not in run.series
    assert run.fact("total_steps") == 100
    assert len(run.series["train/loss"]) == 60


@pytest.mark.parametrize("seed", range(3))
def test_no_alarm_on_a_healthy_run(seed: int) -> None:
    guard = Guard()
    rng = np.random.default_rng(seed)
    asking = asker(guard, total_steps=700)
    guard.run(healthy(700, seed, noise=[0.01, 0.1, 0.3][seed % 3]), np.exp(0.5 * rng.standard_normal(700)))
    asking.close()
    assert guard.incidents == []
    assert asking.errors == {}
    assert asking.asked >= 8


def test_a_sign_that_speaks_once_and_takes_it_back_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from wheeltapper.finding import Finding

    answers = iter(
        [
            [Finding("x", "x 1", "ill", "is-p")],
            [],
            [Finding("x", "x 1", "ill", "is-p")],
            [Finding("x", "x 2", "ill", "is-p")],
            [],
        ]
    )
    guard = Guard()
    asking = asker(guard)
    asking.history.seen = ask_module.SURE
    monkeypatch.setattr(asking, "findings", lambda _run: next(answers))
    monkeypatch.setattr(ask_module, "likely_causes", lambda *_: [])
    for n in range(5):
        asking._look(None, n, n)
        asking._hand_over()
    assert [(i.kind, i.step) for i in guard.incidents] == [("sign:x", 3)]


def test_statistics_wait_for_enough_steps_and_facts_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from wheeltapper.finding import Finding

    guard = Guard()
    asking = asker(guard)
    found = [Finding("maybe", "maybe 1", "ill", "is-p"), Finding("fact", "fact 1", "ill", "is")]
    monkeypatch.setattr(asking, "findings", lambda _run: found)
    monkeypatch.setattr(ask_module, "likely_causes", lambda *_: [])
    for seen in (50, 60, ask_module.SURE, ask_module.SURE + 20):
        asking.history.seen = seen
        asking._look(None, seen, seen)
        asking._hand_over()
    assert [(i.kind, i.step) for i in guard.incidents] == [("sign:fact", 50), ("sign:maybe", ask_module.SURE + 20)]


def test_what_the_guard_saw_is_not_told_again() -> None:
    guard = Guard()
    guard.incidents.append(Incident("nonfinite-loss", 40, 40, 0.0, "The loss is nan.", "error"))
    losses = healthy(100)
    losses[40:] = NAN
    asking = asker(guard)
    guard.run(losses)
    asking.close()
    assert [i.kind for i in guard.incidents] == ["nonfinite-loss"]


def test_a_sign_that_breaks_is_left_out_and_the_others_speak(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from wheeltapper.rules import signs as sign_module

    def broken(*_: Any) -> Any:
        raise RuntimeError("planted")

    real = sign_module.signs()
    bad = replace(real[0], id="bad-sign", live=True, look=broken)
    monkeypatch.setattr(sign_module, "signs", lambda: (bad, *real))
    guard = Guard()
    asking = asker(guard)
    losses = healthy(300)
    losses[150:] = NAN
    guard.run(losses)
    assert list(asking.errors) == ["bad-sign"]
    assert [i.kind for i in guard.incidents] == ["sign:not-finite"]
    assert sum("bad-sign" in r.getMessage() for r in caplog.records) == 1


def test_in_a_thread_what_is_found_is_reported_from_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard()
    asking = Asker(guard, share=10.0)
    where: list[str] = []
    guard.on_incident.append(lambda _incident: where.append(threading.current_thread().name))
    losses = healthy(400)
    losses[100:] = NAN
    for i, loss in enumerate(losses):
        guard.run([loss], start=i)
        if i % 20 == 0:
            time.sleep(0.01)
    asking.close()
    assert [i.kind for i in guard.incidents] == ["sign:not-finite"]
    assert where == [threading.current_thread().name]


def test_questions_keep_to_their_share_of_the_time() -> None:
    guard = Guard()
    asking = Asker(guard, thread=False, share=0.0)
    guard.run(healthy(500))
    assert asking.asked == 2, "two to learn what it costs, then none that is not paid for"


def test_a_long_history_is_thinned_evenly_and_keeps_what_is_not_finite() -> None:
    history = History(rows=100)
    for i in range(1000):
        history.add(record(i, NAN if i == 37 else 1.0))
    assert len(history.at) <= 101
    assert history.stride == 16
    assert 37.0 in history.at
    gaps = np.diff([a for a in history.at if a != 37.0])
    assert len(set(gaps.tolist())) == 1
    every = History(rows=100)
    for i in range(1000):
        every.add(record(i, NAN))
    assert len(every.at) <= 101, "bounded even if nothing is finite"


# Telling others


def incident(step: int = 3, severity: str = "warning", **facts: Any) -> Incident:
    return Incident("precursor", step, step, 1.0, "the norm jumped", severity, facts=facts)


def test_a_callback_hears_what_is_worth_it() -> None:
    guard = Guard()
    heard: list[int] = []
    Notifier(guard, callback=lambda i: heard.append(i.step))
    guard.report(incident(1, "note"))
    guard.report(incident(2))
    guard.report(incident(3, "error"))
    assert heard == [2, 3]


class Hook(http.server.BaseHTTPRequestHandler):
    got: list[dict[str, Any]] = []  # noqa: RUF012
    hang = 0.0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.hang)
        self.got.append(json.loads(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Any:
    Hook.got, Hook.hang = [], 0.0
    one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{one.server_port}/secret-token"
    one.shutdown()
    one.server_close()


def test_a_web_hook_gets_the_incident(server: str) -> None:
    guard = Guard()
    notifier = Notifier(guard, webhook=server, name="exp1")
    guard.report(incident(7, "error", norm=math.nan))
    notifier.close()
    assert Hook.got[0]["text"] == "exp1: step 7: the norm jumped"
    assert Hook.got[0]["incident"]["facts"]["norm"] == "NaN"


def test_a_web_hook_that_hangs_delays_nothing(server: str) -> None:
    Hook.hang = 1.0
    guard = Guard()
    notifier = Notifier(guard, webhook=server, timeout=0.2)
    began = time.perf_counter()
    for step in range(3 * WAITING):
        guard.report(incident(step))
    assert time.perf_counter() - began < 0.5
    assert notifier.dropped >= WAITING


def test_a_web_hook_that_is_not_there_is_logged_once_without_its_address(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()
    notifier = Notifier(guard, webhook="http://127.0.0.1:9/secret-token", timeout=0.2)
    guard.report(incident(1))
    guard.report(incident(2))
    mine = notifier._thread.ident  # another test's thread may still be giving up
    notifier.close()
    assert len([r for r in caplog.records if r.thread == mine]) == 1
    assert "secret-token" not in caplog.text
    assert notifier.dropped == 2


def test_a_callback_that_raises_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()

    def bad(_incident: Incident) -> None:
        raise RuntimeError("planted")

    Notifier(guard, callback=bad)
    guard.report(incident(1))
    guard.report(incident(2))
    assert len(caplog.records) == 1


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InputError):
        Notifier(Guard(), webhook="file:///etc/passwd")
    with pytest.raises(InputError):
        Notifier(Guard(), least="loud")
