"""The floor as a module: compiled when it is first asked for, with whatever C compiler there is.

`load()` gives the extension module, or raises `NoFloor` with the reason. `STEPS` names its methods
in the order in which they add to each other."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).with_name("floor.c")
STEPS = ["nothing", "same", "pair", "walk", "feed", "walk_detached"]


class NoFloor(Exception):  # noqa: N818 - it is a reason, and reads as one where a test is skipped
    """Why there is no floor here."""


@functools.cache
def load() -> ModuleType:
    """The extension, built in a temporary folder that is gone as soon as it is loaded."""
    compiler = (
        os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    )
    if not compiler:
        raise NoFloor("no C compiler: neither CC nor cc, gcc, clang")
    with tempfile.TemporaryDirectory(prefix="holdback-floor-") as folder:
        built = Path(folder) / f"floor{sysconfig.get_config_var('EXT_SUFFIX')}"
        flags = ["-O3", "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}"]
        done = subprocess.run(
            [*compiler.split(), *flags, str(SOURCE), "-o", str(built)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoFloor(f"{compiler} failed: {done.stderr.strip().splitlines()[-1:]}")
        loader = importlib.machinery.ExtensionFileLoader("floor", str(built))
        spec = importlib.util.spec_from_loader("floor", loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
