"""The package's rarely used names: imported when asked for, and the same names everywhere they are
listed.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import holdback
from holdback._lazy import HOMES, MODULES


@pytest.mark.parametrize(("name", "home"), HOMES.items())
def test_a_name_is_the_one_of_its_module(name, home):
    assert getattr(holdback, name) is getattr(import_module(f"holdback.{home}"), name)


@pytest.mark.thread_unsafe  # CPython's parser is not, up to 3.11
def test_the_lists_agree():
    tree = ast.parse(Path(holdback.__file__).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {*HOMES, *MODULES}
    assert {*HOMES, *MODULES} <= {*holdback.__all__}
    assert {*holdback.__all__} <= {*dir(holdback)}


def test_a_name_stays_a_function_when_its_module_was_imported_first():
    code = "import holdback._lint, holdback; assert callable(holdback.lint) and holdback.lint([]) == []"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["criteria", "finish", "providers", "vocabularies", "wire"])
def test_completion_in_a_public_module_offers_what_it_defines(name):
    module = import_module(f"holdback.{name}")
    assert dir(module) == sorted(module.__all__)
    for public in module.__all__:
        home = getattr(getattr(module, public), "__module__", module.__name__)
        assert str(home).partition(".")[0] in ("holdback", "typing"), public


def test_a_module_of_the_package_is_an_attribute_before_it_was_imported():
    code = "import holdback; print(holdback.wire.Cutter('tgi', ['a']).ended)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_importing_the_package_imports_none_of_them():
    code = "import sys, holdback; print([name for name in sys.modules if name in ('dataclasses', 'json', 're')])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'holdback' has no attribute 'lin'"):
        _ = holdback.lin  # type: ignore[attr-defined]
