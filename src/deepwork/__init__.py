"""DeepWork: a server that leads AI coding agents through multi-step work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluggy import HookimplMarker

    hookimpl: HookimplMarker

__version__ = "1.0.0.dev0"
__all__ = ["__version__", "hookimpl"]


def __getattr__(name: str) -> Any:
    """Import pluggy only when hooks are declared: `deepwork --version` does without."""
    if name != "hookimpl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pluggy import HookimplMarker

    globals()["hookimpl"] = marker = HookimplMarker("deepwork")
    return marker
