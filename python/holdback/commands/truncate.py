"""`holdback truncate`: cut the texts of finished work, in JSON lines or Parquet files of any
size.

With an output, files are read in blocks by several processes and an interrupted run can be taken up
again; without one, JSON lines go from standard input (or a file) to standard output. Standard error
gets a progress bar, if it is a terminal, and the counts at the end.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO

from holdback import StopSet
from holdback.cli import COMMANDS, USAGE, CommandError, output, say, say_json
from holdback.commands import _json_path
from holdback.commands._input import batches, needs_pipe, open_unpacked, packing_of
from holdback.commands._jobs import Job, Work, run_blocks
from holdback.commands._jsonl import BadRowError, Fields, Tally
from holdback.commands._progress import Progress
from holdback.commands._stops import (
    add_scope_options,
    add_stop_options,
    scope_options,
    whole_number,
)
from holdback.commands._words import in_options

PARQUET = (".parquet", ".pq")
BATCH_BYTES = 1 << 20  # of a pipe, read before a batch is cut


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the arguments."""
    parser = subparsers.add_parser(
        "truncate",
        help=COMMANDS["truncate"],
        description="Cut one field of every row of JSON-lines or Parquet files at the first stop. The field holds a string, "
        "null, or a list of these (several answers to a prompt). Rows with nothing to cut stay as they are, byte for byte in JSON lines.",
        epilog="Exit codes: 0 done; 1 a row could not be read, or reading or writing failed; 2 wrong usage; 130 interrupted.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        default=["-"],
        metavar="FILE",
        help="the rows; - or none: JSON lines from standard input",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="the output file, or for several inputs the directory of the outputs; none: JSON lines to standard output",
    )
    parser.add_argument(
        "--column",
        default="text",
        metavar="NAME",
        help="the field to cut (default: %(default)s); in JSON lines also one further inside, as choices[0].message.content",
    )
    parser.add_argument(
        "--stop-column",
        metavar="NAME",
        help="write the stop that fired into this field, null if none did",
    )
    add_stop_options(parser)
    parser.add_argument("--include-stop", action="store_true", help="keep the stop in the text")
    parser.add_argument(
        "--tie", choices=["longest", "first"], default="longest", help="which stop wins a tie"
    )
    add_scope_options(parser, chunks=False)
    parser.add_argument(
        "--format",
        choices=["jsonl", "parquet"],
        help="of the files; by default Parquet if the name ends in .parquet or .pq",
    )
    parser.add_argument(
        "--workers",
        type=whole_number(1),
        metavar="N",
        help="processes, with an output (default: one for each CPU)",
    )
    parser.add_argument(
        "--keep-bad", action="store_true", help="copy rows that cannot be read, and count them"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run; finished outputs stay"
    )
    how.add_argument("--overwrite", action="store_true", help="replace outputs and unfinished runs")
    parser.add_argument("--json", action="store_true", help="say the counts as one line of JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Cut, count, return the exit code."""
    if args.stops is None:
        raise CommandError("no stop given: use --stop or --stops-file", USAGE)
    try:
        outermost = _json_path.parse(args.column)[0]
    except ValueError as error:
        raise CommandError(f"--column: {error}", USAGE) from error
    if args.stop_column in (args.column, outermost):
        raise CommandError("--stop-column names the field that is cut", USAGE)
    options = scope_options(args)
    if args.include_stop:
        options["include_stop"] = True
    try:
        stops = StopSet(args.stops, tie=args.tie)
        stops.truncate("", **options)  # bad options before any work
    except ValueError as error:
        raise CommandError(in_options(str(error)), USAGE) from error
    work = Work(stops, Fields(args.column, args.stop_column), options, args.keep_bad)
    try:
        tally = _run_stream(work, args) if args.output is None else _run_jobs(work, args)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise CommandError(f"{error.filename or 'input or output'}: {error.strerror}") from error
    except (ValueError, ImportError) as error:
        raise CommandError(str(error)) from error
    _tell(tally, as_json=args.json)
    return 0


# --- files to files
# ----------------------------------------------------------------------------------------------------


def _run_jobs(work: Work, args: argparse.Namespace) -> Tally:
    with ExitStack() as locks:
        return _run_locked(work, args, locks)


def _run_locked(work: Work, args: argparse.Namespace, locks: ExitStack) -> Tally:
    jobs = _jobs(args)
    jobs = [
        job
        for job in jobs
        if not (args.resume and job.output.exists() and not job.unfinished.exists())
    ]
    for job in jobs:
        if job.output.exists() and not (args.overwrite or args.resume):
            raise CommandError(
                f"{job.output} exists: use --overwrite to replace it, or --resume to skip what is done",
                USAGE,
            )
    planned = {job: job.blocks(work.fields) for job in jobs}
    for job in jobs:
        locks.enter_context(job.prepare(work, resume=args.resume, overwrite=args.overwrite))
        locks.callback(job.forget_if_nothing_is_done)
    blocks = [block for job in jobs for block in planned[job]]
    tally = Tally()
    missing: dict[Job, int] = dict.fromkeys(jobs, 0)
    todo = []
    for block in blocks:
        if (counts := block.done()) is not None:
            tally.add(counts)
        else:
            missing[block.job] += 1
            todo.append(block)
    for job in jobs:
        if not missing[job]:
            job.join(planned[job])
    total, left = (sum(block.weight for block in some) for some in (blocks, todo))
    workers = min(args.workers or _cpus(), max(1, len(todo)))
    try:
        with Progress(total, total - left) as progress:
            for block, counts in run_blocks(work, todo, workers):
                tally.add(counts)
                progress.advance(block.weight, counts.rows)
                missing[block.job] -= 1
                if not missing[block.job]:
                    block.job.join(planned[block.job])
    except KeyboardInterrupt:
        say("holdback truncate: interrupted; the same command with --resume goes on from here")
        raise
    return tally


def _jobs(args: argparse.Namespace) -> list[Job]:
    """Each input with its output, checked."""
    sources = [Path(name) for name in args.files]
    output = Path(args.output)
    for source in sources:
        if str(source) == "-":
            raise CommandError(
                "standard input cannot be taken up again: leave out --output, or name a file", USAGE
            )
        if not source.is_file():
            raise CommandError(
                f"cannot open {source}: {'a directory' if source.is_dir() else 'no such file'}",
                USAGE,
            )
        with source.open("rb") as file:
            packing = packing_of(file.read(8))
        if packing is not None:  # its blocks cannot be found, so workers cannot share it
            raise CommandError(
                f"{source} is compressed: leave out --output, as in `holdback truncate {source} ... > OUT`"
                if packing != "zstd"
                else needs_pipe(str(source), packing),
                USAGE,
            )
    several = len(sources) > 1 or output.is_dir() or args.output.endswith(("/", os.sep))
    if several:
        output.mkdir(parents=True, exist_ok=True)
    jobs = []
    for source in sources:
        parquet = args.format == "parquet" if args.format else source.suffix.lower() in PARQUET
        jobs.append(Job(source, output / source.name if several else output, parquet))
    taken: dict[Path, Path] = {}
    for job in jobs:
        target = job.output.resolve()
        if target in taken:
            raise CommandError(
                f"{taken[target]} and {job.source} would both be written to {job.output}", USAGE
            )
        if target in {source.resolve() for source in sources}:
            raise CommandError(f"{job.output} is an input: name another output", USAGE)
        taken[target] = job.source
    return jobs


def _cpus() -> int:
    """The CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


# --- a pipe
# --------------------------------------------------------------------------------------------------------------


def _run_stream(work: Work, args: argparse.Namespace) -> Tally:
    if args.resume or args.overwrite or args.workers:
        raise CommandError("--resume, --overwrite and --workers need --output", USAGE)
    tally = Tally()
    for name in args.files:
        if args.format == "parquet" or (args.format is None and name.lower().endswith(PARQUET)):
            raise CommandError(
                f"{name}: Parquet cannot be written to standard output: use --output", USAGE
            )
        if name != "-" and not Path(name).is_file():
            raise CommandError(f"cannot open {name}: no such file", USAGE)
        with open_unpacked(name) as source:
            _copy(work, source, "standard input" if name == "-" else name, tally)
    return tally


def _copy(work: Work, source: IO[bytes], name: str, tally: Tally) -> None:
    editor = work.lines()
    number = 1
    for batch in batches(source, name, BATCH_BYTES):
        lines = [line.removesuffix(b"\n") for line in batch]
        try:
            edited = list(editor.edit(lines, 0, tally))
        except BadRowError as error:
            before = b"".join(batch)[: error.offset].count(b"\n")
            raise ValueError(f"{name}, line {number + before}: {error}") from error
        with output() as out:
            for line, new in zip(batch, edited, strict=True):
                out.buffer.write(new + b"\n" * line.endswith(b"\n"))
        number += len(batch)


# --- counts
# --------------------------------------------------------------------------------------------------------------


def _tell(tally: Tally, *, as_json: bool) -> None:
    by_count = dict(sorted(tally.stops.items(), key=lambda entry: -entry[1]))
    if as_json:
        say_json({**asdict(tally), "stops": by_count})
        return
    line = f"{tally.rows:,} rows, {tally.texts:,} texts, {tally.cut:,} cut, {tally.characters:,} characters cut off"
    if tally.bad:
        line += f", {tally.bad:,} rows copied that could not be read"
    say(line)
    for stop, times in by_count.items():
        say(f"  {times:>12,}  {stop!r}")
