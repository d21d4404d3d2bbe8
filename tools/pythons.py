"""Finds the Python interpreters of this machine that holdback supports, one for each kind of build.

``PYTHONS`` in the environment (paths or names, separated by white space) replaces the search.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST, NEWEST = (
    10,
    15,
)  # minor versions; free-threaded builds from 3.14 on, the first that PyO3 supports
FREE_THREADED_FROM = 14

PROBE = """
import sys, sysconfig, venv, ensurepip
print(sys.implementation.name, *sys.version_info[:3], sysconfig.get_config_var("Py_GIL_DISABLED") or 0, sys.executable)
"""


@dataclass(frozen=True)
class Interpreter:
    """One usable CPython."""

    path: str
    minor: int
    patch: int
    free_threaded: bool

    @property
    def tag(self) -> str:
        """The ABI tag of wheels built for it, such as ``cp311`` or ``cp314t``."""
        return f"cp3{self.minor}{'t' if self.free_threaded else ''}"


def candidates() -> Iterator[str]:
    """Names and paths worth asking, best first."""
    if chosen := os.environ.get("PYTHONS"):
        yield from chosen.split()
        return
    for minor in range(OLDEST, NEWEST + 1):
        yield f"python3.{minor}"
        yield f"python3.{minor}t"
    for home in (
        Path.home() / ".pyenv" / "versions",
        Path.home() / ".local" / "share" / "uv" / "python",
    ):
        yield from (str(path) for path in sorted(home.glob("*/bin/python3.*[0-9t]"), reverse=True))
    if (
        "RUNNER_TOOL_CACHE" in os.environ
    ):  # where the workflows' set-up step puts them: Python/VERSION/ARCHITECTURE
        cache = Path(os.environ["RUNNER_TOOL_CACHE"]) / "Python"
        yield from (str(path) for path in sorted(cache.glob("3.*/*/python.exe"), reverse=True))
        yield from (str(path) for path in sorted(cache.glob("3.*/*/bin/python3"), reverse=True))


def ask(command: str) -> Interpreter | None:
    """The interpreter behind a name, or ``None`` when it is missing, broken or not supported."""
    try:
        done = subprocess.run(
            [command, "-c", PROBE], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split(maxsplit=5)
    if done.returncode != 0 or len(words) != 6 or words[0] != "cpython" or words[1] != "3":
        return None
    found = Interpreter(words[5].strip(), int(words[2]), int(words[3]), words[4] == "1")
    supported = OLDEST <= found.minor <= NEWEST and (
        not found.free_threaded or found.minor >= FREE_THREADED_FROM
    )
    return found if supported else None


def interpreters() -> list[Interpreter]:
    """One interpreter for each ABI tag, oldest first."""
    found: dict[str, Interpreter] = {}
    for command in candidates():
        if (interpreter := ask(command)) is not None:
            found.setdefault(interpreter.tag, interpreter)
    return sorted(found.values(), key=lambda one: (one.minor, one.free_threaded))


if __name__ == "__main__":
    for one in interpreters():
        print(one.tag, one.path)
    sys.exit(0 if interpreters() else "no supported interpreter found")
