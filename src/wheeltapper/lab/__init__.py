"""The lab: four real training systems in small, healthy or with a named fault whose truth is known.

`systems/` holds the trainings (each a script in the manner of the original it stands for), `faults/` the
tables of faults and of benign oddities, `launch.py` runs one, `corpus.py` many, `score.py` measures
`diagnose` on them. The tables can be listed without torch; running needs the extra `lab`.
"""

from __future__ import annotations

from importlib.util import find_spec

from wheeltapper.errors import MissingExtra


def need_torch() -> None:
    """Say plainly what to install, before a lab module imports torch."""
    if find_spec("torch") is None:
        raise MissingExtra("lab", "torch", "Running a training of the lab")
