"""Looks into the files of dist/ before anybody installs them: names, tags, contents, size.

`--partial`: this machine builds only some of it; `--tag v1.2.3`: the version must be this one.

What others check better is left to them: `twine check --strict` reads the metadata, `abi3audit
--strict` the symbols."""

from __future__ import annotations

import email
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename
from pythons import interpreters

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"

# Far above what they are, far below what a debug build or a forgotten folder weighs.
WHEEL_LIMIT, SDIST_LIMIT = 1_500_000, 1_000_000

MODULE = re.compile(r"holdback/_core(\.[\w-]+)?\.(so|pyd)")
SBOM = re.compile(r"\.dist-info/sboms/[\w.]+\.cyclonedx\.json$")  # maturin writes it
IN_WHEEL = re.compile(
    r"holdback/[\w/]+\.(py|pyi)|holdback/py\.typed|holdback/data/\w+\.(json|txt)|holdback-[^/]+\.dist-info/.+"
)
NEVER = re.compile(r"__pycache__|\.pyc$|\.so\.|(^|/)\.|hypothesis|(^|/)(tests|target)/")

IN_SDIST = [
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "PKG-INFO",
]
IN_SDIST += ["src/lib.rs", "build.rs", "python/holdback/__init__.py", "python/holdback/py.typed"]


def version() -> str:
    """The version, which is written in Cargo.toml and nowhere else."""
    found = re.search(
        r'^version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found
    return found[1]


def wheel_errors(path: Path) -> Iterator[str]:
    """What is wrong with one wheel."""
    _, wheel_version, _, tags = parse_wheel_filename(path.name)
    if str(wheel_version) != version():
        yield f"version {wheel_version}, Cargo.toml says {version()}"
    if path.stat().st_size > WHEEL_LIMIT:
        yield f"{path.stat().st_size} bytes, more than {WHEEL_LIMIT}: a debug build, or symbols that were not stripped?"
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        info = email.message_from_bytes(
            wheel.read(next(n for n in names if n.endswith(".dist-info/WHEEL")))
        )
        metadata = email.message_from_bytes(
            wheel.read(next(n for n in names if n.endswith(".dist-info/METADATA")))
        )
        yield from sbom_errors([wheel.read(name) for name in names if SBOM.search(name)])
    modules = [name for name in names if MODULE.fullmatch(name)]
    if len(modules) != 1:
        yield f"{len(modules)} compiled modules: {modules}"
    yield from (f"does not belong there: {name}" for name in names if not fits(name))
    yield from (f"is missing: {name}" for name in missing(names))
    if sorted(info.get_all("Tag", [])) != sorted(str(tag) for tag in tags):
        yield f"file name says {sorted(map(str, tags))}, WHEEL says {sorted(info.get_all('Tag', []))}"
    if modules:
        yield from suffix_errors(modules[0], {(tag.interpreter, tag.abi) for tag in tags})
    if metadata["Requires-Python"] != ">=3.10":
        yield f"Requires-Python is {metadata['Requires-Python']}"
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    if needed:
        yield f"depends on {needed}; the package has no run-time dependency"


def sbom_errors(found: list[bytes]) -> Iterator[str]:
    """The list of what is compiled in must be there, and name PyO3 at the locked version."""
    if len(found) != 1:
        yield f"{len(found)} lists of what is compiled in (SBOM), not one"
        return
    parts = {(part["name"], part["version"]) for part in json.loads(found[0])["components"]}
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, re.MULTILINE))
    yield from (f"SBOM names {part}, Cargo.lock does not" for part in sorted(parts - locked))
    if "pyo3" not in {name for name, _ in parts}:
        yield "SBOM does not name pyo3"


def fits(name: str) -> bool:
    """Whether a file has its place in a wheel."""
    known = MODULE.fullmatch(name) or IN_WHEEL.fullmatch(name)
    return bool(known) and not NEVER.search(name)


def missing(names: list[str]) -> Iterator[str]:
    """Every Python file of the checkout must be in the wheel, and the licence."""
    package = ROOT / "python"
    for path in sorted((package / "holdback").rglob("*")):
        if (
            path.suffix in (".py", ".pyi", ".typed", ".json", ".txt")
            and "__pycache__" not in path.parts
        ):
            name = path.relative_to(package).as_posix()
            if name not in names:
                yield name
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        yield "LICENSE"


def suffix_errors(module: str, tags: set[tuple[str, str]]) -> Iterator[str]:
    """The module's own name must fit the wheel's tag, or Python would not find it there."""
    ((interpreter, abi),) = tags
    windows = module.endswith(".pyd")
    if abi == "abi3":
        if interpreter != "cp310":
            yield f"a stable-ABI wheel for {interpreter}; the oldest supported is cp310"
        expected = r"_core\.pyd" if windows else r"_core\.abi3\.so"
    else:
        number = abi.removeprefix("cp")
        expected = (
            rf"_core\.cp{number}-win\w*\.pyd" if windows else rf"_core\.cpython-{number}-[\w-]+\.so"
        )
    if not re.search(expected + "$", module):
        yield f"{module} in a wheel for {abi}"


def sdist_errors(path: Path) -> Iterator[str]:
    """What is wrong with the sdist."""
    _, sdist_version = parse_sdist_filename(path.name)
    if str(sdist_version) != version():
        yield f"version {sdist_version}, Cargo.toml says {version()}"
    if path.stat().st_size > SDIST_LIMIT:
        yield f"{path.stat().st_size} bytes, more than {SDIST_LIMIT}"
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    yield from (f"is missing: {name}" for name in IN_SDIST if name not in names)
    yield from (f"is missing: {name}" for name in rust_sources() if name not in names)
    yield from (
        f"does not belong there: {name}"
        for name in names
        if re.search(r"\.(so|pyd|pyc)$|^(target|dist|\.venv)/", name)
    )


def rust_sources() -> list[str]:
    """Every Rust file of the crate."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "src").rglob("*.rs"))]


def coverage_errors(wheels: list[Path]) -> Iterator[str]:
    """A wheel for each interpreter of this machine, and one for the stable ABI."""
    built = {tag.abi for path in wheels for tag in parse_wheel_filename(path.name)[3]}
    yield from (f"no wheel for {one.path}" for one in interpreters() if one.tag not in built)
    if "abi3" not in built:
        yield "no wheel for the stable ABI"


def main() -> int:
    """Print what is wrong, run the checks of others, return 0 if nothing is."""
    wheels, sdists = sorted(DIST.glob("*.whl")), sorted(DIST.glob("*.tar.gz"))
    errors = [f"{path.name}: {error}" for path in wheels for error in wheel_errors(path)]
    errors += [f"{path.name}: {error}" for path in sdists for error in sdist_errors(path)]
    if "--partial" not in sys.argv:
        errors += coverage_errors(wheels)
        if len(sdists) != 1:
            errors.append(f"{len(sdists)} sdists in dist/")
    if "--tag" in sys.argv and f"v{version()}" not in sys.argv:
        errors.append(
            f"Cargo.toml says {version()}, the tag says {sys.argv[sys.argv.index('--tag') + 1]}"
        )
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    stable = [str(path) for path in wheels if "-abi3-" in path.name]
    checks = [["twine", "check", "--strict", *map(str, [*sdists, *wheels])]]
    if stable:
        checks.append(["abi3audit", "--strict", "--verbose", *stable])
    failed = [
        command
        for command in checks
        if subprocess.run([sys.executable, "-m", *command], check=False).returncode
    ]
    print(
        f"{len(wheels)} wheels, {len(sdists)} sdist, {len(errors)} errors, {len(failed)} checks failed"
    )
    return 1 if errors or failed else 0


if __name__ == "__main__":
    sys.exit(main())
