"""What people's SDKs make of answers as upstreams really send them, through ``holdback serve``:
shapes, labels and ends from public reports of other gateways.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Gateway, Raw, running

MISSING = "the SDKs are not installed: pip install --group dev-integrations"
pytestmark = [
    pytest.mark.thread_unsafe,
    # What they deprecate in each other, and sockets they leave to the collector, is up to them.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

STOPS = ["END", "###", "</s>", "User:", "Observation:"]
MESSAGES = [{"role": "user", "content": "q"}]
DONE = b"data: [DONE]\n\n"


@pytest.fixture(scope="module")
def upstream() -> Iterator[Raw]:
    with Raw() as raw:
        yield raw


@pytest.fixture(scope="module")
def gateway(upstream: Raw) -> Iterator[Gateway]:
    arguments = ["--upstream", f"up={upstream.url}", "--upstream", f"mistral={upstream.url}"]
    with running(*arguments) as gateway:
        yield gateway


def answer(upstream: Raw, body: bytes, *headers: str) -> None:
    head = "".join(f"{header}\r\n" for header in headers)
    upstream.answers(f"HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n".encode() + body)


def data(value: Any, before: str = "") -> bytes:
    return f"{before}data: {json.dumps(value)}\n\n".encode()


def chat(text: str, finish: str | None = None, **more: Any) -> bytes:
    delta = {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return data({**head, "choices": [choice]})


SSE = "content-type: text/event-stream"
LABELS = [SSE, "content-type: application/json", "content-type: text/plain", "x-none: 1"]


def openai_text(gateway: Gateway, *, stream: bool, path: str = "/up/v1") -> str:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=gateway.url + path, api_key="k", max_retries=0) as client:
        made = client.chat.completions.create(
            model="m", messages=MESSAGES, stop=STOPS, stream=stream
        )
        if stream:
            return "".join(c.choices[0].delta.content or "" for c in made if c.choices)
        return str(made.choices[0].message.content)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("stream", [True, False])
def test_openai_whatever_the_label(
    label: str, stream: bool, upstream: Raw, gateway: Gateway
) -> None:
    answer(upstream, chat("one E") + chat("ND two") + chat("", "stop") + DONE, label)
    assert openai_text(gateway, stream=stream) == "one "


@pytest.mark.parametrize("stream", [True, False])
def test_openai_with_the_message_beside_the_delta(
    stream: bool, upstream: Raw, gateway: Gateway
) -> None:
    sent = [
        chat("one E", message={"role": "assistant", "content": "one E"}),
        chat("ND two", message={"role": "assistant", "content": "one END two"}),
        chat("", "stop", message={"role": "assistant", "content": "one END two"}),
    ]
    answer(upstream, b"".join(sent) + DONE, SSE)
    assert openai_text(gateway, stream=stream) == "one "


def test_openai_responses_with_ids(upstream: Raw, gateway: Gateway) -> None:
    """The comment that names the stop must not be read as an event."""
    openai = pytest.importorskip("openai", reason=MISSING)

    def event(number: int, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, "sequence_number": number, **fields}
        return data(value, f"id: {number}\nevent: {kind}\n")

    response = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "tools": [],
        "status": "in_progress", "parallel_tool_calls": True, "tool_choice": "auto",
    }  # fmt: skip
    where = {"item_id": "m", "output_index": 0, "content_index": 0}
    item = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    part = {"type": "output_text", "text": "", "annotations": []}
    sent = [
        event(0, "response.created", response=response),
        event(1, "response.output_item.added", output_index=0, item=item),
        event(2, "response.content_part.added", **where, part=part),
        event(3, "response.output_text.delta", **where, delta="one E", logprobs=[]),
        event(4, "response.output_text.delta", **where, delta="ND two", logprobs=[]),
    ]
    answer(upstream, b"".join(sent), SSE)
    with openai.OpenAI(base_url=f"{gateway.url}/up/v1", api_key="k", max_retries=0) as client:
        events = list(
            client.responses.create(model="m", input="q", stream=True, extra_body={"stop": STOPS})
        )
    assert events[-1].type == "response.completed"
    assert events[-1].response.output[0].content[0].text == "one "


@pytest.mark.parametrize("stops", [["END"], ["nothing like it"]])
def test_openai_whole_answers_have_usage(stops: list[str], upstream: Raw, gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    answer(upstream, chat("one E") + chat("ND two") + chat("", "stop") + DONE, SSE)
    with openai.OpenAI(base_url=f"{gateway.url}/up/v1", api_key="k", max_retries=0) as client:
        made = client.chat.completions.create(model="m", messages=MESSAGES, stop=stops)
    assert made.usage.total_tokens >= made.usage.completion_tokens > 0


def test_mistral_whole_answers_have_usage(upstream: Raw, gateway: Gateway) -> None:
    mistral = pytest.importorskip("mistralai.client", reason=MISSING)
    answer(upstream, chat("one E") + chat("ND two") + chat("", "stop") + DONE, SSE)
    with mistral.Mistral(api_key="k", server_url=f"{gateway.url}/mistral") as client:
        made = client.chat.complete(model="m", messages=MESSAGES, stop=STOPS)
    assert made.choices[0].message.content == "one "


def test_mistral_code_is_cut(upstream: Raw, gateway: Gateway) -> None:
    """Its route ends in `/completions` and answers as chat does."""
    mistral = pytest.importorskip("mistralai.client", reason=MISSING)
    answer(upstream, chat("one E") + chat("ND two") + chat("", "stop") + DONE, SSE)
    with mistral.Mistral(api_key="k", server_url=f"{gateway.url}/mistral") as client:
        made = client.fim.stream(model="codestral-latest", prompt="q", stop=STOPS)
        text = "".join(event.data.choices[0].delta.content or "" for event in made)
    assert text == "one "


def test_anthropic_errors_keep_their_status(upstream: Raw, gateway: Gateway) -> None:
    anthropic = pytest.importorskip("anthropic", reason=MISSING)
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    answer(upstream, data(error, "event: error\n"), SSE)
    client = anthropic.Anthropic(base_url=f"{gateway.url}/up", api_key="k", max_retries=0)
    with client, pytest.raises(anthropic.RateLimitError):
        client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stop_sequences=STOPS)


def test_gemini_whatever_the_label(upstream: Raw, gateway: Gateway) -> None:
    genai = pytest.importorskip("google.genai", reason=MISSING)

    def piece(text: str, **more: Any) -> bytes:
        content = {"parts": [{"text": text}], "role": "model"}
        return data({"candidates": [{"content": content, "index": 0, **more}]})

    answer(upstream, piece("one E") + piece("ND two", finishReason="STOP"), "x-none: 1")
    client = genai.Client(api_key="k", http_options={"base_url": f"{gateway.url}/up"})
    made = client.models.generate_content(
        model="gemini-2.5-pro", contents="q", config={"stop_sequences": STOPS}
    )
    assert made.text == "one "


def test_ollama_whatever_the_label(upstream: Raw, gateway: Gateway) -> None:
    ollama = pytest.importorskip("ollama", reason=MISSING)

    def line(text: str, done: bool) -> bytes:
        value = {"model": "m", "created_at": "2026-11-30T00:00:00Z", "done": done}
        return json.dumps({**value, "response": text}).encode() + b"\n"

    answer(upstream, line("one E", False) + line("ND two", False) + line("", True), SSE)
    client = ollama.Client(host=f"{gateway.url}/up")
    pieces = client.generate(model="m", prompt="q", options={"stop": STOPS}, stream=True)
    assert "".join(piece.response for piece in pieces) == "one "
