"""Random streams of every dialect for the differential test: texts, choices, log-probabilities,
unknown fields, and noise in their JSON.

A stream is made as objects first (what the twin reads) and then written down in one of the many
ways JSON allows."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st
from wire_twin import Frame, Json, Options

STOPS = [
    "END",
    "\n\n",
    "ab",
    "aba",
    "b\U0001f600",
    "\U0001f600x",
    "Ob:",
    "</a>",
    "é",
    '"',
    "\\",
    "N\ufffd",
]
PIECES = [
    *STOPS,
    "a",
    "b",
    "E",
    "EN",
    "\n",
    "O",
    "x",
    "</",
    "\U0001f600",
    "\ud83d",
    "\ude00",
    "ü",
    "<think>",
    "</think>",
    "/",
    "N",
]
NO_REASON = [
    None,
    None,
    None,
    None,
    None,
    None,
    "",
    "null",
]  # what servers say while they have no reason to give
SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "/": "\\/"}


def quoted(text: str, noise: Random) -> str:
    out = []
    for char in text:
        must = char in '"\\' or char < " " or "\ud800" <= char <= "\udfff"
        if char in SHORT and (char != "/" or noise.random() < 0.2) and noise.random() < 0.8:
            out.append(SHORT[char])
        elif must or noise.random() < 0.15:
            units = char.encode("utf-16-be", "surrogatepass").hex()
            escape = "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4))
            out.append(escape.upper().replace("\\U", "\\u") if noise.random() < 0.5 else escape)
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def written(value: Any, noise: Random) -> str:
    """JSON in some spelling: spaces, key order, escapes."""
    gap = noise.choice(["", "", "", " ", "\t "])
    if isinstance(value, dict):
        items = list(value.items())
        if noise.random() < 0.3:
            noise.shuffle(items)
        fields = (f"{quoted(k, noise)}{gap}:{gap}{written(v, noise)}" for k, v in items)
        return "{" + gap + f"{gap},{gap}".join(fields) + gap + "}"
    if isinstance(value, list):
        return "[" + gap + f"{gap},{gap}".join(written(v, noise) for v in value) + gap + "]"
    if isinstance(value, str):
        return quoted(value, noise)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return (
        str(value)
        if noise.random() < 0.8
        else f"{value}.0e0"
        if isinstance(value, int) and value > 9
        else str(value)
    )


def cut_up(text: str, noise: Random) -> list[str]:
    """Deltas; a pair of surrogates may be cut in two."""
    units = "".join(
        c
        if ord(c) < 0x10000 or noise.random() < 0.6
        else chr(0xD7C0 + (ord(c) >> 10)) + chr(0xDC00 + (ord(c) & 0x3FF))
        for c in text
    )
    deltas, at = [], 0
    while at < len(units):
        step = noise.choice([1, 1, 2, 3, 5])
        deltas.append(units[at : at + step])
        at += step
    return deltas


def entries(text: str, noise: Random) -> list[Json]:
    """Log-probabilities of a delta: tokens that cover it."""
    found, at = [], 0
    while at < len(text):
        step = noise.choice([1, 1, 2])
        token = text[at : at + step]
        entry: Json = {
            "token": token,
            "logprob": -0.5,
            "top_logprobs": [{"token": "]", "bytes": [93]}],
        }
        if noise.random() < 0.5 and not any("\ud800" <= c <= "\udfff" for c in token):
            entry["bytes"] = list(token.encode())
        found.append(entry)
        at += step
    if noise.random() < 0.2:
        found.append({"token": "", "logprob": -1})
    return found


@dataclass
class Case:
    dialect: str
    stops: list[str]
    options: Options
    frames: list[Frame]
    line_end: str

    @property
    def body(self) -> bytes:
        return b"".join(frame.raw or b"" for frame in self.frames)


class Writer:
    """Objects to frames of a dialect."""

    def __init__(self, dialect: str, noise: Random, line_end: str) -> None:
        self.dialect, self.noise, self.end = dialect, noise, line_end
        self.lines = dialect.startswith("ollama")
        self.named = dialect in ("anthropic.messages", "openai.responses", "cohere.chat")
        self.prefix = noise.choice(["data: ", "data: ", "data:"])

    def frame(self, data: Any) -> Frame:
        text = data if isinstance(data, str) else written(data, self.noise)
        data = (
            data if isinstance(data, str) else json.loads(text)
        )  # halves of a pair that meet are one character
        if self.lines:
            return Frame(data, None, (text + self.end).encode())
        name = data["type"] if self.named else None
        head = f"event: {name}{self.end}" if name else ""
        return Frame(data, name, f"{head}{self.prefix}{text}{self.end}{self.end}".encode())

    def noise_frames(self) -> list[Frame]:
        """Comments, alone or with a blank line (a frame of its own), and an event without data."""
        if self.lines:
            return []
        texts = self.noise.choice(
            [
                [f": ping{self.end}"],
                [f": keep{self.end}", self.end],
                [f"event: x{self.end}{self.end}"],
            ]
        )
        return [Frame(None, None, text.encode()) for text in texts]


def extras(noise: Random) -> Json:
    """Fields that no cutter knows, with what could confuse one."""
    fields: Json = {}
    if noise.random() < 0.3:
        fields["obfuscation"] = noise.choice(["", "x]}", '\\"'])
    if noise.random() < 0.2:
        fields["unknown"] = {
            "choices": [{"delta": {"content": "END"}}],
            "text": "END",
            "content": "ab",
            "candidates": [1.5],
        }
    if noise.random() < 0.2:
        fields["usage"] = noise.choice([None, {"completion_tokens": 3, "output_tokens": 7}])
    return fields


def chunk(
    dialect: str, index: int, text: str, noise: Random, logprobs: bool, last: str | None
) -> tuple[str, Json]:
    """One choice of a frame (and the name of the list it goes to); with `last`, its end."""
    probs = entries(text, noise) if logprobs else None
    if dialect == "openai.chat":
        delta: Json = {"content": text}
        if noise.random() < 0.1:
            delta["role"] = "assistant"
        choice: Json = {
            "index": index,
            "delta": delta,
            "finish_reason": last or noise.choice(NO_REASON),
        }
        if logprobs or noise.random() < 0.5:
            choice["logprobs"] = {"content": probs, "refusal": None} if probs is not None else None
        if noise.random() < 0.15:
            choice[noise.choice(["stop_reason", "matched_stop"])] = None
        return "choices", choice
    if dialect == "openai.completions":
        choice = {
            "text": text,
            "index": index,
            "finish_reason": last or noise.choice(NO_REASON),
            "logprobs": None,
        }
        if probs is not None:
            tokens = [entry["token"] for entry in probs]
            choice["logprobs"] = {
                "tokens": tokens,
                "token_logprobs": [-1.5] * len(tokens),
                "text_offset": list(range(len(tokens))),
            }
            if noise.random() < 0.5:
                choice["logprobs"]["top_logprobs"] = [None] * len(tokens)
        return "choices", choice
    if dialect == "gemini":
        parts: list[Json] = [{"text": text}]
        if noise.random() < 0.15:
            parts.insert(
                noise.choice([0, 1]),
                noise.choice(
                    [
                        {"functionCall": {"name": "f", "args": {"text": "END"}}},
                        {"text": "END", "thought": True},
                    ]
                ),
            )
        if noise.random() < 0.2:
            parts.append({"text": noise.choice(PIECES)})
        choice = {"content": {"parts": parts, "role": "model"}, "index": index}
        if last:
            choice["finishReason"] = last
        if probs is not None and len(parts) == 1:
            choice["logprobsResult"] = {
                "chosenCandidates": probs,
                "topCandidates": [{"candidates": []} for _ in probs],
            }
        return "candidates", choice
    raise AssertionError(dialect)


def single(dialect: str, text: str, noise: Random, logprobs: bool, last: bool) -> Json:
    """A frame of a dialect that has one choice."""
    probs = entries(text, noise) if logprobs else None
    if dialect == "ollama.chat":
        frame: Json = {
            "model": "m",
            "message": {"role": "assistant", "content": text},
            "done": last,
        }
    elif dialect == "ollama.generate":
        frame = {"model": "m", "response": text, "done": last}
    elif dialect == "llama.cpp":
        frame = {"index": 0, "content": text, "tokens": [1, 2], "stop": last}
        if last:
            frame |= noise.choice(
                [
                    {"stop_type": "eos", "stopping_word": ""},
                    {"stopped_word": False, "stopping_word": ""},
                ]
            )
        if probs is not None:
            frame["completion_probabilities"] = probs
        return frame
    else:
        frame = {
            "index": 1,
            "token": {"id": 5, "text": text, "logprob": -0.5, "special": False},
            "generated_text": None,
            "details": None,
        }
        if last:
            frame["generated_text"] = "whatever"
            frame["details"] = {"finish_reason": "eos_token", "generated_tokens": 3, "seed": None}
            if noise.random() < 0.5:
                frame["token"] |= {"text": "</s>", "special": True}
        return frame
    if last:
        frame["done_reason"] = noise.choice(["stop", "length"])
    if probs is not None:
        frame["logprobs"] = probs
    return frame


def reasoning(dialect: str, text: str, index: int, noise: Random) -> Json:
    if dialect == "openai.chat":
        return {
            "choices": [
                {
                    "index": index,
                    "delta": {noise.choice(["reasoning", "reasoning_content"]): text},
                    "finish_reason": None,
                }
            ]
        }
    if dialect == "gemini":
        return {
            "candidates": [
                {
                    "content": {"parts": [{"text": text, "thought": True}], "role": "model"},
                    "index": index,
                }
            ]
        }
    if dialect == "ollama.chat":
        return {"message": {"role": "assistant", "content": "", "thinking": text}, "done": False}
    return {"response": "", "thinking": text, "done": False}


LISTED = ("openai.chat", "openai.completions", "gemini")
THINKING = ("openai.chat", "gemini", "ollama.chat", "ollama.generate")
FINISH = {
    "openai.chat": ["stop", "length", "tool_calls"],
    "openai.completions": ["stop", "length"],
    "gemini": ["STOP", "MAX_TOKENS"],
}


@st.composite
def options_for(draw: st.DrawFn, dialect: str, count: int) -> Options:
    options = Options(
        choices=draw(st.sampled_from([None, count])),
        cut_reasoning=draw(st.booleans()),
        stop_field=draw(st.sampled_from(["auto", "auto", None, "fired"])),
        on_match=draw(st.sampled_from(["cancel", "drain"])),
        on_error=draw(st.sampled_from(["flush", "drop"])),
    )
    if dialect == "openai.completions":
        options.skip_chars = draw(st.sampled_from([0, 0, 1, 3, 7]))
    if draw(st.integers(0, 4)) == 0:
        options.stream["include_stop"] = True
    if draw(st.integers(0, 3)) == 0:
        options.stream["ignore_inside"] = [("<think>", "</think>")]
        options.stream["start_inside"] = draw(st.booleans())
    if draw(st.integers(0, 7)) == 0:
        options.stream["min_chars"] = draw(st.integers(1, 9))
    if draw(st.integers(0, 5)) == 0:
        options.stream["atomic"] = ["<think>", "</think>"]
    return options


def move(made: list[Json], noise: Random) -> None:
    """The text of some answers stands where the other dialect has it, or in `message`."""
    if noise.random() < 0.75:
        return
    place = noise.choice(["delta", "message", "text"])
    for choice in (choice for data in made for choice in data["choices"]):
        holder = choice.get("delta", choice)
        name = "content" if "delta" in choice else "text"
        if isinstance(holder.get(name), str):
            text = holder.pop(name)
            if place == "text":
                choice["text"] = text
            else:
                choice.setdefault(place, {})["content"] = text


def copied(made: list[Json], noise: Random) -> None:
    """Some servers say each piece twice, or the text so far beside it."""
    if noise.random() < 0.7:
        return
    so_far, kinds = {}, noise.choice([["piece"], ["so far"], ["piece", "so far", "", "none"]])
    slot = noise.choice(["delta", "message", "text"])
    for choice in (choice for data in made for choice in data["choices"]):
        texts = [
            choice[name]["content"]
            for name in ("delta", "message")
            if isinstance((choice.get(name) or {}).get("content"), str)
        ]
        piece = [*texts, choice.get("text") or ""][0]
        so_far[choice["index"]] = so_far.get(choice["index"], "") + piece
        said = {"piece": piece, "so far": so_far[choice["index"]], "": ""}.get(noise.choice(kinds))
        if said is None or slot in choice:
            continue
        choice[slot] = said if slot == "text" else {"content": said}


def number_chunks(made: list[Json]) -> None:
    """Each chunk of the one choice has the next number."""
    number = 0
    for data in made:
        for choice in data.get("choices") or data.get("candidates") or []:
            choice["index"] = number % 10  # larger ones are written in other ways, too
            number += 1


@st.composite
def cases(draw: st.DrawFn, dialect: str) -> Case:
    # The structure is hypothesis's, so that it can be shrunk; the spelling comes from a seed, which
    # is a hundred times faster.
    noise = Random(draw(st.integers(0, 1 << 32)))
    count = draw(st.integers(1, 3)) if dialect in LISTED else 1
    stops = draw(st.lists(st.sampled_from(STOPS), max_size=5, unique=True))
    writer = Writer(dialect, noise, draw(st.sampled_from(["\n", "\n", "\r\n"])))
    logprobs = draw(st.integers(0, 3)) == 0
    texts = draw(
        st.lists(
            st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
            min_size=count,
            max_size=count,
        )
    )
    queues = [cut_up(text, noise) for text in texts]
    made: list[Any] = []
    if dialect in THINKING:
        for index in range(count):
            thought = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=3)))
            made += [reasoning(dialect, delta, index, noise) for delta in cut_up(thought, noise)]
    ends = draw(st.booleans())
    last_alone = draw(st.booleans())
    live = list(range(count))
    while live and dialect in LISTED:
        group = (
            [noise.choice(live)]
            if noise.random() < 0.7
            else sorted(noise.sample(live, noise.randint(1, len(live))))
        )
        choices, name = [], "choices"
        for index in group:
            text = queues[index].pop(0) if queues[index] else ""
            over = not queues[index] and (not last_alone or text == "")
            last = noise.choice(FINISH[dialect]) if over and ends else None
            name, choice = chunk(dialect, index, text, noise, logprobs, last)
            if last and last_alone and dialect == "openai.chat":
                choice["delta"] = noise.choice([{}, {"content": None}, {"content": ""}])
                choice["logprobs"] = None
            choices.append(choice)
            if over:
                live.remove(index)
        made.append({"id": "x", name: choices} | extras(noise))
    if dialect in ("openai.chat", "openai.completions"):
        move(made, noise)
        copied(made, noise)
    options = draw(options_for(dialect, count))
    if options.choices == 1 and noise.random() < 0.3:
        number_chunks(made)
    if dialect not in LISTED:
        deltas = queues[0]
        made += [single(dialect, delta, noise, logprobs, False) | extras(noise) for delta in deltas]
        if ends:
            made.append(
                single(dialect, "" if last_alone else noise.choice(PIECES), noise, logprobs, True)
                | extras(noise)
            )
    if draw(st.integers(0, 5)) == 0:
        made.insert(noise.randint(0, len(made)), {"error": {"message": "content: END"}})
    if ends and dialect.startswith("openai") and draw(st.booleans()):
        made.append({"choices": [], "usage": {"completion_tokens": 5}})
    if ends and dialect.startswith("openai"):
        made.append("[DONE]")
    frames = []
    for data in made:
        if noise.random() < 0.1:
            frames += writer.noise_frames()
        frames.append(writer.frame(data))
    return Case(dialect, stops, options, frames, writer.end)


# --- typed events
# -----------------------------------------------------------------------------------------------------


def anthropic(blocks: list[tuple[str, list[str]]], noise: Random, ends: bool) -> list[Json]:
    """A message of text, thinking and tool blocks."""
    made: list[Json] = []
    if noise.random() < 0.8:
        made.append(
            {
                "type": "message_start",
                "message": {"content": [], "usage": {"output_tokens": noise.randint(1, 9)}},
            }
        )
    for index, (kind, deltas) in enumerate(blocks):
        first = noise.choice(["", "", "a"]) if kind == "text" else ""
        name = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}[kind]
        made.append(
            {
                "type": "content_block_start",
                "index": index,
                "content_block": {"type": kind, name: first},
            }
        )
        delta = {
            "text": "text_delta",
            "thinking": "thinking_delta",
            "tool_use": "input_json_delta",
        }[kind]
        made += [
            {"type": "content_block_delta", "index": index, "delta": {"type": delta, name: text}}
            | ({"x": 1} if noise.random() < 0.2 else {})
            for text in deltas
        ]
        if noise.random() < 0.2:
            made.append({"type": "ping"})
        if noise.random() < 0.9:
            made.append({"type": "content_block_stop", "index": index})
    if noise.random() < 0.15:
        made.insert(noise.randint(0, len(made)), {"type": "error", "error": {"message": "END"}})
    if ends:
        made.append(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 12},
            }
        )
        made.append({"type": "message_stop"})
    return made


def cohere(blocks: list[tuple[str, list[str]]], noise: Random, ends: bool) -> list[Json]:
    """A message of text and thinking blocks, citations and calls."""
    made: list[Json] = []
    if noise.random() < 0.8:
        made.append({"type": "message-start", "id": "x", "delta": {"message": {"content": []}}})
    for index, (kind, deltas) in enumerate(blocks):
        if kind == "tool_use":
            plan = {"message": {"tool_plan": "".join(deltas)}}
            made.append({"type": "tool-plan-delta", "delta": plan})
            made.append({"type": "tool-call-start", "index": index, "delta": {"message": {}}})
            continue
        first: Json = {"type": kind, kind: noise.choice(["", "", "a"]) if kind == "text" else ""}
        start = {"message": {"content": first}}
        if noise.random() < 0.8:
            made.append({"type": "content-start", "index": index, "delta": start})
        for text in deltas:
            content = {"message": {"content": {kind: text}}}
            more = {"logprobs": {"text": text}} if noise.random() < 0.2 else {}
            made.append({"type": "content-delta", "index": index, "delta": content, **more})
        if noise.random() < 0.2:
            made.append({"type": "citation-start", "index": 0, "delta": {"message": {}}})
        if noise.random() < 0.9:
            made.append({"type": "content-end", "index": index})
    if noise.random() < 0.15:
        made.insert(noise.randint(0, len(made)), {"type": "error", "message": "END"})
    if ends:
        delta = {"finish_reason": noise.choice(["COMPLETE", "MAX_TOKENS", "STOP_SEQUENCE"])}
        made.append({"type": "message-end", "delta": delta})
    return made


def responses(
    blocks: list[tuple[str, list[str]]], noise: Random, ends: bool, logprobs: bool
) -> list[Json]:
    """A response of messages, reasoning and calls, with its repeats."""
    base = {
        "id": "resp",
        "status": "in_progress",
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    made: list[Json] = (
        [{"type": "response.created", "response": base}] if noise.random() < 0.8 else []
    )
    output: list[Json] = []
    for index, (kind, deltas) in enumerate(blocks):
        if kind == "tool_use":
            call = {"type": "function_call", "arguments": "END", "content": []}
            made.append(
                {
                    "type": "response.function_call_arguments.delta",
                    "output_index": index,
                    "delta": "".join(deltas),
                }
            )
            made.append({"type": "response.output_item.done", "output_index": index, "item": call})
            output.append(call)
            continue
        name = "output_text" if kind == "text" else "reasoning_text"
        item: Json = {
            "id": f"i{index}",
            "type": "message" if kind == "text" else "reasoning",
            "status": "in_progress",
            "content": [],
        }
        if noise.random() < 0.8:
            made.append(
                {
                    "type": "response.output_item.added",
                    "output_index": index,
                    "item": copy.deepcopy(item),
                }
            )
        halves = (
            [deltas]
            if noise.random() < 0.7
            else [deltas[: len(deltas) // 2], deltas[len(deltas) // 2 :]]
        )
        for content, half in enumerate(halves):
            place = {"item_id": f"i{index}", "output_index": index, "content_index": content}
            part: Json = {"type": name, "text": ""} | (
                {"logprobs": [], "annotations": []} if kind == "text" else {}
            )
            if noise.random() < 0.8:
                made.append({"type": "response.content_part.added", **place, "part": dict(part)})
            rows: list[Json] = []
            for text in half:
                probs = entries(text, noise) if logprobs and kind == "text" else []
                rows += probs
                more = {"logprobs": probs} if kind == "text" else {}
                made.append({"type": f"response.{name}.delta", **place, "delta": text, **more})
                if kind == "text" and noise.random() < 0.1:
                    note = {"type": "url_citation", "title": text}
                    made.append(
                        {
                            "type": "response.output_text.annotation.added",
                            **place,
                            "annotation": note,
                        }
                    )
            text = "".join(half)
            part |= {"text": text} | ({"logprobs": rows} if kind == "text" else {})
            item["content"].append(part)
            made.append({"type": f"response.{name}.done", **place, "text": text})
            made.append({"type": "response.content_part.done", **place, "part": dict(part)})
        item["status"] = noise.choice(["completed", "incomplete"])
        made.append(
            {
                "type": "response.output_item.done",
                "output_index": index,
                "item": copy.deepcopy(item),
            }
        )
        output.append(item)
    if noise.random() < 0.15:
        made.insert(noise.randint(0, len(made)), {"type": "error", "message": "END"})
    if ends:
        status = noise.choice(["completed", "incomplete"])
        last = base | {
            "status": status,
            "output": output,
            "incomplete_details": {"reason": "x"} if status == "incomplete" else None,
        }
        made.append({"type": f"response.{status}", "response": last})
    if noise.random() < 0.8:
        made = [event | {"sequence_number": number} for number, event in enumerate(made)]
    return made


@st.composite
def event_cases(draw: st.DrawFn, dialect: str) -> Case:
    noise = Random(draw(st.integers(0, 1 << 32)))
    stops = draw(st.lists(st.sampled_from(STOPS), max_size=5, unique=True))
    writer = Writer(dialect, noise, draw(st.sampled_from(["\n", "\n", "\r\n"])))
    kinds = draw(
        st.lists(st.sampled_from(["text", "text", "thinking", "tool_use"]), min_size=1, max_size=3)
    )
    texts = [draw(st.lists(st.sampled_from(PIECES), max_size=8).map("".join)) for _ in kinds]
    blocks = [(kind, cut_up(text, noise)) for kind, text in zip(kinds, texts, strict=True)]
    ends = draw(st.booleans())
    logprobs = draw(st.booleans())
    if dialect == "openai.responses":
        made = responses(blocks, noise, ends, logprobs)
    else:
        made = {"anthropic.messages": anthropic, "cohere.chat": cohere}[dialect](
            blocks, noise, ends
        )
    frames = []
    for data in made:
        if noise.random() < 0.1:
            frames += writer.noise_frames()
        frames.append(writer.frame(data))
    return Case(dialect, stops, draw(options_for(dialect, 1)), frames, writer.end)
