"""The executable specification: the same surface as ``holdback``, as slow and as obvious as
possible.

Every rule is written down the way ``docs/semantics.md`` states it, next to the number of its
section, in plain standard-library Python. It keeps the whole text of a stream and decides
everything by looking at all of it. Use it to check ``holdback``, or to read what a sentence of the
contract means; never use it to serve. It does not import the compiled module, and the package never
falls back to it.

>>> from holdback import reference
>>> stream = reference.StopSet(["</answer>", "END"]).stream()
>>> stream.feed("42</ans")
('42', None)
>>> stream.held
'</ans'
>>> emit, match = stream.feed("wer> and so on")
>>> emit, match.stop, match.start, match.rest
('', '</answer>', 2, ' and so on')

| file | sections |
| --- | --- |
| ``stops.py`` | 1 (equal and unreachable stops), 5 (bad stops) |
| ``options.py`` | the options of a stream: what they may be (2, 7, 8, 9) |
| ``decode.py`` | 3: from chunks to characters |
| ``scan.py`` | 1, 7, 8: which stop ends the stream; 2 and 7: what is held for stops |
| ``whole.py`` | 9: what is held for markers |
| ``stream.py`` | 2, 4, 5, 6: one response |
| ``cutting.py`` | 10: cutting an iterator |
| ``pattern.py``, ``syntax.py``, ``words.py`` | 11.1, 11.5, 11.6: patterns, and which texts are their words |
| ``scan_patterns.py`` | 11.2: which stop ends the stream if there are patterns |
| ``rules.py``, ``cover.py``, ``filter.py`` | the filter, whose contract is ``docs/filter.md`` |
| ``running.py`` | 11.3: what is held then, by trying every continuation |
"""

from __future__ import annotations

from .cutting import AsyncCut, Cut
from .filter import Filter, FilterStream
from .pattern import Pattern
from .rules import Between, Edit, Rule
from .stops import StopSet, compile  # noqa: A004 - named like re.compile
from .stream import StopMatch, StopStream, feed_batch

__all__ = [
    "AsyncCut",
    "Between",
    "Cut",
    "Edit",
    "Filter",
    "FilterStream",
    "Pattern",
    "Rule",
    "StopMatch",
    "StopSet",
    "StopStream",
    "compile",
    "feed_batch",
]
