"""The site leaves no page out: what is not in the navigation is found by nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parent.parent


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r'= "([\w/.-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages)
