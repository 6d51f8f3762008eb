"""One thread: the models are tiny, and threads of a busy machine wait for each other."""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)
