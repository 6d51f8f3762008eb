"""What a reader keeps of a file that still grows, so that the next look reads only what is new.

A reader of a format that is only ever appended to takes `tail` as the second argument of `read`. Without one it reads
a file once, from start to end. With one it goes on where the last look stopped: whole lines or records only, for the
last may be half written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Tail:
    """State by name. It is made by the reader at the first look and found again at the next."""

    kept: dict[str, Any] = field(default_factory=dict)
    ended: bool = False  # the writer is gone: an unfinished last line is all there will be

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """
        >>> tail = Tail()
        >>> tail.keep("log", list).append(1); tail.keep("log", list)
        [1]
        """
        if name not in self.kept:
            self.kept[name] = make()
        found: T = self.kept[name]
        return found

    def forget(self, name: str) -> None:
        """Begin anew: what was kept was read under an assumption that no longer holds."""
        self.kept.pop(name, None)
