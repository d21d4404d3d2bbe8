"""Stop sequences on a live stream: exact hold-back, the first stop among many, any chunking.

>>> import holdback
>>> stops = holdback.StopSet(["</answer>", "\\n\\nUser:"])
>>> stream = stops.stream()
>>> stream.feed("It is 42.</ans")
('It is 42.', None)
>>> emit, match = stream.feed("wer> and more")
>>> emit, match.stop, match.start, match.rest
('', '</answer>', 9, ' and more')
"""

from holdback._core import StopMatch, StopSet, StopStream, __version__, compile, feed_batch
from holdback._lazy import __dir__ as __dir__
from holdback._lazy import __getattr__ as __getattr__

TYPE_CHECKING = (
    False  # true for a type checker; the one of `typing` would double the time of the import
)
if TYPE_CHECKING:
    from holdback import providers, vocabularies, wire
    from holdback._explain import Explanation, explain
    from holdback._lint import Finding, lint
    from holdback._trace import Trace, trace
    from holdback.criteria import Criterion, StoppingCriteria
    from holdback.endings import FenceEnd, JsonEnd, Repetition
    from holdback.finish import AmbiguousFinish, Finish, ParsedFinish
    from holdback.generation import Generation, step_batch
    from holdback.providers import Plan

__all__ = [
    "AmbiguousFinish",
    "Criterion",
    "Explanation",
    "FenceEnd",
    "Finding",
    "Finish",
    "Generation",
    "JsonEnd",
    "ParsedFinish",
    "Plan",
    "Repetition",
    "StopMatch",
    "StopSet",
    "StopStream",
    "StoppingCriteria",
    "Trace",
    "__version__",
    "compile",
    "explain",
    "feed_batch",
    "lint",
    "providers",
    "step_batch",
    "trace",
    "vocabularies",
    "wire",
]
