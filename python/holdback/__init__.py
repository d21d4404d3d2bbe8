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

__all__ = ["StopMatch", "StopSet", "StopStream", "__version__", "compile", "feed_batch"]
