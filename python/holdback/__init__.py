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
from holdback._later import __dir__ as __dir__
from holdback._later import __getattr__ as __getattr__

TYPE_CHECKING = (
    False  # true for a type checker; the one of `typing` would double the time of the import
)
if TYPE_CHECKING:
    from holdback import providers, vocabularies
    from holdback.criteria import Criterion, Generation, StoppingCriteria, step_batch
    from holdback.explaining import Explanation, explain
    from holdback.finish import Finish
    from holdback.linting import Finding, lint
    from holdback.providers import Plan
    from holdback.tracing import Trace, trace
    from holdback.vocabularies import AmbiguousFinish, ParsedFinish

__all__ = [
    "AmbiguousFinish",
    "Criterion",
    "Explanation",
    "Finding",
    "Finish",
    "Generation",
    "ParsedFinish",
    "Plan",
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
]
