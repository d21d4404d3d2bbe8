"""`holdback lint`: check a list of stops before it is used. Exit code 1 when there are errors, so
that it serves in CI.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from holdback import lint, providers
from holdback.cli import COMMANDS, USAGE, CommandError, output
from holdback.commands._stops import add_stop_options
from holdback.commands._words import in_options


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "lint",
        help=COMMANDS["lint"],
        description="Say what is wrong, or likely to go wrong, with a list of stops.",
        epilog="Exit codes: 0 no errors; 1 errors (with --strict also warnings); 2 wrong usage.",
    )
    add_stop_options(parser)
    parser.add_argument(
        "--provider", metavar="NAME", help="the system that gets the stops: its limits count too"
    )
    parser.add_argument("--model", metavar="NAME", help="the model there; some take no stops")
    parser.add_argument("--facts", metavar="FILE", help="provider facts of your own, as JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 1 on warnings too")
    parser.add_argument("--json", action="store_true", help="print the findings as a JSON list")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the findings, return the exit code."""
    if args.stops is None:
        raise CommandError("no stop given: use --stop or --stops-file", USAGE)
    try:
        if args.facts is not None:
            providers.load(args.facts)
        findings = lint(args.stops, args.provider, args.model)
    except OSError as error:
        raise CommandError(f"cannot read {args.facts}: {error.strerror}", USAGE) from error
    except ValueError as error:
        raise CommandError(in_options(str(error)), USAGE) from error
    counts = Counter(finding.severity for finding in findings)
    with output() as out:
        if args.json:
            print(json.dumps([finding.as_dict() for finding in findings], indent=2), file=out)
        else:
            for finding in findings:
                print(f"{finding.severity}: {finding.message} [{finding.code}]", file=out)
                print(f"    {in_options(finding.remedy)}", file=out)
            summary = [
                f"{counts[severity]} {severity}{'s'[: counts[severity] != 1]}"
                for severity in ("error", "warning", "note")
            ]
            print(", ".join(summary), file=out)
    return int(bool(counts["error"] or (args.strict and counts["warning"])))
