"""Long work on files for `holdback truncate`: blocks, worker processes, and a run that can be
taken up again.

Beside an output file `OUT` stands, while it is being made, the directory `OUT.unfinished`: a
plan, and one finished part for each block. A part counts once its counts stand beside it, and both
get their names by a rename, so whatever ends the process, what is there is whole. When no block is
missing the parts are joined, the result takes the output's name, and the directory goes. So a run
needs room for the output twice, for a while, and the output is never half a file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from holdback import StopSet
from holdback.cli import USAGE, CommandError
from holdback.commands import _jsonl, _parquet
from holdback.commands._jsonl import Fields, Lines, Tally

LOCK = "lock"

BLOCK_BYTES = 8 << 20
"""Bytes of JSON lines in a block: some tenths of a second of work, so that progress shows and
little is lost by an end.
"""


@dataclass(frozen=True)
class Work:
    """What is done to every block; it travels to the workers."""

    stops: StopSet
    fields: Fields
    options: dict[str, Any]
    keep_bad: bool

    def cutting(self, texts: list[str]) -> tuple[list[str], list[Any]]:
        """Cut a list of texts; each one's stop, as text."""
        kept, matches = self.stops.truncate_many(texts, **self.options)
        return kept, [match and match.stop for match in matches]

    def lines(self) -> Lines:
        """The editor of JSON lines that does this work."""
        return Lines(self.fields, self.cutting, keep_bad=self.keep_bad)

    def described(self) -> dict[str, Any]:
        """The work as JSON, to be compared with that of an unfinished run."""
        stops = [stop if isinstance(stop, str) else stop.hex() for stop in self.stops]
        return {
            "stops": stops,
            "tie": self.stops.tie,
            "options": dict(sorted(self.options.items())),
            "fields": asdict(self.fields),
            "keep_bad": self.keep_bad,
        }


@dataclass(frozen=True)
class Block:
    """A piece of one input: bytes of JSON lines, or a row group of Parquet."""

    job: Job
    number: int
    begin: int
    end: int  # of Parquet: unused
    weight: int  # bytes, for the progress

    @property
    def part(self) -> Path:
        return self.job.unfinished / f"{self.number:06}.part"

    @property
    def counts(self) -> Path:
        return self.part.with_suffix(".json")

    def done(self) -> Tally | None:
        """The counts of the finished part; `None` if it is not finished."""
        try:
            return Tally(**json.loads(self.counts.read_text("utf-8")))
        except FileNotFoundError:
            return None


@dataclass(frozen=True)
class Job:
    """One input file and its output."""

    source: Path
    output: Path
    parquet: bool

    @property
    def unfinished(self) -> Path:
        return self.output.with_name(self.output.name + ".unfinished")

    def blocks(self, fields: Fields) -> list[Block]:
        """The blocks of the input, in order.

        Raises:
            ValueError: for a file that cannot be read as what it should be.
        """
        if self.parquet:
            groups = _parquet.plan_blocks(self.source, fields.column)
            return [Block(self, number, number, number, weight) for number, weight in groups]
        pieces = _jsonl.plan_blocks(self.source, BLOCK_BYTES)
        return [
            Block(self, number, begin, end, end - begin)
            for number, (begin, end) in enumerate(pieces)
        ]

    def prepare(
        self, work: Work, *, resume: bool, overwrite: bool
    ) -> AbstractContextManager[object]:
        """Make the directory of the unfinished run, or find the one to be taken up. Gives the lock
        on it, to be closed at the end.

        Raises:
            CommandError: if there is one that is not to be taken up, that was a different run, or that another process works on.
        """
        stat = self.source.stat()
        plan = {
            **work.described(),
            "input": {"bytes": stat.st_size, "changed": stat.st_mtime_ns},
            "block": BLOCK_BYTES,
        }
        plan = json.loads(json.dumps(plan))  # as it will be read again: tuples become lists
        file = self.unfinished / "plan.json"
        there_was = self.unfinished.exists()
        self.unfinished.mkdir(parents=True, exist_ok=True)
        lock = self._locked()
        if there_was and overwrite:
            for path in self.unfinished.iterdir():
                if path.name != LOCK:
                    path.unlink()
        elif there_was:
            if not resume:
                raise CommandError(
                    f"{self.unfinished} is an unfinished run: use --resume to go on with it, or --overwrite to begin again",
                    USAGE,
                )
            there = json.loads(file.read_text("utf-8")) if file.exists() else plan
            changed = [name for name, value in plan.items() if there.get(name) != value]
            if changed:
                raise CommandError(
                    f"{self.unfinished} was made with other {', '.join(changed)}: use --overwrite to begin again",
                    USAGE,
                )
        _write_whole(file, json.dumps(plan))
        return lock

    def _locked(self) -> AbstractContextManager[object]:
        try:
            import fcntl
        except ImportError:  # Windows: parts are whole all the same, the work is only done twice
            return nullcontext()
        lock = (self.unfinished / LOCK).open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise CommandError(f"another process works on {self.unfinished}") from error
        return lock

    def forget_if_nothing_is_done(self) -> None:
        """Remove the directory of a run without one finished part: there is nothing to go on with,
        and it would stand in the way of the next one. Called under its lock.
        """
        if not any(self.unfinished.glob("*.part")):
            shutil.rmtree(self.unfinished, ignore_errors=True)

    def join(self, blocks: list[Block]) -> None:
        """Put the parts together and give the output its name."""
        joined = self.unfinished / "joined"
        if self.parquet:
            _parquet.join(self.source, (block.part for block in blocks), joined)
        else:
            with joined.open("wb") as sink:
                for block in blocks:
                    with block.part.open("rb") as part:
                        shutil.copyfileobj(part, sink, 1 << 20)
        joined.replace(self.output)
        shutil.rmtree(self.unfinished)


def cut_block(work: Work, block: Block) -> Tally:
    """Make the part of one block; its counts.

    Raises:
        ValueError: for a row that cannot be read; it says where.
    """
    tally = Tally()
    # A process of its own may still be at work for a run that was killed.
    partial = block.part.with_suffix(f".partial-{os.getpid()}")
    if block.job.parquet:
        partial.touch()
        _parquet.cut_group(
            block.job.source, block.begin, partial, work.stops, work.fields, work.options, tally
        )
    else:
        with block.job.source.open("rb") as source:
            offset, lines = _jsonl.read_block(source, block.begin, block.end)
            try:
                edited = list(work.lines().edit(lines, offset, tally))
            except _jsonl.BadRowError as error:
                raise ValueError(
                    f"{block.job.source}, line {_line_at(source, error.offset)}: {error}"
                ) from error
            ends = bool(lines) and _ends_with_newline(
                source, offset + sum(map(len, lines)) + len(lines) - 1
            )
        with partial.open("wb") as sink:
            sink.write(b"\n".join(edited) + b"\n" * ends)
    with partial.open("rb+") as written:
        os.fsync(written.fileno())
    partial.replace(block.part)
    _write_whole(block.counts, json.dumps(asdict(tally)))
    return tally


def _line_at(source: Any, offset: int) -> int:
    """The number of the line that begins at `offset`, from 1. Only an error asks for it."""
    source.seek(0)
    number = 1
    while offset > 0:
        piece = source.read(min(offset, 1 << 20))
        number += piece.count(b"\n")
        offset -= len(piece)
    return number


def _ends_with_newline(source: Any, offset: int) -> bool:
    source.seek(offset)
    return bool(source.read(1) == b"\n")


def _write_whole(path: Path, text: str) -> None:
    partial = path.with_suffix(f".new-{os.getpid()}")
    partial.write_text(text, "utf-8")
    partial.replace(path)


def run_blocks(work: Work, blocks: list[Block], workers: int) -> Iterator[tuple[Block, Tally]]:
    """Do all blocks and give each one's counts as it is done, in any order.

    With one worker they are done here. Otherwise by processes; not more than two blocks for each
    are under way, so that an end loses little and the blocks of a huge file are no burden.

    Raises:
        ValueError: for the first row that cannot be read. Finished parts stay.
        CommandError: if a worker died.
    """
    if workers == 1:
        for block in blocks:
            yield block, cut_block(work, block)
        return
    with ExitStack() as stack:
        # Started afresh, not forked: the caller may have threads.
        pool = ProcessPoolExecutor(
            workers, get_context("spawn"), initializer=_begin_worker, initargs=(work,)
        )
        stack.callback(pool.shutdown, cancel_futures=True)
        waiting = iter(blocks)
        under_way: dict[Future[Tally], Block] = {}
        try:
            while True:
                for block in islice(waiting, 2 * workers - len(under_way)):
                    under_way[_submitted(pool, block)] = block
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield under_way.pop(future), future.result()
        except BrokenProcessPool as error:
            # The pool ends the other workers and waits for them, but before Python 3.12 it misses
            # one that was just being started.
            for worker in active_children():
                worker.terminate()
            raise CommandError(
                "a worker process died (out of memory?): go on with --resume, perhaps with fewer --workers"
            ) from error


def _submitted(pool: ProcessPoolExecutor, block: Block) -> Future[Tally]:
    try:
        return pool.submit(_do_in_worker, block)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # A pool that is just finding out that it is broken has closed its own pipes: "handle is
        # closed", "bad value(s) in fds_to_keep".
        raise BrokenProcessPool(str(error)) from error


_work: Work  # in a worker: what it was started for


def _begin_worker(work: Work) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is up to the parent
    _work = work


def _do_in_worker(block: Block) -> Tally:
    return cut_block(_work, block)
