"""Builds what is published: the sdist, and from the sdist a wheel for each interpreter present and
one stable-ABI wheel.

`build_dist.py sdist` stops after the sdist; `build_dist.py wheels FILE` builds from an sdist that
is there already.

Wheels never come from the checkout: a file that the sdist forgot would be missing on every machine
that has no wheel. Free-threaded interpreters have no stable ABI before 3.15 and get a wheel each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def build_sdist() -> Path:
    """The sdist, as a path."""
    maturin("sdist", "--out", str(DIST), within=ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    return sdist


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
