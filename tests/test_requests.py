"""One reading, one plan and one rewriting of a request, whoever asks: gateway, httpx, ASGI."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import providers, wire
from holdback._requests import (
    BadRequestError,
    Limits,
    decoded,
    facts_for,
    prepare,
    read_ask,
    split_stops,
)
from holdback.dialects import DIALECTS, dialect_of
from holdback.integrations._requests import RefusedError, read_exchange
from holdback.serve.config import Config, Upstream
from holdback.serve.planning import prepare as prepare_at_gateway
from holdback.wire import Dialect

CHAT = "/v1/chat/completions"


def at_gateway(path: str, raw: bytes, dialect: Dialect, **upstream: Any) -> bytes:
    ask = read_ask(dialect, path, raw)
    up = Upstream("up", "http://up", "openai", **upstream)
    return prepare_at_gateway(ask, up, "", Config()).body


def at_adapter(path: str, raw: bytes, **options: Any) -> bytes:
    exchange = read_exchange(path, "", raw, **{"host": "api.openai.com", **options})
    assert exchange is not None
    return exchange.body


@pytest.mark.parametrize("temperature", [b"1e999", b"-1e999", b"1.50", b"1E2"])
def test_a_number_goes_on_as_it_came(temperature: bytes) -> None:
    """It once was read and written again, as `Infinity`, which is not JSON."""
    raw = b'{"model":"gpt-4.1","stop":["a","b","c","d","e"],"temperature":%b}' % temperature
    for body in (at_gateway(CHAT, raw, "openai.chat"), at_adapter(CHAT, raw)):
        assert b'"temperature":%b' % temperature in body


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"nul"])
def test_what_is_not_json_is_refused(word: bytes) -> None:
    raw = b'{"model":"gpt-4.1","stop":["a","b","c","d","e"],"temperature":%b}' % word
    with pytest.raises(BadRequestError, match="not a value of JSON, at byte"):
        read_ask("openai.chat", CHAT, raw)
    with pytest.raises(RefusedError):
        at_adapter(CHAT, raw)


@pytest.mark.parametrize("stop", [b"[]", b"null", b'["a"]', b'"a"'])
def test_an_api_without_the_field_is_never_sent_it(stop: bytes) -> None:
    raw = b'{"model":"gpt-4.1","input":"x","stop":%b}' % stop
    for body in (
        at_adapter("/v1/responses", raw, stop=["END"]),
        at_gateway("/v1/responses", raw, "openai.responses", stops=("END",)),
    ):
        assert "stop" not in json.loads(body)


def test_text_is_not_escaped() -> None:
    raw = json.dumps({"stop": list("abcde"), "messages": "東京" * 9}, ensure_ascii=False).encode()
    for body in (at_gateway(CHAT, raw, "openai.chat"), at_adapter(CHAT, raw)):
        assert ("東京" * 9).encode() in body


class Seen(dict[str, Any]):
    """A body that notes which fields are looked at."""

    def __init__(self, value: Any, path: tuple[str, ...], seen: set[tuple[str, ...]]) -> None:
        super().__init__(value)
        self.path, self.seen = path, seen

    def get(self, key: str, default: Any = None) -> Any:
        self.seen.add((*self.path, key))
        value = super().get(key, default)
        return Seen(value, (*self.path, key), self.seen) if isinstance(value, dict) else value

    __getitem__ = get  # type: ignore[assignment]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_reads_the_fields_that_it_names(dialect: Dialect) -> None:
    """A field that it does not name is not read from the request, so what depends on it would never
    see it.
    """
    spec = DIALECTS[dialect]
    seen = set[tuple[str, ...]]()
    holders = {field[0]: {} for field in (*spec.reads, *spec.stop_fields) if len(field) > 1}
    for flag in (True, False):
        body = Seen({**holders, "echo": flag, "background": flag}, (), seen)
        for path in (spec.paths[0], "/"):
            for read in (spec.model, spec.wants_stream, spec.assemble):
                read(path, body)
        for look in (spec.choices, spec.echoed, spec.has_stream_form, spec.refusal):
            look(body)
        spec.ask_for_stream(spec.paths[0], "", body, True)
    inner = {path for path in seen if path[:1] not in {(key,) for key in holders} or len(path) > 1}
    assert inner <= set(spec.reads)


@given(
    dialect=st.sampled_from(wire.DIALECTS),
    provider=st.sampled_from([None, *providers.names()]),
    stops=st.lists(st.text(min_size=1, max_size=3), max_size=6, unique=True),
    more=st.lists(st.text(min_size=1, max_size=3), max_size=3, unique=True),
    stream=st.booleans(),
    flags=st.tuples(*[st.booleans()] * 5),
)
def test_no_stop_is_lost(
    dialect: Dialect,
    provider: str | None,
    stops: list[str],
    more: list[str],
    stream: bool,
    flags: tuple[bool, ...],
) -> None:
    """Every stop is in what is sent, or is enforced here, or both."""
    spec = DIALECTS[dialect]
    body: Any = {"model": "m"}
    holder = body
    for key in spec.stop_fields[0][:-1]:
        holder = holder.setdefault(key, {})
    holder[spec.stop_fields[0][-1]] = stops
    path, _ = spec.ask_for_stream(spec.paths[0], "", body, False) if stream else (spec.paths[0], "")
    must_name, local, guess, assemble, as_events = flags
    ask = read_ask(dialect, path, json.dumps(body).encode())
    job = prepare(
        ask, "", more=tuple(more), provider=provider, must_name=must_name, local=local, guess=guess,
        assemble=assemble, as_events=as_events,
    )  # fmt: skip
    enforced = set(job.stops.stops) if job.stops else set()
    sent: Any = json.loads(job.body)
    for key in spec.stop_fields[0]:
        sent = sent.get(key, {}) if isinstance(sent, dict) else {}
    assert set(sent or ()) | enforced == {*stops, *more}
    assert sent != [] or not stops
    assert not (local and set(sent or ()))
    if job.mode == "assemble":
        assert spec.wants_stream(job.path, json.loads(job.body))
    assert (job.mode == "pass") == (not enforced)


@given(dialect=st.sampled_from(wire.DIALECTS), raw=st.binary(max_size=30), data=st.data())
def test_any_bytes_are_read_without_a_surprise(
    dialect: Dialect, raw: bytes, data: st.DataObject
) -> None:
    spec = DIALECTS[dialect]
    keys = sorted({key for field in (*spec.reads, *spec.stop_fields) for key in field})
    scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
    trees = st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=4)
        ),
        max_leaves=9,
    )
    body = data.draw(st.dictionaries(st.sampled_from(keys), trees, max_size=6))
    for text in (raw, json.dumps(body).encode()):
        for path in (spec.paths[0], "/"):
            try:
                job = prepare(read_ask(dialect, path, text), "", more=("x",), must_name=True)
            except BadRequestError as error:
                reason = str(error)
            else:
                reason = "" if job.stops else "nothing is enforced"
            assert reason != "nothing is enforced"


BAD_STOPS: list[tuple[str, bytes, str]] = [
    (CHAT, b'{"stop":["a",""]}', "stop"),
    (CHAT, b'{"stop":["a",1]}', "string or a list of strings"),
    (CHAT, b'{"stop":{"a":1}}', "string or a list of strings"),
    (CHAT, b'{"stop":["a"],"stop":["b"]}', "twice"),
    ("/v1/messages", b'{"stop_sequences":[["a"]]}', "string or a list of strings"),
    ("/v1/responses", b'{"stop":["a"],"background":true}', "fetched later"),
    ("/v1/completions", b'{"stop":["a"],"echo":true,"prompt":[1,2]}', "echo"),
    (
        "/v1beta/models/m:generateContent",
        b'{"generationConfig":{"stopSequences":["a"]},"generation_config":{"stop_sequences":["b"]}}',
        "one place only",
    ),
]


@pytest.mark.parametrize(("path", "raw", "said"), BAD_STOPS)
def test_stops_that_cannot_be_enforced_are_refused_by_all(path: str, raw: bytes, said: str) -> None:
    dialect = dialect_of(path)
    assert dialect is not None
    with pytest.raises(BadRequestError, match=said):
        prepare(read_ask(dialect, path, raw), "", must_name=True)
    with pytest.raises(RefusedError, match=said) as raised:
        read_exchange(path, "", raw)
    assert raised.value.status == 400
    assert said.partition(" ")[0] in json.dumps(json.loads(raised.value.body))


@pytest.mark.parametrize("raw", [b"", b"[1]", b'"x"', b"x", b'{"model":"m"}', b'{"stop":[]}'])
def test_what_asks_for_no_stops_is_none_of_an_adapters_business(raw: bytes) -> None:
    assert read_exchange(CHAT, "", raw) is None
    assert read_exchange("/v1/models", "", raw, stop=["x"]) is None


def test_limits_of_a_request() -> None:
    limits = Limits(max_stops=2, max_stop_bytes=4)
    assert read_ask("openai.chat", CHAT, b'{"stop":["ab","cd"]}', limits).stops == ("ab", "cd")
    for stops, said in (("abc", "has 3 stops"), (["abc", "é"], "has 5 bytes")):
        raw = json.dumps({"stop": list(stops)}).encode()
        with pytest.raises(BadRequestError, match=said):
            read_ask("openai.chat", CHAT, raw, limits)
    raw = json.dumps({"stop": ["x" * 9] * 100_000}).encode()
    with pytest.raises(BadRequestError, match="too long"):
        read_ask("openai.chat", CHAT, raw)


def test_prompts_of_any_size_are_counted() -> None:
    long, many = json.dumps("x" * (2 << 20)), json.dumps([[1, 2]] * 60_000)
    for prompt, choices in ((long, 1), (f"[{long},{long}]", 2), (many, 60_000), ("[1,2]", 1)):
        raw = f'{{"prompt":{prompt}}}'.encode()
        assert read_ask("openai.completions", "/v1/completions", raw).choices == choices
    raw = b'{"prompt":%b}' % json.dumps([1] * 200_000).encode()
    assert read_ask("openai.completions", "/v1/completions", raw).choices == 1
    raw = b'{"prompt":%b}' % json.dumps(["a"] * 200_000).encode()
    with pytest.raises(BadRequestError, match="200000 answers"):
        read_ask("openai.completions", "/v1/completions", raw)


def test_facts_hold_for_a_route() -> None:
    assert facts_for("openai", "openai.completions") is providers.get("openai.completions")
    assert facts_for("openai", "openai.chat") is providers.get("openai")
    assert facts_for("deepseek", "anthropic.messages") is None
    mine = providers.get("vllm").with_facts(name="mine", max_stops=9, source="s", date="2026-11")
    assert facts_for(mine, "openai.chat") is mine
    assert facts_for(mine, "gemini") is None
    assert split_stops(("a",), None, "openai.chat", "m", False, True).send == ("a",)
    assert split_stops(("a",), None, "openai.chat", "m", False, True).enforce == ("a",)


def test_a_compressed_request_is_decoded_or_refused() -> None:
    raw = b'{"model":"m","stop":["END"]}'
    assert decoded("gzip", gzip.compress(raw), 99) == raw
    assert decoded("", raw, 1) is raw
    exchange = read_exchange(CHAT, "", gzip.compress(raw), coding="gzip")
    assert exchange is not None
    assert exchange.body == raw
    for coding, data, status, said in (
        ("lzma", raw, 415, "'lzma' is not understood"),
        ("gzip", raw, 400, "not of that coding"),
        ("gzip", gzip.compress(raw)[:-1], 400, "ends too early"),
        ("gzip", gzip.compress(bytes(10_000)), 413, "longer than 99 bytes"),
    ):
        with pytest.raises(BadRequestError, match=said) as raised:
            decoded(coding, data, 99)
        assert raised.value.status == status
    with pytest.raises(RefusedError) as refused:
        read_exchange(CHAT, "", raw, coding="lzma")
    assert refused.value.status == 415
