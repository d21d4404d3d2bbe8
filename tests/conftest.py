"""Fixtures and hypothesis profiles that all tests share.

`HYPOTHESIS_PROFILE` chooses the profile: `dev` (the default: random, quick), `ci` (the same
examples each time) or `deep` (`HYPOTHESIS_EXAMPLES` examples of each property, 10,000 if it is not
set; for runs by hand)."""

from __future__ import annotations

import importlib
import os
import signal
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings

# The reference is slow on purpose; the fixture that the examples of a property share is a module,
# without any state.
common = settings(
    deadline=None,
    phases=[
        phase for phase in Phase if phase is not Phase.explain
    ],  # it takes minutes where a case is long
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ],
)
settings.register_profile("dev", common, max_examples=100)
settings.register_profile("ci", common, max_examples=100, derandomize=True, database=None)
settings.register_profile(
    "deep",
    common,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "10000")),
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell starts what it runs in the background with SIGINT ignored, children inherit that, and
# tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MODULES = {"rust": "holdback", "reference": "holdback.reference"}


@pytest.fixture(params=list(MODULES))
def impl(request: pytest.FixtureRequest) -> ModuleType:
    """The package under test: the compiled one, then its executable specification. Both have the
    same names in them.
    """
    return importlib.import_module(MODULES[request.param])
