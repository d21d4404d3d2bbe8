"""LiteLLM's real proxy on loopback, between clients and an upstream that sees what it is asked and
when it is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from upstream import DONE, JSON, Upstream, chat, message_end, message_start, message_text

from holdback import StopSet, providers
from holdback.integrations import litellm as ours

STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP"]
SPLIT = ["Par", "is.\nObs", "ervat", "ion: x", " never", " read"]
INSIDE = ["Par", "is.### x", " never", " read"]
KEY = f"sk-{secrets.token_hex(32)}"  # the proxy does not start without one
HEADERS = {"authorization": f"Bearer {KEY}"}
PYTHON = Path(__file__).parents[2] / "python"

CONFIG = """
model_list:
  - {model_name: large, litellm_params: {model: openai/gpt-4o, api_base: "URL/v1", api_key: k}}
  - {model_name: small, litellm_params: {model: openai/gpt-5, api_base: "URL/v1", api_key: k}}
  - {model_name: claude, litellm_params: {model: anthropic/claude-sonnet-4-5, api_base: "URL", api_key: k}}
litellm_settings:
  callbacks: holdback.integrations.litellm.stops
  num_retries: 0
"""


@pytest.fixture(scope="module")
def upstream():
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(upstream, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "config.yaml").write_text(CONFIG.replace("URL", upstream.url))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "litellm.proxy.proxy_cli",
        "--config",
        "config.yaml",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(PYTHON),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_PROXY": "*",
    }
    environment["LITELLM_MASTER_KEY"] = KEY
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(900):
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{base}/health/liveliness", timeout=1).status_code == 200:
                    break
            time.sleep(0.1)
        yield base
    finally:
        process.terminate()
        process.wait(30)
        if os.environ.get("SHOW_PROXY_LOG"):
            print((folder / "log").read_text()[-8000:])


def ask(base, path="/v1/chat/completions", **body):
    got = b""
    body = {"messages": [{"role": "user", "content": "hi"}], **body}
    with (
        httpx.Client(timeout=90) as client,
        client.stream("POST", base + path, json=body, headers=HEADERS) as answer,
    ):
        for piece in answer.iter_raw():
            got += piece
    return got


def texts(got):
    found = {}
    for line in got.decode().split("\n\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:]).get("choices", ()):
            text, finish, stop = found.get(choice["index"], ("", None, None))
            found[choice["index"]] = (
                text + (choice["delta"].get("content") or ""),
                choice.get("finish_reason") or finish,
                choice.get("stop_reason") or stop,
            )
    return found


pytestmark = pytest.mark.timeout(300)  # the proxy takes half a minute to start


@pytest.mark.parametrize(
    ("pieces", "last", "stop"), [(SPLIT, 3, "Observation:"), (INSIDE, 1, "###")]
)
@pytest.mark.parametrize("model", ["large", "small"])
def test_chat_streams(proxy, upstream, model, pieces, last, stop):
    upstream.reply(*map(chat, pieces), chat(None, finish="length"), DONE, leaves_after=last)
    got = ask(proxy, model=model, stop=STOPS, stream=True)
    assert texts(got) == {0: ("Paris.\n" if last == 3 else "Paris.", "stop", stop)}
    assert got.endswith(DONE)
    seen = upstream.seen[-1]
    assert (seen.after(), seen.left) == (last + 1, True)
    assert len(seen.body.get("stop", ())) == (4 if model == "large" else 0), (
        "gpt-5 takes none, gpt-4o four"
    )
    assert "holdback_stops" not in json.dumps(seen.body)


def test_two_choices(proxy, upstream):
    frames = [
        chat("a", 0),
        chat("x##", 1),
        chat("#y", 1),
        chat("lost", 1),
        chat(" bST", 0),
        chat("OP", 0),
        chat("no", 0),
        DONE,
    ]
    upstream.reply(*frames, leaves_after=5)
    got = ask(proxy, model="small", stop=STOPS, stream=True, n=2)
    assert texts(got) == {0: ("a b", "stop", "STOP"), 1: ("x", "stop", "###")}
    assert (upstream.seen[-1].after(), upstream.seen[-1].left) == (6, True)


@pytest.mark.parametrize(
    ("pieces", "last", "stop"), [(SPLIT, 3, "Observation:"), (INSIDE, 1, "###")]
)
def test_messages_stream(proxy, upstream, pieces, last, stop):
    upstream.reply(
        *message_start(), *map(message_text, pieces), *message_end(), leaves_after=last + 2
    )
    got = ask(
        proxy,
        "/v1/messages",
        model="claude",
        stop_sequences=[*STOPS, "\n\n"],
        stream=True,
        max_tokens=99,
    )
    events = [
        json.loads(line[6:]) for line in got.decode().split("\n") if line.startswith("data: ")
    ]
    text = "".join(
        event["delta"]["text"] for event in events if event["type"] == "content_block_delta"
    )
    assert text == ("Paris.\n" if last == 3 else "Paris.")
    assert [event["type"] for event in events[-3:]] == [
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert (events[-2]["delta"]["stop_reason"], events[-2]["delta"]["stop_sequence"]) == (
        "stop_sequence",
        stop,
    )
    seen = upstream.seen[-1]
    assert (seen.after(), seen.left) == (last + 3, True)
    assert "\n\n" not in seen.body["stop_sequences"]
    assert "holdback_stops" not in json.dumps(seen.body)


def test_a_whole_answer(proxy, upstream):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Paris.###more"},
        "finish_reason": "length",
    }
    usage = {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    upstream.reply(json.dumps(body).encode(), kind=JSON)
    answer = json.loads(ask(proxy, model="small", stop=STOPS))["choices"][0]
    assert (answer["message"]["content"], answer["finish_reason"]) == ("Paris.", "stop")
    assert answer.get("stop_reason") == "###"
    assert "stop" not in upstream.seen[-1].body


def test_a_whole_message(proxy, upstream):
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Paris.###more"}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 5},
    }  # fmt: skip
    upstream.reply(json.dumps(message).encode(), kind=JSON)
    answer = json.loads(
        ask(proxy, "/v1/messages", model="claude", stop_sequences=STOPS, max_tokens=99)
    )
    assert answer["content"][0]["text"] == "Paris."
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "###")


def test_nothing_asked_for_nothing_changed(proxy, upstream):
    upstream.reply(*map(chat, SPLIT), chat(None, finish="stop"), DONE)
    got = ask(proxy, model="small", stream=True)
    assert texts(got)[0][:2] == ("".join(SPLIT), "stop")


def test_the_models_own_end_stays(proxy, upstream):
    upstream.reply(chat("Paris.\nObs"), chat(None, finish="length"), DONE)
    assert texts(ask(proxy, model="small", stop=STOPS, stream=True)) == {
        0: ("Paris.\nObs", "length", None)
    }


def test_a_client_that_leaves_takes_the_upstream_along(proxy, upstream):
    upstream.reply(*[chat(f"{at} ") for at in range(50)], leaves_after=3)
    body = {
        "model": "small",
        "stream": True,
        "stop": STOPS,
        "messages": [{"role": "user", "content": "hi"}],
    }
    with (
        httpx.Client(timeout=90) as client,
        client.stream("POST", f"{proxy}/v1/chat/completions", json=body, headers=HEADERS) as answer,
    ):
        for piece in answer.iter_raw():
            if b"2 " in piece:
                break
    assert upstream.seen[-1].after() <= 5
    assert upstream.seen[-1].left


def test_an_upstream_that_breaks_off_gives_its_text_first(proxy, upstream):
    upstream.reply(chat("Paris.\nObs"), chat("erv"), breaks_after=1)
    got = ask(proxy, model="small", stop=STOPS, stream=True)
    # "Obs" was held. "erv" is lost in LiteLLM's own client if that meets the bad end before it
    # hands the piece on.
    assert texts(got)[0][0] in ("Paris.\nObserv", "Paris.\nObs")
    assert b'"error"' in got


# --- the hooks by themselves: no proxy
# ---------------------------------------------------------------------------------------


def chunks(*deltas):
    from litellm.types.utils import Delta, ModelResponseStream, StreamingChoices

    return [
        ModelResponseStream(
            choices=[StreamingChoices(index=index, delta=Delta(content=text), finish_reason=finish)]
        )
        for text, index, finish in deltas
    ]


class Source:
    """An upstream's stream of objects that knows whether it was closed."""

    def __init__(self, items, error=None):
        self.items, self.error, self.closed = list(items), error, False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.closed or not self.items:
            if self.error and not self.closed:
                raise self.error
            raise StopAsyncIteration
        return self.items.pop(0)

    async def aclose(self):
        self.closed = True


def cut(source, request=None, **options):
    async def collect():
        return [
            chunk async for chunk in ours.cut_stream(source, StopSet(STOPS), request or {}, options)
        ]

    return asyncio.run(collect())


def test_objects_with_nothing_to_cut_are_the_ones_that_came():
    given = chunks(("Par", 0, None), ("is", 0, None), (None, 0, "stop"))
    assert [id(chunk) for chunk in cut(Source(given))] == [id(chunk) for chunk in given]


def test_the_source_is_closed_at_the_match_and_when_it_breaks_off():
    source = Source(chunks(("a#", 0, None), ("##b", 0, None), ("never", 0, None)))
    assert [chunk.choices[0].delta.content for chunk in cut(source)] == ["a", ""]
    assert source.closed
    assert len(source.items) == 1
    source = Source(chunks(("a#", 0, None)), error=RuntimeError("gone"))
    with pytest.raises(RuntimeError, match="gone"):
        cut(source)
    assert source.closed


@pytest.mark.parametrize("bad", [7, [None], [""], {"a": 1}])
def test_nonsense_is_left_to_litellm(bad):
    data = {"model": "m", "stop": bad}
    assert ours.prepare(dict(data), "acompletion") == data
    assert ours.noted(data) is None
    assert ours.prepare({"model": "m", "stop": STOPS}, "aembedding") == {
        "model": "m",
        "stop": STOPS,
    }


def test_stops_that_only_we_can_place_are_not_sent(monkeypatch):
    """The options of the logger say where stops count; a provider would end elsewhere."""
    monkeypatch.setattr(ours, "_limits", lambda *_: providers.get("vllm"))

    def sent(**options):
        data = {"model": "m", "stop": ["a", "b"]}
        return asyncio.run(
            ours.stop_logger(**options).async_pre_call_hook(None, None, data, "acompletion")
        )

    scoped = sent(ignore_inside=[("<think>", "</think>")])
    assert "stop" not in scoped
    assert ours.noted(scoped).stops == ("a", "b")
    assert sent()["stop"] == ["a", "b"]
