"""vLLM: its detokenizer with holdback's stops, for engines of your own build.

```python
from holdback.integrations import vllm

vllm.install()  # before the engine is made, in the process of the front end
```

vLLM looks for every stop in the end of the text after each token, and keeps the longest stop's
length of it back, whatever the text is. With this a token costs one pass over its characters for
any number of stops, and only what may be the beginning of a stop waits, so streams run without that
delay. What ends an answer, and which tokens it has, stays as it is: the stop that ends first, of
several that end together the first of the list; `min_tokens`, `include_stop_str_in_output`, stop
tokens and speculative steps as in vLLM 0.33.
"""

from __future__ import annotations

from typing import Any

import holdback
from holdback import StopStream


def install() -> None:
    """Put holdback's stops into vLLM's detokenizers. A second call changes nothing.

    Raises:
        ImportError: without vLLM.
        RuntimeError: for a vLLM whose detokenizer is made differently.
    """
    from vllm.v1.engine import detokenizer

    base = getattr(detokenizer, "BaseIncrementalDetokenizer", None)
    if not all(callable(getattr(base, name, None)) for name in ("update", "get_next_output_text")):
        raise RuntimeError("this vLLM has no BaseIncrementalDetokenizer to put stops into")
    base.update = _update  # type: ignore[union-attr]  # it has one, as was just asked
    base.get_next_output_text = _get_next_output_text  # type: ignore[union-attr]  # likewise


def _stream_of(detokenizer: Any) -> StopStream[str]:
    """The stream of this request's stops, made with its first token."""
    stream: StopStream[str] | None = detokenizer.__dict__.get("_holdback")
    if stream is None:
        stops = holdback.compile(detokenizer.stop, tie="first")
        stream = stops.stream(include_stop=bool(detokenizer.include_stop_str_in_output))
        if detokenizer.min_tokens:
            stream.disarm()
        detokenizer._holdback = stream
    return stream


def _update(self: Any, new_token_ids: list[int], stop_terminated: bool) -> str | None:
    """Decode the tokens of a step up to the one that completes a stop; the stop, if one did.

    `output_text` is what may be sent; what is held back is in the stream.
    """
    stream = _stream_of(self)
    # The text of a stop token is only looked at when it is to be part of the output.
    unread = new_token_ids[-1:] if stop_terminated and not self.include_stop_str_in_output else []
    for token_id in new_token_ids[: len(new_token_ids) - len(unread)]:
        self.token_ids.append(token_id)
        emit, match = stream.feed(self.decode_next(token_id))
        self.output_text += emit
        if match is not None:
            return str(match.stop)  # the tokens after it are dropped
        _arm(self, stream)
    self.token_ids.extend(unread)
    _arm(self, stream)
    return None


def _arm(self: Any, stream: StopStream[str]) -> None:
    """A stop counts if a token after the first `min_tokens` completes it."""
    if self.min_tokens and self.num_output_tokens() >= self.min_tokens:
        stream.arm()


def _get_next_output_text(self: Any, finished: bool, delta: bool) -> str:
    """All text that may be sent, or what is new of it; at the end what was held back too."""
    if finished and (stream := _stream_of(self)).match is None:
        self.output_text += stream.flush()
    if not delta:
        return str(self.output_text)
    begin, self._last_output_text_offset = self._last_output_text_offset, len(self.output_text)
    return str(self.output_text[begin:])
