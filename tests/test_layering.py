"""The house keeps its order: who may import what (docs/architecture.md), read from the sources
themselves.

Nothing is imported or compiled here: Rust files are read for paths that start at `crate` or
`super`, Python files by `ast`. A part that no rule knows is a failure too, so that a new module
is given its place on purpose."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parent.parent
RUST = ROOT / "src"
PYTHON = ROOT / "python" / "holdback"

# From the ground up; a module may use itself and those before it.
LAYERS = [
    "error",
    "repetition",
    "stops",
    "automaton",
    "pattern",
    "scope",
    "set",
    "decode",
    "stream",
    "wire",
]
RANK = {module: rank for rank, module in enumerate(LAYERS)}

# The binding, likewise. A set makes streams and a stream keeps its set: the one honest circle.
BINDING = [
    {"gil", "try_cell", "text"},
    {"error"},
    {"repetition"},
    {"options", "stop_match"},
    {"state"},
    {"fast_path", "feed_many", "pickle", "truncate", "arrow"},
    {"stop_set", "stop_stream"},
    {"batch", "cache", "fields", "meth_o", "wire"},
]
BINDING_RANK = {module: rank for rank, layer in enumerate(BINDING) for module in layer}

# The only homes of `unsafe`: SIMD in the start filter, and in the binding Python's string storage,
# the guard around a stream's state, the raw method entry and the C interface of Arrow. All other
# files forbid it or have none.
MAY_BE_UNSAFE = {
    "automaton/filter.rs",
    "python/text.rs",
    "python/try_cell.rs",
    "python/meth_o.rs",
    "python/arrow/abi.rs",
    "python/arrow/rows.rs",
}


def rust_files(under: str = "**") -> list[Path]:
    return sorted(RUST.glob(f"{under}/*.rs"))


def relative(path: Path) -> str:
    return path.relative_to(RUST).as_posix()


def code_of(path: Path) -> str:
    """The file without comments and without strings: prose may name any module."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(
        r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"', '""', re.sub(r"//[^\n]*", "", text), flags=re.DOTALL
    )
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def top_module(path: Path) -> str:
    """The part of the crate a file belongs to: `decode` for decode.rs, `stream` for
    stream/plain.rs.
    """
    return path.relative_to(RUST).parts[0].removesuffix(".rs")


def crate_paths(path: Path) -> Iterator[str]:
    """Every top module that the code of `path` names, by `crate::` or by `super::` climbing
    to the root.
    """
    depth = len(path.relative_to(RUST).parts) - (1 if path.name == "mod.rs" else 0)
    pattern = r"\b(crate|(?:super::)*super)::(?:\{([^;]*?)\}|(\w+))"
    for root, group, single in re.findall(pattern, code_of(path)):
        climbed = root.count("super")
        if root == "crate" or climbed >= depth:
            names = (
                [single]
                if single
                else re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group))
            )
            yield from (name for name in names if name in RANK or name == "python")


@pytest.mark.parametrize("path", rust_files(), ids=relative)
def test_every_rust_module_has_its_place(path: Path) -> None:
    known = top_module(path) in {"lib", "python", *LAYERS}
    assert known, f"{relative(path)}: give it a layer, here and in docs/architecture.md"


@pytest.mark.parametrize(
    "path",
    [path for path in rust_files() if top_module(path) not in ("lib", "python")],
    ids=relative,
)
def test_a_core_module_uses_earlier_ones_only_and_nothing_of_python(path: Path) -> None:
    own = RANK.get(top_module(path), len(LAYERS))
    broken = [used for used in crate_paths(path) if used == "python" or RANK[used] > own]
    assert not broken, f"{relative(path)} uses {broken}, which come later"
    assert not re.search(r"\bpyo3\b", code_of(path)), f"{relative(path)} names pyo3"


@pytest.mark.parametrize("path", rust_files("python"), ids=relative)
def test_the_binding_stands_in_layers_too(path: Path) -> None:
    if path == RUST / "python" / "mod.rs":
        return
    own = path.relative_to(RUST / "python").parts[0].removesuffix(".rs")
    assert own in BINDING_RANK, f"{relative(path)}: give it a layer here"
    deep = len(path.relative_to(RUST / "python").parts) > 1 and path.name != "mod.rs"
    pattern = r"\b(?:super::super|crate::python)::(\w+)" if deep else r"\bsuper::(\w+)"
    for used in re.findall(pattern, code_of(path)):
        if used in BINDING_RANK and used != own:
            lower = BINDING_RANK[used] < BINDING_RANK[own]
            classes = {used, own} == {"stop_set", "stop_stream"}
            assert lower or classes, f"{relative(path)} uses {used}, which does not come earlier"


def test_the_crate_root_knows_python_only_behind_its_feature() -> None:
    code = code_of(RUST / "lib.rs")
    assert not re.search(r"\bpyo3\b", code)
    mentions = re.findall(r'#\[cfg\(feature = ""\)\]\s*(?:pub )?mod python;|\bpython\b', code)
    assert len(mentions) == 1
    assert mentions[0].startswith("#[cfg")


@pytest.mark.parametrize("path", rust_files(), ids=relative)
def test_unsafe_lives_in_few_places(path: Path) -> None:
    if relative(path) in MAY_BE_UNSAFE:
        return
    code = code_of(path)
    assert not re.search(r"\bunsafe\b(?!_)", code), f"{relative(path)} has unsafe code"
    if top_module(path) not in ("lib", "python"):
        # `forbid` in a folder's mod.rs would reach into the one file there that may be unsafe.
        attribute = "deny" if relative(path) == "automaton/mod.rs" else "forbid"
        assert f"#![{attribute}(unsafe_code)]" in code, (
            f"{relative(path)} must say #![{attribute}(unsafe_code)]"
        )


# Modules of the package that are not public, and that the outer rooms share.
SHARED = {
    f"holdback.{name}"
    for name in (
        "_answers",
        "_body_kind",
        "_codings",
        "_failures",
        "_json",
        "_relay",
        "_requests",
        "_sse",
    )
}

# --- Python
# ----------------------------------------------------------------------------------------------------------


def python_files() -> list[Path]:
    return sorted(PYTHON.rglob("*.py"))


def python_id(path: Path) -> str:
    return path.relative_to(PYTHON).as_posix()


def imports(tree: ast.AST, *, package: str) -> Iterator[tuple[str, ast.stmt]]:
    """Every imported module, absolute, with the statement that brings it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            base = (
                package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            )
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "holdback" or node.module is None:
                # `from holdback import x` may bring a module or a name; both are written holdback.x
                for alias in node.names:
                    yield f"{module}.{alias.name}", node
            else:
                yield module, node


def package_of(path: Path) -> str:
    return ".".join(["holdback", *path.relative_to(PYTHON).parts[:-1]])


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def test_the_package_root_computes_nothing() -> None:
    for node in parsed(PYTHON / "__init__.py").body:
        plain = isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        )
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in (
            "__all__",
            "__version__",
            "TYPE_CHECKING",
        )
        typed = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        typed = typed and all(isinstance(inner, ast.ImportFrom) for inner in node.body)
        assert plain or listed or typed, (
            f"__init__.py, line {node.lineno}: only imports and __all__"
        )


@pytest.mark.parametrize(
    "path", [path for path in python_files() if "reference" in python_id(path)], ids=python_id
)
def test_the_reference_stands_alone(path: Path) -> None:
    for module, node in imports(parsed(path), package=package_of(path)):
        own = module.startswith("holdback.reference")
        assert own or is_standard(module), (
            f"{python_id(path)}, line {node.lineno}: imports {module}"
        )


@pytest.mark.parametrize("path", python_files(), ids=python_id)
def test_an_integrated_package_is_imported_only_when_it_is_needed(path: Path) -> None:
    """The package has no dependency: what is neither ours nor Python's is imported inside a
    function, or for types.
    """
    tree = parsed(path)
    late = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test))
        for inner in ast.walk(outer)
    }
    for module, node in imports(tree, package=package_of(path)):
        ours = module.partition(".")[0] == "holdback"
        assert ours or is_standard(module) or node in late, (
            f"{python_id(path)}, line {node.lineno}: imports {module}"
        )


@pytest.mark.parametrize(
    "path",
    [path for path in python_files() if path.parent.name in ("integrations", "commands", "serve")],
    ids=python_id,
)
def test_outer_rooms_use_public_names_only(path: Path) -> None:
    """An integration, a command and the gateway know the public face of the package, and not each
    other.
    """
    room = path.parent.name
    for module, node in imports(parsed(path), package=package_of(path)):
        where = f"{python_id(path)}, line {node.lineno}: imports {module}"
        if not module.startswith("holdback."):
            continue
        shared = module.startswith(f"holdback.{room}._") or module in SHARED
        private = any(
            part.startswith("_") and not part.startswith("__") for part in module.split(".")
        )
        assert shared or not private, where
        if room == "integrations":
            assert shared or not module.startswith("holdback.integrations"), where
        else:
            assert not module.startswith("holdback.reference"), where
        if room == "serve":
            assert not module.startswith(("holdback.commands", "holdback.integrations")), where


@pytest.mark.parametrize("path", sorted((PYTHON / "dialects").glob("*.py")), ids=python_id)
def test_a_dialect_knows_the_wire_and_what_dialects_share(path: Path) -> None:
    """Requests and answers are others' work, and no dialect knows another one: what two have alike
    is in a module of its own.
    """
    table = path.name == "__init__.py"
    for module, node in imports(parsed(path), package=package_of(path)):
        where = f"{python_id(path)}, line {node.lineno}: imports {module}"
        if module.startswith("holdback.dialects"):
            assert table or module == "holdback.dialects" or "._" in module, where
        else:
            assert module.startswith("holdback.wire") or is_standard(module), where
