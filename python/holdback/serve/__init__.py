"""A gateway between clients and models: any stops, in any of ten dialects, on upstreams that take
few stops or none.

``holdback serve`` runs it; docs/serve.md is its manual. As an ASGI application under a server of
your own:

* :func:`create_app` makes one from a :class:`~holdback.serve.config.Config`;
* :func:`app` makes one from the TOML file that the environment variable ``HOLDBACK_CONFIG`` names,
  for command lines such as ``uvicorn --factory holdback.serve:app`` or ``granian --interface asgi
  --factory holdback.serve:app``.

What happens to a request (``exchange``), file by file: ``inbound`` reads it, ``routes`` finds the
dialect and the upstream, ``_requests`` reads the stops and what else matters and says which are
sent and which enforced, ``planning`` what the configuration adds to that, ``upstream`` opens the answer, ``answer`` brings it to the client
(``outbound``) as it is, cut, or put together of a stream (``dialects``), and ``record`` tells the log
and the metrics.

It needs the extra ``holdback[serve]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdback.serve.config import Config
    from holdback.serve.gateway import Gateway

__all__ = ["app", "create_app"]


def create_app(config: Config) -> Gateway:
    """The gateway as an ASGI application.

    Its HTTP client opens with the server's lifespan, or with the first request.
    """
    from holdback.serve.gateway import Gateway

    return Gateway(config)


def app() -> Gateway:
    """The gateway that the TOML file named by ``HOLDBACK_CONFIG`` describes.

    Raises ``ValueError`` if the variable is not set or the file cannot be used; it says why.
    """
    import os

    from holdback.serve.config import read_toml
    from holdback.serve.log import log_json_to_stderr

    name = os.environ.get("HOLDBACK_CONFIG")
    if not name:
        raise ValueError("HOLDBACK_CONFIG is not set: it names the TOML file of the gateway")
    log_json_to_stderr()
    return create_app(read_toml(name))
