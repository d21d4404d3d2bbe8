"""What the extra ``holdback[serve]`` brings, imported when it is needed and asked for by name when
it is not there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """A package of the extra is not installed; the message says what to type."""


def need(module: str) -> Any:
    """Import ``module``.

    Raises :class:`MissingExtraError` if it, or something it needs, is not there.
    """
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise MissingExtraError(
            f"holdback serve needs the package {missing!r}: pip install 'holdback[serve]'",
            name=missing,
        ) from error
