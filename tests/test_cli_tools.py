"""`holdback lint`, `explain` and `trace` as their users run them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HOLDBACK = [sys.executable, "-m", "holdback"]


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The text goes in as it stands: on Windows, text mode would end its lines otherwise."""
    done = subprocess.run(
        [sys.executable, "-m", "holdback", *arguments],
        input=stdin.encode(),
        capture_output=True,
        env={"PYTHONUTF8": "1", "COLUMNS": "100", "PATH": ""},
        timeout=60,
        check=False,
    )
    out, err = (said.decode().replace(os.linesep, "\n") for said in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def test_lint_says_what_and_what_to_do():
    done = run("lint", "--stop=---", "--stop", "[DONE]")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("warning: stop 0 '---' is a horizontal rule")
    assert done.stdout.splitlines()[0].endswith("[common]")
    assert done.stdout.splitlines()[-1] == "0 errors, 1 warning, 0 notes"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--stop", "[DONE]"], 0),
        (["--stop", "}"], 0),
        (["--stop", "}", "--strict"], 1),
        (["--stop", "[DONE]", "--provider", "openai", "--model", "gpt-5"], 1),
        (["--stop", "[DONE]", "--provider", "openai", "--model", "gpt-4o"], 0),
        (["--stop", r"\n", "--provider", "anthropic"], 1),
    ],
)
def test_lint_ends_with_1_on_errors_and_with_strict_on_warnings(arguments, code):
    assert run("lint", *arguments).returncode == code


def test_lint_speaks_json():
    done = run("lint", "--stop", "</s>", "--json")
    (finding,) = json.loads(done.stdout)
    assert set(finding) == {"code", "severity", "index", "message", "remedy"}
    assert finding["code"] == "special-token"


def test_lint_takes_facts_of_ones_own(tmp_path):
    facts = {
        name: {"value": value, "date": "2026-12", "source": "ours"}
        for name, value in {"accepts": False}.items()
    }
    (tmp_path / "facts.json").write_text(json.dumps({"providers": {"ours": {"facts": facts}}}))
    done = run(
        "lint", "--stop", "[DONE]", "--facts", str(tmp_path / "facts.json"), "--provider", "ours"
    )
    assert (done.returncode, "takes no stops" in done.stdout) == (1, True)


def test_explain_gives_one_line_for_each_stop():
    done = run("explain", "--stop", r"\n\nUser:", "--stop", "END", stdin="It is 42.\n \nUser: end")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "No stop fired."
    assert (
        r"stop 0 '\n\nUser:' is there with other white space: '\n \nUser:' at 9"
        in done.stdout.splitlines()[1]
    )
    assert "stop 1 'END' is there in another case: 'end' at 18" in done.stdout.splitlines()[2]


def test_explain_speaks_json_and_reads_files(tmp_path):
    (tmp_path / "text").write_text("<t>END</t>")
    done = run(
        "explain",
        str(tmp_path / "text"),
        "--stop",
        "END",
        "--ignore-inside",
        "<t>",
        "</t>",
        "--json",
    )
    told = json.loads(done.stdout)
    assert (told["fired"], told["reasons"][0]["kind"], told["reasons"][0]["places"]) == (
        None,
        "ignored",
        [[3, 6]],
    )


def test_trace_shows_a_line_a_chunk():
    done = run("trace", "--stop", "</a>", stdin="one </\ntwo</a>x")
    assert done.stdout.splitlines() == [
        "chunk  arrived   sent on   held  for",
        r"    0  one </\n  one </\n",
        "    1  two</a>x  two             stop 0 </a> at 10, not sent: x",
    ]


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [(["--chunk", "2"], "ab</a>x"), (["--json-chunks"], '["ab", "</", "a>", "x"]')],
)
def test_trace_takes_chunks_of_bytes_or_of_json(arguments, stdin):
    told = json.loads(run("trace", "--stop", "</a>", "--json", *arguments, stdin=stdin).stdout)
    assert [step["held"] for step in told["steps"]] == ["", "</", ""]
    assert (told["emitted"], told["unread"]) == ("ab", 1)


def test_trace_writes_a_page(tmp_path):
    done = run("trace", "--stop", "</a>", "--html", str(tmp_path / "page.html"), stdin="ab</a>")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        f"wrote {tmp_path / 'page.html'}\n",
    )
    assert "</html>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (["lint"], "", 2, "no stop given"),
        (["explain"], "", 2, "no stop given"),
        (["trace"], "", 2, "no stop given"),
        (
            ["lint", "-s", "x", "--provider", "nobody"],
            "",
            2,
            "no facts about the provider 'nobody'",
        ),
        (["lint", "-s", "x", "--facts", "/does/not/exist"], "", 2, "cannot read /does/not/exist"),
        (["explain", "/does/not/exist", "-s", "x"], "", 2, "cannot read /does/not/exist"),
        (["explain", "-s", "x", "--ignore-inside", "x", "y"], "", 2, "x"),
        (["trace", "-s", "x", "--json-chunks"], "{", 2, "the input is not JSON"),
        (["trace", "-s", "x", "--json-chunks"], "[1]", 2, "not a JSON list of strings"),
        (["trace", "-s", "x", "--html", "/does/not/exist"], "", 1, "cannot write /does/not/exist"),
    ],
)
def test_wrong_usage_is_one_line_and_a_code(arguments, stdin, code, said):
    done = run(*arguments, stdin=stdin)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


EVERY = [
    ["--version"],
    ["--help"],
    ["lint", "--help"],
    ["lint", "-s", "END"],
    ["lint", "-s", "END", "--json"],
    ["explain", "-s", "END"],
    ["trace", "-s", "END"],
    ["trace", "-s", "END", "--json"],
    ["truncate", "-s", "END"],
    ["cut", "-s", "END"],
]
ROW = b'{"text": "a END b"}\n'


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs the device that is always full (Linux)"
)
@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_a_full_disk_is_one_line_and_1(arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*HOLDBACK, *arguments],
            input=ROW,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    command = " " + arguments[0] if arguments[0][0] != "-" else ""
    said = f"holdback{command}: error: cannot write the output: No space left on device\n"
    # Wine has the device, and ends lines of stderr as Windows does.
    assert (done.returncode, done.stderr.decode().replace(os.linesep, "\n")) == (1, said)


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX closes the output")
@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_a_closed_output_is_one_line_and_1(arguments):
    line = " ".join(map(shlex.quote, [*HOLDBACK, *arguments])) + " >&-"
    done = subprocess.run(
        ["sh", "-c", line], input=ROW, stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.decode().count("cannot write the output: ") == 1
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="a pipe of POSIX")
@pytest.mark.parametrize("arguments", EVERY, ids=" ".join)
def test_a_reader_that_went_away_is_141_and_no_word(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*HOLDBACK, *arguments],
        input=ROW,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_the_output_cannot_write_is_escaped():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*HOLDBACK, "explain", "-s", "—"],
        input="x — y".encode(),
        capture_output=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert b"\\u2014" in done.stdout


def test_messages_name_the_options_of_the_command_line():
    early = run("explain", "-s", "END", "--min-chars", "9", stdin="a END")
    assert "lower --min-chars if" in early.stdout
    wrong = run("cut", "-s", "x", "--ignore-inside", "x", "y")
    assert "ignore_inside" not in wrong.stderr
    unknown = run("lint", "-s", "x", "--provider", "nobody")
    assert "with --facts FILE" in unknown.stderr
    dash = run("lint", "--stop", "---")
    assert "--stop=---" in dash.stderr
    assert run("lint", "--stop=---").returncode == 0
    assert "plan(" not in run("lint", "-s", "x", "--provider", "openai").stdout


def test_a_stop_of_the_readme_is_not_common():
    assert "common" not in run("lint", "-s", r"\n\nUser:").stdout
