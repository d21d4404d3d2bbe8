"""`holdback explain`: which stop fired in a text and where, or why each one did not."""

from __future__ import annotations

import argparse
import json

from holdback import explain
from holdback.cli import COMMANDS, USAGE, CommandError, output
from holdback.commands._input import read_input
from holdback.commands._stops import add_stop_options, whole_number
from holdback.commands._words import in_options


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "explain",
        help=COMMANDS["explain"],
        description="Say which stop fired in the text of FILE or standard input, or for each stop why it did not.",
        epilog="Exit codes: 0 the text was read; 1 reading failed; 2 wrong usage.",
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the text; - or none: standard input"
    )
    add_stop_options(parser)
    parser.add_argument(
        "--min-chars", type=whole_number(0), default=0, metavar="N", help="as for cut"
    )
    parser.add_argument(
        "--ignore-inside", action="append", nargs=2, metavar=("OPEN", "CLOSE"), help="as for cut"
    )
    parser.add_argument("--start-inside", action="store_true", help="as for cut")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    if args.stops is None:
        raise CommandError("no stop given: use --stop or --stops-file", USAGE)
    try:
        explanation = explain(
            read_input(args.file),
            args.stops,
            ignore_inside=args.ignore_inside,
            start_inside=args.start_inside,
            min_chars=args.min_chars,
        )
    except ValueError as error:
        raise CommandError(in_options(str(error)), USAGE) from error
    with output() as out:
        if args.json:
            print(json.dumps(explanation.as_dict(), indent=2), file=out)
        else:
            print(in_options(str(explanation)), file=out)
    return 0
