"""The main job, made visible: a document goes through ``holdback cut`` in small pieces.

Nothing here is simulated: the command runs as a process of its own, and each line shows what one
read brought, what went out at once and what had to wait because a stop might have begun.

Run it with ``make demo``, or ``python examples/demo.py`` where holdback is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).with_name("answer.md")
PIECE = 8  # bytes a read brings: about two tokens, and often half of a Chinese character
STOPS = ["</answer>", r"\n\nUser:", "###END###"]
COLUMNS = (26, 26, 12)


def main() -> int:
    """Run the command, show its steps, check that nothing was lost."""
    command = [
        sys.executable,
        "-m",
        "holdback",
        "cut",
        "--chunk",
        str(PIECE),
        "--steps",
        "--report",
    ]
    for stop in STOPS:
        command += ["--stop", stop]
    command += ["--ignore-inside", "<think>", "</think>", str(DOCUMENT)]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, check=False
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        return done.returncode
    *steps, report = [json.loads(line) for line in done.stderr.splitlines()]
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # a real stream here
    show_question(DOCUMENT.stat().st_size)
    show_steps(steps)
    show_outcome(done.stdout, report, max(len(step["held"]) for step in steps))
    return 0


def show_question(size: int) -> None:
    """What goes in, and what may end it."""
    print(
        bold(
            f"\n  A model's answer, {size} bytes, arrives {PIECE} bytes at a time. The first of these stops ends it:\n"
        )
    )
    for index, stop in enumerate(STOPS):
        print(f"      {index}  {paint(stop, 31)}")
    print("\n  Inside <think> ... </think> stops do not count.\n")


def show_steps(steps: list[dict[str, Any]]) -> None:
    """One row for each read that made something wait, or let it go; a run of all others is one row."""
    print(
        dim(
            "  read   "
            + fill("arrived", 0)
            + fill("sent on at once", 1)
            + "held back: a stop may have begun"
        )
    )
    quiet = 0
    held_before = half_before = ""
    for number, step in enumerate(steps, 1):
        held, half = step["held"], half_character(step["read"])
        if not (held or held_before or half or half_before) and number not in (1, len(steps)):
            quiet += 1
            continue
        if quiet:
            print(dim(f"         {quiet} more, straight through"))
            quiet = 0
        sent = paint(fill(visible(step["wrote"]), 1), 32)
        waits = fill(visible(held), 2) if held else ""
        row = f"  {number:4}   " + fill(visible(step["read"]), 0) + sent + paint(waits, 33)
        if number == len(steps):
            row += paint("the stop is complete: the end", 31)
        elif held_before and not held:
            row += dim("no stop after all: it went out")
        elif half:
            row += dim(f"({half} is half a character)")
        print(row.rstrip())
        held_before, half_before = held, half


def half_character(read: str) -> str:
    """The bytes at the end of a read that wait for the rest of their character, as the command
    shows them.
    """
    found = re.search(r"(\\x[0-9a-f]{2})+$", read)
    return found[0] if found else ""


def show_outcome(output: str, report: dict[str, Any], longest: int) -> None:
    """Which stop fired, where, and what that saved."""
    place = f"characters {report['start']} to {report['end']}"
    print(
        f"\n  {paint('stop ' + str(report['index']), 31)}  {visible(report['stop'])}  ended it at {place}."
    )
    unread = DOCUMENT.stat().st_size - report["bytes_read"]
    print(
        f"  {report['bytes_read']} bytes read, {report['bytes_written']} sent on, {unread} never asked for."
    )
    print(
        f"  At no time did more than {longest} characters wait.\n\n  The last lines that a client saw:\n"
    )
    for line in output.splitlines()[-3:]:
        print(dim("      | ") + line)
    print(
        "\n  The same by hand:  holdback cut --stop '</answer>' --stop '\\n\\nUser:' --report < examples/answer.md\n"
    )


def visible(text: str | None) -> str:
    """White space that can be seen, on one line."""
    return "" if text is None else text.replace("\n", "⏎").replace(" ", "·")


def fill(text: str, column: int) -> str:
    """Padded to the width of a column; a Chinese character or an emoji takes two cells."""
    wide = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
    return text + " " * max(1, COLUMNS[column] - wide)


def paint(text: str, colour: int) -> str:
    """Coloured where a terminal shows it (31 red: stop, 32 green: sent, 33 yellow: held)."""
    return f"\033[{colour}m{text}\033[0m" if COLOURED else text


def bold(text: str) -> str:
    """Bold where a terminal shows it."""
    return paint(text, 1)


def dim(text: str) -> str:
    """Faint where a terminal shows it."""
    return paint(text, 2)


COLOURED = (
    sys.stdout.isatty()
    and "NO_COLOR" not in os.environ
    and shutil.get_terminal_size().columns >= 80
)

if __name__ == "__main__":
    sys.exit(main())
