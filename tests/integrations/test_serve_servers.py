"""The gateway under servers that an operator may have already, started as docs/serve.md says."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from serving import DEADLINE, PATHS, STOPS, UP_TO_MATCH, Canned, request

COMMANDS = {
    "uvicorn": ["-m", "uvicorn", "--factory", "holdback.serve:app", "--no-access-log"],
    "granian": ["-m", "granian", "--interface", "asgi", "--factory", "holdback.serve:app"],
}


@contextlib.contextmanager
def started(server: str, upstream: str, folder: Path) -> Iterator[int]:
    """The port of the gateway under that server."""
    config = folder / "serve.toml"
    config.write_text(f'[upstreams.up]\nurl = "{upstream}"\n')
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [sys.executable, *COMMANDS[server], "--port", str(port)]
    environment = {**os.environ, "HOLDBACK_CONFIG": str(config)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(1000):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), DEADLINE).close()
                    break
                assert process.poll() is None, "it ended at once"
                threading.Event().wait(0.05)
            yield port
        finally:
            process.terminate()


@pytest.mark.parametrize("server", COMMANDS)
def test_it_cuts_and_hangs_up(server: str, tmp_path: Path) -> None:
    pytest.importorskip(server, reason="it is not installed: pip install --group dev-integrations")
    with Canned() as canned, started(server, canned.url, tmp_path) as port:
        for dialect in PATHS:
            for stream in (True, False):
                path, body = request(dialect, STOPS, stream=stream)
                with contextlib.closing(
                    HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
                ) as connection:
                    connection.request("POST", path, json.dumps(body))
                    answer = connection.getresponse()
                    assert answer.status == 200
                    assert re.search(rb"The( capital|\")", answer.read())
                seen = canned.wait()
                assert (dialect, seen.sent, seen.client_left) == (dialect, UP_TO_MATCH, True)
        canned.quick = 2
        path, body = request("openai.chat", STOPS, stream=True)
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        assert response.read1(1)
        response.close()
        connection.close()  # the client hangs up, and takes the upstream along
        seen = canned.wait()
        assert (seen.sent, seen.client_left) == (2, True)
