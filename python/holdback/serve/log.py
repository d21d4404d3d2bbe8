"""One line of JSON for each request and for what happens to the gateway itself, on standard error.

No line holds a body, a stop, a header or a query: what clients write is theirs, and keys stand in
headers and queries.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("holdback.serve")


def log_event(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log ``event``. Fields that are ``None`` are left out."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(
            level,
            event,
            extra={"fields": {key: value for key, value in fields.items() if value is not None}},
        )


class JsonLines(logging.Formatter):
    """A record as one line of JSON: ``time`` (UTC), ``level``, ``event``, and the fields of
    :func:`log_event`.
    """

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.name != LOGGER.name:
            line["logger"] = record.name
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_json_to_stderr() -> None:
    """Send what the gateway and its server log to standard error, in this form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    LOGGER.setLevel(logging.INFO)
    # Of the server only what goes wrong: it names addresses of clients for every connection
    # otherwise.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
