"""The errors a user may meet. Each says what happened, where, and what to do.

    WheeltapperError
    ├── InputError          a path, a file or an option we were given cannot be used
    │   ├── NothingToRead   the path holds nothing that looks like a run
    │   ├── Damaged         a file is cut, corrupt or over a limit; what could be read is kept
    │   └── RefusedEdit     a setting cannot be changed as asked: other value, no such key, nothing to change
    ├── MissingExtra        a part of the tool needs an optional dependency
    └── ContractError       one of our own files (a sign, a cause, a reader) breaks its contract

The command line prints the message and exits with 2; it never shows a traceback for these.
"""

from __future__ import annotations


class WheeltapperError(Exception):
    """The root: `what` happened, `where` (file:line, or None), `do` next."""

    def __init__(self, what: str, *, where: str | None = None, do: str | None = None) -> None:
        self.what = what
        self.where = where
        self.do = do
        super().__init__(self.text())

    def text(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n{self.do}" if self.do else head


class InputError(WheeltapperError):
    """What we were given cannot be used."""


class NothingToRead(InputError):  # noqa: N818
    """The path holds nothing that looks like a training run."""


class Damaged(InputError):  # noqa: N818
    """A file is cut, corrupt or over a limit."""


class RefusedEdit(InputError):  # noqa: N818
    """A change of a setting that would not do what it says, so it is not made."""


class MissingExtra(WheeltapperError):  # noqa: N818
    """An optional dependency is not installed."""

    def __init__(self, extra: str, package: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs {package}, which is not installed.",
            do=f"Install it with: pip install {package}",  # by its own name: it works with and without a release of ours
        )
        self.extra = extra


class ContractError(WheeltapperError):
    """A sign, cause, reader or dialect of ours is malformed; a bug in Wheeltapper, not in the run."""
