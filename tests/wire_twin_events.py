"""The slow twin for the two dialects of typed events: Anthropic's Messages and the Responses API."""

from __future__ import annotations

import copy
from typing import Any

from wire_twin import ABSENT, COLUMNS, Frame, Json, Lane, Options, sort_entries

Key = tuple[int, int, bool]


class Events:
    """What both have in common: one lane a block, all made when they turn up."""

    def __init__(self, stops: list[str], options: Options) -> None:
        self.stops, self.options = stops, options
        self.lanes: dict[Key, Lane] = {}
        self.made_lanes: list[Lane] = []
        self.patterns: dict[Key, Frame] = {}
        self.out: list[Frame] = []
        self.matches: list[tuple[str, tuple[int, int], bool, tuple[int, int]]] = []
        self.ended = self.cut = False
        self.matched: tuple[Key, str, Lane] | None = None

    def run(self, frames: list[Frame]) -> None:
        for frame in frames:
            if self.cut:
                return
            if isinstance(frame.data, dict):
                self.read(frame, copy.deepcopy(frame.data))
            else:
                self.out.append(frame)
        if not self.cut:
            self.finish()

    def lane(self, key: Key) -> Lane:
        if key not in self.lanes:
            self.lanes[key] = Lane(self.stops, self.options, 0)
            self.made_lanes.append(self.lanes[key])
        return self.lanes[key]

    @property
    def characters(self) -> int:
        """Read as text."""
        return sum(lane.characters for lane in self.made_lanes)

    def record(self, key: Key, lane: Lane, match: Any) -> None:
        self.matches.append((match.stop, key[:2], key[2], lane.span(match)))

    def own(self, data: Json) -> None:
        self.out.append(Frame(data, data["type"]))

    def put(self, frame: Frame, data: Json, touched: bool = False) -> None:
        self.out.append(frame if data == frame.data and not touched else Frame(data, data["type"]))

    def read(self, frame: Frame, data: Json) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError


class Anthropic(Events):
    """`content_block_delta` and the like."""

    def __init__(self, stops: list[str], options: Options) -> None:
        super().__init__(stops, options)
        self.closed = self.told = False
        self.tokens: Any = 0

    def read(self, frame: Frame, data: Json) -> None:
        usage = data.get("usage") or (data.get("message") or {}).get("usage") or {}
        self.tokens = usage.get("output_tokens", self.tokens)
        kind = data["type"]
        if kind in ("content_block_start", "content_block_delta"):
            if not self.matched:
                self.block(frame, data)
        elif kind == "content_block_stop":
            if self.matched:
                if self.matched[0][1] != data["index"] or self.closed:
                    return
            else:
                for reasoning in (True, False):
                    key = (0, data["index"], reasoning)
                    if key in self.lanes and (match := self.flush_lane(key, self.lanes.pop(key))):
                        self.end(key, match)
                        if self.ended:
                            return
            self.closed = True
            self.out.append(frame)
        elif kind == "message_delta":
            self.flush()
            if self.matched:
                data["delta"] |= {
                    "stop_reason": "stop_sequence",
                    "stop_sequence": self.matched[1],
                } | self.field()
                self.told = True
            self.put(frame, data, bool(self.matched))
        elif kind == "message_stop":
            self.flush()
            self.ends()
            self.out.append(frame)
            self.ended = True
        else:
            if kind == "error":
                self.fail()
            self.out.append(frame)

    def field(self) -> Json:
        name = self.options.stop_field
        return {name: self.matched[1]} if self.matched and name not in (None, "auto") else {}

    def block(self, frame: Frame, data: Json) -> None:
        holder = data.get("delta") or data.get("content_block") or {}
        text = {"text_delta": "text", "text": "text"}.get(holder.get("type", ""))
        thinking = {"thinking_delta": "thinking", "thinking": "thinking"}.get(
            holder.get("type", "")
        )
        name = text or (thinking if self.options.cut_reasoning else None)
        starts = data["type"] == "content_block_start"
        if not name or not isinstance(holder.get(name), str) or (starts and not holder[name]):
            self.out.append(frame)
            return
        key = (0, data["index"], name == "thinking")
        lane = self.lane(key)
        touched = lane.holds
        holder[name], match = lane.feed(holder[name])
        if lane.holds and not starts:
            self.patterns[key] = frame
        self.put(frame, data, touched or lane.holds)
        if match:
            self.end(key, match)

    def end(self, key: Key, match: Any) -> None:
        lane = self.lanes.get(key) or Lane(self.stops, self.options, 0)
        self.matched, self.closed = (key, match.stop, lane), False
        self.matches.append((match.stop, key[:2], key[2], lane.span(match)))
        self.lanes = {}
        if self.options.on_match == "cancel":
            self.ends()
            self.own({"type": "message_stop"})
            self.ended = self.cut = True

    def ends(self) -> None:
        if not self.matched:
            return
        if not self.closed:
            self.own({"type": "content_block_stop", "index": self.matched[0][1]})
            self.closed = True
        if not self.told:
            delta = {
                "stop_reason": "stop_sequence",
                "stop_sequence": self.matched[1],
            } | self.field()
            self.own(
                {"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.tokens}}
            )
            self.told = True

    def flush_lane(self, key: Key, lane: Lane) -> Any:
        if not lane.holds:
            return None
        text, match = lane.flush()
        kind, name = ("thinking_delta", "thinking") if key[2] else ("text_delta", "text")
        made = {"type": "content_block_delta", "index": key[1], "delta": {"type": kind, name: text}}
        if key in self.patterns:
            made = copy.deepcopy(self.patterns[key].data)
            made["delta"][name] = text
        self.own(made)
        return match

    def flush(self) -> None:
        for key, lane in self.lanes.items():
            if match := self.flush_lane(key, lane):
                self.matched = (key, match.stop, lane)
                self.record(key, lane, match)
        self.lanes = {}

    def fail(self) -> None:
        if self.options.on_error == "drop":
            for lane in self.lanes.values():
                lane.drop()
        self.flush()

    def finish(self) -> None:
        self.flush()
        if self.matched and not self.ended:
            self.ends()
            self.own({"type": "message_stop"})
            self.ended = self.cut = True


class Responses(Events):
    """`response.output_text.delta` and the four repeats of the text."""

    def __init__(self, stops: list[str], options: Options) -> None:
        super().__init__(stops, options)
        self.made = 0
        self.number: int | None = None
        self.response: Json | None = None
        self.item: Json | None = None
        self.item_at: int | None = None
        self.told: tuple[Any, list[Any], list[Any]] = (
            None,
            [],
            [],
        )  # of the last part: annotations and log-probabilities
        self.part: Json | None = None
        self.items: list[Any] = []
        self.parts: list[Any] = []
        self.item_id, self.closed = "", 0

    def read(self, frame: Frame, data: Json) -> None:
        kind = data["type"].removeprefix("response.")
        reasoning = kind.startswith("reasoning_text")
        key = (data.get("output_index", 0), data.get("content_index", 0), reasoning)
        if self.matched:
            self.drained(frame, data, kind)
            return
        if kind in ("output_text.delta", "reasoning_text.delta") and (
            not reasoning or self.options.cut_reasoning
        ):
            self.delta(frame, data, key)
            return
        if kind in ("output_text.done", "reasoning_text.done"):
            if key in self.lanes:
                lane = self.lanes.pop(key)
                if match := self.flush_lane(key, lane):
                    self.end(key, lane, match, data.get("item_id", ""))
                    if self.ended:
                        return
        elif kind in ("completed", "incomplete", "failed"):
            self.flush()
            self.ended = True
        elif kind == "error":
            if self.options.on_error == "drop":
                for lane in self.lanes.values():
                    lane.drop()
            self.flush()
        else:
            self.remember(data, kind)
        self.numbered(frame, data)

    def numbered(self, frame: Frame, data: Json, touched: bool = False) -> None:
        if isinstance(data.get("sequence_number"), int):
            data["sequence_number"] += self.made
            self.number = data["sequence_number"]
        self.put(frame, data, touched)

    def told_of(self, part: tuple[int, int]) -> tuple[list[Any], list[Any]]:
        if self.told[0] != part:
            self.told = (part, [], [])
        return self.told[1], self.told[2]

    def remember(self, data: Json, kind: str) -> None:
        if kind == "output_text.annotation.added":
            self.told_of((data.get("output_index", 0), data.get("content_index", 0)))[0].append(
                data["annotation"]
            )
        if kind in ("created", "in_progress"):
            self.response = data["response"]
        elif kind == "output_item.added":
            self.item, self.parts, self.part = data["item"], [], None
            self.item_at = data.get("output_index")
        elif kind == "content_part.added":
            self.part = data["part"]
        elif kind == "content_part.done":
            self.parts.append(data["part"])
        elif kind == "output_item.done":
            self.items.append(data["item"])
            self.item, self.parts = None, []

    def delta(self, frame: Frame, data: Json, key: Key) -> None:
        lane = self.lane(key)
        start, touched = lane.came, lane.holds
        data["delta"], match = lane.feed(data["delta"])
        probs = data.get("logprobs")
        columns = [probs if isinstance(probs, list) else None, None, None, None]
        if columns[0] is not None or lane.entries:
            kept = sort_entries(lane, columns, start, bool(match))
            if kept is not None:
                data["logprobs"] = kept[0]
            self.told_of(key[:2])[1].extend(data.get("logprobs") or [])
        if lane.holds:
            self.patterns[key] = frame
        self.numbered(frame, data, touched or lane.holds)
        if match:
            self.lanes.pop(key)
            self.end(key, lane, match, data.get("item_id", ""))

    def flush_lane(self, key: Key, lane: Lane) -> Any:
        if not lane.holds:
            return None
        text, match = lane.flush()
        entries = [values[0] for _, values in lane.entries if values[0] is not ABSENT]
        lane.entries = []
        self.told_of(key[:2])[1].extend(entries)
        made = copy.deepcopy(self.patterns[key].data)
        made["delta"] = text
        if isinstance(made.get("logprobs"), list):
            made["logprobs"] = entries
        if self.number is not None and "sequence_number" in made:
            self.number += 1
            made["sequence_number"] = self.number
            self.made += 1
        self.own(made)
        return match

    def flush(self) -> None:
        for key, lane in self.lanes.items():
            if match := self.flush_lane(key, lane):
                self.record(key, lane, match)
        self.lanes = {}

    def end(self, key: Key, lane: Lane, match: Any, item_id: str) -> None:
        self.record(key, lane, match)
        self.matched, self.item_id = (key, match.stop, lane), item_id
        if self.options.on_match == "cancel":
            self.ends()

    def numbered_own(self, kind: str, **more: Any) -> None:
        self.number = 0 if self.number is None else self.number + 1
        self.own({"type": f"response.{kind}", "sequence_number": self.number, **more})

    def ends(self) -> None:
        assert self.matched
        (output, content, reasoning), stop, lane = self.matched
        name = "reasoning_text" if reasoning else "output_text"
        if self.item_at not in (None, output):
            self.item, self.part, self.parts = None, None, []
        place = {"item_id": self.item_id, "output_index": output, "content_index": content}
        notes, probs = self.told_of((output, content))
        if self.closed < 1:
            self.numbered_own(
                f"{name}.done",
                **place,
                text=lane.said,
                **({} if reasoning else {"logprobs": probs}),
            )
        if self.part is not None and isinstance(self.part.get("text"), str):
            part = (
                self.part
                | {"text": lane.said}
                | ({"logprobs": probs} if isinstance(self.part.get("logprobs"), list) else {})
                | (
                    {"annotations": notes}
                    if notes and isinstance(self.part.get("annotations"), list)
                    else {}
                )
            )
        else:
            part = {"type": name, "text": lane.said} | (
                {} if reasoning else {"annotations": notes, "logprobs": probs}
            )
        if self.closed < 2:
            self.numbered_own("content_part.done", **place, part=part)
        parts = [*self.parts, part]
        if self.item is not None:
            item = (
                self.item
                | {"content": parts}
                | ({"status": "completed"} if "status" in self.item else {})
            )
        elif reasoning:
            item = {
                "id": self.item_id,
                "type": "reasoning",
                "status": "completed",
                "summary": [],
                "content": parts,
            }
        else:
            item = {
                "id": self.item_id,
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": parts,
            }
        if self.closed < 3:
            self.numbered_own("output_item.done", output_index=output, item=item)
        base = (
            self.response
            if self.response is not None
            else {"id": "", "object": "response", "status": "completed"}
        )
        response = base | {"output": [*self.items, item]}
        self.complete(response, stop)
        self.numbered_own("completed", response=response)
        self.ended = self.cut = True

    def complete(self, response: Json, stop: str) -> None:
        if "status" in response:
            response["status"] = "completed"
            if self.options.stop_field not in (None, "auto"):
                response[self.options.stop_field or ""] = stop
        if "incomplete_details" in response:
            response["incomplete_details"] = None

    def drained(self, frame: Frame, data: Json, kind: str) -> None:
        assert self.matched
        (output, content, _), stop, _ = self.matched
        here = "output_index" in data and (data["output_index"], data.get("content_index", 0)) == (
            output,
            content,
        )
        if kind in ("completed", "incomplete"):
            response = data["response"]
            del response["output"][output + 1 :]
            if len(response["output"]) > output:
                self.cut_item(response["output"][output])
            self.complete(response, stop)
            data["type"] = "response.completed"
            self.ended = True
        elif kind == "failed":
            self.ended = True
        elif kind in ("output_text.done", "reasoning_text.done") and here:
            self.cut_part(data)
            self.closed = 1
        elif kind == "content_part.done" and here:
            self.cut_part(data["part"])
            self.closed = 2
        elif kind == "output_item.done" and data.get("output_index") == output:
            self.cut_item(data["item"])
            self.closed = 3
        elif "output_index" in data and data["output_index"] >= output:
            return
        self.numbered(frame, data, kind != "error")

    def cut_item(self, item: Json) -> None:
        assert self.matched
        content = self.matched[0][1]
        if item.get("status") == "incomplete":
            item["status"] = "completed"
        del item["content"][content + 1 :]
        if len(item["content"]) > content:
            self.cut_part(item["content"][content])

    def cut_part(self, part: Json) -> None:
        assert self.matched
        lane = self.matched[2]
        if isinstance(part.get("text"), str):
            part["text"] = lane.said
        if isinstance(part.get("logprobs"), list):
            fresh = Lane(self.stops, self.options, 0)
            fresh.left = lane.left
            kept = sort_entries(fresh, [part["logprobs"]] + [None] * (COLUMNS - 1), 0, over=True)
            part["logprobs"] = part["logprobs"] if kept is None else kept[0]

    def finish(self) -> None:
        for key, lane in self.lanes.items():
            if match := self.flush_lane(key, lane):
                self.end(key, lane, match, self.patterns[key].data.get("item_id", ""))
                break
        if self.matched and not self.ended:
            self.ends()


class Cohere(Events):
    """`content-delta`, with text in `delta.message.content`."""

    def __init__(self, stops: list[str], options: Options) -> None:
        super().__init__(stops, options)
        self.closed = False

    def read(self, frame: Frame, data: Json) -> None:
        kind = data["type"]
        if kind in ("content-start", "content-delta"):
            if not self.matched:
                self.block(frame, data)
            return
        if kind == "content-end":
            if self.matched:
                if self.matched[0][1] != data["index"] or self.closed:
                    return
            else:
                for key in ((0, data["index"], True), (0, data["index"], False)):
                    if key in self.lanes and (match := self.flush_lane(key, self.lanes.pop(key))):
                        self.end(key, match)
                        if self.ended:
                            return
            self.closed = True
        elif kind == "message-end":
            self.flush()
            self.close()
            if self.matched:
                data["delta"] |= {"finish_reason": "STOP_SEQUENCE"} | self.field()
            self.ended = True
        elif kind == "error":
            if self.options.on_error == "drop":
                for lane in self.lanes.values():
                    lane.drop()
            self.flush()
        elif self.matched and kind.startswith(("tool-", "citation-")):
            return
        # A reason that was the right one may have been written in another spelling.
        self.put(frame, data, kind == "message-end" and bool(self.matched))

    def field(self) -> Json:
        name = self.options.stop_field
        return {name: self.matched[1]} if self.matched and name not in (None, "auto") else {}

    def block(self, frame: Frame, data: Json) -> None:
        content = data["delta"]["message"]["content"]
        name = "text" if "text" in content else "thinking"
        if not content[name] or (name == "thinking" and not self.options.cut_reasoning):
            self.out.append(frame)
            return
        key = (0, data["index"], name == "thinking")
        lane = self.lane(key)
        touched = lane.holds
        content[name], match = lane.feed(content[name])
        if "logprobs" in data and (touched or lane.holds or match):
            data["logprobs"] = None
        if lane.holds:
            self.patterns[key] = frame
        self.put(frame, data, touched or lane.holds)
        if match:
            self.end(key, match)

    def note(self, key: Key, match: Any) -> None:
        lane = self.lanes.get(key) or Lane(self.stops, self.options, 0)
        self.matched, self.closed = (key, match.stop, lane), False
        self.record(key, lane, match)

    def end(self, key: Key, match: Any) -> None:
        self.note(key, match)
        self.lanes = {}
        if self.options.on_match == "cancel":
            self.ends()

    def close(self) -> None:
        if self.matched and not self.closed:
            self.own({"type": "content-end", "index": self.matched[0][1]})
            self.closed = True

    def ends(self) -> None:
        self.close()
        delta = {"finish_reason": "STOP_SEQUENCE"} | self.field()
        self.own({"type": "message-end", "delta": delta})
        self.ended = self.cut = True

    def flush_lane(self, key: Key, lane: Lane) -> Any:
        if not lane.holds:
            return None
        text, match = lane.flush()
        made = copy.deepcopy(self.patterns[key].data)
        made["delta"]["message"]["content"]["thinking" if key[2] else "text"] = text
        if "logprobs" in made:
            made["logprobs"] = None
        self.own(made)
        return match

    def flush(self) -> None:
        for key, lane in self.lanes.items():
            if match := self.flush_lane(key, lane):
                self.note(key, match)
        self.lanes = {}

    def finish(self) -> None:
        self.flush()
        if self.matched and not self.ended:
            self.ends()


TWINS: dict[str, type[Events]] = {
    "anthropic.messages": Anthropic,
    "openai.responses": Responses,
    "cohere.chat": Cohere,
}
