"""The compiled part of holdback.

Every rule is stated in docs/semantics.md; section numbers below refer to it.
"""

from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Sequence
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    SupportsIndex,
    TypedDict,
    TypeVar,
    final,
    overload,
)

from typing_extensions import Buffer, Unpack

from holdback.cut import AsyncCut, Cut

_Text = TypeVar("_Text", bound=str | bytes)
_Stop = str | bytes
_Include = bool | Collection[_Stop]
_Markers = Literal["regions"] | Collection[_Stop]
_Regions = Sequence[tuple[_Stop, _Stop]]

class _ArrowArray(Protocol):
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

# The options of `StopSet.stream`, where they are passed on.
class _StreamOptions(TypedDict, total=False):
    include_stop: _Include | None
    errors: Literal["replace", "strict"] | None
    min_chars: int | None
    ignore_inside: _Regions | None
    start_inside: bool | None
    atomic: _Markers | None

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

__profile__: str
__version__: str

@final
class StopMatch(Generic[_Text]):
    """The stop that ended a stream, and where (section 4). Immutable; equal and hashable by its
    attributes.

    Offsets count characters of the text from the beginning of the stream; in a byte stream they
    count bytes.
    """

    __match_args__ = ("stop", "index", "start", "end")
    def __new__(
        cls,
        stop: _Stop,
        index: int,
        start: int,
        end: int,
        start_chunk: int,
        end_chunk: int,
        rest: _Text,
    ) -> StopMatch[_Text]: ...
    @property
    def stop(self) -> Any:
        """The stop, the very object that the set was given."""
    @property
    def index(self) -> int:
        """Its position in the list as given."""
    @property
    def start(self) -> int:
        """Offset of its first character."""
    @property
    def end(self) -> int:
        """Offset behind its last character; ``end - start`` is its length."""
    @property
    def start_chunk(self) -> int:
        """The feed (from 0) that brought its first character."""
    @property
    def end_chunk(self) -> int:
        """The feed (from 0) that brought its last character."""
    @property
    def rest(self) -> Any:
        """What followed the stop in the chunk that completed it, raw and in that chunk's type.

        Never emitted.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @classmethod
    def __class_getitem__(cls, key: Any) -> Any: ...

@final
class StopSet:
    """An immutable, compiled list of stop strings, to be shared by any number of streams and
    threads.

    ``stops`` is one stop, an iterable of stops, or ``None`` for no stops at all. A stop is a
    non-empty literal ``str``, or ``bytes`` for byte streams. The stream ends at the first position
    where some stop ends; if several end there, ``tie`` says whether the longest or the one listed
    first is the match (section 1).

    Raises ``ValueError`` for an empty stop, a lone surrogate in a stop (both named by index), more
    than ``max_stops`` stops (default 1,000,000) or more than ``max_bytes`` UTF-8 bytes of all stops
    together (default 4 MiB); ``TypeError`` for a stop of another type.

    >>> stops = StopSet(["</answer>", "\\n\\nUser:"])
    >>> stops.truncate("It is 42.</answer> Bye")[0]
    'It is 42.'
    """

    def __new__(
        cls,
        stops: _Stop | Iterable[_Stop] | None = None,
        /,
        *,
        tie: Literal["longest", "first"] | None = None,
        max_stops: int | None = None,
        max_bytes: int | None = None,
    ) -> StopSet: ...
    @property
    def stops(self) -> tuple[_Stop, ...]:
        """The stops as given, duplicates included."""
    @property
    def tie(self) -> Literal["longest", "first"]:
        """Which stop wins when several end at the same position."""
    @property
    def unreachable(self) -> tuple[int, ...]:
        """Indices of stops that can never be the match, ascending (section 1).

        >>> StopSet(["abcd", "bc", "bc"]).unreachable
        (0, 2)
        """
    @property
    def nbytes(self) -> int:
        """Memory of the compiled form, in bytes."""
    def stream(
        self,
        *,
        include_stop: _Include | None = None,
        errors: Literal["replace", "strict"] | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
        atomic: _Markers | None = None,
    ) -> StopStream[str]:
        """A stream of text: one response.

        ``include_stop``: emit the stop too (``True``), or only these stops (a collection); default
        ``False`` (section 2). ``errors``: ``"replace"`` (default) or ``"strict"``, for bytes that
        are not UTF-8 and lone surrogates (section 3). ``min_chars``: no stop that ends within the
        first so many characters counts (section 7). ``ignore_inside``: (opener, closer) pairs
        between which nothing matches; ``start_inside``: begin inside the first (section 8).
        ``atomic``: markers that go out in one piece; ``"regions"`` for all of ``ignore_inside``
        (section 9).

        Raises ``TypeError`` if the set has a ``bytes`` stop, ``ValueError`` for options that
        contradict each other or the set.
        """
    def byte_stream(
        self,
        *,
        include_stop: _Include | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
        atomic: _Markers | None = None,
    ) -> StopStream[bytes]:
        """The raw twin of :meth:`stream`: bytes in, bytes out, no decoding, all offsets and counts
        in bytes.

        >>> StopSet([b"\\xff\\xff"]).byte_stream().feed(b"ab\\xff")
        (b'ab', None)
        """
    def truncate(
        self,
        text: str | Buffer,
        /,
        *,
        include_stop: _Include | None = None,
        errors: Literal["replace", "strict"] | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
    ) -> tuple[str, StopMatch[Any] | None]:
        """A whole text up to its first stop, and the match: the same as one ``feed`` and ``flush``.

        >>> StopSet(["re", "he"]).truncate("there")
        ('t', StopMatch(stop='he', index=1, start=1, end=3, start_chunk=0, end_chunk=0, rest='re'))
        """
    @overload
    def truncate_many(
        self,
        texts: _ArrowArray | _ArrowStream,
        /,
        *,
        include_stop: _Include | None = None,
        errors: Literal["replace", "strict"] | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
    ) -> tuple[ArrowStrings, list[StopMatch[Any] | None]]: ...
    @overload
    def truncate_many(
        self,
        texts: Iterable[str | Buffer],
        /,
        *,
        include_stop: _Include | None = None,
        errors: Literal["replace", "strict"] | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
    ) -> tuple[list[str], list[StopMatch[Any] | None]]: ...
    @overload
    def truncate_many(
        self,
        texts: Iterable[str | Buffer | None],
        /,
        *,
        include_stop: _Include | None = None,
        errors: Literal["replace", "strict"] | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
    ) -> tuple[list[str | None], list[StopMatch[Any] | None]]:
        """:meth:`truncate` for each text by itself.

        >>> StopSet(["!"]).truncate_many(["a!b", "c"])[0]
        ['a', 'c']

        `None` among the texts stays `None`, as does its match.

        An Arrow column of strings (pyarrow, Polars and others: an object with ``__arrow_c_array__``
        or ``__arrow_c_stream__``, of the formats utf8, large_utf8 and string view) is read where it
        lies and gives an :class:`ArrowStrings`. A null stays null, with ``None`` for its match;
        docs/columns.md tells more.

        Raises ``TypeError`` for a column of another type, naming it; ``ValueError`` for one that is
        corrupt, naming the row.
        """
    def cut(self, chunks: Iterable[str | Buffer], /, **options: Unpack[_StreamOptions]) -> Cut[str]:
        """An iterator over what may be sent on; it closes its source on a match. Options as for
        :meth:`stream` (section 10).

        >>> cut = StopSet(["</a>"]).cut(["x<", "/", "a>y", "never read"])
        >>> list(cut), cut.match.stop
        (['x'], '</a>')
        """
    def acut(
        self, chunks: AsyncIterable[str | Buffer], /, **options: Unpack[_StreamOptions]
    ) -> AsyncCut[str]:
        """The asynchronous twin of :meth:`cut`: ``async for text in stops.acut(response)``."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_Stop]: ...
    def __contains__(self, stop: object, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class StopStream(Generic[_Text]):
    """One response, made by :meth:`StopSet.stream` or :meth:`StopSet.byte_stream`. One caller at a
    time; ``RuntimeError`` otherwise.

    Its memory does not grow with the text. It pickles in mid-flight and goes on in another process.
    """

    def feed(self, chunk: str | Buffer, /) -> tuple[_Text, StopMatch[Any] | None]:
        """Reads one chunk, cut anywhere; gives the text that may be sent on and the match (``None``
        so far).

        Text is held back exactly while it may still turn out to be the beginning of a stop. When
        nothing is held before or after, the text that comes out is the very object that went in.

        Raises ``TypeError`` for a chunk of another type, ``UnicodeDecodeError`` /
        ``UnicodeEncodeError`` under ``errors="strict"``, ``ValueError`` after :meth:`flush`; the
        stream is unchanged then.

        >>> stream = StopSet(["\\n\\nUser:"]).stream()
        >>> stream.feed("Hello.\\n"), stream.feed("\\nUs"), stream.feed("eful?")
        (('Hello.', None), ('', None), ('\\n\\nUseful?', None))
        """
    def feed_many(self, chunks: Iterable[str | Buffer], /) -> tuple[_Text, StopMatch[Any] | None]:
        """Reads a block of chunks: the same as feeding them one by one and joining what comes out.

        It ends with the chunk that completes a stop (``match.end_chunk``); a bad chunk before it
        leaves the stream unchanged.
        """
    def flush(self) -> _Text:
        """No more text comes: gives all that was held. A second call gives nothing.

        Under ``errors="strict"`` an unfinished character raises, and the stream is unchanged.

        >>> stream = StopSet(["END"]).stream()
        >>> stream.feed("the EN"), stream.flush()
        (('the ', None), 'EN')
        """
    def reset(self) -> None:
        """Starts afresh, with the options that the stream was made with."""
    def copy(self) -> StopStream[_Text]:
        """An independent stream in the same state, in time bounded by what is held: for speculative
        decoding, ``n > 1``, beam search.
        """
    def arm(self) -> None:
        """From the next character on, stops count (section 7)."""
    def disarm(self) -> None:
        """From the next character on, a stop that ends is ignored, until :meth:`arm` (section 7)."""
    @property
    def armed(self) -> bool:
        """True when a stop that ends at the very next character would count."""
    @property
    def region(self) -> tuple[_Stop, _Stop] | None:
        """The (opener, closer) pair that the stream is asleep in, or ``None`` (section 8)."""
    @property
    def match(self) -> StopMatch[Any] | None:
        """The match that ended the stream, if one did."""
    @property
    def held(self) -> _Text:
        """The text that is held back right now."""
    @property
    def stops(self) -> StopSet:
        """The set that the stream was made from."""
    def __copy__(self) -> StopStream[_Text]: ...
    def __deepcopy__(self, memo: Any, /) -> StopStream[_Text]: ...
    @classmethod
    def __class_getitem__(cls, key: Any) -> Any: ...

@final
class ArrowStrings:
    """A column of strings in Arrow memory, as :meth:`StopSet.truncate_many` gives it: of the format
    large_utf8, with nulls.

    ``pyarrow.array(column)``, ``polars.Series(column)`` and others take it through the PyCapsule
    interface. They share its memory and may outlive it.
    """

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules of the type and of the array.

        Asked for utf8 (a capsule of that type), it is that if it fits.
        """
    def __arrow_c_schema__(self) -> object:
        """A capsule of the type."""
    def to_pylist(self) -> list[str | None]:
        """The texts, `None` for a null."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A numpy array of objects; of another `dtype` if asked for. Needs numpy."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str | None]: ...
    @overload
    def __getitem__(self, row: SupportsIndex, /) -> str | None: ...
    @overload
    def __getitem__(self, rows: slice, /) -> list[str | None]: ...

def compile(
    stops: _Stop | Iterable[_Stop] | None = None,
    /,
    *,
    tie: Literal["longest", "first"] | None = None,
    max_stops: int | None = None,
    max_bytes: int | None = None,
) -> StopSet:
    """A compiled set, from a cache when the same list was compiled not long ago: for stop lists
    that come with requests.

    The cache keeps at least the 512 lists used last, unless their compiled form is large.

    >>> compile(["</s>"]) is compile(["</s>"])
    True
    """

def feed_batch(
    streams: Sequence[StopStream[Any]], chunks: Sequence[str | Buffer], /
) -> tuple[list[Any], list[tuple[int, StopMatch[Any]]]]:
    """One engine step over many streams: chunk ``i`` goes to stream ``i``.

    Gives the texts in order, and (position, match) for every stream that is over. On an error no
    stream is changed.

    >>> stops = StopSet(["!"])
    >>> a, b = stops.stream(), stops.stream()
    >>> emits, ended = feed_batch([a, b], ["x", "y!"])
    >>> emits, [(at, match.stop) for at, match in ended]
    (['x', 'y'], [(1, '!')])
    """

@final
class WireMatch:
    """A stop that ended a choice, or a content block, of a provider's answer.

    Immutable; equal and hashable by its attributes.
    """

    @property
    def stop(self) -> Any:
        """The stop, the very object that the set was given."""
    @property
    def index(self) -> int:
        """Its position in the list as given."""
    @property
    def start(self) -> int:
        """Offset of its first character in the text of this choice or block, in characters; an
        echoed prompt counts.
        """
    @property
    def end(self) -> int:
        """Offset behind its last character."""
    @property
    def choice(self) -> int:
        """The choice (``choices[].index``, ``candidates[].index``, ``output_index``); 0 where there
        is only one.
        """
    @property
    def block(self) -> int | None:
        """The content block (Anthropic's ``index``, the Responses API's ``content_index``),
        ``None`` in other dialects.
        """
    @property
    def reasoning(self) -> bool:
        """True for a stop in what the model thinks (``cut_reasoning``)."""
    @property
    def start_frame(self) -> int:
        """The text frame of this choice or block (from 0) that brought its first character."""
    @property
    def end_frame(self) -> int:
        """The text frame of this choice or block (from 0) that brought its last character."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Cutter:
    """Cuts one answer of a provider at the first stop: its bytes in, the same bytes out, with the
    provider's own end.

    One cutter serves one answer. The rules, dialect by dialect, are in docs/wire.md.

    Args:
        dialect: One of `holdback.wire.DIALECTS`.
        stops: A `StopSet` (share it between requests) or what makes one.
        tie: As in `StopSet`, if `stops` is none.
        include_stop: As in `StopSet.stream`, for each choice or block; so are `min_chars`,
            `ignore_inside`, `start_inside`, `atomic`. `ignore_inside=[("<think>", "</think>")]` is
            for reasoning that stands in the text itself.
        choices: How many the request asked for (`n`); the stream ends when all have ended. Not
            said, it ends when all that turned up have. With 1, a frame with one choice is of that
            choice, whatever number it says.
        skip_chars: Characters of an echoed prompt, which pass without being matched.
        cut_reasoning: Match in reasoning fields too, as texts of their own. Default `False`.
        stop_field: The key that names the stop where the provider has none: `"auto"`
            (`stop_reason`, or `matched_stop` in a stream that shows it, in OpenAI's chat and
            completions), a name of your own that the dialect has no meaning for, `None` for no such
            key.
        on_match: `"cancel"` (default): the end is written at once, and what is fed after it is
            swallowed. `"drain"`: the upstream is read to its end, for its usage figures.
        on_error: What happens to held text when the upstream reports an error: `"flush"`
            (default) or `"drop"`.
        on_malformed: What happens to a frame that cannot be read: `"fail"` (default) or `"pass"`.
        on_unread: What happens, while there are stops, to a frame that is no frame of the dialect,
            so that a stop in it would not be seen: `"pass"` (default; `frames_unread` counts it) or
            `"fail"`, a `WireError`. It also ends what `on_malformed="pass"` would let through.
        max_frame_bytes: Limit of one frame (16 MiB), so that no upstream can exhaust memory.
        max_choices: Limit of choices or content blocks (128).
        max_held_bytes: Limit of held log-probabilities (16 MiB).
        max_text_bytes: Limit of text that is repeated at the end by the Responses API and TGI
            (16 MiB).

    Raises:
        TypeError, ValueError: As `StopSet` and `StopSet.stream`, and for a dialect or word that is
            unknown.

    >>> cutter = Cutter("openai.chat", ["END"])
    >>> frame = b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\\n\\n'
    >>> cutter.feed(frame % b"a") == frame % b"a"
    True
    >>> print(cutter.feed(frame % b"b END c").decode().rstrip())
    data: {"choices":[{"index":0,"delta":{"content":"b "},"finish_reason":"stop","stop_reason":"END"}]}
    <BLANKLINE>
    data: [DONE]
    >>> cutter
    <Cutter openai.chat: 1 stops, ended=True, 1 matches>
    """

    def __new__(
        cls,
        dialect: str,
        stops: StopSet | _Stop | Iterable[_Stop] | None = None,
        /,
        *,
        tie: Literal["longest", "first"] | None = None,
        include_stop: _Include | None = None,
        min_chars: int | None = None,
        ignore_inside: _Regions | None = None,
        start_inside: bool | None = None,
        atomic: _Markers | None = None,
        choices: int | None = None,
        skip_chars: int | None = None,
        cut_reasoning: bool | None = None,
        stop_field: str | None = "auto",
        on_match: Literal["cancel", "drain"] | None = None,
        on_error: Literal["flush", "drop"] | None = None,
        on_malformed: Literal["fail", "pass"] | None = None,
        on_unread: Literal["pass", "fail"] | None = None,
        max_frame_bytes: int | None = None,
        max_choices: int | None = None,
        max_held_bytes: int | None = None,
        max_text_bytes: int | None = None,
    ) -> Cutter: ...
    def feed(self, data: Buffer, /) -> bytes:
        """Reads a piece of the stream, cut anywhere, and gives what may be sent on: whole frames
        only.

        Raises `holdback.wire.WireError` for a frame that cannot be read or is beyond a
        limit. Its `output` is what may still be sent; further calls raise the same error.
        """
    def finish(self) -> bytes:
        """The input is over: gives what is still held, in frames of the stream's own pattern. A
        second call gives `b""`.

        With `on_match="drain"` it also gives the end of the stream, should the upstream have
        failed to send it. Raises `holdback.wire.WireError` when the input broke off inside a
        frame.
        """
    def body(self, data: Buffer, /) -> bytes:
        """Cuts the answer to a request that does not stream. Whether a stop was found is in
        `matches`.

        >>> cutter = Cutter("ollama.generate", ["END"])
        >>> cutter.body(b'{"response":"a END b","done":true,"done_reason":"length"}')
        b'{"response":"a ","done":true,"done_reason":"stop"}'

        Raises `holdback.wire.WireError` for a body that cannot be read, and when this cutter
        has been used before.
        """
    @property
    def dialect(self) -> str:
        """The dialect's name."""
    @property
    def stops(self) -> StopSet:
        """The set."""
    @property
    def ended(self) -> bool:
        """The end of the stream has been given out: an end after the last choice's match, or the
        upstream's own.
        """
    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """The stops found so far, in the order in which they ended their choices."""
    @property
    def texts_read(self) -> int:
        """Characters that were read as text, by the dialect's rules. An echoed prompt counts. 0 at
        the end of an answer that was not empty says that no stop was looked for in it.
        """
    @property
    def frames_unread(self) -> int:
        """Frames that came with something in them and could not be placed: data that are no JSON
        object, objects without any key that the dialect knows, the text of another dialect, bytes
        that are no frame of a stream. docs/wire.md says which do not count.
        """
    @property
    def unread(self) -> str | None:
        """The first such frame, for a log: its first 200 characters. `None` if there was none."""

def _rebuild_set(stops: Any, tie: Any, max_stops: int, max_bytes: int, /) -> StopSet: ...
def _rebuild_stream(set: StopSet, state: dict[str, Any], /) -> StopStream[Any]: ...
def _json_object(
    json: bytes, from_: int, keys: Sequence[str], whole: bool, /
) -> tuple[int, int, int, list[tuple[str, int, int, int]]]:
    """Where the object at `json[from_:]` and its fields of these keys stand, in bytes.

    Gives its start and end, how many fields it has at all, and of each one found the key, where
    the key begins, where the value begins and ends. Nothing else may follow it if `whole` is set.
    Raises `ValueError` for what is no JSON object or nested too deeply, and for a key that stands
    twice.
    """

def _json_elements(json: bytes, from_: int, most: int, /) -> tuple[int, bool]:
    """How many elements the array at `json[from_:]` has, counted up to `most + 1`, and whether all
    of those are numbers. Raises `ValueError` for what is no JSON array.
    """

@final
class LoopDetector:
    """Finds text that has fallen into a loop; made by `holdback.Repetition.detector`.

    It holds nothing back, gives every chunking the same answer, and its memory is bounded by the
    longest unit. Used by one thread at a time. It copies and pickles.
    """

    def __new__(
        cls, count: int, cover: int, min_unit: int, max_unit: int, short_cover: int | None
    ) -> LoopDetector: ...
    def feed(self, text: str, /) -> int | None:
        """Read `text` up to the character that completes a loop.

        Returns how many characters were read then, or `None` if the whole text was.
        """
    def skip(self, text: str, /) -> None:
        """Read all of `text`, whatever it completes. A loop that goes on is found afterwards."""
    @property
    def found(self) -> tuple[str, int, int] | None:
        """The last loop: the first copy of its unit, the number of whole copies, and the offset of
        that first one, in characters of all text read.
        """
    def copy(self) -> LoopDetector:
        """An independent detector in the same state."""
    def __getnewargs__(self) -> tuple[int, int, int, int, int | None]: ...
    def __getstate__(self) -> object: ...
    def __setstate__(self, state: Any, /) -> None: ...
