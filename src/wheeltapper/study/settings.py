"""What the settings say by themselves."""

from __future__ import annotations

from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.ranges import Beyond, settings_beyond
from wheeltapper.study import derived


@derived
def out_of_range(knobs: Knobs) -> tuple[Beyond, ...]:
    """Settings outside their working range, farthest first."""
    return tuple(settings_beyond(knobs))
