"""Every example that a reader can see runs: README.md, docs/ and the docstrings.

In a page, the ``python`` blocks run from top to bottom in one namespace, as a reader would type
them: a block with ``>>>`` is compared with the output it shows, any other is executed. A
``console`` block runs each ``$`` line in a shell at the project's root and compares what it prints.
A block that cannot run says why, in the line above it; one that runs only beside some package names
it::

    <!-- not run: needs a GPU -->
    <!-- needs: fastapi httpx -->
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import operator
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import holdback
from holdback import _core

pytestmark = pytest.mark.thread_unsafe  # doctest takes over sys.stdout

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DEADLINE = 60.0

FENCE = re.compile(
    r"^(?P<indent>[ ]*)(?P<ticks>`{3,})[ ]*(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)(?P=ticks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
REMARK = re.compile(r"<!-- (?P<word>not run|needs): (?P<text>\S[^>]*) -->\s*\Z")


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_absolute() else str(page)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # 1-based, of the first line of code
    language: str
    code: str
    not_run: str | None  # the reason

    @property
    def name(self) -> str:
        return f"{page_id(self.page)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        indent = len(found["indent"])
        code = "".join(
            line[indent:] if line.strip() else "\n"
            for line in found["code"].splitlines(keepends=True)
        )
        line = text.count("\n", 0, found.start("code")) + 1
        yield Block(page, line, found["language"], code, reason_not_to_run(text[: found.start()]))


def reason_not_to_run(before: str) -> str | None:
    """What the comment right above a block says against running it here."""
    remark = REMARK.search(before)
    if remark is None:
        return None
    if remark["word"] == "not run":
        return remark["text"]
    missing = [name for name in remark["text"].split() if importlib.util.find_spec(name) is None]
    return f"{missing} not installed" if missing else None


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_python_examples_of_a_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files
    namespace: dict[str, object] = {"__name__": "__example__"}
    for block in blocks_of(page):
        if block.language != "python" or block.not_run:
            continue
        if ">>>" in block.code:
            check_session(block, namespace)
        else:
            padded = (
                "\n" * (block.line - 1) + block.code
            )  # so that a traceback shows the page's own line
            exec(compile(padded, str(page), "exec"), namespace)


def check_session(block: Block, namespace: dict[str, object]) -> None:
    parsed = doctest.DocTestParser().get_doctest(
        block.code, namespace, block.name, str(block.page), block.line - 1
    )
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(parsed, out=said.append, clear_globs=False)
    namespace.update(parsed.globs)
    assert not runner.failures, "".join(said)


CONSOLE = [
    block
    for page in PAGES
    for block in blocks_of(page)
    if block.language == "console" and not block.not_run
]


@pytest.mark.skipif(
    shutil.which("bash") is None, reason="the examples are written for a POSIX shell"
)
@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.name)
def test_a_console_example(block: Block) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for session in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, shown = session.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env={**os.environ, "PATH": path, "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=DEADLINE,
            check=False,
        )
        assert done.stdout.rstrip("\n") == shown.rstrip("\n"), f"{block.name}: {command}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_has_a_language(page: Path) -> None:
    bare = [block.name for block in blocks_of(page) if not block.language]
    assert not bare


def modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.walk_packages(holdback.__path__, "holdback.")]
    # Integrations need their packages; their own tests run their examples.
    own = [name for name in names if ".integrations" not in name and not name.endswith(".__main__")]
    return [holdback, *map(importlib.import_module, own)]


def documented(tree: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of a parsed module and of all that it defines."""
    if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield name, ast.get_docstring(tree) or ""
        for inner in tree.body:
            yield from documented(inner, f"{name}.{getattr(inner, 'name', '')}")


def docstrings() -> Iterator[tuple[str, str, str]]:
    """Module, name and text of every docstring with an example.

    Those of the compiled module stand in its stub.
    """
    for module in modules():
        source = Path(module.__file__ or "")
        if module.__name__ == "holdback._core":
            source = Path(holdback.__file__).with_name("_core.pyi")
        tree = ast.parse(source.read_text(encoding="utf-8"))
        for name, text in documented(tree, module.__name__):
            if ">>>" in text:
                yield module.__name__, name, text


DOCSTRINGS = list(docstrings())


@pytest.mark.parametrize(
    ("module", "name", "text"), DOCSTRINGS, ids=[name for _, name, _ in DOCSTRINGS]
)
def test_the_examples_of_a_docstring(module: str, name: str, text: str) -> None:
    namespace = {**vars(holdback), **vars(importlib.import_module(module)), "holdback": holdback}
    check_session(Block(Path(name), 1, "python", text, None), namespace)


def test_examples_are_found() -> None:
    """A page or docstring search that finds nothing would pass everything above."""
    assert sum(block.language == "python" for block in blocks_of(ROOT / "README.md")) >= 2
    assert len(DOCSTRINGS) >= 3


STUB = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
DOCUMENTED = {
    ".".join((*owner, node.name)): inspect.cleandoc(ast.get_docstring(node) or "")
    for owner, body in [
        ((), STUB.body),
        *(((c.name,), c.body) for c in STUB.body if isinstance(c, ast.ClassDef)),
    ]
    for node in body
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_help_says_what_the_stub_says(name: str) -> None:
    documented = operator.attrgetter(name)(_core)
    assert inspect.getdoc(documented) == DOCUMENTED[name]
