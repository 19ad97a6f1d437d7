"""Posting, a community posting service."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posting.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """Import the app factory on first use, because pytest loads `posting.testing` in every run."""
    if name == "create_app":
        from posting.app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
