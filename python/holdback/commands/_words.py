"""Messages of the library in the words of the command line: an option is named as it is typed here."""

from __future__ import annotations

import re

OPTIONS = {
    "min_chars (min_tokens)": "--min-chars",
    "ignore_inside": "--ignore-inside",
    "start_inside": "--start-inside",
    "min_chars": "--min-chars",
    "include_stop": "--include-stop",
    "atomic": "--atomic",
    "Add yours with register()": "Add yours with --facts FILE",
    "let holdback.providers.plan split the list: it says what to send and what to enforce here": (
        "put `holdback serve` in front: it sends what the system takes and enforces the rest"
    ),
    "plan(..., must_name=True) enforces them here, where it is known": (
        "`holdback serve` keeps them, so that the answer says which one it was"
    ),
}
"""What the library says, and what it is called here."""

_KNOWN = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?!\w)" for name in OPTIONS))


def in_options(message: str) -> str:
    """`message` with the options of the command line.

    >>> in_options("min_chars must not be negative")
    '--min-chars must not be negative'
    """
    return _KNOWN.sub(lambda found: OPTIONS[found[0]], message)
