"""The user's file that the type checkers read (`make types`) also runs, and leaves no public name
out.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import typed_user

import holdback
from holdback import wire


def test_it_runs() -> None:
    assert typed_user.main() == {"answer": "x"}


@pytest.mark.thread_unsafe  # CPython's parser is not, up to 3.11: "AST constructor recursion depth mismatch"
@pytest.mark.parametrize("module", [holdback, wire], ids=lambda module: module.__name__)
def test_it_uses_every_public_name(module: object) -> None:
    tree = ast.parse(Path(typed_user.__file__).read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(module.__all__) <= used  # type: ignore[attr-defined]  # every module given has it
