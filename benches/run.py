"""`make bench`: runs every suite and the bench of the core, and keeps one file of results.

    python -m benches.run [options of pytest, such as -k "token or batch"]

Writes benches/results/<date>-<cpu>.json: when, where, which versions, which commit, and for each
workload what was measured (minimum and median of each side, ratios within the run). Single timings
are not kept. benches/report.py makes pages of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import holdback
from benches.peers import PEERS

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
OPTIONS = ["--benchmark-enable", "--benchmark-only", "--benchmark-columns=min,median,rounds"]
OPTIONS += ["--timeout=900", "-p", "no:cacheprovider", "-q"]
CORE = ["cargo", "bench", "--locked", "--quiet", "--bench", "core", "--"]
CORE += ["--warm-up-time", "0.5", "--measurement-time", "1.5", "--sample-size", "30"]


def cpu() -> str:
    """What the machine calls its processor."""
    try:
        names = re.findall(
            r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE
        )
    except OSError:
        names = []
    return str(names[0]).strip() if names else platform.processor() or platform.machine()


def output_of(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def versions() -> dict[str, str]:
    """Of Python, of the compilers, and of every peer that is installed."""
    found = {"python": platform.python_version(), "holdback": holdback.__version__}
    found["rustc"] = output_of("rustc", "--version").removeprefix("rustc ")
    found["cc"] = (output_of(os.environ.get("CC", "cc"), "--version").splitlines() or [""])[
        0
    ].removeprefix("cc ")
    for name in [*PEERS, "pytest-benchmark"]:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def suites(arguments: list[str]) -> dict[str, dict[str, Any]]:
    """What each suite told, by workload; stops when one fails, since then nothing is known."""
    with tempfile.TemporaryDirectory(prefix="holdback-bench-") as folder:
        raw = Path(folder) / "raw.json"
        command = [
            sys.executable,
            "-m",
            "pytest",
            str(ROOT / "benches"),
            *OPTIONS,
            f"--benchmark-json={raw}",
            *arguments,
        ]
        if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
            raise SystemExit(code)
        found = {}
        for entry in json.loads(raw.read_text())["benchmarks"]:
            told = entry["extra_info"]
            own = {key: entry["stats"][key] for key in ("min", "median", "rounds")}
            found[told.pop("workload")] = {
                "suite": entry["fullname"].partition("::")[0],
                "seconds": own,
                **told,
            }
        return found


def core() -> dict[str, dict[str, float]]:
    """Medians of criterion, ns; nothing without cargo."""
    try:
        done = subprocess.run(CORE, cwd=ROOT, check=False)
    except FileNotFoundError:
        print("no cargo: the bench of the core is left out", file=sys.stderr)
        return {}
    if done.returncode:
        raise SystemExit(done.returncode)
    found = {}
    for path in sorted((ROOT / "target" / "criterion").glob("*/*/new/estimates.json")):
        about = json.loads(path.with_name("benchmark.json").read_text())
        entry = {"ns": json.loads(path.read_text())["median"]["point_estimate"]}
        if about["throughput"]:
            entry["bytes"] = about["throughput"]["Bytes"]
        found[about["full_id"]] = entry
    return found


def main() -> None:
    begun = datetime.now(timezone.utc)
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    result: dict[str, Any] = {
        "date": begun.isoformat(timespec="seconds"),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "load": [round(each, 2) for each in load],
        "system": f"{platform.system()} {platform.machine()}",
        "commit": output_of("git", "rev-parse", "HEAD")
        + ("-dirty" if output_of("git", "status", "--porcelain", "src") else ""),
        "versions": versions(),
        "suites": suites(sys.argv[1:]),
        "core": {},
    }
    result["load_after"] = [
        round(each, 2) for each in (os.getloadavg() if hasattr(os, "getloadavg") else ())
    ]
    slug = re.sub(r"[^a-z0-9]+", "-", cpu().lower()).strip("-")
    path = RESULTS / f"{begun:%Y-%m-%d}-{slug}.json"
    keep(
        result, path
    )  # before the core: it has to be compiled, and what is known by now should not depend on that
    result["core"] = core()
    keep(result, path)


def keep(result: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(f"results: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
