"""Incidents to a webhook, or to whatever apprise knows (mail, Slack, Telegram, ...; extra `notify`).

A plain http(s) address gets one POST of JSON with the text under `text` (Slack, Mattermost) and `content` (Discord),
and the incidents as data. Nothing that goes wrong here may stop the watching: it is said once and tried again.
"""

from __future__ import annotations

import importlib
import json
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from wheeltapper.errors import MissingExtra
from wheeltapper.watch.incidents import Incident

TIMEOUT = 10.0  # seconds; a webhook that takes longer is down
TRIES = 5
MOST_LINES = 20


class Notifier:
    """Sends incidents; keeps those that could not be sent for the next time."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = list(urls)
        self._unsent: dict[str, tuple[int, list[Incident]]] = {}
        for url in self.urls:
            if not _is_web(url):
                _apprise()  # said at the start, not at the first incident

    def send(self, incidents: Sequence[Incident]) -> list[str]:
        """What could not be sent, in words."""
        problems = []
        for url in self.urls:
            tries, waiting = self._unsent.pop(url, (0, []))
            batch = [*waiting, *incidents]
            if not batch:
                continue
            try:
                if _is_web(url):
                    _post(url, batch)
                else:
                    _tell(url, batch)
            except (OSError, ValueError) as error:
                problems.append(f"{_place(url)} was not told: {error}")
                if tries + 1 < TRIES:
                    self._unsent[url] = (tries + 1, batch)
        return problems


def text_of(incidents: Sequence[Incident]) -> str:
    lines = [i.line for i in incidents[:MOST_LINES]]
    if len(incidents) > MOST_LINES:
        lines.append(f"and {len(incidents) - MOST_LINES} more")
    return "\n".join(lines)


def _post(url: str, incidents: Sequence[Incident]) -> None:
    text = text_of(incidents)
    body = {"text": text, "content": text, "incidents": [asdict(i) for i in incidents]}
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "User-Agent": "wheeltapper"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        answer.read(1024)


def _tell(url: str, incidents: Sequence[Incident]) -> None:
    service = _apprise().Apprise()
    if not service.add(url):
        raise ValueError("apprise does not know this address")
    if not service.notify(title="wheeltapper", body=text_of(incidents)):
        raise ValueError("apprise could not send it")


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _place(url: str) -> str:
    """An address without what may be secret in it.

    >>> _place("https://hooks.example.com/services/T0/secret")
    'https://hooks.example.com'
    """
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/', 1)[0].rsplit('@', 1)[-1]}" if _is_web(url) else f"{scheme}://..."


def _apprise() -> Any:
    if find_spec("apprise") is None:
        raise MissingExtra("notify", "apprise", "Telling an address that is no http(s) webhook")
    return importlib.import_module("apprise")
