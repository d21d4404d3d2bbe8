"""`holdback cut` as its users run it: a process of its own, pipes on both sides.

Nothing is timed. Whatever must come out before the next piece goes in is waited for, with a
deadline so generous that only a hang can miss it."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 60.0
CUT = [sys.executable, "-m", "holdback", "cut"]
POSIX = pytest.mark.skipif(
    os.name == "nt", reason="pipes that break and SIGINT are POSIX; Windows has neither"
)


def cut(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end."""
    return subprocess.run(
        [*CUT, *arguments], input=stdin, capture_output=True, timeout=DEADLINE, check=False
    )


def error_of(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """The exit code and the one line of a run that must fail."""
    done = cut(*arguments, stdin=stdin)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    said = re.fullmatch("holdback( cut)?: error: (.+)", lines[0])
    assert said
    return done.returncode, said[2]


def report(*arguments: str, stdin: bytes) -> dict[str, Any]:
    """What `--report` says of a run that must succeed."""
    done = cut("--report", *arguments, stdin=stdin)
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stderr)
    assert found["bytes_written"] == len(done.stdout)
    return found


class Live:
    """A running command whose input and output are in our hands."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr

    def write(self, data: bytes) -> None:
        """Bring one piece, now."""
        self.stdin.write(data)
        self.stdin.flush()

    def expect(self, data: bytes) -> None:
        """Wait for exactly these bytes.

        A command that keeps them back makes this hang, and the watchdog ends it.
        """
        seen = b""
        while len(seen) < len(data):
            piece = os.read(self.stdout.fileno(), len(data) - len(seen))
            assert piece, f"the output ended after {seen!r}; expected {data!r}"
            seen += piece
        assert seen == data

    def end(self) -> tuple[bytes, int]:
        """Close the input; what else came out, and the exit code."""
        self.stdin.close()
        rest = self.stdout.read()
        return rest, self.process.wait(DEADLINE)


@contextlib.contextmanager
def live(*arguments: str) -> Iterator[Live]:
    """Start the command; kill it at the deadline, so that a hang fails instead of hanging the
    suite.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen([*CUT, *arguments], stdin=pipe, stdout=pipe, stderr=pipe)
    watchdog = threading.Timer(DEADLINE, process.kill)
    watchdog.start()
    command = Live(process)
    try:
        yield command
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (command.stdin, command.stdout, command.stderr):
            with contextlib.suppress(
                BrokenPipeError
            ):  # what was written to a command that had ended
                stream.close()


# --- as it arrives
# ---------------------------------------------------------------------------------------------------


def test_text_of_a_slow_producer_appears_before_the_next_piece() -> None:
    with live("--stop", "STOP") as command:
        for piece in (b"one ", b"two ", "三".encode(), b"four "):
            command.write(piece)
            command.expect(piece)
        assert command.end() == (b"", 0)


def test_only_a_possible_stop_waits() -> None:
    with live("--stop", "STOP") as command:
        command.write(b"go ST")
        command.expect(b"go ")
        command.write(b"ART ")  # not a stop after all: what waited comes with it
        command.expect(b"START ")
        command.write(b"S")
        assert command.end() == (b"S", 0)


def test_half_a_character_waits_for_its_other_half() -> None:
    first, second = "語".encode()[:2], "語".encode()[2:]
    with live("--stop", "STOP") as command:
        command.write(b"a" + first)
        command.expect(b"a")
        command.write(second)
        command.expect("語".encode())


def test_it_ends_at_the_stop_while_the_producer_goes_on() -> None:
    with live("--stop", "STOP") as command:
        command.write(b"text STOP more")
        command.expect(b"text ")
        assert command.process.wait(DEADLINE) == 0  # its standard input is still open


@pytest.mark.parametrize("size", ["1", "2", "3", "1000"])
def test_the_size_of_a_read_changes_nothing(size: str) -> None:
    text = "前置 <b>🙂 ###EN ###END### rest".encode()
    done = cut("--stop", "###END###", "--chunk", size, stdin=text)
    assert (done.stdout.decode(), done.returncode) == ("前置 <b>🙂 ###EN ", 0)


# --- options
# ---------------------------------------------------------------------------------------------------------


def test_report_of_a_stop_counts_characters_and_bytes() -> None:
    assert report("--stop", "x", "--stop", "界", stdin="世界!".encode()) == {
        "ended": "stop",
        "stop": "界",
        "index": 1,
        "start": 1,
        "end": 2,
        "bytes_read": 7,
        "bytes_written": 3,
    }


def test_report_without_a_stop() -> None:
    expected = {"ended": "input", "stop": None, "index": None, "start": None, "end": None}
    assert report("--stop", "x", stdin=b"abc") == {**expected, "bytes_read": 3, "bytes_written": 3}


def test_a_stop_that_the_end_of_the_input_completes_is_found() -> None:
    found = report("--stop", r"\uFFFD", stdin=b"ab\xe4")
    assert (found["ended"], found["start"], found["bytes_written"]) == ("stop", 2, 2)


def test_include_stop_writes_it_and_nothing_behind_it() -> None:
    assert cut("--stop", "STOP", "--include-stop", stdin=b"go STOP on").stdout == b"go STOP"


@pytest.mark.parametrize(("tie", "expected"), [("longest", b"x"), ("first", b"xa")])
def test_tie(tie: str, expected: bytes) -> None:
    assert cut("--stop", "bc", "--stop", "abc", "--tie", tie, stdin=b"xabc").stdout == expected


def test_steps_tell_what_came_went_and_waits() -> None:
    done = cut("--stop", "STOP", "--steps", "--chunk", "4", stdin=b"go SxSTOP")
    assert [json.loads(line) for line in done.stderr.splitlines()] == [
        {"read": "go S", "wrote": "go ", "held": "S"},
        {"read": "xSTO", "wrote": "Sx", "held": "STO"},
        {"read": "P", "wrote": "", "held": ""},
    ]


def test_a_file_instead_of_standard_input(tmp_path: Path) -> None:
    source = tmp_path / "answer.txt"
    source.write_bytes(b"from a file STOP")
    assert cut("--stop", "STOP", str(source)).stdout == b"from a file "


def test_invalid_bytes_are_replaced() -> None:
    assert cut("--stop", "STOP", stdin=b"a\xffb").stdout.decode() == "a\ufffdb"


@pytest.mark.parametrize("size", ["1", "5", "1000"])
def test_strict_writes_what_stands_before_the_bad_byte(size: str) -> None:
    done = cut("--stop", "STOP", "--errors", "strict", "--chunk", size, stdin=b"good \xff STOP")
    assert (done.stdout, done.returncode) == (b"good ", 1)
    assert b"invalid UTF-8 at byte 5 " in done.stderr


@pytest.mark.parametrize("size", ["1", "3", "99999999999999999999"])
def test_strict_names_the_byte_at_which_the_bad_sequence_begins(size: str) -> None:
    done = cut("--stop", "STOP", "--errors", "strict", "--chunk", size, stdin=b"ok\xe2END")
    assert (done.stdout, done.returncode) == (b"ok", 1)
    assert b"invalid UTF-8 at byte 2 " in done.stderr


@pytest.mark.parametrize("size", ["1", "5", "1000"])
def test_strict_finds_a_stop_before_the_bad_byte(size: str) -> None:
    done = cut("--stop", "STOP", "--errors", "strict", "--chunk", size, stdin=b"good STOP\xff")
    assert (done.stdout, done.returncode) == (b"good ", 0)


def test_strict_refuses_half_a_character_at_the_end() -> None:
    done = cut("--stop", "x", "--errors", "strict", stdin=b"ab\xe4")
    assert (done.stdout, done.returncode) == (b"ab", 1)
    assert b"the input ends inside a character (byte 3)" in done.stderr


# --- scope
# -----------------------------------------------------------------------------------------------------------


def test_arming_ignores_early_stops() -> None:
    assert cut("--stop", "x", "--min-chars", "2", stdin=b"axbxc").stdout == b"axb"


def test_regions_put_stops_to_sleep() -> None:
    text = b"<think>STOP</think>go STOP"
    assert (
        cut("--stop", "STOP", "--ignore-inside", "<think>", "</think>", stdin=text).stdout
        == text[:-4]
    )


def test_start_inside_begins_inside_the_region() -> None:
    options = ["--stop", "STOP", "--ignore-inside", "<think>", "</think>", "--start-inside"]
    assert cut(*options, stdin=b"STOP</think>go STOP").stdout == b"STOP</think>go "


@pytest.mark.parametrize(
    "options",
    [["--atomic", "</think>"], ["--ignore-inside", "<think>", "</think>", "--keep-regions-whole"]],
    ids=["marker", "regions"],
)
def test_a_marker_is_never_written_by_halves(options: list[str]) -> None:
    with live("--stop", "STOP", *options) as command:
        command.write(b"a</th")
        command.expect(b"a")
        command.write(b"ink>b")
        command.expect(b"</think>b")


# --- where stops come from
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "stop"),
    [
        (r"\n\nUser:", "\n\nUser:"),
        (r"\t", "\t"),
        (r"\r\n", "\r\n"),
        (r"\0", "\0"),
        (r"\\n", "\\n"),
        (r"\x41", "A"),
        (r"\u4e16", "世"),
        (r"\U0001F642", "🙂"),
        (r"\ud83d\ude42", "🙂"),  # a pair, as JSON writes it
        ("🙂", "🙂"),
        (" ", " "),
    ],
    ids=ascii,
)
def test_escapes(written: str, stop: str) -> None:
    assert report("--stop", written, stdin=("before" + stop + "after").encode())["stop"] == stop


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (r"a\q", r"unknown escape \q at character 1"),
        ("a\\", "unknown escape \\ at character 1"),
        (r"\x4", r"unknown escape \x4 at character 0"),
        (r"\u12", r"unknown escape \u12 at character 0"),
        (r"\U00110000", r"\U00110000 at character 0"),
    ],
    ids=ascii,
)
def test_a_bad_escape_is_named(written: str, named: str) -> None:
    code, line = error_of("--stop", written)
    assert code == 2
    assert named in line


@pytest.mark.parametrize(
    ("content", "stops"),
    [
        ("STOP\n\\n\\nUser:\n", ["STOP", "\n\nUser:"]),
        ("STOP\r\n two words \r\n", ["STOP", " two words "]),
        ("no newline at the end", ["no newline at the end"]),
        ("[INST]\n", ["[INST]"]),
        ('["STOP", "\\n\\nUser:"]', ["STOP", "\n\nUser:"]),
        ('\ufeff[\n  "one"\n]\n', ["one"]),
    ],
    ids=["lines", "crlf", "no-newline", "bracket", "json", "json-bom"],
)
def test_stops_file(tmp_path: Path, content: str, stops: list[str]) -> None:
    stops_file = tmp_path / "stops"
    stops_file.write_bytes(content.encode())
    for index, stop in enumerate(stops):
        found = report("--stops-file", str(stops_file), stdin=f"before{stop}".encode())
        assert (found["stop"], found["index"]) == (stop, index)


@pytest.mark.parametrize("content", ["", "[]"], ids=["empty", "json"])
def test_a_list_without_stops_passes_everything_through(tmp_path: Path, content: str) -> None:
    stops_file = tmp_path / "stops"
    stops_file.write_text(content)
    assert cut("--stops-file", str(stops_file), stdin=b"all of it").stdout == b"all of it"


def test_stops_keep_the_order_of_the_command_line(tmp_path: Path) -> None:
    stops_file = tmp_path / "stops"
    stops_file.write_text("b\nc\n")
    found = report("--stop", "a", "--stops-file", str(stops_file), "--stop", "d", stdin=b"d")
    assert found["index"] == 3


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"a\n\nb\n", "line 2: an empty stop"),
        (b"a\n\\q\n", r"line 2: unknown escape \q"),
        (b'["a", ""]', "entry 1: an empty stop"),
        (b'["a", 7]', "entry 1: not a string but 7"),
        (b'["a", ', "looks like a JSON list but is not"),
        (b"\xff", "is not UTF-8: byte 0"),
    ],
    ids=["empty-line", "escape", "empty-entry", "number", "broken-json", "not-utf8"],
)
def test_a_bad_stops_file_is_one_clear_line(tmp_path: Path, content: bytes, named: str) -> None:
    stops_file = tmp_path / "stops"
    stops_file.write_bytes(content)
    code, line = error_of("--stops-file", str(stops_file))
    assert code == 2
    assert named in line
    assert str(stops_file) in line


# --- wrong usage and sudden ends
# -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("", "no stop given"),
        ("--stop=", "must not be empty"),
        (r"--stop=\ud800", "surrogate"),
        ("--stop=x no-such-file", "cannot open no-such-file"),
        ("--stop=x .", "irectory" if os.name != "nt" else "cannot open"),
        ("--stops-file=no-such-file", "cannot read no-such-file"),
        ("--stop=x --tie=last", "--tie"),
        ("--stop=x --chunk=0", "at least 1, not '0'"),
        ("--stop=x --min-chars=-1", "at least 0, not '-1'"),
        ("--stop=x --start-inside", "--start-inside"),
        ("--stop=x --ignore-inside x y", "marker"),
        ("--stop=x --no-such-option", "--no-such-option"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_exit_2(arguments: str, named: str) -> None:
    code, line = error_of(*arguments.split())
    assert code == 2
    assert named in line


@POSIX
def test_a_broken_pipe_ends_it_quietly() -> None:
    with live("--stop", "STOP") as command:
        command.write(b"seen")
        command.expect(b"seen")
        command.stdout.close()
        command.write(b"unseen")
        assert command.process.wait(DEADLINE) == 141
        assert command.stderr.read() == b""


@POSIX
def test_an_interrupt_writes_nothing_more_and_exits_130() -> None:
    with live("--stop", "STOP", "--report", "--steps") as command:
        command.write(b"seen ST")
        command.expect(b"seen ")
        assert (
            json.loads(command.stderr.readline())["held"] == "ST"
        )  # and by now the bytes written are counted
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(DEADLINE) == 130
        assert command.stdout.read() == b""  # "ST" may be half a stop
        told = json.loads(command.stderr.read())
        assert (told["ended"], told["bytes_read"], told["bytes_written"]) == ("interrupt", 7, 5)


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs the device that is always full (Linux)"
)
def test_a_full_disk_is_an_error() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*CUT, "--stop", "x"],
            input=b"text",
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=DEADLINE,
            check=False,
        )
    assert done.returncode == 1
    assert b"cannot write the output: No space left on device" in done.stderr


@POSIX
def test_a_non_blocking_standard_input_is_waited_for() -> None:
    # Whoever shares the other end of a terminal or pipe may have set it so (node does).
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with subprocess.Popen(
        [*CUT, "--stop", "STOP"], stdin=reading, stdout=subprocess.PIPE
    ) as process:
        os.close(reading)
        assert process.stdout
        os.write(writing, b"late")
        assert os.read(process.stdout.fileno(), 4) == b"late"
        os.write(writing, b" STOP")
        os.close(writing)
        assert process.communicate(timeout=DEADLINE)[0] == b" "
    assert process.returncode == 0


@pytest.mark.parametrize("arguments", [["--help"], ["cut", "--help"], ["--version"]], ids=" ".join)
def test_only_the_command_asked_for_is_imported(arguments: list[str]) -> None:
    watched = (
        "import sys; from holdback.cli import main\n"
        "try: main()\n"
        "finally: print([name for name in sys.modules if name.startswith('holdback.commands.')], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watched, *arguments],
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0
    assert b"holdback" in done.stdout
    asked_for = (
        [f"holdback.commands.{name}" for name in ("cut", "_stops", "_words")]
        if "cut" in arguments
        else []
    )
    assert sorted(ast.literal_eval(done.stderr.decode())) == sorted(asked_for)
