from __future__ import annotations

from judged_as import judged_as as judged_as
