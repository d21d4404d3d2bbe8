"""A slow twin of the wire cutter: `json` and `holdback.reference`, whole objects in place of spans,
one rule a line.

It is given the frames of a stream as objects, so it knows nothing of framing, escapes or bytes;
what it gives is compared frame by frame with what the cutter's bytes mean. Frames that it leaves
alone are expected as the very bytes that came."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from holdback import reference

Json = dict[str, Any]
COLUMNS = 4
ABSENT = object()  # no value in this column, which is not the value null


@dataclass
class Frame:
    """A frame as it came (`raw`), or one that was changed or made (`raw` is None)."""

    data: Any
    name: str | None = None
    raw: bytes | None = None


@dataclass
class Options:
    choices: int | None = None
    skip_chars: int = 0
    cut_reasoning: bool = False
    stop_field: str | None = "auto"
    on_match: str = "cancel"
    on_error: str = "flush"
    stream: dict[str, Any] = field(default_factory=dict)


def utf8(text: str) -> int:
    """Bytes of text; a lone half of a surrogate pair counts as half of the pair."""
    return sum(2 if "\ud800" <= c <= "\udfff" else len(c.encode()) for c in text)


class Lane:
    """One message text: what came, how much of it left."""

    def __init__(self, stops: list[str], options: Options, skip: int) -> None:
        self.stops, self.options = stops, options.stream
        self.stream = reference.StopSet(stops).stream(**options.stream)
        self.text, self.sent, self.waiting, self.skip = "", 0, "", skip
        self.skipped = 0
        self.came = self.left = 0  # bytes of text
        self.characters = 0  # read as text, an echoed prompt included
        self.gone = ""  # half of an echoed character that has left
        self.entries: list[tuple[int, list[Any]]] = []

    @property
    def holds(self) -> bool:
        return self.sent < len(self.text) or bool(self.waiting)

    @property
    def said(self) -> str:
        """What left, in one string: two halves that left apart are a character in it, and half of
        an echoed one that has left alone is the end of it."""
        return (
            (self.text[: self.sent] + self.gone)
            .encode("utf-16-le", "surrogatepass")
            .decode("utf-16-le", "surrogatepass")
        )

    def feed(self, chunk: str) -> tuple[str, Any]:
        self.came += utf8(chunk)
        emit, match = self._feed(chunk)
        self.left += utf8(emit)
        return emit, match

    def _feed(self, chunk: str) -> tuple[str, Any]:
        gone, came = self.gone, chunk
        chunk = self.waiting + gone + chunk
        chunk = chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        self.waiting = self.gone = ""
        echo = chunk[: self.skip]
        if len(echo) == len(chunk) and echo[-1:] and "\ud800" <= echo[-1] <= "\udbff":
            # Half of an echoed character leaves at once and counts when the other half is there.
            self.gone, echo = echo[-1], echo[:-1]
            self.skip -= len(echo)
            self.skipped += len(echo)
            self.characters += len(echo)
            self.text += echo
            self.sent += len(echo)
            return came, None
        self.skip -= len(echo)
        self.skipped += len(echo)
        self.text += echo
        self.sent += len(echo)
        self.characters += len(echo)
        chunk = chunk[len(echo) :]
        if gone:
            echo = came[: 1 if echo[:1] != gone else 0] + echo[1:]
        if chunk[-1:] and "\ud800" <= chunk[-1] <= "\udbff":
            chunk, self.waiting = chunk[:-1], chunk[-1]
        if echo and not chunk and not self.waiting:
            return echo, None
        self.characters += len(chunk)
        return echo + self._read(chunk), self.stream.match

    def _read(self, chunk: str) -> str:
        self.text += chunk
        seen = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in chunk)
        emit, _ = self.stream.feed(seen)
        begin, self.sent = self.sent, self.sent + len(emit)
        if self.stream.match:
            self.text = self.text[: self.sent]
            self.waiting = ""
        return self.text[begin : self.sent]

    def flush(self) -> tuple[str, Any]:
        out = ""
        if self.waiting:
            waiting, self.waiting = self.waiting, ""
            out = self._read(waiting)
            if self.stream.match:
                self.left += utf8(out)
                return out, self.stream.match
        out += self.text[self.sent :]
        self.sent, self.left = len(self.text), self.came
        self.restart()
        return out, None

    def restart(self) -> None:
        """Behind a border: nothing ends that began before it. What was read still counts, for
        offsets, arming and regions.
        """
        state = self.stream._state
        border = state.scanner.window = state.scanner.given_up = state.emitted = len(
            state.scanner.text
        )
        state.whole.occurrences += ((border, border),)

    def drop(self) -> None:
        self.text, self.waiting, self.entries = self.text[: self.sent], "", []
        self.restart()
        self.left = self.came

    def span(self, match: Any) -> tuple[int, int]:
        """Offsets in the text that came: what was echoed counts."""
        return match.start + self.skipped, match.end + self.skipped


def token_length(entry: Any) -> int:
    if isinstance(entry, str):
        return utf8(entry)
    if not isinstance(entry, dict):
        return 0
    if isinstance(entry.get("bytes"), list):
        return len(entry["bytes"])
    token = entry.get("token")
    return utf8(token) if isinstance(token, str) else 0


def sort_entries(
    lane: Lane, columns: list[list[Any] | None], start: int, over: bool
) -> list[list[Any]] | None:
    """The columns that leave with this frame, or None if its own arrays stay as they are."""
    if not lane.entries and not lane.holds and not over:
        return None
    held = len(lane.entries)
    lead = next((column for column in columns if column is not None), [])
    at = start
    for row, entry in enumerate(lead):
        values = [
            column[row] if column is not None and row < len(column) else ABSENT
            for column in columns
        ]
        lane.entries.append((at, values))
        at += token_length(entry)
    short = max(lane.came - at, 0)
    lane.entries[held:] = [(at + short, values) for at, values in lane.entries[held:]]
    goes = [
        (at < lane.left) if over else (not lane.holds or at < lane.left) for at, _ in lane.entries
    ]
    count = goes.index(False) if False in goes else len(goes)
    if not held and count == len(goes):
        lane.entries = []
        return None
    leaving = [values for _, values in lane.entries[:count]]
    lane.entries = [] if over else lane.entries[count:]
    return [
        [values[column] for values in leaving if values[column] is not ABSENT]
        for column in range(COLUMNS)
    ]


@dataclass
class Text:
    """A text in a choice: where it stands, of which lane it is."""

    holder: Any
    key: str
    part: str  # content, reasoning, border
    at: int = 0  # its place in a list of parts
    slot: str = ""  # where it stands, if there are several places


class Shape:
    """How a dialect with choices is read and written. The default is OpenAI chat."""

    list_name: str | None = "choices"
    slots: tuple[str, ...] = ("delta", "message", "text")
    arrays = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    done = True
    ends_last = False

    def choices(self, data: Json) -> list[Json]:
        return (
            [c for c in data[self.list_name] if isinstance(c, dict)] if self.list_name else [data]
        )

    def index(self, data: Json, choice: Json) -> int:
        return choice.get("index", data[self.list_name].index(choice))

    def texts(self, choice: Json) -> list[Text]:
        parts = {"content": "content", "reasoning": "reasoning", "reasoning_content": "reasoning"}
        found = [
            Text(choice[slot], key, parts[key], slot=slot)
            for slot in ("delta", "message")
            for key in choice.get(slot) or {}
            if key in parts and isinstance(choice[slot][key], str)
        ]
        if isinstance(choice.get("text"), str):
            found.append(Text(choice, "text", "content", slot="text"))
        return found

    def finished(self, choice: Json) -> bool:
        return isinstance(choice.get("finish_reason"), str) and choice["finish_reason"] not in (
            "",
            "null",
        )

    def end(self, choice: Json, stop: str, field: str | None, lane: Lane, frames: int) -> None:
        if choice.get("finish_reason") != "stop_sequence":
            choice["finish_reason"] = "stop"
        for holder in (choice.get("delta"), choice.get("message")):
            if holder and "tool_calls" in holder:
                holder["tool_calls"] = None
        if field:
            choice[field] = stop

    def columns(self, choice: Json) -> list[list[Any] | None]:
        logprobs = choice.get("logprobs") or {}
        if isinstance(logprobs.get("content"), list):
            return [logprobs["content"], None, None, None]
        return [
            logprobs[name] if isinstance(logprobs.get(name), list) else None for name in self.arrays
        ]

    def put(self, choice: Json, columns: list[list[Any]]) -> None:
        logprobs = choice.get("logprobs") or {}
        if isinstance(logprobs.get("content"), list):
            logprobs["content"] = columns[0]
        elif any(column is not None for column in self.columns(choice)):
            for name, column in zip(self.arrays, columns, strict=True):
                if isinstance(logprobs.get(name), list):
                    logprobs[name] = column
        elif any(columns):
            slot = "delta" if "delta" in choice or "message" in choice else "text"
            choice["logprobs"] = self.logprobs(slot, columns)

    def logprobs(self, slot: str, columns: list[list[Any]]) -> Json:
        if slot != "text":
            return {"content": columns[0], "refusal": None}
        return {name: column for name, column in zip(self.arrays, columns, strict=True) if column}

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        logprobs = self.logprobs(at.slot, columns) if any(columns) else None
        said = {"text": text} if at.slot == "text" else {at.slot: {at.key: text}}
        pattern["choices"] = [{"index": index, **said, "logprobs": logprobs, "finish_reason": None}]

    def blank(self, choice: Json) -> None:
        """Takes all text out of a choice that had ended before."""
        for text in self.texts(choice):
            text.holder[text.key] = ""
        for holder in (choice.get("delta"), choice.get("message")):
            if holder and "tool_calls" in holder:
                holder["tool_calls"] = None
        if "logprobs" in choice:
            choice["logprobs"] = None

    def cut_behind(self, choice: Json, cut: Text) -> None:
        """Takes out what follows a cut text in the same frame."""

    def is_error(self, data: Json) -> bool:
        return data.get("error") is not None


class Completions(Shape):
    slots = ("text", "delta", "message")


class Gemini(Shape):
    list_name = "candidates"
    slots = ("",)
    done = False

    def texts(self, choice: Json) -> list[Text]:
        found = []
        for at, part in enumerate((choice.get("content") or {}).get("parts") or []):
            text = isinstance(part.get("text"), str)
            if part.get("thought") is True or not text:
                found.append(Text(part, "", "border", at))
            if text:
                found.append(
                    Text(
                        part, "text", "reasoning" if part.get("thought") is True else "content", at
                    )
                )
        return found

    def finished(self, choice: Json) -> bool:
        return isinstance(choice.get("finishReason"), str) and choice["finishReason"] not in (
            "",
            "FINISH_REASON_UNSPECIFIED",
        )

    def end(self, choice: Json, stop: str, field: str | None, lane: Lane, frames: int) -> None:
        choice["finishReason"] = "STOP"
        if field:
            choice[field] = stop

    def columns(self, choice: Json) -> list[list[Any] | None]:
        result = choice.get("logprobsResult") or {}
        return [result.get("chosenCandidates"), result.get("topCandidates"), None, None]

    def put(self, choice: Json, columns: list[list[Any]]) -> None:
        result = choice.get("logprobsResult") or {}
        names = ("chosenCandidates", "topCandidates")
        if any(isinstance(result.get(name), list) for name in names):
            for name, column in zip(names, columns, strict=False):
                if isinstance(result.get(name), list):
                    result[name] = column
        elif any(columns):
            choice["logprobsResult"] = dict(zip(names, columns, strict=False))

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        made: Json = {"text": text, "thought": True} if at.part == "reasoning" else {"text": text}
        choice = {"content": {"parts": [made], "role": "model"}, "index": index}
        if any(columns):
            choice["logprobsResult"] = {"topCandidates": columns[1], "chosenCandidates": columns[0]}
        pattern["candidates"] = [choice]

    def blank(self, choice: Json) -> None:
        if isinstance((choice.get("content") or {}).get("parts"), list):
            choice["content"]["parts"] = []
        if "logprobsResult" in choice:
            choice["logprobsResult"] = None

    def cut_behind(self, choice: Json, cut: Text) -> None:
        del choice["content"]["parts"][cut.at + 1 :]


class OllamaChat(Shape):
    list_name = None
    slots = ("",)
    done = False
    ends_last = True

    def index(self, data: Json, choice: Json) -> int:
        return 0

    def texts(self, choice: Json) -> list[Text]:
        message = choice.get("message") or {}
        parts = {"content": "content", "thinking": "reasoning"}
        return [
            Text(message, key, parts[key])
            for key in message
            if key in parts and isinstance(message[key], str)
        ]

    def finished(self, choice: Json) -> bool:
        return choice.get("done") is True

    def end(self, choice: Json, stop: str, field: str | None, lane: Lane, frames: int) -> None:
        choice["done"], choice["done_reason"] = True, "stop"
        if "tool_calls" in (choice.get("message") or {}):
            choice["message"]["tool_calls"] = None
        if field:
            choice[field] = stop

    def columns(self, choice: Json) -> list[list[Any] | None]:
        logprobs = choice.get("logprobs")
        return [logprobs if isinstance(logprobs, list) else None, None, None, None]

    def put(self, choice: Json, columns: list[list[Any]]) -> None:
        if isinstance(choice.get("logprobs"), list) or columns[0]:
            choice["logprobs"] = columns[0]

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        pattern["message"] = {"role": "assistant", at.key: text}
        if at.part == "reasoning":
            pattern["message"]["content"] = ""
        self.unfinish(pattern, columns)

    def unfinish(self, pattern: Json, columns: list[list[Any]]) -> None:
        if "done" in pattern:
            pattern["done"] = False
        if "logprobs" in pattern:
            pattern["logprobs"] = columns[0]


class OllamaGenerate(OllamaChat):
    def texts(self, choice: Json) -> list[Text]:
        parts = {"response": "content", "thinking": "reasoning"}
        return [
            Text(choice, key, parts[key])
            for key in choice
            if key in parts and isinstance(choice[key], str)
        ]

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        for found in self.texts(pattern):
            pattern[found.key] = text if found.part == at.part else ""
        self.unfinish(pattern, columns)


class LlamaCpp(OllamaChat):
    def index(self, data: Json, choice: Json) -> int:
        return choice.get("index", 0)

    def texts(self, choice: Json) -> list[Text]:
        return (
            [Text(choice, "content", "content")] if isinstance(choice.get("content"), str) else []
        )

    def finished(self, choice: Json) -> bool:
        return choice.get("stop") is True

    def end(self, choice: Json, stop: str, field: str | None, lane: Lane, frames: int) -> None:
        choice["stop"], choice["stopping_word"] = True, stop
        if "stopped_word" in choice:
            choice["stopped_word"] = True
        if "stop_type" in choice or "stopped_word" not in choice:
            choice["stop_type"] = "word"
        if field:
            choice[field] = stop

    def columns(self, choice: Json) -> list[list[Any] | None]:
        column = choice.get("completion_probabilities")
        return [column if isinstance(column, list) else None, None, None, None]

    def put(self, choice: Json, columns: list[list[Any]]) -> None:
        if isinstance(choice.get("completion_probabilities"), list) or columns[0]:
            choice["completion_probabilities"] = columns[0]

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        pattern["content"] = text
        if "stop" in pattern:
            pattern["stop"] = False
        if isinstance(pattern.get("tokens"), list):
            pattern["tokens"] = []
        if isinstance(pattern.get("completion_probabilities"), list):
            pattern["completion_probabilities"] = columns[0]


class Tgi(OllamaChat):
    def texts(self, choice: Json) -> list[Text]:
        token = choice.get("token") or {}
        return (
            [Text(token, "text", "content")]
            if isinstance(token.get("text"), str) and not token.get("special")
            else []
        )

    def finished(self, choice: Json) -> bool:
        return isinstance(choice.get("details"), dict) or isinstance(
            choice.get("generated_text"), str
        )

    def end(self, choice: Json, stop: str, field: str | None, lane: Lane, frames: int) -> None:
        if isinstance(choice.get("details"), dict):
            choice["details"]["finish_reason"] = "stop_sequence"
            if field:
                choice["details"][field] = stop
        else:
            choice["details"] = {
                "finish_reason": "stop_sequence",
                "generated_tokens": frames,
                "seed": None,
                "input_length": 0,
            }
        choice["generated_text"] = lane.said

    def columns(self, choice: Json) -> list[list[Any] | None]:
        return [None] * COLUMNS

    def put(self, choice: Json, columns: list[list[Any]]) -> None:
        pass

    def make(
        self, pattern: Json, index: int, at: Text, text: str, columns: list[list[Any]]
    ) -> None:
        pattern["token"]["text"] = text
        for name in ("generated_text", "details"):
            if name in pattern:
                pattern[name] = None


SHAPES: dict[str, Callable[[], Shape]] = {
    "openai.chat": Shape,
    "openai.completions": Completions,
    "gemini": Gemini,
    "ollama.chat": OllamaChat,
    "ollama.generate": OllamaGenerate,
    "llama.cpp": LlamaCpp,
    "tgi": Tgi,
}


@dataclass
class State:
    content: Lane
    reasoning: Lane
    shown: int = 0
    slot: str | None = None
    keeps: bool = False
    at: dict[str, Text] = field(default_factory=dict)
    matched: str | None = None
    closed: bool = False
    finished: bool = False
    frames: int = 0

    def lane(self, part: str) -> Lane:
        return self.content if part == "content" else self.reasoning


class Twin:
    """Cuts the frames of one answer."""

    def __init__(self, dialect: str, stops: list[str], options: Options) -> None:
        self.shape = SHAPES[dialect]()
        self.stops, self.options = stops, options
        self.states: dict[int, State] = {}
        self.out: list[Frame] = []
        self.matches: list[tuple[str, int, bool, tuple[int, int]]] = []
        self.ended = self.cut = self.matched_stop = self.touched = self.several = False
        self.pattern: Frame | None = None

    def run(self, frames: list[Frame]) -> None:
        for frame in frames:
            if not self.cut:
                self.read(frame)
        if not self.cut:
            self.finish()

    @property
    def characters(self) -> int:
        """Read as text."""
        return sum(
            state.lane(part).characters for state in self.states.values() for part in self.parts()
        )

    def parts(self) -> Iterator[str]:
        yield from ("reasoning", "content") if self.options.cut_reasoning else ("content",)

    def read(self, frame: Frame) -> None:
        if frame.data is None:
            self.out.append(frame)
        elif frame.data == "[DONE]":
            self.flush(drop=False)
            self.out.append(frame)
            self.ended = True
        elif not isinstance(frame.data, dict):
            self.out.append(frame)
        else:
            self.settle(frame)

    def settle(self, frame: Frame) -> None:
        shape, data = self.shape, copy.deepcopy(frame.data)
        choices = (
            shape.choices(data)
            if not shape.list_name or isinstance(data.get(shape.list_name), list)
            else []
        )
        indexed = [(shape.index(data, choice), choice) for choice in choices]
        several = self.several or len(choices) > 1
        if shape.is_error(data) and not any(
            t.part != "border" and t.holder[t.key] for c in choices for t in shape.texts(c)
        ):
            self.flush(drop=self.options.on_error == "drop")
            self.out.append(frame)
            return
        keep, matched, self.touched = [], False, False
        self.several = several
        for shown, choice in indexed:
            self.matched_stop |= "matched_stop" in choice and shape.done
            index = 0 if self.options.choices == 1 and not several else shown
            state = self.state(index)
            state.shown = shown
            finished = shape.finished(choice)
            state.finished |= finished
            if state.matched is not None:
                closes = shape.ends_last and finished and not state.closed
                if closes:
                    self.touched = True
                    for text in shape.texts(choice):
                        text.holder[text.key] = ""
                    self.end(choice, state, state.matched)
                if closes:
                    keep.append(choice)
                continue
            keep.append(choice)
            if self.take(index, choice, state, finished):
                matched = True
                if not (shape.ends_last and self.options.on_match == "drain" and not finished):
                    self.end(choice, state, state.matched or "")
        self.write(frame, data, [choice for _, choice in indexed], keep)
        if (matched and self.options.on_match == "drain") or any(
            state.lane(part).holds for state in self.states.values() for part in self.parts()
        ):
            self.pattern = frame
        self.end_if_over()

    def state(self, index: int) -> State:
        if index not in self.states:
            lanes = (
                Lane(self.stops, self.options, self.options.skip_chars),
                Lane(self.stops, self.options, 0),
            )
            self.states[index] = State(*lanes)
        return self.states[index]

    def take(self, index: int, choice: Json, state: State, finished: bool) -> bool:
        shape = self.shape
        state.frames += 1
        texts, copies = self.parted(shape.texts(choice), state)
        came = [(text.part, text.holder[text.key]) for text in texts if text.part != "border"]
        match = self.take_parts(index, choice, state, finished, texts)
        for copy_ in copies:
            said = copy_.holder[copy_.key]
            if not said or (copy_.part == "reasoning" and not self.options.cut_reasoning):
                continue
            pieces = [text for part, text in came if part == copy_.part and text]
            if pieces == [said]:
                copy_.holder[copy_.key] = self.emissions[copy_.part]
            else:
                keeps = copy_.part == "content" and state.keeps
                copy_.holder[copy_.key] = state.content.said if keeps else ""
        return match

    def parted(self, texts: list[Text], state: State) -> tuple[list[Text], list[Text]]:
        """The texts that are read, and those that say them again somewhere else."""
        full = [text for text in texts if text.part != "border" and text.holder[text.key]]
        answers = {text.slot for text in full if text.part == "content"}
        if len(answers) > 1 and not state.content.came:
            state.keeps = True
        there = answers or {text.slot for text in full}
        slot = state.slot
        if slot is None:
            slot = next((slot for slot in self.shape.slots if slot in there), None)
        if slot is None:
            return texts, []
        return [t for t in texts if t.slot == slot], [t for t in texts if t.slot != slot]

    def take_parts(
        self, index: int, choice: Json, state: State, finished: bool, texts: list[Text]
    ) -> bool:
        shape = self.shape
        self.emissions = {"content": "", "reasoning": ""}
        answers = any(text.part == "content" and text.holder[text.key] for text in texts)
        for part in self.parts():
            lane, start, match, cut = state.lane(part), None, None, None
            for at, text in enumerate(texts):
                if text.part == "border":
                    if part == "content":
                        match = self.flush_made(index, state, part)
                elif text.part == part:
                    state.at[part] = text
                    if part == "content" and text.holder[text.key] and state.slot is None:
                        state.slot = text.slot
                    begin = lane.came
                    start = begin if start is None else start
                    self.touched |= lane.holds
                    emit, match = lane.feed(text.holder[text.key])
                    self.touched |= lane.holds or bool(match)
                    later = [t.part for t in texts[at + 1 :] if t.part in (part, "border")]
                    closes = finished or (part == "reasoning" and answers)
                    if later[:1] == ["border"]:
                        closes = part == "content"
                    elif later:
                        closes = False
                    if closes and not match:
                        tail, match = lane.flush()
                        emit += tail
                    text.holder[text.key] = emit
                    self.emissions[part] += emit
                if match:
                    cut = text
                    break
            if not match and (finished or (part == "reasoning" and answers)):
                match = self.flush_made(index, state, part)
            if part == "content" and start is not None:
                columns = shape.columns(choice)
                if lane.entries or any(column is not None for column in columns):
                    sorted_ = sort_entries(lane, columns, start, bool(match))
                    if sorted_ is not None:
                        shape.put(choice, sorted_)
            if match:
                state.matched = match.stop
                self.matches.append((match.stop, index, part == "reasoning", lane.span(match)))
                if cut is not None:
                    self.blank(choice, texts, cut, part)
                return True
        return False

    def blank(self, choice: Json, texts: list[Text], cut: Text, part: str) -> None:
        at = next(i for i, text in enumerate(texts) if text is cut)
        for position, text in enumerate(texts):
            later = position > at and text.part == part
            if later or (part == "reasoning" and text.part == "content"):
                text.holder[text.key] = ""
        self.shape.cut_behind(choice, cut)

    def end(self, choice: Json, state: State, stop: str) -> None:
        state.closed = True
        field = self.options.stop_field
        if field == "auto":
            field = (
                ("matched_stop" if self.matched_stop else "stop_reason")
                if self.shape.done
                else None
            )
        self.shape.end(choice, stop, field, state.content, state.frames)

    def write(self, frame: Frame, data: Json, choices: list[Json], keep: list[Json]) -> None:
        name = self.shape.list_name
        if len(keep) < len(choices):
            if name is None:
                return
            if keep:
                data[name] = [
                    c for c in data[name] if not isinstance(c, dict) or any(c is k for k in keep)
                ]
            elif self.options.on_match == "drain" and any(
                isinstance(data.get(k), dict) for k in ("usage", "usageMetadata")
            ):
                for choice in choices:
                    shape = self.shape
                    shape.blank(choice)
                    shown = shape.index(data, choice)
                    index = 0 if self.options.choices == 1 and not self.several else shown
                    if shape.finished(choice):
                        self.end(choice, self.states[index], self.states[index].matched or "")
            else:
                return
        # Text that was held leaves in the spelling in which it came, so such a frame is compared by
        # its meaning.
        self.out.append(
            frame if data == frame.data and not self.touched else Frame(data, frame.name)
        )

    def flush_made(self, index: int, state: State, part: str) -> Any:
        lane = state.lane(part)
        if not lane.holds or self.pattern is None:
            lane.restart()
            return None
        text, match = lane.flush()
        columns = [
            [v[column] for _, v in lane.entries if v[column] is not ABSENT]
            for column in range(COLUMNS)
        ]
        lane.entries = []
        made = copy.deepcopy(self.pattern.data)
        at = state.at[part]
        at = Text(None, at.key, part, slot=state.slot or "delta")
        self.shape.make(made, state.shown, at, text, columns)
        self.out.append(Frame(made, self.pattern.name))
        return match

    def flush(self, drop: bool) -> None:
        for index, state in self.states.items():
            for part in ("reasoning", "content"):
                if drop:
                    state.lane(part).drop()
                elif match := self.flush_made(index, state, part):
                    state.matched = match.stop
                    self.matches.append(
                        (match.stop, index, part == "reasoning", state.lane(part).span(match))
                    )

    def over(self) -> bool:
        states = self.states.values()
        return len(states) >= (self.options.choices or 1) and all(
            s.finished or s.matched is not None for s in states
        )

    def done(self) -> None:
        if self.shape.done:
            self.out.append(Frame("[DONE]"))
        self.ended = self.cut = True

    def end_if_over(self) -> None:
        if not self.over():
            return
        if all(state.finished for state in self.states.values()):
            self.ended |= not self.shape.done
        elif self.options.on_match == "cancel":
            self.done()

    def finish(self) -> None:
        self.flush(drop=False)
        if (
            self.ended
            or not self.over()
            or all(state.matched is None for state in self.states.values())
        ):
            return
        for state in self.states.values():
            if state.matched is not None and not state.closed and self.pattern is not None:
                made = copy.deepcopy(self.pattern.data)
                at = state.at.get("content", Text(None, "content", "content"))
                at = Text(None, at.key, "content", slot=state.slot or "delta")
                self.shape.make(made, state.shown, at, "", [[] for _ in range(COLUMNS)])
                self.end(self.shape.choices(made)[0], state, state.matched)
                self.out.append(Frame(made, self.pattern.name))
        self.done()
