"""The providers' own SDKs against ``holdback serve``, over loopback, with more stops than any of
them takes.

The upstream takes none and never stops by itself. Each SDK must show the text, its own word for the
end, and the stop where its API has a place for it; and the upstream must see its client leave
before it has sent another piece.

    make test-integrations     # installs the SDKs beside, and runs this
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import STOPS, TEXT, UP_TO_MATCH, Canned, Gateway, running

MISSING = "the SDKs are not installed: pip install --group dev-integrations"
pytestmark = [
    pytest.mark.thread_unsafe,
    # Their own affairs: what they deprecate in each other, and sockets they leave to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Canned]:
    with Canned() as canned:
        yield canned


@pytest.fixture(scope="module")
def gateway(upstream: Canned) -> Iterator[Gateway]:
    with running("--upstream", f"up={upstream.url}") as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def left_in_time(upstream: Canned) -> Iterator[None]:
    """After every test: the upstream saw its client leave, at the piece that completed the stop."""
    yield
    seen = upstream.wait()
    assert (seen.sent, seen.client_left, seen.stops) == (UP_TO_MATCH, True, ())
    assert seen.stream  # also for clients that do not stream


def test_openai_chat(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        answer = client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "q"}], stop=STOPS
        )
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.stop_reason) == (
        TEXT,
        "stop",
        "Observation:",
    )


def test_openai_chat_stream(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        chunks = list(
            client.chat.completions.create(
                model="gpt-5", messages=[{"role": "user", "content": "q"}], stop=STOPS, stream=True
            )
        )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].choices[0].stop_reason == "Observation:"


def test_openai_completions(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        choice = client.completions.create(model="m", prompt="q", stop=STOPS).choices[0]
    assert (choice.text, choice.finish_reason, choice.stop_reason) == (TEXT, "stop", "Observation:")


def test_openai_completions_stream(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        chunks = list(client.completions.create(model="m", prompt="q", stop=STOPS, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == TEXT
    assert (chunks[-1].choices[0].finish_reason, chunks[-1].choices[0].stop_reason) == (
        "stop",
        "Observation:",
    )


def test_openai_responses(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        raw = client.responses.with_raw_response.create(
            model="gpt-5", input="q", extra_body={"stop": STOPS}
        )
        answer = raw.parse()
    assert (answer.output_text, answer.status) == (TEXT, "completed")
    assert raw.headers["x-holdback-stop"] == '"Observation:"'


def test_openai_responses_stream(gateway: Gateway) -> None:
    openai = pytest.importorskip("openai", reason=MISSING)
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k") as client:
        events = list(
            client.responses.create(
                model="gpt-5", input="q", stream=True, extra_body={"stop": STOPS}
            )
        )
    assert (
        "".join(event.delta for event in events if event.type == "response.output_text.delta")
        == TEXT
    )
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == TEXT


def test_anthropic(gateway: Gateway) -> None:
    anthropic = pytest.importorskip("anthropic", reason=MISSING)
    with anthropic.Anthropic(base_url=gateway.url, api_key="k") as client:
        message = client.messages.create(
            model="claude",
            max_tokens=100,
            messages=[{"role": "user", "content": "q"}],
            stop_sequences=STOPS,
        )
    assert message.content[0].text == TEXT
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Observation:")


def test_anthropic_stream(gateway: Gateway) -> None:
    anthropic = pytest.importorskip("anthropic", reason=MISSING)
    with (
        anthropic.Anthropic(base_url=gateway.url, api_key="k") as client,
        client.messages.stream(
            model="claude",
            max_tokens=100,
            messages=[{"role": "user", "content": "q"}],
            stop_sequences=STOPS,
        ) as stream,
    ):
        assert "".join(stream.text_stream) == TEXT
        message = stream.get_final_message()
    assert message.content[0].text == TEXT
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Observation:")


def test_google_genai(gateway: Gateway) -> None:
    genai = pytest.importorskip("google.genai", reason=MISSING)
    client = genai.Client(api_key="k", http_options={"base_url": gateway.url})
    answer = client.models.generate_content(
        model="gemini-2.5-pro", contents="q", config={"stop_sequences": STOPS}
    )
    assert (answer.text, answer.candidates[0].finish_reason.name) == (TEXT, "STOP")


def test_google_genai_stream(gateway: Gateway) -> None:
    genai = pytest.importorskip("google.genai", reason=MISSING)
    client = genai.Client(api_key="k", http_options={"base_url": gateway.url})
    chunks = list(
        client.models.generate_content_stream(
            model="gemini-2.5-pro", contents="q", config={"stop_sequences": STOPS}
        )
    )
    assert "".join(chunk.text or "" for chunk in chunks) == TEXT
    assert chunks[-1].candidates[0].finish_reason.name == "STOP"


def test_ollama_chat(gateway: Gateway) -> None:
    ollama = pytest.importorskip("ollama", reason=MISSING)
    client = ollama.Client(host=gateway.url)
    answer = client.chat(
        model="m", messages=[{"role": "user", "content": "q"}], options={"stop": STOPS}
    )
    assert (answer.message.content, answer.done, answer.done_reason) == (TEXT, True, "stop")


def test_ollama_chat_stream(gateway: Gateway) -> None:
    ollama = pytest.importorskip("ollama", reason=MISSING)
    client = ollama.Client(host=gateway.url)
    chunks = list(
        client.chat(
            model="m",
            messages=[{"role": "user", "content": "q"}],
            options={"stop": STOPS},
            stream=True,
        )
    )
    assert "".join(chunk.message.content or "" for chunk in chunks) == TEXT
    assert (chunks[-1].done, chunks[-1].done_reason) == (True, "stop")


def test_ollama_generate_stream(gateway: Gateway) -> None:
    ollama = pytest.importorskip("ollama", reason=MISSING)
    client = ollama.Client(host=gateway.url)
    chunks = list(client.generate(model="m", prompt="q", options={"stop": STOPS}, stream=True))
    assert "".join(chunk.response for chunk in chunks) == TEXT
    assert (chunks[-1].done, chunks[-1].done_reason) == (True, "stop")


def test_huggingface_text_generation(gateway: Gateway) -> None:
    hub = pytest.importorskip("huggingface_hub", reason=MISSING)
    client = hub.InferenceClient(f"{gateway.url}/up")
    answer = client.text_generation("q", stop=STOPS, details=True)
    assert (answer.generated_text, answer.details.finish_reason) == (TEXT, "stop_sequence")


def test_huggingface_text_generation_stream(gateway: Gateway) -> None:
    hub = pytest.importorskip("huggingface_hub", reason=MISSING)
    client = hub.InferenceClient(f"{gateway.url}/up")
    events = list(client.text_generation("q", stop=STOPS, details=True, stream=True))
    assert "".join(event.token.text for event in events if not event.token.special) == TEXT
    assert (events[-1].generated_text, events[-1].details.finish_reason) == (TEXT, "stop_sequence")


def test_huggingface_chat_stream(gateway: Gateway) -> None:
    hub = pytest.importorskip("huggingface_hub", reason=MISSING)
    client = hub.InferenceClient(base_url=f"{gateway.url}/up/v1", api_key="k")
    chunks = list(
        client.chat_completion([{"role": "user", "content": "q"}], stop=STOPS, stream=True)
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert chunks[-1].choices[0].finish_reason == "stop"
