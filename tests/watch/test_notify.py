"""Webhooks: what is sent, and what happens when nobody answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from wheeltapper.errors import MissingExtra
from wheeltapper.watch import Incident, notify
from wheeltapper.watch.notify import TRIES, Notifier

ALARM = Incident("exp", "alarm", "not-finite", "train/loss is NaN \x1b[31m", 1.0, 40.0, "step")


@pytest.fixture
def hook() -> Iterator[tuple[str, list[Any], list[int]]]:
    got: list[Any] = []
    answers: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop(0) if answers else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook/secret", got, answers
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_gets_words_and_data(hook: tuple[str, list[Any], list[int]]) -> None:
    url, got, _ = hook
    assert Notifier([url]).send([ALARM]) == []
    assert got[0]["text"] == got[0]["content"] == "✗ exp: not-finite at step 40: train/loss is NaN"
    assert got[0]["incidents"][0]["id"] == "not-finite"
    assert Notifier([url]).send([]) == []
    assert len(got) == 1


def test_what_was_not_taken_is_sent_again_with_the_next(hook: tuple[str, list[Any], list[int]]) -> None:
    url, got, answers = hook
    answers.append(500)
    notifier = Notifier([url])
    [problem] = notifier.send([ALARM])
    assert "500" in problem
    assert "secret" not in problem
    assert notifier.send([]) == []
    assert len(got) == 2
    assert got[1] == got[0]


def test_nobody_there_is_said_and_given_up_in_the_end() -> None:
    notifier = Notifier(["http://127.0.0.1:9/x"])
    told = [notifier.send([ALARM] if n == 0 else []) for n in range(TRIES + 2)]
    assert [len(t) for t in told] == [1] * TRIES + [0, 0]


def test_other_addresses_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match="pip install apprise"):
        Notifier(["mailto://user@example.com"])


def test_other_addresses_go_through_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []

    class Apprise:
        def add(self, url: str) -> bool:
            return url.startswith("good")

        def notify(self, title: str, body: str) -> bool:
            sent.append((title, body))
            return True

    fake = type("module", (), {"Apprise": Apprise})
    monkeypatch.setattr(notify, "_apprise", lambda: fake)
    assert Notifier(["good://x"]).send([ALARM]) == []
    assert sent == [("wheeltapper", ALARM.line)]
    assert "does not know" in Notifier(["bad://x"]).send([ALARM])[0]
