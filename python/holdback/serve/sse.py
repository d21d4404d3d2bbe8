"""The events of a cut stream, read back as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdback._json import load_json
from holdback._sse import payloads


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON object of each frame in ``data``; what is none (``[DONE]``) is left out.

    Raises `ValueError` for what cannot be read.
    """
    for payload in payloads(data):
        if payload.startswith(b"{"):
            found = load_json(payload)
            if isinstance(found, dict):
                yield found
