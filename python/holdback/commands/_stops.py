r"""Stops on a command line: the options that bring them and the escapes they may use.

A shell cannot easily type a newline, and an invisible character is worse than an escape, so stops
are written with the escapes that C, JSON and Python share: `\n \t \r \0 \\ \xHH \uHHHH
\UHHHHHHHH`. A number is a code point, never a byte; two `\u` halves of a surrogate pair make one
character, as in JSON. Any other escape is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([ntr0\\])|(.?))", re.DOTALL
)

# A file is JSON when it opens like a list of strings. A plain "[" would take in "[INST]", a stop of
# many chat formats.
_JSON_LIST = re.compile(r'\s*\[\s*["\]]')


def unescape(text: str) -> str:
    r"""The stop that `text` writes down.

    >>> unescape(r"\n\nUser:")
    '\n\nUser:'

    Raises:
        ValueError: for an escape that does not exist; it says which, and where (0-based, in characters).
    """
    quoted = '"' + " ".join(text.splitlines()) + '"'  # not repr: it would double every backslash

    def character(found: re.Match[str]) -> str:
        number = found[1] or found[2] or found[3]
        if number:
            if int(number, 16) > 0x10FFFF:
                raise ValueError(
                    f"{found[0]} at character {found.start()} of {quoted} is beyond the last code point"
                )
            return chr(int(number, 16))
        if found[4]:
            return _LETTERS[found[4]]
        # Show what was meant: "\x" and "\u" bring the digits that should have been there.
        width = {"x": 4, "u": 6, "U": 10}.get(found[5], 2)
        shown = text[found.start() : found.start() + width]
        raise ValueError(
            f"unknown escape {shown} at character {found.start()} of {quoted}; "
            r"known are \n \t \r \0 \\ \xHH \uHHHH \UHHHHHHHH"
        )

    plain = _ESCAPE.sub(character, text)
    # Joins the halves of a surrogate pair and leaves a lone one alone: the stop list has its own
    # error for that.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def read_stops_file(name: str) -> list[str]:
    """The stops of a file: a JSON list of strings, or one stop a line, with the escapes of
    `unescape`.

    Lines end in LF or CRLF; everything else in a line, also white space, belongs to the stop.

    Raises:
        ValueError: for a file that cannot be read, is not UTF-8, is broken JSON or has an empty line or a bad escape.
    """
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8: byte {error.start}") from error
    if _JSON_LIST.match(text):
        return _json_stops(name, text)
    stops = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            stops.append(unescape(line.removesuffix("\r")))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from error
        if not stops[-1]:
            raise ValueError(f"{name}, line {number}: an empty stop")
    return stops


def _json_stops(name: str, text: str) -> list[str]:
    try:
        stops = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} looks like a JSON list but is not: {error}") from error
    for index, stop in enumerate(stops):
        if not isinstance(stop, str) or not stop:
            what = "an empty stop" if stop == "" else f"not a string but {json.dumps(stop)}"
            raise ValueError(f"{name}, entry {index}: {what}")
    return list(stops)


def _stop(text: str) -> list[str]:
    try:
        stop = unescape(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not stop:
        raise argparse.ArgumentTypeError("a stop must not be empty")
    return [stop]


def _marker(text: str) -> str:
    return _stop(text)[0]


def _file(name: str) -> list[str]:
    try:
        return read_stops_file(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def whole_number(least: int) -> Callable[[str], int]:
    """An argument type: a whole number that is not below `least`."""

    def parse(text: str) -> int:
        with contextlib.suppress(ValueError):
            if (number := int(text)) >= least:
                return number
        raise argparse.ArgumentTypeError(f"a whole number, at least {least}, not {text!r}")

    return parse


def add_stop_options(parser: argparse.ArgumentParser) -> None:
    """Declare `--stop` and `--stops-file`; `args.stops` is the list in the order given,
    `None` without any.
    """
    group = parser.add_argument_group(
        "stops", r"literal text with the escapes \n \t \r \0 \\ \xHH \uHHHH \UHHHHHHHH"
    )
    group.add_argument(
        "-s",
        "--stop",
        dest="stops",
        action="extend",
        type=_stop,
        metavar="TEXT",
        help="a stop; may be repeated",
    )
    group.add_argument(
        "--stops-file",
        dest="stops",
        action="extend",
        type=_file,
        metavar="FILE",
        help="stops from a file: one a line, or a JSON list of strings; may be repeated",
    )


def add_scope_options(parser: argparse.ArgumentParser, *, chunks: bool = True) -> None:
    """Declare where stops count: arming, regions, markers kept whole (sections 7 to 9 of the
    semantics page).

    Without `chunks`, for whole texts, the options that say when text goes out are left out.
    """
    group = parser.add_argument_group("scope", "where stops count; markers use the same escapes")
    group.add_argument(
        "--min-chars",
        type=whole_number(0),
        metavar="N",
        help="ignore every stop that ends within the first N characters",
    )
    group.add_argument(
        "--ignore-inside",
        action="append",
        nargs=2,
        type=_marker,
        metavar=("OPEN", "CLOSE"),
        help="ignore stops between these markers, such as '<think>' '</think>'; may be repeated",
    )
    group.add_argument(
        "--start-inside", action="store_true", help="begin inside the first --ignore-inside region"
    )
    parser.set_defaults(atomic=None, keep_regions_whole=False)
    if not chunks:
        return
    group.add_argument(
        "--atomic",
        action="append",
        type=_marker,
        metavar="MARKER",
        help="never write half of this marker; may be repeated",
    )
    group.add_argument(
        "--keep-regions-whole",
        action="store_true",
        help="the same for every marker of --ignore-inside",
    )


def scope_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `StopSet.stream` that `add_scope_options` brought; absent
    ones are left out.
    """
    options: dict[str, Any] = {}
    if args.min_chars is not None:
        options["min_chars"] = args.min_chars
    regions = [(opener, closer) for opener, closer in args.ignore_inside or []]
    if regions:
        options["ignore_inside"] = regions
    if args.start_inside:
        options["start_inside"] = True
    whole = list(args.atomic or [])
    if args.keep_regions_whole:
        whole += [marker for region in regions for marker in region]
    if whole:
        options["atomic"] = whole
    return options
