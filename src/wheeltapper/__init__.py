"""Wheeltapper: strike each wheel of a training run and listen.

The public face. Names are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["WheeltapperError", "__version__", "check", "compare", "diagnose", "fix", "followup", "read", "save_fix"]

if TYPE_CHECKING:
    from wheeltapper.api import check, compare, diagnose, fix, followup, read, save_fix
    from wheeltapper.errors import WheeltapperError


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext wheeltapper`"""
    from wheeltapper.notebook import load

    load(shell)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'wheeltapper' has no attribute {name!r}")
    if name == "WheeltapperError":
        from wheeltapper.errors import WheeltapperError

        return WheeltapperError
    from wheeltapper import api

    return getattr(api, name)
