"""The `holdback` command line: finds the subcommand, imports only that one, and turns its outcome
into an exit code.

Exit codes, the same for every subcommand:

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | reading, writing or decoding failed |
| 2 | wrong usage: an unknown option, a missing file, an empty stop |
| 130 | interrupted (Ctrl-C) |
| 141 | the reader of the output went away; a shell shows the same for `cat` or `sed` |
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TextIO

# name -> one line of help. The module is holdback.commands.NAME; see there for what it must hold.
COMMANDS = {
    "cut": "copy text up to the first stop, as it arrives",
    "lint": "say what is wrong with a list of stops",
    "explain": "say which stop fired in a text, or why none did",
    "trace": "show chunk by chunk what is sent on and what is held",
    "truncate": "cut the texts of JSON-lines or Parquet files, of any size",
    "serve": "a gateway: any stops on any model, over HTTP",
}

FAILED, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141


class CommandError(Exception):
    """What a command raises to end with one line on standard error.

    Args:
        message: the line, without the program's name.
        code: the exit code.
    """

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def say(line: str) -> None:
    """Write one line to standard error, at once; nothing if it is closed (`print` would turn to
    standard output).
    """
    if sys.stderr is not None:
        with contextlib.suppress(OSError):  # there is nowhere left to say it
            print(line, file=sys.stderr, flush=True)


def say_json(fields: Mapping[str, object]) -> None:
    """Write one line of JSON to standard error, readable where its encoding allows."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    say(json.dumps(fields, ensure_ascii=encoding.lower() not in ("utf-8", "utf8")))


@contextlib.contextmanager
def output() -> Iterator[TextIO]:
    """Standard output, flushed at the end. What is not in its encoding goes out as an escape.

    Raises:
        CommandError: if it is closed, or does not take what is written (a full disk).
        BrokenPipeError: if its reader went away.
    """
    if sys.stdout is None:
        raise CommandError("cannot write the output: standard output is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except OSError as error:
        _forget_output()
        raise output_error(error) from error


def output_error(error: OSError) -> Exception:
    """What a failed write to standard output is reported as."""
    # Windows knows no broken pipe: it says "invalid argument" when the reader is gone.
    if isinstance(error, BrokenPipeError) or (os.name == "nt" and error.errno == errno.EINVAL):
        return BrokenPipeError(*error.args)
    return CommandError(f"cannot write the output: {error.strerror}")


def _forget_output() -> None:
    """Python flushes `sys.stdout` once more at exit and would complain; what is left goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line: the usage is a screenful and hides what is
    wrong.
    """

    def print_help(self, file: Any = None) -> None:
        """Print the help; an output that does not take it is an error, where argparse is silent."""
        if file is not None:
            super().print_help(file)
        else:
            with output() as out:
                out.write(self.format_help())

    def error(self, message: str) -> NoReturn:
        if message.endswith(("expected one argument", "expected 2 arguments")):
            message += "; one that begins with a dash is written --option=VALUE, as in --stop=---"
        self.exit(USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Looks the version up only when asked: reading package metadata is slower than all the rest of
    the start.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_args: Any, **_options: Any) -> NoReturn:
        from importlib.metadata import version

        with output() as out:
            print("holdback", version("holdback"), file=out)
        parser.exit()


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser that knows all commands by name and help line, and the arguments of `command`
    only.
    """
    parser = _Parser(prog="holdback", description="Stop sequences on a live stream.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        if name == command:
            importlib.import_module(f"holdback.commands.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=line)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: the arguments after the program's name; `None` stands for `sys.argv[1:]`.

    Raises:
        SystemExit: by `argparse`, after `--help`, `--version` (code 0) or wrong usage (code 2).
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    command = next((word for word in arguments if not word.startswith("-")), None)
    try:
        parser = build_parser(command)
        args = parser.parse_args(arguments)
        code: int = args.run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except CommandError as error:
        say(f"{f'holdback {command}' if command else 'holdback'}: error: {error}")
        return error.code
    return code
