"""`holdback truncate` on JSON lines; its Parquet side is tested beside pyarrow, in
tests/integrations.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdback import StopSet, cli
from holdback.commands import _jobs, _json_path
from holdback.commands._jobs import Job, Work
from holdback.commands._jsonl import Fields, Tally, plan_blocks, read_block
from holdback.commands._progress import Progress

pytestmark = pytest.mark.thread_unsafe  # processes, and constants that are set for a test

STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP", "—"]


def holdback(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "holdback", "truncate", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)


def stop_options(stops: list[str] = STOPS) -> list[str]:
    return [f"--stop={stop.encode('unicode_escape').decode()}" for stop in stops]


def oracle(line: bytes, column: str = "text") -> object:
    """The row as it should be, by the library and Python's own JSON."""
    stops = StopSet(STOPS)

    def cut(value: object) -> object:
        if isinstance(value, list):
            return [cut(item) for item in value]
        if not isinstance(value, str):
            return value
        match = stops.truncate(value)[1]
        return value if match is None else value[: match.start]

    row = json.loads(line)
    return {name: cut(value) if name == column else value for name, value in row.items()}


texts = st.lists(
    st.sampled_from([*STOPS, "a", "é", "\n", "\\", '"', "User", "\ud83d", "😀", "#"]), max_size=6
).map("".join)
values = st.recursive(st.none() | texts, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
rows = st.fixed_dictionaries(
    {"text": values}, optional={"id": st.integers() | st.floats(allow_nan=False), "}": texts}
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    parts = []
    for row in draw(st.lists(rows, max_size=8)):
        line = json.dumps(
            row,
            ensure_ascii=draw(st.booleans()),
            separators=draw(st.sampled_from([(",", ":"), (" , ", " : ")])),
        )
        try:
            parts.append(line.encode())
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8
            parts.append(json.dumps(row).encode())
        parts.append(draw(st.sampled_from([b"\n", b"\r\n", b" \n", b"\n\n"])))
    data = b"".join(parts)
    return data if draw(st.booleans()) else data.removesuffix(b"\n")


@settings(max_examples=60)  # files are written and synced in each
@given(documents(), st.integers(20, 200))
def test_files_are_cut_line_by_line_whatever_the_blocks(tmp_path_factory, document, block_bytes):
    folder = tmp_path_factory.mktemp("rows")
    source, output = folder / "in.jsonl", folder / "out.jsonl"
    source.write_bytes(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_jobs, "BLOCK_BYTES", block_bytes)
        assert (
            cli.main(["truncate", str(source), "-o", str(output), "--workers=1", *stop_options()])
            == 0
        )
    before, after = document.split(b"\n"), output.read_bytes().split(b"\n")
    assert len(before) == len(after)
    for line, made in zip(before, after, strict=True):
        if not line.strip() or oracle(line) == json.loads(line):
            assert made == line, "nothing to cut: the same bytes"
        else:
            assert json.loads(made) == oracle(line)
    assert not list(folder.glob("*.unfinished"))


@settings(max_examples=60)
@given(documents())
def test_a_pipe_gives_what_files_give(tmp_path_factory, document):
    folder = tmp_path_factory.mktemp("rows")
    (folder / "in.jsonl").write_bytes(document)
    stops = StopSet(STOPS)
    tally = Tally()
    editor = Work(stops, Fields("text"), {}, keep_bad=False).lines()
    # what the command does with a pipe, without a process for each example
    piped = b"\n".join(editor.edit(document.split(b"\n"), 0, tally))
    assert (
        cli.main(
            [
                "truncate",
                str(folder / "in.jsonl"),
                "-o",
                str(folder / "out"),
                "--workers=1",
                *stop_options(),
            ]
        )
        == 0
    )
    assert (folder / "out").read_bytes() == piped
    assert sum(tally.stops.values()) == tally.cut <= tally.texts


@given(
    st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")), max_size=10),
    st.integers(1, 30),
)
def test_every_line_belongs_to_one_block(tmp_path_factory, lines, size):
    path = tmp_path_factory.mktemp("blocks") / "file"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found: list[bytes] = []
    with path.open("rb") as source:
        for begin, end in plan_blocks(path, size):
            found += read_block(source, begin, end)[1]
    assert found == lines


def test_only_the_strings_that_are_cut_are_written_anew():
    line = (
        b'\xef\xbb\xbf{ "n":1.0e5, "big":12345678901234567890,"text" :"a\\/b###c", "u":"\\u00e9" }'
    )
    done = holdback(*stop_options(), stdin=line + b"\r\n")
    assert (
        done.stdout
        == b'\xef\xbb\xbf{ "n":1.0e5, "big":12345678901234567890,"text" :"a/b", "u":"\\u00e9" }\r\n'
    )


def test_the_stop_that_fired_goes_into_a_field():
    given_rows = b'{"text":"a###b"}\n{"stop":7,"text":["x","y###","zSTOP"]}\n{"text":null}\n'
    done = holdback(*stop_options(), "--stop-column=stop", stdin=given_rows)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"text": "a", "stop": "###"},
        {"stop": [None, "###", "STOP"], "text": ["x", "y", "z"]},
        {"text": None, "stop": None},
    ]


def test_counts_are_told_for_people_and_for_programs():
    given_rows = b'{"text":"a###bc"}\n{"text":"x"}\n{"text":"y###"}\n{"text":"zSTOP"}\n'
    told = holdback(*stop_options(), stdin=given_rows).stderr.decode().splitlines()
    assert told[0] == "4 rows, 4 texts, 3 cut, 12 characters cut off"
    assert [line.split() for line in told[1:]] == [["2", "'###'"], ["1", "'STOP'"]]
    counts = json.loads(holdback(*stop_options(), "--json", stdin=given_rows).stderr)
    assert counts == {
        "rows": 4,
        "texts": 4,
        "cut": 3,
        "bad": 0,
        "characters": 12,
        "stops": {"###": 2, "STOP": 1},
    }


BAD = [
    (b'{"text": "x"', "not JSON: Expecting"),
    (b'["text"]', "not a JSON object"),
    (b'{"other": "x"}', "no field 'text' (it has 'other')"),
    (b'{"text": 7}', "field 'text' holds 7"),
    (b'{"text": "\xff"}', "can't decode byte"),
    (b'{"text": "a"} {"text": "b"}', "not JSON: Extra data"),
    (b'{"text": ' + b"[" * 100_000, ""),
]


@pytest.mark.parametrize(("line", "told"), BAD, ids=[str(at) for at in range(len(BAD))])
@pytest.mark.parametrize("to_file", [False, True])
def test_a_bad_row_is_named_or_kept(tmp_path, line, told, to_file):
    document = b'{"text": "a###"}\n\n' + line + b'\n{"text": "b###"}\n'
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(document)
    arguments = [source, "-o", output] if to_file else [source]
    done = holdback(*arguments, *stop_options())
    assert done.returncode == 1
    assert f"{source}, line 3: " in done.stderr.decode()
    assert told in done.stderr.decode()
    assert not output.exists()
    done = holdback(
        *arguments, *stop_options(), "--keep-bad", *(["--overwrite"] if to_file else [])
    )
    assert done.returncode == 0
    made = output.read_bytes() if to_file else done.stdout
    assert made == b'{"text": "a"}\n\n' + line + b'\n{"text": "b"}\n'
    assert "1 rows copied that could not be read" in done.stderr.decode()


@pytest.fixture
def many_rows(tmp_path) -> Path:
    """Some blocks of rows, every third with a stop."""
    source = tmp_path / "many.jsonl"
    with source.open("w") as sink:
        for number in range(9_000):
            sink.write(
                json.dumps(
                    {"id": number, "text": f"answer {number} " * 150 + "###" * (number % 3 == 0)}
                )
                + "\n"
            )
    return source


def test_several_workers_give_the_same_bytes(tmp_path, many_rows):
    for workers in (1, 3):
        done = holdback(
            many_rows, "-o", tmp_path / f"{workers}.jsonl", f"--workers={workers}", *stop_options()
        )
        assert (done.returncode, done.stderr.decode().splitlines()[0].split(",  ")[0][:11]) == (
            0,
            "9,000 rows,",
        )
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "3.jsonl").read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT and SIGKILL")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])  # by name: Windows lacks the second
def test_a_run_that_was_ended_goes_on(tmp_path, many_rows, name):
    how = getattr(signal, name)
    output, unfinished = tmp_path / "out.jsonl", tmp_path / "out.jsonl.unfinished"
    command = [
        sys.executable,
        "-m",
        "holdback",
        "truncate",
        many_rows,
        "-o",
        output,
        "--workers=1",
        *stop_options(),
    ]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE)
    while not list(unfinished.glob("0*.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(how)
    _, told = process.communicate(timeout=60)
    assert (b"--resume goes on" in told) == (how == signal.SIGINT)
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    assert not output.exists()
    first = unfinished / "000000.part"
    made = first.stat().st_mtime_ns

    refused = holdback(many_rows, "-o", output, *stop_options())
    assert (refused.returncode, b"use --resume" in refused.stderr) == (2, True)
    other = holdback(many_rows, "-o", output, "--resume", "--stop=x")
    assert (other.returncode, b"made with other stops" in other.stderr) == (2, True)
    assert first.stat().st_mtime_ns == made, "what was finished is not done again"

    done = holdback(many_rows, "-o", output, "--resume", "--json", *stop_options())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr)["stops"] == {"###": 3_000}
    whole = holdback(many_rows, *stop_options())
    assert output.read_bytes() == whole.stdout
    assert not unfinished.exists()


@pytest.mark.skipif(os.name == "nt", reason="locks files as POSIX does")
def test_two_runs_do_not_work_on_one_output(tmp_path):
    import fcntl

    (tmp_path / "in.jsonl").write_bytes(b'{"text":"a###"}\n')
    (tmp_path / "out.jsonl.unfinished").mkdir()
    with (tmp_path / "out.jsonl.unfinished" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for how in ("--resume", "--overwrite"):
            done = holdback(
                tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", how, *stop_options()
            )
            assert (done.returncode, b"another process works on" in done.stderr) == (1, True)
    done = holdback(
        tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--resume", *stop_options()
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == b'{"text":"a"}\n'


@pytest.mark.skipif(sys.platform != "linux", reason="finds worker processes in /proc")
def test_a_worker_that_dies_is_told_and_the_run_goes_on(tmp_path, many_rows):
    output = tmp_path / "out.jsonl"
    command = [
        sys.executable,
        "-m",
        "holdback",
        "truncate",
        many_rows,
        "-o",
        output,
        "--workers=2",
        *stop_options(),
    ]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE) as process:
        workers: list[str] = []
        while not workers:
            assert process.poll() is None, "it was over before a worker was found"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = [
                child
                for child in children
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
            ]
        os.kill(int(workers[0]), signal.SIGKILL)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert b"a worker process died" in told
    assert holdback(many_rows, "-o", output, "--resume", *stop_options()).returncode == 0
    assert output.read_bytes() == holdback(many_rows, *stop_options()).stdout


def test_a_run_that_failed_before_its_first_row_leaves_nothing(tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "made" / "out.jsonl"
    source.write_bytes(b'{"c":"a###"}\n')
    output.parent.mkdir()
    assert holdback(source, "-o", output, *stop_options()).returncode == 1
    assert list(output.parent.iterdir()) == []
    done = holdback(source, "-o", output, "--column=c", *stop_options())
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == b'{"c":"a"}\n'


NESTED = b"""{"id": 1.10, "response": {"x": [1e3], "choices": [{"n": [], "message": {"content": "a###b"}}, {}]}}
{"response": null}
{"response": {"choices": [{"message": {"content": "plain"}}]}, "response.choices": 2}
"""


def test_a_field_further_inside_is_cut_and_all_else_stays(tmp_path):
    path = "--column=response.choices[0].message.content"
    done = holdback(path, *stop_options(), stdin=NESTED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == NESTED.replace(b"a###b", b"a")
    done = holdback(path, "--stop-column=stop", *stop_options(), stdin=NESTED)
    assert [json.loads(line)["stop"] for line in done.stdout.splitlines()] == ["###", None, None]
    literal = holdback("--column=a.b", *stop_options(), stdin=b'{"a.b":"x###","a":{"b":"y###"}}\n')
    assert literal.stdout == b'{"a.b":"x","a":{"b":"y###"}}\n', "the field of that name comes first"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b'{"a": 1}', "a is no object, so it has no field 'b'"),
        (b'{"a": {"c": 1, "d": 2}}', "no field 'b' in a (it has 'c', 'd')"),
        (b'{"a": {"b": {}}}', "a.b is no list, so it has no item 2"),
        (b'{"a": {"b": ["x"]}}', "a.b has no item 2: its length is 1"),
        (b"{}", "no field 'a' (it is empty)"),
    ],
)
def test_an_error_says_where_the_way_to_a_field_ends(row, said):
    done = holdback("--column=a.b[2]", *stop_options(), stdin=row)
    assert said in done.stderr.decode()
    assert done.returncode == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\}]é', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab}"), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("ab"), json_values, min_size=1), st.data())
def test_the_place_of_a_value_is_where_it_stands(row, data):
    separators = data.draw(st.sampled_from([(",", ":"), (" ,\t", " : ")]))
    text = (
        "  " + json.dumps(row, separators=separators, ensure_ascii=data.draw(st.booleans())) + " "
    )
    path, value = (), row
    while isinstance(value, (dict, list)) and value and (not path or data.draw(st.booleans())):
        step = data.draw(
            st.sampled_from([*value] if isinstance(value, dict) else range(len(value)))
        )
        path, value = (*path, step), value[step]
    begin, end = _json_path.span_at(text, path)
    assert json.loads(text[begin:end]) == value == _json_path.value_at(row, path)
    assert _json_path.parse(_json_path.shown(path)) == path


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma"])
def test_packed_rows_are_unpacked_on_the_way(tmp_path, module):
    plain = b'{"text":"a###"}\n' * 1000
    packed = import_module(module).compress(plain)
    (tmp_path / "in").write_bytes(packed)
    cut = plain.replace(b"###", b"")
    assert holdback(tmp_path / "in", *stop_options()).stdout == cut
    assert holdback(*stop_options(), stdin=packed).stdout == cut
    done = holdback(tmp_path / "in", "-o", tmp_path / "out", *stop_options())
    assert (done.returncode, b"is compressed: leave out --output" in done.stderr) == (2, True)
    done = holdback(*stop_options(), stdin=packed[: len(packed) // 2])
    assert done.returncode == 1
    assert b"damaged" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_zstandard_is_unpacked_or_a_clear_error():
    done = holdback(*stop_options(), stdin=b"\x28\xb5\x2f\xfd rest")
    assert done.returncode in (1, 2)
    assert b"zstdcat" in done.stderr or b"damaged" in done.stderr


def test_outputs_are_never_lost_by_accident(tmp_path):
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(b'{"text":"a###"}\n')
    output.write_bytes(b"precious")
    done = holdback(source, "-o", output, *stop_options())
    assert (done.returncode, b"exists" in done.stderr) == (2, True)
    assert holdback(source, "-o", output, "--resume", *stop_options()).returncode == 0
    assert output.read_bytes() == b"precious", "--resume skips what is finished"
    assert holdback(source, "-o", output, "--overwrite", *stop_options()).returncode == 0
    assert output.read_bytes() == b'{"text":"a"}\n'
    done = holdback(source, "-o", source, *stop_options())
    assert (done.returncode, b"is an input" in done.stderr) == (2, True)


def test_several_files_go_into_a_directory(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text":"{name}###"}}\n')
    done = holdback(
        tmp_path / "a.jsonl", tmp_path / "b.jsonl", "-o", tmp_path / "cut", *stop_options()
    )
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in (tmp_path / "cut").iterdir()} == {
        "a.jsonl": '{"text":"a"}\n',
        "b.jsonl": '{"text":"b"}\n',
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no stop given"),
        (["--stop=x", "nowhere.jsonl"], "cannot open nowhere.jsonl"),
        (["--stop=x", "nowhere.jsonl", "-o", "out"], "no such file"),
        (["--stop=x", "-", "-o", "out"], "standard input"),
        (["--stop=x", "a.parquet"], "Parquet cannot be written to standard output"),
        (["--stop=x", "--workers=2"], "need --output"),
        (["--stop=x", "--column=a", "--stop-column=a"], "names the field that is cut"),
        (["--stop=x", "--start-inside"], "--ignore-inside"),
        (["--stop=x", "--column=a..b"], "names no field"),
        (["--stop=x", "--column=a[0].b", "--stop-column=a"], "names the field that is cut"),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments, told):
    done = holdback(*arguments)
    assert done.returncode == 2
    assert told in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_scopes_work_as_for_cut():
    rows_in = b'{"text":"<think>###</think>yes###no"}\n'
    done = holdback("--stop=###", "--ignore-inside", "<think>", "</think>", stdin=rows_in)
    assert json.loads(done.stdout) == {"text": "<think>###</think>yes"}


def test_the_progress_line_tells_part_speed_and_time_left():
    progress = Progress(400_000_000, done=100_000_000)
    progress.advance(100_000_000, 1_234)
    assert progress.line(2.0) == "[############------------]  50%  1,234 rows  50.0 MB/s  0:04 left"
    assert Progress(0).line(0.0).startswith("[########################] 100%")


def test_an_empty_file_gives_an_empty_file(tmp_path):
    (tmp_path / "in.jsonl").touch()
    assert (
        holdback(tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", *stop_options()).returncode
        == 0
    )
    assert (tmp_path / "out.jsonl").read_bytes() == b""
    job = Job(tmp_path / "in.jsonl", tmp_path / "out.jsonl", parquet=False)
    assert job.blocks(Fields("text")) == []
