"""transformers' `generate`: stop strings that cut exactly, stream, and end each row of a batch by
itself.

```python
from holdback.integrations.transformers import Stopping

stopping = Stopping(tokenizer, ["\\n\\nUser:", "###"])
for text in stopping.stream(model, **inputs, max_new_tokens=512):       # generates in a thread
    print(text, end="")
```

or, without a stream, `model.generate(**inputs, stopping_criteria=[stopping])` and then
`stopping.texts`, `stopping.finishes`.

`generate(stop_strings=...)` leaves the stop in the output, with whatever else its last token
brought; here the text ends in front of it. One object is criterion and streamer at once: since
transformers 5 the criteria see a token before the streamer does, so the criterion decodes it, and
the streamer only passes on what came out. torch is the caller's, and so is the tokenizer.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

from holdback import Finish, Generation, StoppingCriteria

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdback import StopSet


class Stopping:
    """A criterion and a streamer for `generate`, sampling or greedy, with any batch size. Beams are
    not supported. Used for another call it starts afresh; `texts` and `finishes` are of the last.

    Args:
        tokenizer: what turns token ids into text by `decode(ids, skip_special_tokens=True)`.
        stop: a compiled set, or the stops.
        prompt_length: tokens in front of the first generated one; by default what the first call shows, less one. To be given where
            a call brings several tokens (assisted generation).
        eos_token_ids: the model's end tokens, by default the tokenizer's.
        options: those of `holdback.StoppingCriteria`: `min_tokens`, `max_tokens`, `stop_token_ids`, `ignore_inside`, ...

    Raises:
        ValueError: for bad stops or options.
    """

    def __init__(
        self,
        tokenizer: Any,
        stop: StopSet | str | Iterable[str] | None = None,
        *,
        prompt_length: int | None = None,
        eos_token_ids: int | Iterable[int] | None = None,
        **options: Any,
    ) -> None:
        if eos_token_ids is None:
            eos_token_ids = getattr(tokenizer, "eos_token_id", None)
        self.criteria = StoppingCriteria(stop=stop, eos_token_ids=eos_token_ids, **options)
        self.tokenizer = tokenizer
        self.prompt_length = prompt_length
        self._begin()

    def _begin(self) -> None:
        """Forget the call before."""
        self.rows: list[_Row] = []
        self._prompts: list[list[int]] = []
        self._seen = 0  # tokens of each row that were judged, the prompt included
        self._over = False  # whether this call is known to have ended
        self._sent: queue.SimpleQueue[tuple[int, str] | BaseException | None] = queue.SimpleQueue()
        self._puts = 0
        self._left = False

    @property
    def texts(self) -> list[str]:
        """The text of each row, up to its stop.

        While a row goes on, what is held back is in it too.
        """
        return [
            row.text + row.run.held + row.detokenizer.rest() if row.run.finish is None else row.text
            for row in self.rows
        ]

    @property
    def finishes(self) -> list[Finish | None]:
        """How each row ended; `None` if `generate` ended it (a length, an end token that we were
        not reported).

        `finish.tokens` says how many generated ids count, those of the stop included.
        """
        return [row.run.finish for row in self.rows]

    # As a criterion.

    def __call__(self, input_ids: Any, scores: Any = None, **_: Any) -> Any:
        """Judge the tokens that are new. Gives a boolean tensor: which rows are done.

        Raises:
            ValueError: if rows were reordered, as beam search does.
        """
        ids = input_ids.tolist()
        if self._is_another_call(ids):
            self._begin()
        if not self.rows:
            self._seen = len(ids[0]) - 1 if self.prompt_length is None else self.prompt_length
            self._prompts = [tokens[: self._seen] for tokens in ids]
            self.rows = [_Row(self.criteria.start(), self.tokenizer) for _ in ids]
        for at, (row, tokens) in enumerate(zip(self.rows, ids, strict=True)):
            if (
                row.run.finish is None
                and row.last is not None
                and tokens[self._seen - 1] != row.last
            ):
                raise ValueError(
                    "the rows were reordered: beam search needs a run for each hypothesis"
                )
            for token in tokens[self._seen :]:
                if emit := row.step(token):
                    self._sent.put((at, emit))
        self._seen = len(ids[0])
        done = [self._left or row.run.finish is not None for row in self.rows]
        self._over = all(done)
        return input_ids.new_tensor(done).bool()

    def _is_another_call(self, ids: list[list[int]]) -> bool:
        """Whether these rows are not the ones of the last look, some tokens later."""
        if not self.rows:
            return False
        more = len(ids[0]) - self._seen
        return (
            self._over
            or len(ids) != len(self.rows)
            or more < 1
            or (more > 1 and self.prompt_length is None)
            or any(
                tokens[: len(prompt)] != prompt
                for tokens, prompt in zip(ids, self._prompts, strict=True)
            )
        )

    # As a streamer.

    def put(self, value: Any) -> None:
        """Called by `generate` with the prompt, then with each token, which was judged before.

        Raises:
            RuntimeError: if this object is not also among the criteria of the call.
        """
        if self._over:
            self._begin()
        self._puts += 1
        if self._puts > 1 and not self.rows:
            raise RuntimeError(
                "a Stopping streams what it judges: give generate stopping_criteria=[stopping] too"
            )

    def end(self) -> None:
        """Called by `generate` at the end: what is still held goes out."""
        for at, row in enumerate(self.rows):
            if row.run.finish is None and (rest := row.flush()):
                self._sent.put((at, rest))
        self._sent.put(None)
        self._over = True

    # Both, with a thread.

    def stream(self, model: Any, **arguments: Any) -> Iterator[Any]:
        """Run `model.generate(**arguments)` in a thread and yield the text as it comes; for
        batches, pairs of row and text.

        An error in `generate` is raised here, after the text that came before it. A caller that
        stops reading (closes this iterator) ends the generation with the next token.
        """
        self._begin()

        def generate() -> None:
            try:
                model.generate(**arguments, stopping_criteria=[self], streamer=self)
            except BaseException as error:
                self._sent.put(error)

        thread = threading.Thread(target=generate, daemon=True)
        thread.start()
        try:
            while (sent := self._sent.get()) is not None:
                if isinstance(sent, BaseException):
                    raise sent
                yield sent if len(self.rows) > 1 else sent[1]
        finally:
            self._left = True
            thread.join()


class _Row:
    """One sequence: its run, its text so far, and what turns its tokens into text."""

    def __init__(self, run: Generation, tokenizer: Any) -> None:
        self.run = run
        self.detokenizer = _Detokenizer(tokenizer)
        self.text = ""
        self.last: int | None = None

    def step(self, token: int) -> str:
        if self.run.finish is not None:
            return ""  # the padding of a row that is done
        self.last = token
        emit, finish = self.run.step(token, self.detokenizer.step(token))
        if finish is not None and finish.match is None and (rest := self.detokenizer.rest()):
            emit += rest  # half a character at the end of the row
        self.text += emit
        return emit

    def flush(self) -> str:
        rest = self.detokenizer.rest()
        emit, _ = self.run.step(None, rest) if rest else ("", None)
        held = self.run.held
        self.detokenizer.clear()
        self.text += emit  # what is held is added by `texts`
        return emit + held


class _Detokenizer:
    """Token ids to text, one by one: a token's text is what it adds to that of the tokens before
    it.

    Text that ends in U+FFFD may be half a character, and waits. Two decodings of a few tokens for
    each step, whatever came before.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.ids: list[int] = []
        self.emitted = 0  # ids whose text was given out; they are kept as context, since a token's text depends on its left neighbour

    def step(self, token: int) -> str:
        self.ids.append(token)
        text = self.rest()
        if not text or text.endswith("\ufffd"):
            return ""
        self.ids = self.ids[self.emitted :]
        self.emitted = len(self.ids)
        return text

    def rest(self) -> str:
        """The text of ids that were not given out."""
        return self._decode(self.ids)[len(self._decode(self.ids[: self.emitted])) :]

    def clear(self) -> None:
        self.ids, self.emitted = [], 0

    def _decode(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))
