"""Tell someone: a callback, a web hook. (The log and the journal in the run folder are the guard's own.)

Nothing here may delay or stop a training: the web hook is called from a daemon thread with a short queue and a
timeout, what cannot be delivered is dropped and counted, and a failure is logged once.
"""

from __future__ import annotations

import json
import logging
import queue
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from wheeltapper.errors import InputError
from wheeltapper.guard.record import Incident
from wheeltapper.guard.recorder import jsonable

log = logging.getLogger("wheeltapper.guard")

LEVELS = ("note", "early", "warning", "error")
WAITING = 64  # messages not yet sent; more at once is a storm, of which the first ones tell enough


class Notifier:
    """Attach to a guard; incidents of at least `least` are passed on.

    callback(incident) runs in the training's thread and should be quick. webhook: an http(s) address that takes JSON with
    "text" (as Slack, Mattermost and others read it) and "incident".
    """

    def __init__(
        self,
        guard: Any,
        *,
        callback: Callable[[Incident], None] | None = None,
        webhook: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 5.0,
        least: str = "early",
        name: str | None = None,
    ) -> None:
        if least not in LEVELS:
            raise InputError(f"least={least!r} is not known.", do=f"Use one of: {', '.join(LEVELS)}.")
        if webhook is not None and urlsplit(webhook).scheme not in ("http", "https"):
            raise InputError("the web hook must be an http or https address.")
        self.callback, self.webhook, self.headers, self.timeout = callback, webhook, dict(headers or {}), timeout
        self.least, self.name = least, name or socket.gethostname()
        self.dropped = 0
        self._queue: queue.Queue[Incident | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._failed: set[str] = set()
        guard.listen(incident=self.tell)

    def tell(self, incident: Incident) -> None:
        if LEVELS.index(incident.severity if incident.severity in LEVELS else "error") < LEVELS.index(self.least):
            return
        if self.webhook is not None:
            self._post(incident)
        if self.callback is not None:
            try:
                self.callback(incident)
            except Exception as error:
                self._once(f"the callback raised {error}", error)

    def close(self, wait: float = 5.0) -> None:
        """Give what is under way a moment."""
        if self._thread is not None:
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                return
            self._thread.join(timeout=wait)
            self._thread = None

    def _post(self, incident: Incident) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wheeltapper-notify", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(incident)
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        while (incident := self._queue.get()) is not None:
            body = {
                "text": f"{self.name}: step {incident.step}: {incident.text}",
                "incident": jsonable(incident.as_dict()),
            }
            for attempt in (1, 2):
                try:
                    request = urllib.request.Request(
                        self.webhook or "",
                        data=json.dumps(body, allow_nan=False).encode(),
                        headers={"Content-Type": "application/json", **self.headers},
                        method="POST",
                    )
                    with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                        answer.read(1024)
                    break
                except (OSError, ValueError) as error:  # URLError and time-outs are OSErrors
                    if attempt == 2:
                        self.dropped += 1
                        self._once("the web hook could not be reached", error)
                    else:
                        time.sleep(min(1.0, self.timeout))

    def _once(self, what: str, error: Exception) -> None:
        # Never the address: it often holds a secret.
        if what not in self._failed:
            self._failed.add(what)
            log.warning("%s (%s); training goes on", what, type(error).__name__)
