"""The transport under the SDKs, unmodified, against an upstream that sees what they send and when
they leave.
"""

from __future__ import annotations

import asyncio
import json

import anthropic
import httpx
import httpx2
import huggingface_hub
import ollama
import openai
import pytest
from google import genai
from google.genai import types
from huggingface_hub.utils._http import default_client_factory
from hypothesis import given
from hypothesis import strategies as st
from upstream import (
    DONE,
    JSON,
    NDJSON,
    Upstream,
    chat,
    data,
    gemini,
    message_end,
    message_start,
    message_text,
)
from upstream import ollama as ollama_line

from holdback import StopSet
from holdback.integrations.httpx import transport, wrap

STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP"]
SPLIT = [
    "Par",
    "is.\nObs",
    "ervat",
    "ion: x",
    " never",
    " read",
]  # a stop over three chunks, completed in number 3
INSIDE = ["Par", "is.### x", " never", " read"]  # a stop inside a chunk, number 1
MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
def upstream():
    with Upstream() as server:
        yield server


def openai_client(upstream, make=openai.DefaultHttpxClient, **options):
    return openai.OpenAI(
        base_url=f"{upstream.url}/v1",
        api_key="k",
        max_retries=0,
        http_client=wrap(make(), **options),
    )


def openai_async(upstream, make=openai.DefaultAsyncHttpxClient, **options):
    return openai.AsyncOpenAI(
        base_url=f"{upstream.url}/v1",
        api_key="k",
        max_retries=0,
        http_client=wrap(make(), **options),
    )


def collected(chunks):
    """Text, finish and stop of a stream of OpenAI chunks, by choice."""
    found = {}
    for chunk in chunks:
        for choice in chunk.choices:
            text, finish, stop = found.get(choice.index, ("", None, None))
            found[choice.index] = (
                text + (choice.delta.content or ""),
                choice.finish_reason or finish,
                getattr(choice, "stop_reason", None) or stop,
            )
    return found


# --- OpenAI
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [openai.DefaultHttpxClient, httpx2.Client, httpx.Client],
    ids=["default", "httpx2", "httpx"],
)
@pytest.mark.parametrize(
    ("pieces", "last", "stop"), [(SPLIT, 3, "Observation:"), (INSIDE, 1, "###")]
)
def test_openai(upstream, make, pieces, last, stop):
    upstream.reply(*map(chat, pieces), chat(None, finish="length"), DONE, leaves_after=last)
    with openai_client(upstream, make) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=MESSAGES, stop=STOPS, stream=True
        )
        assert collected(stream) == {0: ("Paris.\n" if last == 3 else "Paris.", "stop", stop)}
        seen = upstream.seen[0]
        assert (seen.after(), seen.left) == (last + 1, True)
        assert "stop" not in seen.body, "gpt-5 takes none"
        assert seen.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "make",
    [openai.DefaultAsyncHttpxClient, httpx2.AsyncClient, httpx.AsyncClient],
    ids=["default", "httpx2", "httpx"],
)
def test_openai_async(upstream, make):
    upstream.reply(*map(chat, SPLIT), chat(None, finish="length"), DONE, leaves_after=3)

    async def run():
        async with openai_async(upstream, make) as client:
            stream = await client.chat.completions.create(
                model="gpt-5", messages=MESSAGES, stop=STOPS, stream=True
            )
            return [chunk async for chunk in stream]

    assert collected(asyncio.run(run())) == {0: ("Paris.\n", "stop", "Observation:")}
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ignore_inside": [("<think>", "</think>")]}, "<think>###</think>Paris."),
        ({"include_stop": True}, "<think>###"),
        ({"min_chars": 12}, "<think>###</think>Paris."),
    ],
)
def test_stops_that_only_we_can_place_are_not_sent(upstream, options, text):
    """gpt-4o takes four stops, but it would end inside the region, too early, or without the stop
    that was to be seen.
    """
    upstream.reply(
        *map(chat, ("<think>##", "#</think>", "Paris.##", "# x")), chat(None, finish="length"), DONE
    )
    with openai_client(upstream, provider="openai", **options) as client:
        stream = client.chat.completions.create(
            model="gpt-4o", messages=MESSAGES, stop=["###"], stream=True
        )
        assert collected(stream) == {0: (text, "stop", "###")}
    assert "stop" not in upstream.seen[0].body


def test_two_choices_end_each_by_itself(upstream):
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
    with openai_client(upstream) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=MESSAGES, stop=STOPS, stream=True, n=2
        )
        assert collected(stream) == {0: ("a b", "stop", "STOP"), 1: ("x", "stop", "###")}
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (6, True)


def test_a_whole_answer_is_cut(upstream):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Paris.###more"},
        "finish_reason": "length",
    }
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    upstream.reply(json.dumps(body).encode(), kind=JSON)
    with openai_client(upstream) as client:
        answer = client.chat.completions.create(model="gpt-4o", messages=MESSAGES, stop=STOPS)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (
        "Paris.",
        "stop",
    )
    assert answer.choices[0].stop_reason == "###"
    assert len(upstream.seen[0].body["stop"]) == 4, "what this API takes is sent"


def test_responses_have_stops_of_the_transport(upstream):
    def event(name, **fields):
        return f"event: {name}\n".encode() + data({"type": name, **fields})

    head = {"item_id": "i", "output_index": 0, "content_index": 0}
    response = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [],
        "status": "in_progress",
    }
    frames = [
        event("response.created", sequence_number=0, response=response),
        event("response.output_item.added", sequence_number=1, output_index=0,
              item={"id": "i", "type": "message", "role": "assistant", "status": "in_progress", "content": []}),
        event("response.content_part.added", sequence_number=2, **head, part={"type": "output_text", "text": "", "annotations": []}),
        *(event("response.output_text.delta", sequence_number=3 + at, **head, delta=text) for at, text in enumerate(SPLIT)),
    ]  # fmt: skip
    upstream.reply(*frames, leaves_after=6)
    with openai_client(upstream, stop=STOPS) as client:
        events = list(client.responses.create(model="gpt-5", input="hi", stream=True))
    assert (
        "".join(event.delta for event in events if event.type == "response.output_text.delta")
        == "Paris.\n"
    )
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "Paris.\n"
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (7, True)
    assert "stop" not in upstream.seen[0].body


# --- what passes untouched
# --------------------------------------------------------------------------------------------------


FRAMES = [
    chat("role"),
    b": a comment\n\n",
    chat("héllo"),
    chat("##"),
    chat("x"),
    chat(None, finish="stop"),
    DONE,
]


def raw_answers(upstream, body, **options):
    """The bytes of an answer with the transport and without it."""
    got = []
    for wrapped in (True, False):
        client = (
            httpx.Client(transport=transport(httpx.HTTPTransport(), **options))
            if wrapped
            else httpx.Client()
        )
        with client:
            response = client.post(f"{upstream.url}/v1/chat/completions", json=body)
            got.append((response.status_code, response.content))
    return got


@pytest.mark.parametrize("stop", [["a", ""], 7, [None]])
def test_stops_that_cannot_be_enforced_are_refused_and_nothing_is_sent(upstream, stop):
    """In the words of the API, so that its SDK raises its own error."""
    client = openai.OpenAI(
        base_url=f"{upstream.url}/v1", api_key="k", http_client=wrap(openai.DefaultHttpxClient())
    )
    with pytest.raises(openai.BadRequestError, match="stop"):
        client.chat.completions.create(model="gpt-5", messages=[], stop=stop)
    assert not upstream.seen


def test_frames_with_nothing_to_cut_are_the_bytes_that_came(upstream):
    frames = [frame for frame in FRAMES if b"##" not in frame]
    for _ in range(2):
        upstream.reply(*frames)
    ours, theirs = raw_answers(upstream, {"model": "gpt-5", "stream": True, "stop": STOPS})
    assert ours == theirs == (200, b"".join(frames))


@pytest.mark.parametrize(
    "body",
    [
        {"model": "gpt-5", "stream": True},
        {"model": "gpt-5", "stream": True, "stop": []},
        ["no", "object"],
    ],
)
def test_requests_that_ask_for_nothing_are_not_touched(upstream, body):
    for _ in range(2):
        upstream.reply(*FRAMES)
    ours, theirs = raw_answers(upstream, body)
    assert ours == theirs == (200, b"".join(FRAMES))
    one, other = upstream.seen
    assert one.body == other.body == body
    assert {**one.headers, "host": ""} == {**other.headers, "host": ""}


def test_errors_pass(upstream):
    error = b'{"error":{"message":"###","type":"invalid_request_error"}}'
    for _ in range(2):
        upstream.reply(error, kind=JSON, status=400)
    ours, theirs = raw_answers(upstream, {"model": "gpt-5", "stream": True, "stop": STOPS})
    assert ours == theirs == (400, error)


def test_a_known_provider_that_can_do_it_all_is_left_alone(upstream):
    for _ in range(2):
        upstream.reply(*FRAMES)
    ours, theirs = raw_answers(
        upstream, {"model": "gpt-4o", "stream": True, "stop": STOPS[:3]}, provider="openai"
    )
    assert ours == theirs
    assert upstream.seen[0].body == upstream.seen[1].body


def test_other_requests_pass():
    def answer(request):
        return httpx.Response(
            200, json={"url": str(request.url), "type": request.headers.get("content-type")}
        )

    with httpx.Client(transport=transport(httpx.MockTransport(answer))) as client:
        assert client.get("http://x/v1/chat/completions").json() == {
            "url": "http://x/v1/chat/completions",
            "type": None,
        }
        assert client.post("http://x/v1/embeddings", json={"stop": STOPS}).status_code == 200
        assert client.post("http://x/v1/chat/completions", content=b"{").json()["type"] is None


# --- errors and clients that leave
# -------------------------------------------------------------------------------------------


def test_an_upstream_that_breaks_off_gives_its_text_then_its_error(upstream):
    upstream.reply(chat("Paris.\nObs"), chat("erv"), chat("never"), breaks_after=1)
    got = []
    with httpx.Client(transport=transport(httpx.HTTPTransport())) as client:
        body = {"model": "m", "stream": True, "stop": STOPS}
        url = f"{upstream.url}/v1/chat/completions"
        with (
            client.stream("POST", url, json=body) as answer,
            pytest.raises(httpx.RemoteProtocolError),
        ):
            got.extend(answer.iter_bytes())
    texts = [
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in b"".join(got).split(b"\n\n")
        if line
    ]
    assert "".join(texts) == "Paris.\nObserv", "held text comes before the error"


def test_an_error_event_in_mid_stream_is_the_clients(upstream):
    upstream.reply(
        chat("Paris.\nObs"), data({"error": {"message": "overloaded", "code": 529}}), DONE
    )
    with openai_client(upstream) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=MESSAGES, stop=STOPS, stream=True
        )
        texts = []
        with pytest.raises(openai.APIError, match="overloaded"):
            texts.extend(chunk.choices[0].delta.content for chunk in stream)
    assert "".join(texts) == "Paris.\nObs"


def test_a_client_that_leaves_takes_the_upstream_along(upstream):
    upstream.reply(*[chat(f"{at} ") for at in range(50)], leaves_after=2)
    with openai_client(upstream) as client:
        stream = client.chat.completions.create(
            model="gpt-5", messages=MESSAGES, stop=STOPS, stream=True
        )
        for _ in range(3):
            next(stream)
        stream.close()
        assert (upstream.seen[0].after(), upstream.seen[0].left) == (3, True)


# --- the other SDKs
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "last", "stop"), [(SPLIT, 3, "Observation:"), (INSIDE, 1, "###")]
)
def test_anthropic(upstream, pieces, last, stop):
    upstream.reply(
        *message_start(), *map(message_text, pieces), *message_end(), leaves_after=last + 2
    )
    made = wrap(anthropic.DefaultHttpxClient(), must_name=False)
    stops = [*STOPS, "\n\n"]  # white space is refused by this API
    with (
        anthropic.Anthropic(
            base_url=upstream.url, api_key="k", max_retries=0, http_client=made
        ) as client,
        client.messages.stream(
            model="m", max_tokens=9, messages=MESSAGES, stop_sequences=stops
        ) as stream,
    ):
        message = stream.get_final_message()
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)
    assert message.content[0].text == ("Paris.\n" if last == 3 else "Paris.")
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (last + 3, True)
    assert "\n\n" not in upstream.seen[0].body["stop_sequences"]


def test_anthropic_async(upstream):
    upstream.reply(*message_start(), *map(message_text, SPLIT), *message_end(), leaves_after=5)

    async def run():
        made = wrap(anthropic.DefaultAsyncHttpxClient())
        async with (
            anthropic.AsyncAnthropic(
                base_url=upstream.url, api_key="k", max_retries=0, http_client=made
            ) as client,
            client.messages.stream(
                model="m", max_tokens=9, messages=MESSAGES, stop_sequences=STOPS
            ) as stream,
        ):
            return await stream.get_final_message()

    message = asyncio.run(run())
    assert (message.stop_reason, message.stop_sequence, message.content[0].text) == (
        "stop_sequence",
        "Observation:",
        "Paris.\n",
    )
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (6, True)


def genai_client(upstream, make):
    options = types.HttpOptions(base_url=upstream.url, **make)
    return genai.Client(api_key="k", http_options=options)


@pytest.mark.parametrize("package", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_google_genai(upstream, package):
    upstream.reply(*map(gemini, SPLIT), gemini("", "MAX_TOKENS"), leaves_after=3)
    client = genai_client(upstream, {"httpx_client": wrap(package.Client())})
    config = types.GenerateContentConfig(stop_sequences=STOPS)
    answers = list(
        client.models.generate_content_stream(
            model="gemini-2.5-flash", contents="hi", config=config
        )
    )
    assert "".join(answer.text or "" for answer in answers) == "Paris.\n"
    assert answers[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)
    assert len(upstream.seen[0].body["generationConfig"]["stopSequences"]) <= 5


def test_google_genai_async(upstream):
    upstream.reply(*map(gemini, SPLIT), gemini("", "MAX_TOKENS"), leaves_after=3)

    async def run():
        client = genai_client(upstream, {"httpx_async_client": wrap(httpx.AsyncClient())})
        config = types.GenerateContentConfig(stop_sequences=STOPS)
        stream = await client.aio.models.generate_content_stream(
            model="gemini-2.5-flash", contents="hi", config=config
        )
        return "".join([answer.text or "" async for answer in stream])

    assert asyncio.run(run()) == "Paris.\n"
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)


def test_ollama(upstream):
    upstream.reply(
        *map(ollama_line, SPLIT), ollama_line("", done=True), kind=NDJSON, leaves_after=3
    )
    client = ollama.Client(host=upstream.url, transport=transport(httpx.HTTPTransport()))
    lines = list(client.chat(model="m", messages=MESSAGES, stream=True, options={"stop": STOPS}))
    client._client.close()
    assert "".join(line.message.content or "" for line in lines) == "Paris.\n"
    assert (lines[-1].done, lines[-1].done_reason) == (True, "stop")
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)


def test_ollama_async(upstream):
    upstream.reply(
        *map(ollama_line, INSIDE), ollama_line("", done=True), kind=NDJSON, leaves_after=1
    )

    async def run():
        client = ollama.AsyncClient(
            host=upstream.url, transport=transport(httpx.AsyncHTTPTransport())
        )
        stream = await client.chat(
            model="m", messages=MESSAGES, stream=True, options={"stop": STOPS}
        )
        text = "".join([line.message.content or "" async for line in stream])
        await client._client.aclose()
        return text

    assert asyncio.run(run()) == "Paris."
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (2, True)


def test_huggingface_hub(upstream):
    upstream.reply(*map(chat, SPLIT), chat(None, finish="length"), DONE, leaves_after=3)
    huggingface_hub.set_client_factory(lambda: wrap(default_client_factory(), provider="tgi.chat"))
    try:
        client = huggingface_hub.InferenceClient(base_url=upstream.url, api_key="k")
        stream = client.chat_completion(MESSAGES, model="m", stop=STOPS, stream=True)
        found = collected(stream)
    finally:
        huggingface_hub.set_client_factory(default_client_factory)
    assert found[0][:2] == ("Paris.\n", "stop")
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)
    assert len(upstream.seen[0].body["stop"]) <= 4


# --- any text, any chunks
# --------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([*STOPS, "a", "\n", "Us", "#", "é", "Obs", "STO"]), max_size=10),
    st.integers(1, 9),
    st.integers(1, 60),
)
def test_any_text_in_any_chunks_is_what_truncate_gives(words, size, read):
    text = "".join(words)
    frames = (
        b"".join(chat(text[at : at + size]) for at in range(0, len(text), size))
        + chat(None, finish="stop")
        + DONE
    )

    class Pieces(httpx.SyncByteStream):
        def __iter__(self):
            yield from (frames[at : at + read] for at in range(0, len(frames), read))

    inner = httpx.MockTransport(
        lambda _: httpx.Response(
            200, headers={"content-type": "text/event-stream"}, stream=Pieces()
        )
    )
    with httpx.Client(transport=transport(inner)) as client:
        answer = client.post(
            "http://x/v1/chat/completions", json={"model": "gpt-5", "stream": True, "stop": STOPS}
        ).text
    chunks = [json.loads(line[6:]) for line in answer.split("\n\n") if line.startswith("data: {")]
    expected, match = StopSet(STOPS).truncate(text)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == expected
    assert chunks[-1]["choices"][0].get("stop_reason") == (match and match.stop)
    assert answer.endswith("data: [DONE]\n\n")


def test_bad_use_is_told_at_once():
    with pytest.raises(TypeError, match="a client of httpx or httpx2, not str"):
        wrap("client")
    with pytest.raises(TypeError, match="a transport of httpx or httpx2, not Client"):
        transport(httpx.Client())
    with pytest.raises(ValueError, match="no facts about the provider"):
        transport(httpx.HTTPTransport(), provider="nobody")
    with pytest.raises(ValueError):
        transport(httpx.HTTPTransport(), stop=[""])
    with pytest.raises((TypeError, ValueError)):
        transport(httpx.HTTPTransport(), on_match="explode")
