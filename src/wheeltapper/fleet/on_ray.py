"""Units judged on a Ray cluster, with the same index: what one machine has judged, no other judges again.

The machines must see the folders by the same paths (a shared disk). A worker that dies is replaced by Ray and its units are judged
again; a unit that has cost three workers says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wheeltapper.errors import InputError, MissingExtra
from wheeltapper.fleet.worker import Outcome, Task, judged

RETRIES = 2
AHEAD = 4  # units handed out for each processor: the others wait here, where a break costs nothing


def ray_engine(address: str = "") -> Callable[[Sequence[Task], int], Iterator[Outcome]]:
    """The engine for `scan`. `address`: of a running cluster, or "auto"; empty: one is started on this machine."""
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray", "--engine ray") from None

    def run_tasks(tasks: Sequence[Task], workers: int) -> Iterator[Outcome]:
        if not tasks:
            return
        started = not ray.is_initialized()
        if started:
            _join(ray, address, workers)
        try:
            yield from _outcomes(ray, tasks)
        finally:
            if started:
                ray.shutdown()

    return run_tasks


def _join(ray: Any, address: str, workers: int) -> None:
    try:
        if address:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        else:
            ray.init(address="local", num_cpus=max(1, workers), include_dashboard=False, log_to_driver=False, configure_logging=False)
    except Exception as error:  # whatever Ray raises when nobody answers
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"no Ray cluster answers at {address or 'this machine'}: {first}", do="Start one with `ray start --head`.") from None


def _outcomes(ray: Any, tasks: Sequence[Task]) -> Iterator[Outcome]:
    judge = ray.remote(num_cpus=1, max_retries=RETRIES)(judged)
    most = max(AHEAD, AHEAD * int(ray.cluster_resources().get("CPU", 1)))
    waiting = iter(tasks)
    running: dict[Any, Task] = {}
    while True:
        while len(running) < most and (task := next(waiting, None)) is not None:
            running[judge.remote(task)] = task
        if not running:
            return
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            task = running.pop(reference)
            try:
                yield ray.get(reference)
            except ray.exceptions.RayError as error:
                first = (str(error).splitlines() or [type(error).__name__])[0]
                yield Outcome(task.path, problem=f"no worker of the cluster could read it: {first[:200]}")
