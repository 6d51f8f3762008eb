"""Derived quantities, computed once per run and asked for by parameter name.

    @derived
    def train_loss(run: Run) -> Series: ...

A signal names the study it needs as parameters; `run` is always there. One that cannot be had raises
`Absent` with what is missing, and whatever asked for it answers Unknown with that reason.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from wheeltapper.errors import ContractError
from wheeltapper.finding import Unknown
from wheeltapper.run.model import Run

_REGISTRY: dict[str, Callable[..., Any]] = {}


class Absent(Exception):  # noqa: N818  (an answer, not an error)
    """A signal cannot be computed for this run; `needs` says what would have to be logged."""

    def __init__(self, why: str, needs: Iterable[str] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.needs = tuple(needs)


F = TypeVar("F", bound=Callable[..., Any])


def derived(function: F) -> F:
    """Register a signal under the name of its function."""
    name = function.__name__
    if name in _REGISTRY and _REGISTRY[name].__module__ != function.__module__:
        raise ContractError(f"two study are called {name!r}: {_REGISTRY[name].__module__}, {function.__module__}")
    _REGISTRY[name] = function
    return function


@cache
def registry() -> dict[str, Callable[..., Any]]:
    """Every signal by name; importing the modules of this folder registers them."""
    for info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{info.name}")
    return dict(_REGISTRY)


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


class Study:
    """The study of one run, computed on first use and remembered."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._known: dict[str, Any] = {"run": run}

    def get(self, name: str) -> Any:
        """The signal's value; raises Absent."""
        if name not in self._known:
            self._known[name] = self._compute(name)
        value = self._known[name]
        if isinstance(value, Absent):
            raise value
        return value

    def maybe(self, name: str) -> Any:
        """The signal's value, or None where it cannot be had."""
        try:
            return self.get(name)
        except Absent:
            return None

    def call(self, function: Callable[..., Any], **extra: Any) -> Any:
        """Call a function with the study its parameters name. A parameter that has a default gets None
        when its signal is absent; any other absence is raised."""
        given: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if name in extra:
                given[name] = extra[name]
            elif parameter.default is not inspect.Parameter.empty:
                found = self.maybe(name)
                given[name] = parameter.default if found is None else found
            else:
                given[name] = self.get(name)
        return function(**given)

    def _compute(self, name: str) -> Any:
        function = registry().get(name)
        if function is None:
            near = ", ".join(sorted(registry()))
            raise ContractError(f"there is no signal called {name!r}; there are: {near}")
        try:
            return self.call(function)
        except Absent as absent:
            return absent


def unknown_from(absent: Absent) -> Unknown:
    return Unknown(absent.why, absent.needs)
