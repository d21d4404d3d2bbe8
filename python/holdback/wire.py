"""Stops on a provider's stream, bytes to bytes: any stops on any model, whatever its API takes.

>>> from holdback.wire import Cutter
>>> cutter = Cutter("ollama.generate", ["Observation:", "\\n\\nUser:"])
>>> cutter.feed(b'{"response":"Paris.\\\\nObs","done":false}\\n')
b'{"response":"Paris.\\\\n","done":false}\\n'
>>> cutter.feed(b'{"response":"ervation: none","done":false}\\n')
b'{"response":"","done":true,"done_reason":"stop"}\\n'
>>> cutter.ended, cutter.matches[0].stop
(True, 'Observation:')

A frame that needs no change leaves as the very bytes that came in. What is changed, made and
refused, dialect by dialect, is told in docs/wire.md.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ._core import Cutter, WireMatch

__all__ = ["DIALECTS", "Cutter", "Dialect", "WireError", "WireMatch"]

Dialect: TypeAlias = Literal[
    "openai.chat",
    "openai.completions",
    "openai.responses",
    "anthropic.messages",
    "gemini",
    "ollama.chat",
    "ollama.generate",
    "llama.cpp",
    "tgi",
    "cohere.chat",
]
"""A provider's way of sending an answer."""

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
"""The names of all dialects."""


class WireError(ValueError):
    """A stream, or a body, that cannot be cut: it cannot be read, or is beyond a limit. The message
    says what, where, and the limit.

    * `output`: bytes of this call that may still be sent on: the frames before the one at fault,
      and what was held.
    * `frame`: the number of that frame, from 0; comments and blank lines count too.
    * `offset`: where it begins, in bytes from the beginning of the stream.
    """

    output: bytes
    frame: int
    offset: int

    def __init__(self, message: str, output: bytes = b"", frame: int = 0, offset: int = 0) -> None:
        super().__init__(message, output, frame, offset)
        self.output, self.frame, self.offset = output, frame, offset

    def __str__(self) -> str:
        return str(self.args[0])


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
