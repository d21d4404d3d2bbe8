"""The parts of ``holdback serve`` by themselves: settings, requests, plans, answers put together."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import DEADLINE, PATHS, STOPS, request, whole_text

from holdback import StopSet
from holdback._json import dump_json
from holdback._requests import MAX_PLANNED_CHARS, BadRequestError, read_ask, split_stops
from holdback.dialects import DIALECTS as SPECS
from holdback.dialects import dialect_of
from holdback.serve.config import Config, Upstream, parse_toml, read_toml
from holdback.serve.demo import frames
from holdback.serve.failures import body, frame
from holdback.serve.metrics import Metrics, Tally
from holdback.serve.planning import prepare
from holdback.serve.routes import find_target, has_dot_segments
from holdback.serve.sse import objects
from holdback.serve.upstream import end_to_end
from holdback.wire import DIALECTS, Cutter, Dialect

ROOT = Path(__file__).parent.parent
UP = Upstream("up", "http://up")
PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
stop_lists = st.lists(
    st.text(PRINTABLE, min_size=1, max_size=4), min_size=1, max_size=12, unique=True
)
pieces = st.lists(st.text(PRINTABLE, max_size=6), min_size=1, max_size=8)


def job(
    dialect: Dialect,
    stops: list[str],
    *,
    stream: bool,
    upstream: Upstream = UP,
    config: Config | None = None,
) -> Any:
    path, asked = request(dialect, stops, stream=stream)
    path, _, query = path.partition("?")
    ask = read_ask(dialect, path, json.dumps(asked).encode())
    return prepare(ask, upstream, query, config or Config())


# --- answers out of streams
# ----------------------------------------------------------------------------------------------


@given(dialect=st.sampled_from(DIALECTS), pieces=pieces, stops=stop_lists, cut=st.data())
def test_a_cut_stream_put_together_is_the_cut_text(
    dialect: Dialect, pieces: list[str], stops: list[str], cut: st.DataObject
) -> None:
    """Whatever the text, its pieces and the way the stream is cut: what `StopSet.truncate` leaves,
    and the end only with a stop.
    """
    ask = job(dialect, stops, stream=True).ask
    raw = b"".join(frame for _, frame in frames(dialect, pieces, ask))
    expected, match = StopSet(stops).truncate("".join(pieces))
    for cutter in (Cutter(dialect, stops), Cutter(dialect, stops, on_match="drain")):
        place = cut.draw(st.integers(0, len(raw)))
        whole = SPECS[dialect].assemble(PATHS[dialect], {})
        for event in objects(cutter.feed(raw[:place]) + cutter.feed(raw[place:]) + cutter.finish()):
            whole.add(event)
        assert whole.error is None
        assert whole_text(dialect, whole.body()) == expected
        assert [found.stop for found in cutter.matches] == ([match.stop] if match else [])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_without_its_end_is_no_answer(dialect: Dialect) -> None:
    ask = job(dialect, STOPS, stream=True).ask
    made = [frame for _, frame in frames(dialect, ["a", "b", "c"], ask)]
    whole = SPECS[dialect].assemble(PATHS[dialect], {})
    for event in objects(b"".join(made[: len(made) // 3])):
        whole.add(event)
    assert whole.body() is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_in_a_stream_is_found(dialect: Dialect) -> None:
    whole = SPECS[dialect].assemble(PATHS[dialect], {})
    for event in objects(frame(dialect, 502, "it broke", code="upstream_broke_off")):
        whole.add(event)
    assert "it broke" in json.dumps(whole.error)
    assert "it broke" in json.dumps(body(dialect, 502, "it broke", code="upstream_broke_off"))


def test_tool_calls_come_together_from_their_pieces() -> None:
    def piece(**delta: Any) -> dict[str, Any]:
        return {
            "id": "c",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }

    def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
        return {
            "index": index,
            "function": {"arguments": arguments, **more.pop("function", {})},
            **more,
        }

    whole = SPECS["openai.chat"].assemble("", {})
    head = {"id": "1", "type": "function", "function": {"name": "f"}}
    for event in (
        piece(role="assistant", content=None, tool_calls=[call(0, "", **head)]),
        piece(tool_calls=[call(0, '{"a":')]),
        piece(tool_calls=[call(1, "", **{**head, "id": "2"})]),
        piece(tool_calls=[call(0, "1}"), call(1, "{}")]),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ):
        whole.add(event)
    message = whole.body()["choices"][0]["message"]
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"function": {"arguments": '{"a":1}', "name": "f"}, "id": "1", "type": "function"},
        {"function": {"arguments": "{}", "name": "f"}, "id": "2", "type": "function"},
    ]


def put_together(*deltas: Any) -> Any:
    """The message of a chat that came in these deltas."""
    whole = SPECS["openai.chat"].assemble("", {})
    for delta in deltas:
        whole.add({"choices": [{"index": 0, "delta": delta}]})
    whole.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return whole.body()["choices"][0]["message"]


def test_content_in_parts_comes_together() -> None:
    """Mistral's reasoning models begin with thoughts, in parts, and go on with plain text."""

    def thought(text: str) -> dict[str, Any]:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    thoughts = [thought("2 and "), thought("2"), thought(" is 4")]
    told = [{"content": [one]} for one in thoughts]
    answer = [thought("2 and 2 is 4"), {"type": "text", "text": "The answer is 4."}]
    for first in ({}, {"role": "assistant", "content": ""}):
        message = put_together(
            first,
            *told,
            {"content": "The answer"},
            {"content": " is"},
            {"content": " 4."},
            {"content": ""},
        )
        assert message["content"] == answer
    parts = [{"type": "text", "text": "a"}]
    assert put_together({"content": "x"}, {"content": parts}, {"content": parts})["content"] == [
        {"type": "text", "text": "xaa"}
    ]


def test_what_every_piece_repeats_is_not_joined() -> None:
    details = [
        {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, "text": text}
        for text in "ab"
    ]
    made = put_together(*({"reasoning_details": [detail]} for detail in details))
    assert made["reasoning_details"] == [{**details[0], "text": "ab"}]


def test_geminis_citations_come_together() -> None:
    whole = SPECS["gemini"].assemble("", {})
    for uri, finish in (("1", None), ("2", None), ("2", "STOP")):
        cited = {
            "content": {"parts": [{"text": uri}]},
            "citationMetadata": {"citations": [{"uri": uri}]},
        }
        whole.add({"candidates": [cited | ({"finishReason": finish} if finish else {})]})
    assert whole.body()["candidates"][0]["citationMetadata"] == {
        "citations": [{"uri": "1"}, {"uri": "2"}]
    }


def test_headers_with_control_characters_are_left_out() -> None:
    assert end_to_end([(b"x-a", b"1\x012"), (b"x-b", b"1\t2"), (b"x-c", "caf\u00e9".encode())]) == [
        (b"x-b", b"1\t2"),
        (b"x-c", "caf\u00e9".encode()),
    ]


def test_a_list_of_pieces_has_a_limit() -> None:
    calls = [{"index": index, "id": f"c{index}"} for index in range(20_000)]
    with pytest.raises(ValueError, match="more than 1024"):
        put_together({"tool_calls": calls})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "caf\u00e9 \U0001f600"}, '{"a":"caf\u00e9 \U0001f600"}'.encode()),
        ({"a": "x\ud83d"}, rb'{"a":"x\ud83d"}'),
        (
            {"a": "\ud83d" + "\ude00", "b": "\ude00"},
            '{"a":"\U0001f600","b":"'.encode() + rb'\ude00"}',
        ),
    ],
)
def test_json_is_written_in_utf_8_whatever_is_in_it(value: Any, expected: bytes) -> None:
    assert dump_json(value) == expected
    assert dump_json(json.loads(expected)) == expected


def test_anthropics_blocks_come_together_from_their_pieces() -> None:
    whole = SPECS["anthropic.messages"].assemble("", {})

    def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> None:
        whole.add({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            whole.add({"type": "content_block_delta", "index": index, "delta": delta})

    whole.add(
        {
            "type": "message_start",
            "message": {"id": "m", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}},
        }
    )
    thinking = {"type": "thinking_delta", "thinking": "hm"}
    signature = {"type": "signature_delta", "signature": "xyz"}
    block(0, {"type": "thinking", "thinking": "", "signature": ""}, thinking, thinking, signature)
    block(
        1,
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        *({"type": "input_json_delta", "partial_json": p} for p in ('{"a', '":1}')),
    )
    block(2, {"type": "tool_use", "id": "u", "name": "g", "input": {}})
    whole.add(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        }
    )
    assert whole.body() == {
        "id": "m",
        "content": [
            {"type": "thinking", "thinking": "hmhm", "signature": "xyz"},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "u", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 9},
    }


# --- plans
# ---------------------------------------------------------------------------------------------------------------


@given(stops=stop_lists, provider=st.sampled_from([None, "openai", "vllm", "anthropic", "gemini", "ollama", "tgi", "sglang"]),
       dialect=st.sampled_from(DIALECTS), named=st.booleans())  # fmt: skip
def test_every_stop_is_sent_or_enforced(
    stops: list[str], provider: str | None, dialect: Dialect, named: bool
) -> None:
    split = split_stops(tuple(stops), provider, dialect, "m", named)
    assert set(split.send) | set(split.enforce) == set(stops)
    if provider is None or dialect == "openai.responses":
        assert split.send == ()


def test_stops_of_an_upstream_with_regions_are_enforced_here() -> None:
    """It would end inside one: it knows nothing of them."""
    regions = Upstream("vllm", "http://up", "vllm", ignore_inside=(("<think>", "</think>"),))
    made = job("openai.chat", ["Observation:"], stream=True, upstream=regions)
    assert (made.split.send, made.split.enforce, made.mode) == ((), ("Observation:",), "stream")
    assert "stop" not in json.loads(made.body)
    plain = Upstream("vllm", "http://up", "vllm")
    assert job("openai.chat", ["Observation:"], stream=True, upstream=plain).split.send == (
        "Observation:",
    )


def test_an_upstream_may_be_buffered_in_its_own_way() -> None:
    def mode(upstream: str | None, gateway: str) -> str:
        made = Upstream("a", "http://up", buffered=upstream)
        ask = read_ask("openai.chat", "/v1/chat/completions", b'{"stop":["END"],"messages":[]}')
        return prepare(ask, made, "", Config(buffered=gateway)).mode

    assert mode(None, "stream") == mode("stream", "pass") == mode("stream", "stream")
    assert mode(None, "pass") == mode("pass", "stream") == mode("pass", "pass")
    assert mode(None, "stream") != mode(None, "pass")


@pytest.mark.parametrize("stop", ["<think>", "</think>", "think", "a<think>"])
def test_a_stop_that_meets_a_marker_is_refused_without_telling_it(stop: str) -> None:
    regions = Upstream("vllm", "http://up", "vllm", ignore_inside=(("<think>", "</think>"),))
    try:
        job("openai.chat", ["x", stop], stream=True, upstream=regions)
    except BadRequestError as error:
        said = str(error)
    else:
        said = "served"
        StopSet(["x", stop]).stream(ignore_inside=[("<think>", "</think>")])
    assert "think" not in said


@pytest.mark.parametrize("stop", [None, []])
def test_the_responses_api_is_sent_no_field_for_stops_at_all(stop: Any) -> None:
    raw = json.dumps({"model": "m", "input": "x", "stop": stop}).encode()
    made = prepare(read_ask("openai.responses", "/v1/responses", raw), UP, "", Config())
    assert "stop" not in json.loads(made.body)


@pytest.mark.parametrize("n", [1 << 16, 1 << 40])
def test_more_answers_than_there_can_be_are_refused(n: int) -> None:
    raw = json.dumps({"n": n, "stop": ["x"]}).encode()
    with pytest.raises(BadRequestError, match=f"{n} answers"):
        read_ask("openai.chat", "/v1/chat/completions", raw)
    assert read_ask("openai.chat", "/v1/chat/completions", b'{"n":2.0}').choices == 2


def test_a_long_list_is_not_planned_but_enforced() -> None:
    stops = tuple("x" * n for n in range(1, 200))
    assert sum(map(len, stops)) > MAX_PLANNED_CHARS
    assert split_stops(stops, "vllm", "openai.chat", None, True).enforce == stops


def test_facts_of_another_route_do_not_hold() -> None:
    """SGLang takes 32 stops in `stop`; nothing is known of its Messages route, so nothing is sent
    there.
    """
    assert split_stops(("a",), "sglang", "anthropic.messages", None, False).send == ()
    assert split_stops(("a",), "vllm", "anthropic.messages", None, False).send == ("a",)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_upstream_is_never_sent_what_is_enforced_here(dialect: Dialect) -> None:
    for stream in (True, False):
        made = job(dialect, STOPS, stream=stream)
        assert not [stop for stop in STOPS if json.dumps(stop).encode() in made.body]
        assert made.mode == ("stream" if stream else "assemble")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_that_needs_no_change_goes_out_as_it_came(dialect: Dialect) -> None:
    path, asked = request(dialect, None, stream=False)
    raw = json.dumps(asked, indent=7).encode()
    ask = read_ask(dialect, path, raw)
    assert (made := prepare(ask, UP, "", Config())).body is raw
    assert made.mode == "pass"


@pytest.mark.parametrize(
    ("dialect", "extra"),
    [
        ("openai.completions", {"best_of": 3}),
        ("openai.chat", {"modalities": ["text", "audio"]}),
    ],
)
def test_what_no_stream_can_bring_is_cut_as_a_whole(
    dialect: Dialect, extra: dict[str, Any]
) -> None:
    path, asked = request(dialect, STOPS, stream=False)
    ask = read_ask(dialect, path, json.dumps(asked | extra).encode())
    assert prepare(ask, UP, "", Config()).mode == "body"


def test_usage_figures_are_asked_for_where_they_can_be() -> None:
    for provider, asked in ((None, True), ("openai", True), ("mistral", False)):
        made = job("openai.chat", STOPS, stream=False, upstream=Upstream("x", "http://x", provider))
        assert (b"include_usage" in made.body) == asked


def test_an_echoed_prompt_is_skipped_and_counted_choices_add_up() -> None:
    def ask(**more: Any) -> Any:
        return read_ask(
            "openai.completions",
            "/v1/completions",
            json.dumps({"stop": ["x"], **more}).encode(),
        )

    assert ask(prompt="tex😀t", echo=True).skip_chars == 5
    assert ask(prompt="text").skip_chars == 0
    assert ask(prompt=["a", "b"], n=3).choices == 6
    assert ask(prompt=[1, 2, 3]).choices == 1
    with pytest.raises(BadRequestError, match="echo"):
        prepare(ask(prompt=["a", "b"], echo=True), UP, "", Config())
    with pytest.raises(BadRequestError, match="fetched later"):
        prepare(
            read_ask("openai.responses", "/v1/responses", b'{"stop":"x","background":true}'),
            UP,
            "",
            Config(),
        )


# --- paths and headers
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "openai.chat"),
        ("/openai/deployments/x/chat/completions", "openai.chat"),
        ("/v1beta/openai/chat/completions", "openai.chat"),
        ("/v1/completions", "openai.completions"),
        ("/completion", "llama.cpp"),
        ("/completions", "openai.completions"),
        ("/v1/threads/t/messages", None),
        ("/v1/responses", "openai.responses"),
        ("/v1/messages", "anthropic.messages"),
        ("/v1/messages/count_tokens", None),
        ("/v1beta/models/a-b:generateContent", "gemini"),
        ("/v1/projects/p/models/m:streamGenerateContent", "gemini"),
        ("/v1beta/models/m:countTokens", None),
        ("/api/chat", "ollama.chat"),
        ("/api/generate", "ollama.generate"),
        ("/generate", "tgi"),
        ("/generate_stream", "tgi"),
        ("/", "tgi"),
        ("/v1/embeddings", None),
    ],
)
def test_paths_and_their_dialects(path: str, dialect: str | None) -> None:
    assert dialect_of(path) == dialect
    target = find_target("POST", f"/up{path}", [Upstream("other", "http://o"), UP])
    assert target
    assert (target.upstream, target.path, target.dialect) == (UP, path, dialect)


@pytest.mark.parametrize(
    "path", ["/a/..", "/..", "/a/%2e%2e/b", "/a/.%2E", "/a%2f..%2fb", "/./a", "/a\\..\\b"]
)
def test_a_path_that_climbs_is_seen(path: str) -> None:
    assert has_dot_segments(path)
    assert not has_dot_segments("/v1/models/llama3..1:x/a.b")


def test_headers_that_the_connection_names_are_its_own() -> None:
    headers = [
        (b"Connection", b"close, X-A"),
        (b"x-a", b"1"),
        (b"TE", b"x"),
        (b"Keep", b"2"),
        (b"keep", b"3"),
    ]
    assert end_to_end(headers, b"other") == [(b"Keep", b"2"), (b"keep", b"3")]


@given(st.lists(st.floats(0, 10)))
def test_a_tally_counts_like_a_histogram(values: list[float]) -> None:
    tally = Tally((0.5, 1.0, 5.0))
    for value in values:
        tally.add(value)
    assert [count for _, count in tally.buckets()] == [
        sum(v <= bound for v in values) for bound in (0.5, 1.0, 5.0, 1e9)
    ]


# --- settings
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on_mach = 'drain'", "no setting is called 'on_mach'; did you mean 'on_match'?"),
        ("on_match = 'stop'", "on_match is 'cancel' or 'drain', not 'stop'"),
        ("max_streams = '9'", "max_streams is a whole number, not '9'"),
        ("max_streams = true", "max_streams is a whole number, not True"),
        ("idle_timeout = 0", "idle_timeout is more than 0 and at most 10000000 seconds, not 0.0"),
        ("drain_timeout = inf", "drain_timeout is more than 0 and at most 10000000 seconds"),
        ("request_timeout = nan", "request_timeout is more than 0"),
        ("[upstreams.a]\nurl = 'http://h:99999'", "no port like that"),
        ("[upstreams.a]\nurl = 'http://h:x'", "no port like that"),
        ("[upstreams.a]\nurl = 'http://h'\nstops = ['']", "upstream 'a': stops: stop 0 is empty"),
        (
            "[upstreams.a]\nurl = 'http://h'\nignore_inside = [['', '']]",
            "upstream 'a': ignore_inside has an empty marker",
        ),
        (
            "[upstreams.a]\nurl = 'http://h'\nignore_inside = [['<t>', '</t>']]\nstops = ['<t>']",
            "upstream 'a': ignore_inside has the marker",
        ),
        ("listen = '80'", "listen is HOST:PORT, not '80'"),
        ("a = ", "not TOML"),
        ("upstreams = 3", "upstreams are tables: [upstreams.NAME]"),
        ("[upstreams.a]", "[upstreams.a] has no url"),
        ("[upstreams.a]\nurl = 'http://h'\nkey = 'x'", "[upstreams.a] no setting is called 'key'"),
        ("[upstreams.a]\nurl = 'http://h'\ndialects = ['openai']", "no dialect is called 'openai'"),
        ("[upstreams.a]\nurl = 'http://h'\nprovider = 'vlm'", "did you mean 'vllm'"),
        (
            "[upstreams.a]\nurl = 'http://h'\nstart_inside = true",
            "start_inside needs the regions of ignore_inside",
        ),
        (
            "[upstreams.a]\nurl = 'http://h'\nbuffered = 'no'",
            "buffered is 'stream' or 'pass', not 'no'",
        ),
        (
            "[upstreams.a]\nurl = 'http://h'\nignore_inside = ['<think>']",
            "ignore_inside is a list of pairs of strings",
        ),
    ],
)
def test_a_wrong_setting_is_named(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(text)
    with pytest.raises(ValueError) as raised:
        read_toml(file)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)


def test_all_settings_can_stand_in_a_file() -> None:
    """Every field of the configuration, with its default, written as TOML and read again."""
    written = {
        name: getattr(Config(), name) for name in Config.__dataclass_fields__ if name != "upstreams"
    }
    text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in written.items())
    assert parse_toml(text) == {**written, "upstreams": ()}


def test_the_settings_of_the_manual_are_the_defaults() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    config = Config(**parse_toml(text))
    assert replace(config, upstreams=()) == Config()
    assert set(re.findall(r"^(\w+) =", text.partition("[upstreams")[0], re.MULTILINE)) == set(
        Config.__dataclass_fields__
    ) - {"upstreams"}
    big = config.upstreams[1]
    assert (big.provider, big.ignore_inside) == ("vllm", (("<think>", "</think>"),))


def test_the_metrics_of_the_manual_are_those_there_are() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `(holdback_\w+)` \|", page, re.MULTILINE))
    there = re.findall(r"^# TYPE (\w+) (\w+)$", Metrics().text()[0].decode(), re.MULTILINE)
    assert told == {name for name, _ in there if not name.endswith("_created")}


def test_the_extra_and_the_group_are_the_same() -> None:
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert (
        project["project"]["optional-dependencies"]["serve"]
        == project["dependency-groups"]["serve"]
    )


@pytest.mark.thread_unsafe
@pytest.mark.parametrize("missing", ["aiohttp", "uvicorn", "prometheus_client"])
def test_a_missing_package_is_named_with_what_to_type(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from holdback.cli import main; sys.exit(main(['serve', '--demo']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"holdback serve: error: holdback serve needs the package '{missing}': pip install 'holdback[serve]'\n"
    )


@pytest.mark.thread_unsafe
def test_the_command_line_stays_quick() -> None:
    """`holdback serve --help` and the import of the gateway bring none of the packages of the
    extra.
    """
    program = (
        "import sys, holdback.serve.gateway, holdback.serve.server, holdback.commands.serve\n"
        "print([name for name in ('aiohttp', 'uvicorn', 'prometheus_client') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    assert done.stdout == "[]\n"
