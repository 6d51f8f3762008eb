"""A guard with everything around it: recorder, signs, notices, and the last steps written when the program dies.

    with guarded(model, optimizer, run_dir="runs/exp1") as guard:
        for batch in loader:
            loss = compute(model, guard.keep(batch))
            loss.backward()
            guard.step(loss)
            optimizer.step()
            optimizer.zero_grad()

The adapters for Hugging Face, Lightning and accelerate are made of this.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.guard.ask import Asker
from wheeltapper.guard.core import Guard, Stop
from wheeltapper.guard.crash import CrashWriter
from wheeltapper.guard.notify import Notifier
from wheeltapper.guard.record import Incident
from wheeltapper.guard.recorder import Recorder

log = logging.getLogger("wheeltapper.guard")


class Session:
    """What `guarded` returns. Its parts are open: .guard, .recorder, .asker, .notifier, .crash (None if not wanted)."""

    def __init__(
        self,
        guard: Guard,
        recorder: Recorder | None,
        asker: Asker | None,
        notifier: Notifier | None,
        crash: CrashWriter | None,
    ) -> None:
        self.guard, self.recorder, self.asker, self.notifier, self.crash = guard, recorder, asker, notifier, crash
        self._closed = False

    def step(self, loss: Any = None, batch_id: Any = None, inputs: Any = None, targets: Any = None) -> None:
        """guard.step: after backward(), before clipping and optimizer.step(); once for every micro-batch."""
        self.guard.step(loss, batch_id, inputs, targets)

    def keep(self, batch: Any) -> Any:
        """Hold on to the batch, so that an incident can be run again without the loader. Returns it."""
        if self.recorder is not None:
            self.guard._guarded("keep", self.recorder.keep, batch)
        return batch

    def metric(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Tell what an evaluation found, as {"val/loss": 1.2}; the signs look at it too."""
        if self.asker is not None:
            self.guard._guarded("metric", self.asker.metric, values, step)

    @property
    def stopping(self) -> str | None:
        """Why training should stop, under policy="stop"."""
        return self.guard.stopping if self.guard.policy == "stop" else None

    @property
    def incidents(self) -> list[Incident]:
        return self.guard.incidents

    def close(self) -> None:
        """Read what is on its way, ask a last time, take off every hook and handler."""
        if self._closed:
            return
        self._closed = True
        self.guard.close()
        for part in (self.asker, self.notifier, self.crash):
            if part is not None:
                with contextlib.suppress(Exception):
                    part.close()

    def __enter__(self) -> Session:
        if self.crash is not None:
            self.crash.install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.crash is not None:
            self.crash.__exit__(kind, error, trace)
        self.close()


def harmless(callback: Callable[..., Any]) -> Callable[..., Any]:
    """For a callback of an adapter (whose `session` is a Session or None): an error in it is told once and the guard goes
    passive; the framework never sees it. What is refused before training, and Stop, pass."""

    @functools.wraps(callback)
    def safe(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return callback(self, *args, **kwargs)
        except (InputError, Stop):
            raise
        except Exception as error:
            if self.session is None:
                log.warning("there is no guard: %s failed; training goes on", callback.__name__, exc_info=error)
            elif self.session.guard.passive is None:
                self.session.guard._fail(callback.__name__, error)
            return None

    return safe


def guarded(
    model: Any,
    optimizer: Any,
    *,
    run_dir: str | Path | None = None,
    policy: str = "watch",
    record: bool = True,
    ask: bool = True,
    total_steps: int | None = None,
    config: Mapping[str, Any] | None = None,
    callback: Callable[[Incident], None] | None = None,
    webhook: str | None = None,
    **options: Any,
) -> Session:
    """Put a guard beside a training. Everything but model and optimizer is optional; `options` go to Guard.

    record: keep the last steps and write a folder for each incident (needs run_dir to write). ask: ask the signs as
    the run grows. As a context manager it also writes the last steps on an exception, Ctrl-C or SIGTERM; otherwise
    it installs no handler.
    """
    guard = Guard(model, optimizer, policy=policy, run_dir=run_dir, **options)
    try:
        recorder = Recorder(guard) if record else None
        notifier = Notifier(guard, callback=callback, webhook=webhook) if callback or webhook else None
    except InputError:
        guard.detach()  # what is refused leaves nothing behind
        raise
    asker = Asker(guard, total_steps=total_steps, config=config) if ask and guard.rank == 0 else None
    crash = CrashWriter(recorder) if recorder is not None and run_dir is not None else None
    return Session(guard, recorder, asker, notifier, crash)
