"""The lm-evaluation-harness, with one rule for all stops: `import holdback.integrations.lm_eval as
stops; stops.register()`.

The harness sends at most four stops to a chat API and never applies the rest; its local
post-processing splits by each stop in turn, so the order of the list decides what is left
(`"xab"` by `["b", "ab"]` is `"xa"`, by `["ab", "b"]` it is `"x"`). Here the first stop
that ends in the text cuts it, as a model server would have done.

* `register` adds the filter `truncate_at_stops`, for the `filter_list` of a task:

  ```yaml
  filter_list:
    - name: stops
      filter:
        - function: truncate_at_stops
          until: ["\\n\\nQ:", "</answer>", "###"]
        - function: take_first
  ```

* `postprocess_generated_text` has the signature of the harness's own function, for a model
  class of one's own or, by `patch`, for all that use it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import holdback

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "truncate_at_stops"


def truncate_responses(responses: Iterable[Any], stops: Any, **options: Any) -> list[Any]:
    """Lists of generated texts, of any depth, cut; what is no text stays what it is.

    >>> truncate_responses([["4\\n\\nQ: why", "5"], ["6"]], ["\\n\\nQ:"])
    [['4', '5'], ['6']]
    """
    compiled = (
        stops if isinstance(stops, holdback.StopSet) else holdback.compile(_without_empty(stops))
    )

    def cut(value: Any) -> Any:
        if isinstance(value, str):
            return compiled.truncate(value, **options)[0]
        if isinstance(value, list | tuple):
            return type(value)(map(cut, value)) if type(value) in (list, tuple) else value
        return value

    return [cut(response) for response in responses]


def postprocess_generated_text(
    generation: str, stop: list[str] | str | None, think_end_token: str | None
) -> str:
    """The same job as the harness's function of this name, by one rule.

    >>> postprocess_generated_text("xab", ["b", "ab"], None), postprocess_generated_text("xab", ["ab", "b"], None)
    ('x', 'x')
    >>> postprocess_generated_text("so\\n\\nI think</think> 4\\n\\nQ: next", ["\\n\\n"], "</think>")
    '4'

    Args:
        generation: what the model wrote.
        stop: the stops; an empty one is ignored, as the harness does (a model without an end token has "" for it).
        think_end_token: text up to its last occurrence is reasoning and is dropped, with the white space after it.
    """
    if think_end_token:
        generation = generation.rpartition(think_end_token)[2].lstrip()
    return holdback.compile(_without_empty(stop)).truncate(generation)[0]


def register() -> None:
    """Make `truncate_at_stops` known to the harness. A second call does nothing.

    The filter takes `until` (a stop or a list) and the options of
    `holdback.StopSet.truncate`.

    Raises:
        ImportError: if the harness is not installed.
    """
    registry, base = _harness()

    if NAME in registry.FILTER_REGISTRY:  # also the name that older releases know
        return

    @registry.register_filter(NAME)
    class TruncateAtStops(base):  # type: ignore[misc, valid-type, unused-ignore]  # imported when asked for
        """Cuts every response at the first stop of `until`."""

        def __init__(self, until: Any, **options: Any) -> None:
            self.stops = holdback.StopSet(_without_empty(until))
            self.options = options

        def apply(self, resps: Iterable[Any], docs: list[dict[str, Any]]) -> list[Any]:
            """The responses of all instances, cut, in their order."""
            return truncate_responses(resps, self.stops, **self.options)


def patch() -> list[str]:
    """Put our function in the place of the harness's, in every harness module that has it; gives
    their names.

    Model modules bind it when they are imported, so call this after they are.
    """
    import lm_eval.models.utils as home

    theirs = home.postprocess_generated_text
    patched: list[str] = []
    if (
        theirs is postprocess_generated_text
    ):  # done before; modules imported since then have bound ours
        return patched
    for name, module in list(sys.modules.items()):
        if (
            name.startswith("lm_eval.")
            and getattr(module, "postprocess_generated_text", None) is theirs
        ):
            module.postprocess_generated_text = postprocess_generated_text  # type: ignore[attr-defined]  # of a module known by name only
            patched.append(name)
    return patched


def _without_empty(stops: Any) -> list[str]:
    listed = [stops] if isinstance(stops, str) else list(stops or ())
    return [stop for stop in listed if stop]


def _harness() -> tuple[Any, Any]:
    try:
        from lm_eval.api import registry
        from lm_eval.api.filter import Filter
    except ImportError as error:
        raise ImportError("this needs the lm-evaluation-harness: pip install lm_eval") from error
    return registry, Filter
