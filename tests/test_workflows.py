"""The workflows are too far away to be run here; what can be read off them is: pins, permissions,
the targets they call.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def workflow_id(path: Path) -> str:
    return path.stem


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {"ci", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=workflow_id)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action}: say which version that is"


@pytest.mark.parametrize("path", WORKFLOWS, ids=workflow_id)
def test_a_job_has_no_permission_that_it_does_not_name(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    jobs = re.findall(
        r"^  (\w+):\n((?:    .*\n|\n)+)", text.partition("\njobs:\n")[2], re.MULTILINE
    )
    assert jobs
    for name, body in jobs:
        assert "    permissions:" in body, f"job {name}"
        writes = re.findall(r"(\S+): write", body)
        assert name == "publish" or not writes, f"job {name} may write {writes}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=workflow_id)
def test_make_targets_exist(path: Path) -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    text = path.read_text(encoding="utf-8")
    called = " ".join(
        re.findall(r"\bmake ((?:[a-z-]+ ?)+)", text) + re.findall(r"target: \[(.*)\]", text)
    )
    named = {
        word for word in re.findall(r"[a-z][a-z-]+", re.sub(r"[A-Z]+=\S+", "", called)) if word
    }
    assert named
    assert named <= targets, f"no such target: {named - targets}"


def test_one_check_gathers_every_job() -> None:
    text = (
        (ROOT / ".github" / "workflows" / "ci.yml")
        .read_text(encoding="utf-8")
        .partition("\njobs:\n")[2]
    )
    jobs = re.findall(r"^  (\w+):$", text, re.MULTILINE)
    needed = re.search(r"^  check:\n(?:    .*\n)*?    needs: \[(.*)\]", text, re.MULTILINE)
    assert needed
    assert sorted(needed[1].split(", ")) == sorted(set(jobs) - {"check"})
    assert f'"{" ".join(["success"] * (len(jobs) - 1))}"' in text
