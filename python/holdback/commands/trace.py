"""`holdback trace`: chunk by chunk, what arrived, what went out, what is held and for which stop."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from holdback import StopSet, Trace, trace
from holdback.cli import COMMANDS, USAGE, CommandError, output, say
from holdback.commands._input import read_input
from holdback.commands._stops import (
    add_scope_options,
    add_stop_options,
    scope_options,
    whole_number,
)
from holdback.commands._words import in_options


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "trace",
        help=COMMANDS["trace"],
        description="Show what a stream does with the text of FILE or standard input, chunk by chunk. "
        "A chunk is a line, its end included, unless an option says otherwise.",
        epilog="Exit codes: 0 shown; 1 reading or writing failed; 2 wrong usage.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the text; - or none: standard input"
    )
    add_stop_options(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--chunk", type=whole_number(1), metavar="N", help="chunks of N bytes")
    how.add_argument(
        "--json-chunks",
        action="store_true",
        help="the input is a JSON list of strings, one a chunk",
    )
    parser.add_argument("--include-stop", action="store_true", help="send the stop on too")
    parser.add_argument(
        "--tie", choices=["longest", "first"], default="longest", help="which stop wins a tie"
    )
    add_scope_options(parser)
    out = parser.add_mutually_exclusive_group()
    out.add_argument("--json", action="store_true", help="print the trace as JSON")
    out.add_argument("--html", metavar="FILE", help="write the trace as a page instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Trace and show."""
    if args.stops is None:
        raise CommandError("no stop given: use --stop or --stops-file", USAGE)
    chunks = list(_chunks(read_input(args.file), args))
    try:
        stops = StopSet(args.stops, tie=args.tie)
        traced = trace(chunks, stops, include_stop=args.include_stop, **scope_options(args))
    except ValueError as error:
        raise CommandError(in_options(str(error)), USAGE) from error
    _show(traced, args)
    return 0


def _chunks(text: bytes, args: argparse.Namespace) -> Iterator[str | bytes]:
    if args.json_chunks:
        try:
            listed = json.loads(text)
        except ValueError as error:
            raise CommandError(f"the input is not JSON: {error}", USAGE) from error
        if not isinstance(listed, list) or not all(isinstance(chunk, str) for chunk in listed):
            raise CommandError("the input is not a JSON list of strings", USAGE)
        yield from listed
    elif args.chunk is not None:
        yield from (text[start : start + args.chunk] for start in range(0, len(text), args.chunk))
    else:
        yield from text.splitlines(keepends=True)


def _show(traced: Trace, args: argparse.Namespace) -> None:
    if args.html is not None:
        try:
            traced.save(args.html)
        except OSError as error:
            raise CommandError(f"cannot write {args.html}: {error.strerror}") from error
        say(f"wrote {args.html}")
        return
    with output() as out:
        if args.json:
            print(json.dumps(traced.as_dict(), indent=2), file=out)
        else:
            traced.print()
