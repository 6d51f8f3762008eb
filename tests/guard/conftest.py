"""One thread: the models are tiny, and threads of a busy machine wait for each other. No compiler is started but by the test
that is about it."""

from __future__ import annotations

import contextlib
import os

os.environ.setdefault("WHEELTAPPER_NATIVE", "0")

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)
