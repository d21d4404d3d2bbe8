"""Paths of the gateway: which dialect they are of, which upstream they go to, and that what was
judged is what is forwarded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Canned, request, running

from holdback.dialects import DIALECTS, dialect_of
from holdback.serve.config import Upstream
from holdback.serve.routes import RouteError, find_target, table
from holdback.wire import Dialect

VLLM = Upstream("gpu", "http://a", "vllm")
OPENAI = Upstream("openai", "http://b", "openai")
ANTHROPIC = Upstream("claude", "http://c", "anthropic")
OLLAMA = Upstream("ollama", "http://d", "ollama")
MISTRAL = Upstream("mistral", "http://e", "mistral")
PLAIN = Upstream("plain", "http://f")
CHAT = "/v1/chat/completions"


def to(path: str, *upstreams: Upstream, method: str = "POST") -> str:
    return find_target(method, path, upstreams).upstream.name


def test_the_upstream_whose_own_interface_it_is_wins_over_the_order() -> None:
    for order in ((VLLM, OPENAI, ANTHROPIC, OLLAMA), (OLLAMA, ANTHROPIC, OPENAI, VLLM)):
        assert to(CHAT, *order) == "openai"
        assert to("/v1/messages", *order) == "claude"
        assert to("/api/chat", *order) == "ollama"
        assert to("/gpu/v1/messages", *order) == "gpu"
        assert to("/api/tags", *order, method="GET") == "ollama"
        assert to("/v1/models", *order, method="GET") == "openai"
        version = [(b"anthropic-version", b"2023-06-01")]
        assert find_target("GET", "/v1/models", order, version).upstream.name == "claude"


def test_a_key_never_goes_where_the_order_of_a_file_says() -> None:
    for order in ((VLLM, MISTRAL), (MISTRAL, VLLM)):
        with pytest.raises(RouteError, match="choose one by the path, /") as raised:
            to(CHAT, *order)
        assert raised.value.status == 404
    assert to(CHAT, PLAIN, VLLM) == to(CHAT, VLLM, PLAIN) == "gpu"
    assert to(CHAT, VLLM, Upstream("gpu-2", "http://g", "vllm")) == "gpu"
    chosen = Upstream("chosen", "http://g", "mistral", dialects=("openai.chat",))
    assert to(CHAT, VLLM, OPENAI, chosen) == "chosen"
    with pytest.raises(RouteError, match="speaks tgi"):
        to("/generate", OPENAI, ANTHROPIC)


@pytest.mark.parametrize("path", ["/nosuch" + CHAT, "/nosuch", "/Openai/v1/models", "/v1x/models"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_name_leads_nowhere(method: str, path: str) -> None:
    with pytest.raises(RouteError, match=r"no upstream is called .* there are: openai, claude"):
        to(path, OPENAI, ANTHROPIC, method=method)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_path_written_otherwise_is_the_same_path(dialect: Dialect) -> None:
    for ending in DIALECTS[dialect].paths:
        path = f"/v1beta{ending}" if ending.startswith("/v1/") else ending
        path = f"/v1beta/models/m{ending}" if ending.startswith(":") else path
        escaped = re.sub("[a-z]", lambda letter: f"%{ord(letter[0]):02x}", path)
        for other in (path, escaped, f"{path}/", path.replace("/", "//"), path.upper()):
            target = find_target("POST", f"/plain{other}", [PLAIN])
            assert target.dialect == dialect
            assert target.path.lower() == path.lower()
            assert target.path.endswith(ending)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat%2Fcompletions",
        "/v1%2fchat%2fcompletions",
        "/v1/chat/completions;x=1",
        "/v1/chat/completions%20",
        "/v1/chat/completions%00",
        "/v1/chat%5Ccompletions",
        "/v1/chat;a/completions",
        "/v1/messages%0A",
    ],
)
def test_a_path_that_servers_read_differently_is_refused(path: str) -> None:
    with pytest.raises(RouteError, match="differently") as raised:
        to(path, PLAIN)
    assert raised.value.status == 400


@given(
    st.lists(
        st.sampled_from(
            ["/", "v1", "chat", "Chat", "completions", "fim", "messages", "api", "%2F", "%63hat",
             "%68", ";", "%20", ":generateContent", "generate", "\\", "%5c", "x"]
        ),
        max_size=8,
    )
)  # fmt: skip
def test_what_was_judged_is_what_is_forwarded(parts: list[str]) -> None:
    """However an upstream reads the path that it gets, it is of the dialect that was judged."""
    path = "/plain/" + "".join(parts)
    try:
        target = find_target("POST", path, [PLAIN])
    except RouteError:
        return
    sent = target.path
    for read in (
        sent,
        unquote(sent),
        sent.lower(),
        sent.rstrip("/") or "/",
        "/".join(part.partition(";")[0] for part in sent.split("/")),
    ):
        assert dialect_of(read) == target.dialect


def test_the_table_says_where_paths_go() -> None:
    made = table([VLLM, MISTRAL, ANTHROPIC])
    assert set(made) == set(DIALECTS)
    assert made["anthropic.messages"] == "claude"
    assert made["openai.completions"] == "gpu"
    assert made["openai.chat"].startswith("none: several upstreams speak openai.chat")
    assert made["gemini"] == "none: no upstream that speaks gemini is configured"


@pytest.mark.thread_unsafe
def test_paths_of_a_gateway() -> None:
    with Canned(quick=None) as upstream, running("--upstream", f"up={upstream.url}") as gateway:
        path, body = request("openai.chat", ["Observation:"], stream=False)
        for other in (
            path,
            "/v1/%63hat/completions",
            "/v1/CHAT/completions/",
            "/up//v1/chat/completions",
        ):
            reply = gateway.ask(other, body)
            assert reply.status == 200
            assert reply.json["choices"][0]["message"]["content"].endswith(".\n")
            assert upstream.wait().path == path
        for other, status in (
            ("/v1/chat%2Fcompletions", 400),
            ("/nosuch/v1/chat/completions", 404),
        ):
            reply = gateway.ask(other, body)
            assert reply.status == status
            assert reply.json["error"]["type"] == "invalid_request_error"
        assert gateway.ask("/nosuch/v1/messages", {}).json["type"] == "error"
        assert gateway.ask("/nosuch/api/chat", {}).json["error"].startswith("no upstream is called")
        assert "other_paths" in gateway.ask("/api/pull", {}).json["error"]
        assert gateway.ask("/v1/embeddings", {}).json["error"]["message"] == "not found"
        listening = [json.loads(line) for line in gateway.said if '"listening"' in line]
        assert listening[0]["routes"]["openai.chat"] == "up"


def test_the_table_of_the_manual_is_the_one_there_is() -> None:
    page = (Path(__file__).parent.parent / "docs" / "serve.md").read_text(encoding="utf-8")
    rows = page.partition("| dialect | own interface of")[2].partition("\n\n")[0].splitlines()[2:]
    told = {}
    for row in rows:
        names, native, spoken = (cell.strip() for cell in row.split("|")[1:4])
        for name in re.findall(r"`([\w.]+)`", names):
            told[name] = (native, spoken)
    assert told == {
        name: (", ".join(spec.native_to), ", ".join(spec.spoken_by))
        for name, spec in DIALECTS.items()
    }
