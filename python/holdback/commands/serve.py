"""`holdback serve`: a gateway between clients and models, for any stops on any model. Its manual
is docs/serve.md.

Options override what the file of `--config` says. It runs until SIGTERM or Ctrl-C, lets open
streams end (`drain_timeout`), and writes one line of JSON for each request to standard error.
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from holdback.cli import COMMANDS, USAGE, CommandError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "serve",
        help=COMMANDS["serve"],
        description="Forward requests to upstreams and cut their answers at the stops that clients ask for: as many as they like, "
        "on models that take few or none. Hangs up on the upstream at the match and reports which stop it was.",
        epilog="Exit codes: 0 stopped when asked to; 1 the address is taken or a package is missing; 2 wrong usage. "
        "Clients choose an upstream by the path /NAME/...; without it, by whose own "
        "interface the path is. The first line of the log says which.",
    )
    parser.add_argument(
        "--upstream",
        dest="upstreams",
        action="append",
        default=[],
        metavar="NAME[:PROVIDER]=URL",
        help="a system to forward to, such as openai=https://api.openai.com or big:vllm=http://gpu-1:8000; may be repeated. "
        "PROVIDER says whose limits on stops hold; without it, and if NAME is no known one, all stops are enforced here",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a TOML file with these and more settings, see docs/serve.md",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where to listen (default: 127.0.0.1:8080; port 0: any)",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="add an upstream that streams canned answers in every dialect",
    )
    group = parser.add_argument_group("how answers are cut")
    group.add_argument(
        "--on-match",
        choices=["cancel", "drain"],
        help="at a stop, hang up on the upstream (default), or read on for its usage figures and pay for them",
    )
    group.add_argument(
        "--buffered",
        choices=["stream", "pass"],
        help="for clients that do not stream: ask the upstream for a stream, so that it can be hung up on (default), "
        "or forward as asked and cut the body",
    )
    group.add_argument(
        "--send-unnamed",
        dest="must_name",
        action="store_false",
        default=None,
        help="send as many stops as the upstream takes, also if it does not say which one fired",
    )
    group.add_argument(
        "--other-paths",
        choices=["read", "all", "none"],
        help="what is not a request for an answer: forward what only reads, such as lists of models, embeddings and counts "
        "of tokens (default), all, or none",
    )
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--max-streams", type=int, metavar="N", help="requests in flight (default: 10000)"
    )
    group.add_argument(
        "--idle-timeout",
        type=float,
        metavar="S",
        help="longest silence of an upstream (default: 600)",
    )
    group.add_argument(
        "--drain-timeout",
        type=float,
        metavar="S",
        help="how long streams go on after SIGTERM (default: 30)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the configuration, serve, return the exit code."""
    from holdback.serve.config import Config, parse_toml, parse_upstream
    from holdback.serve.extras import MissingExtraError
    from holdback.serve.server import serve

    try:
        settings = parse_toml(_read(args.config)) if args.config else {}
        named = tuple(map(parse_upstream, args.upstreams))
        settings["upstreams"] = (*named, *settings.get("upstreams", ()))
        settings |= _given(args, {entry.name for entry in fields(Config)} - {"upstreams"})
        config = Config(**settings)
    except MissingExtraError as error:
        raise CommandError(str(error)) from error
    except ValueError as error:
        raise CommandError(
            f"{args.config}: {error}" if args.config else str(error), USAGE
        ) from error
    if not config.upstreams and not args.demo:
        raise CommandError(
            "no upstream given: use --upstream NAME=URL, --config FILE or --demo", USAGE
        )
    try:
        return serve(config, demo=args.demo)
    except MissingExtraError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot listen on {config.listen}: {error.strerror}") from error


def _given(args: argparse.Namespace, names: set[str]) -> dict[str, Any]:
    """The settings among the arguments that were given."""
    return {
        name: value for name, value in vars(args).items() if name in names and value is not None
    }


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}", USAGE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8: byte {error.start}", USAGE) from error
