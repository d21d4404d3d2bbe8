"""Installs each file of dist/ as a user would and tests it there: a fresh environment, outside the
checkout.

The tests, README and docs are copied beside it; the sources are not, so that nothing but the
installed package can be imported. The stable-ABI wheel is tried on the oldest and the newest
interpreter, the sdist on the newest (pip builds it, which needs the Rust toolchain and the package
registry, nothing else)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import parse_wheel_filename
from pythons import Interpreter, interpreters

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
COPIED = ["tests", "docs", "examples", "README.md", "pyproject.toml"]
NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.rs")

WHERE = "import holdback, holdback._core as core; print(holdback.__file__); print(core.__file__)"


def pairs() -> Iterator[tuple[Path, Interpreter]]:
    """Each file with each interpreter that it has to work on."""
    found = interpreters()
    with_gil = [interpreter for interpreter in found if not interpreter.free_threaded]
    for wheel in sorted(DIST.glob("*.whl")):
        abis = {tag.abi for tag in parse_wheel_filename(wheel.name)[3]}
        if "abi3" in abis:
            yield from (
                (wheel, interpreter) for interpreter in dict.fromkeys([with_gil[0], with_gil[-1]])
            )
        else:
            yield from ((wheel, interpreter) for interpreter in found if interpreter.tag in abis)
    yield from ((sdist, with_gil[-1]) for sdist in sorted(DIST.glob("*.tar.gz")))


def run(*command: str, within: Path) -> str:
    """Run a command and return what it printed; its own words if it fails."""
    done = subprocess.run(
        command,
        cwd=within,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"failed: {' '.join(command)}")
    return done.stdout


def try_out(artifact: Path, interpreter: Interpreter) -> str:
    """Install one file for one interpreter, run the tests; the last line that pytest says."""
    with tempfile.TemporaryDirectory(prefix="holdback-") as name:
        place = Path(name)
        run(interpreter.path, "-m", "venv", "env", within=place)
        python = next(
            str(path) for path in (place / "env").glob("*/python*") if path.stem == "python"
        )
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        run(*pip, "--upgrade", "pip>=25.1", within=place)
        run(*pip, str(artifact), within=place)
        for part in COPIED:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, place / part, ignore=NOT_COPIED)
            else:
                shutil.copy(source, place / part)
        run(*pip, "--group", "test", within=place)
        for line in run(python, "-c", WHERE, within=place).splitlines():
            assert Path(line).resolve().is_relative_to((place / "env").resolve()), (
                f"imported from {line}"
            )
        said = run(
            python,
            "-m",
            "pytest",
            "--quiet",
            "-p",
            "no:cacheprovider",
            "-m",
            "not tree",
            "tests",
            within=place,
        )
        return said.strip().splitlines()[-1]


def main() -> int:
    """Try all of them."""
    tried = 0
    for artifact, interpreter in pairs():
        print(f"== {artifact.name} on {interpreter.tag} ({interpreter.path})", flush=True)
        print("  ", try_out(artifact, interpreter), flush=True)
        tried += 1
    if not tried:
        print("dist/ is empty: run make dist first", file=sys.stderr)
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
