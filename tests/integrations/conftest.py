"""Tests against the real packages: `make test-integrations` installs them and runs these. `make
test` leaves them out.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # These packages deprecate parts of themselves and of each other; that is their affair and
        # comes with every release.
        item.add_marker(pytest.mark.filterwarnings("default"))
        # What is left open may be ours.
        item.add_marker(pytest.mark.filterwarnings("error::ResourceWarning"))
        item.add_marker(
            pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
        )
