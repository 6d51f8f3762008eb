"""A rate that no recipe has is told, and a factor of a schedule is not."""

from __future__ import annotations

import pytest

from wheeltapper.audit import audit_run
from wheeltapper.testing import make_run


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("optimizer: adamw\nlr: 0.28\n", True),
        ("optimizer: adamw\nlr: 0.01\n", False),
        ("optimizer: sgd\nlr: 0.4\n", False),
        ("optimizer: adam\nlr: 2.0\nlr_scheduler: noam\n", False),
    ],
)
def test_a_rate_beyond_recipes(config: str, told: bool) -> None:
    found = [
        f
        for f in audit_run(make_run({"train/loss": [2.0, 1.0]}, config=config)).findings
        if f.id == "rate-beyond-recipes"
    ]
    assert bool(found) is told
    assert all((f.severity, f.grade) == ("watch", "suspected") for f in found)
