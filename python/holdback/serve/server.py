"""The gateway as a process: sockets, uvicorn, signals, and the demo's upstream beside it."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdback import __version__
from holdback.serve import create_app
from holdback.serve.config import Config, Upstream, split_address
from holdback.serve.connections import limited_protocol
from holdback.serve.demo import Demo, Seen
from holdback.serve.extras import need
from holdback.serve.gateway import Gateway
from holdback.serve.log import log_event, log_json_to_stderr
from holdback.serve.routes import table

KEEP_ALIVE = (
    65  # seconds; a little more than the minute after which load balancers in front usually hang up
)


def serve(config: Config, *, demo: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; open streams may then go on for ``drain_timeout``. Returns the
    exit code.

    Raises ``OSError`` if the address cannot be had,
    :class:`~holdback.serve.extras.MissingExtraError` if a package is missing.
    """
    need("aiohttp")
    need("prometheus_client")
    uvicorn = need("uvicorn")
    log_json_to_stderr()
    _allow_many_sockets()
    with contextlib.ExitStack() as stack:
        if demo:
            config = replace(
                config, upstreams=(*config.upstreams, stack.enter_context(demo_upstream()))
            )
        listener = _listen(*split_address(config.listen))
        # A server stops when asked to; uvicorn would have the signal kill the process after its own
        # shutdown.
        signal.signal(signal.SIGTERM, lambda *_: None)
        gateway = create_app(config)
        settings = _settings(uvicorn, gateway, config.drain_timeout)
        settings.http = limited_protocol(config.request_timeout, config.send_timeout)
        server = _Server(settings, gateway)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        log_event(
            "listening",
            address=f"http://{shown}:{port}",
            version=__version__,
            upstreams=[u.name for u in config.upstreams],
            routes=table(config.upstreams),
        )
        server.run(sockets=[listener])
    log_event("stopped")
    return 0


def _settings(uvicorn: Any, app: Any, drain: float | None) -> Any:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,  # it would write queries, in which some clients send their key
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=None if drain is None else max(1, round(drain)),
    )


def _Server(settings: Any, gateway: Gateway) -> Any:  # noqa: N802 - a class whose base is imported late
    base: Any = need("uvicorn").Server

    class Server(base):  # type: ignore[misc]  # a base that is imported when asked for
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            log_event("draining", in_flight=len(self.server_state.tasks))
            gateway.stopping = True
            await super().shutdown(sockets)

    return Server(settings)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    return listener


def _allow_many_sockets() -> None:
    """A stream takes two sockets, and the usual limit of 1024 files is soon reached: raise it as
    far as the system lets us.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(
            ValueError, OSError
        ):  # macOS calls the hard limit infinite and then refuses it
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def demo_upstream(demo: Demo | None = None) -> Iterator[Upstream]:
    """The canned upstream on a free port of this machine, in a thread of its own, as long as the
    block runs.
    """
    uvicorn = need("uvicorn")

    def told(seen: Seen) -> None:
        said = (
            f"client left after {seen.sent} of {seen.pieces} pieces"
            if seen.client_left
            else f"sent all {seen.pieces} pieces"
        )
        log_event("demo upstream", path=seen.path, seen=said)

    listener = _listen("127.0.0.1", 0)
    server = uvicorn.Server(_settings(uvicorn, demo or Demo(told=told), 1))
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, daemon=True, name="demo upstream"
    )
    thread.start()
    try:
        yield Upstream("demo", f"http://127.0.0.1:{listener.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join()
