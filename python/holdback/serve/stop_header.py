"""The stops that fired, as the value of `x-holdback-stop`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdback.wire import WireMatch

MAX_NAMED = 4096
"""Characters of it at the most: many clients refuse an answer with a longer header."""


def stop_header(matches: Sequence[WireMatch], choices: int) -> str | None:
    r"""Each stop as a JSON string in ASCII, with its choice if there are several.

    `None` without a stop, and for more than `MAX_NAMED` characters.

    >>> from holdback.wire import Cutter
    >>> cutter = Cutter("ollama.generate", ["\n\n"])
    >>> _ = cutter.feed(b'{"response":"a\\n\\n","done":false}\n')
    >>> print(stop_header(cutter.matches, 1))
    "\n\n"
    """
    named = ", ".join(
        json.dumps(match.stop) + (f";choice={match.choice}" if choices > 1 else "")
        for match in matches
        if not match.reasoning or len(matches) == 1
    )
    return named if 0 < len(named) <= MAX_NAMED else None
