"""`holdback cut`: standard input to standard output up to the first stop, as it arrives.

Nothing waits but a possible stop: whatever one read brings is matched and written before the next
read. Bytes are read, text is matched, UTF-8 is written. On a match the command ends at once and
reads no further, so a producer that goes on learns of it by its broken pipe.

An interrupt (Ctrl-C) or an error writes nothing more: held text may be the first half of a stop, so
it stays back.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import select
from collections.abc import Iterator

from holdback import StopMatch, StopSet, StopStream
from holdback.cli import COMMANDS, USAGE, CommandError, output_error, say_json
from holdback.commands._stops import (
    add_scope_options,
    add_stop_options,
    scope_options,
    whole_number,
)
from holdback.commands._words import in_options

# What one read may bring. A pipe holds 64 KiB on Linux; more would only make the first output of a
# file later.
READ_BYTES = 65536
MOST_BYTES = 16 << 20  # reading makes room for all that it may read


class Report:
    """What `--report` prints: the stop and where (characters), why the copy ended, and how many
    bytes went by.

    A plain class: `dataclasses` alone would make the start of the command a third longer.
    """

    def __init__(self) -> None:
        self.ended = "input"  # or "stop", "interrupt", "pipe", "error"; "input" means that it ended without a stop
        self.stop: str | None = None
        self.index: int | None = None
        self.start: int | None = None
        self.end: int | None = None
        self.bytes_read = 0
        self.bytes_written = 0

    def found(self, match: StopMatch[str]) -> None:
        """Take over what a match says."""
        self.ended = "stop"
        self.stop, self.index, self.start, self.end = (
            match.stop,
            match.index,
            match.start,
            match.end,
        )


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "cut",
        help=COMMANDS["cut"],
        description="Copy text from FILE or standard input to standard output as it arrives, up to the first stop.",
        epilog="Exit codes: 0 a stop was found or the input ended; 1 reading, writing or decoding failed; "
        "2 wrong usage; 130 interrupted; 141 the reader of the output went away.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the input; - or none: standard input"
    )
    add_stop_options(parser)
    parser.add_argument("--include-stop", action="store_true", help="write the stop too")
    parser.add_argument(
        "--tie",
        choices=["longest", "first"],
        default="longest",
        help="which stop counts when several end at the same character (default: %(default)s)",
    )
    parser.add_argument(
        "--errors",
        choices=["replace", "strict"],
        default="replace",
        help="invalid UTF-8: write U+FFFD for it, or end with an error (default: %(default)s)",
    )
    add_scope_options(parser)
    parser.add_argument(
        "--chunk",
        type=whole_number(1),
        default=READ_BYTES,
        metavar="N",
        help="read at most N bytes at a time",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="say on standard error what ended it: one line of JSON",
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="say on standard error what each read brought, sent on and held: JSON",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, report, return the exit code."""
    if args.stops is None:
        raise CommandError("no stop given: use --stop or --stops-file", USAGE)
    try:
        stops = StopSet(args.stops, tie=args.tie)
        stream = stops.stream(
            include_stop=args.include_stop, errors=args.errors, **scope_options(args)
        )
    except ValueError as error:
        raise CommandError(in_options(str(error)), USAGE) from error
    report = Report()
    try:
        with _opened(args.file) as source:
            _copy(stream, source, min(args.chunk, MOST_BYTES), report, steps=args.steps)
    except KeyboardInterrupt:
        report.ended = "interrupt"
        raise
    except BrokenPipeError:
        report.ended = "pipe"
        raise
    except CommandError:
        report.ended = "error"
        raise
    finally:
        if args.report:
            say_json(vars(report))
    return 0


def _copy(stream: StopStream[str], source: int, size: int, report: Report, *, steps: bool) -> None:
    while chunk := _read(source, size):
        report.bytes_read += len(chunk)
        try:
            emit, match = stream.feed(chunk)
        except UnicodeDecodeError as error:
            # The stream is as it was before the chunk, which has no stop in front of the bad bytes.
            # What stands there goes out.
            begin = report.bytes_read - len(error.object) + error.start
            waiting = len(error.object) - len(chunk)
            _write(stream.feed(chunk[: max(0, error.start - waiting)])[0], report)
            raise CommandError(
                f"invalid UTF-8 at byte {begin} of the input: {error.reason}"
            ) from error
        _write(emit, report)
        if steps:
            say_json(
                {
                    "read": chunk.decode("utf-8", "backslashreplace"),
                    "wrote": emit,
                    "held": stream.held,
                }
            )
        if match:
            report.found(match)
            return
    try:
        rest = stream.flush()
    except UnicodeDecodeError as error:
        raise CommandError(
            f"the input ends inside a character (byte {report.bytes_read})"
        ) from error
    _write(rest, report)
    if steps:
        say_json({"read": None, "wrote": rest, "held": ""})
    if stream.match:  # the end of the input can turn half a character into the last one of a stop
        report.found(stream.match)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int]:
    """The file descriptor of the input.

    Python's own file objects would wait until their buffer is full.
    """
    if name == "-":
        yield 0
        return
    try:
        source = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise CommandError(f"cannot open {name}: {error.strerror}", USAGE) from error
    try:
        yield source
    finally:
        os.close(source)


def _read(source: int, size: int) -> bytes:
    """What is there, at most `size` bytes; waits only when nothing is. Empty at the end."""
    while True:
        try:
            return os.read(source, size)
        except BlockingIOError:  # another holder of our standard input made it non-blocking
            select.select([source], [], [])
        except OSError as error:
            code = USAGE if error.errno in (errno.EISDIR, errno.EBADF) else 1
            raise CommandError(f"cannot read the input: {error.strerror}", code) from error


def _write(text: str, report: Report) -> None:
    """Write all of it, now."""
    left = memoryview(text.encode())
    while left:
        try:
            count = os.write(1, left)
        except BlockingIOError:
            select.select([], [1], [])
            continue
        except OSError as error:
            raise output_error(error) from error
        report.bytes_written += count
        left = left[count:]
