"""Which upstreams refuse to stream where the gateway asks them to, remembered once they have."""

from __future__ import annotations

from collections import OrderedDict

from holdback.serve.routes import Target

MAX_REMEMBERED = 1024


class Unstreamed:
    """Routes on which a stream, or its usage option, was refused, and the client's own request was
    not. One upstream may serve many models, so the model belongs to the route.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str | None, str | None], None] = OrderedDict()

    def add(self, target: Target, model: str | None) -> None:
        """Remember it; the oldest is forgotten."""
        self._known[target.upstream.name, target.dialect, model] = None
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def __contains__(self, route: tuple[Target, str | None]) -> bool:
        target, model = route
        return (target.upstream.name, target.dialect, model) in self._known
