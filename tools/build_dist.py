"""Builds what is published: the sdist, and from the sdist a wheel for each interpreter present and
one stable-ABI wheel.

`build_dist.py sdist` stops after the sdist; `build_dist.py wheels FILE` builds from an sdist that
is there already; `build_dist.py again` builds the sdist of dist/ once more from a clone in another
place, and fails unless it is the same, byte for byte.

Wheels never come from the checkout: a file that the sdist forgot would be missing on every machine
that has no wheel. Free-threaded interpreters have no stable ABI before 3.15 and get a wheel each.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from pythons import interpreters

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"


def maturin(*arguments: str, within: Path) -> None:
    """Run maturin of this virtual environment; its cargo output goes to one place, so that
    dependencies compile once.
    """
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target" / "dist")}
    subprocess.run(
        [sys.executable, "-m", "maturin", *arguments], cwd=within, env=environment, check=True
    )


def build_sdist(source: Path = ROOT, place: Path = DIST) -> Path:
    """The sdist, as a path."""
    maturin("sdist", "--out", str(place), within=source)
    (sdist,) = place.glob("*.tar.gz")
    return sdist


def contents(sdist: Path) -> dict[str, str]:
    """What an sdist says of each of its files, with a hash of the text."""
    with tarfile.open(sdist) as archive:
        return {
            member.name: f"{member.mode:o} {member.mtime:.0f} {member.uid} {member.uname} "
            + hashlib.sha256(
                file.read() if (file := archive.extractfile(member)) else b""
            ).hexdigest()
            for member in archive
        }


def build_again() -> None:
    """What anybody builds from the same commit must be what is published: a clone has other times,
    another path, and nothing that was not committed.
    """
    (first,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        second = build_sdist(clone, Path(name) / "dist")
        if first.read_bytes() == second.read_bytes():
            print(f"{first.name}: the same from a clone")
            return
        one, other = contents(first), contents(second)
        for member in sorted(one.keys() | other.keys()):
            if one.get(member) != other.get(member):
                print(
                    f"{member}: {one.get(member, 'absent')}, from a clone {other.get(member, 'absent')}"
                )
    raise SystemExit(f"{first.name} is not what a clone gives; is everything committed?")


def unpacked(sdist: Path, place: Path) -> Path:
    """The one folder that the sdist holds."""
    shutil.unpack_archive(sdist, place)
    (folder,) = place.iterdir()
    return folder


def build_wheels(sdist: Path) -> None:
    """A wheel for each interpreter, and one for the stable ABI."""
    found = interpreters()
    if not found:
        raise SystemExit("no supported Python interpreter found; PYTHONS='path ...' names them")
    with tempfile.TemporaryDirectory() as place:
        source = unpacked(sdist, Path(place))
        for interpreter in found:
            print(f"== wheel for {interpreter.tag}", flush=True)
            maturin(
                "build",
                "--release",
                "--locked",
                "-i",
                interpreter.path,
                "--out",
                str(DIST),
                within=source,
            )
        with_gil = [interpreter for interpreter in found if not interpreter.free_threaded]
        if with_gil:
            print("== wheel for the stable ABI", flush=True)
            options = ["--features", "abi3", "-i", with_gil[0].path]
            maturin("build", "--release", "--locked", *options, "--out", str(DIST), within=source)


def main() -> int:
    """Build into dist/, from nothing."""
    if sys.argv[1:] == ["again"]:
        build_again()
        return 0
    shutil.rmtree(DIST, ignore_errors=True)
    what, *files = sys.argv[1:] or ["all"]
    sdist = Path(files[0]).resolve() if what == "wheels" else build_sdist()
    if what != "sdist":
        build_wheels(sdist)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size / 1024:8.0f} KiB  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
