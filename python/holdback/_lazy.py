"""The public names that few programs need, imported when first asked for.

`import holdback` costs about 2 ms, most of it the compiled module; everything below would make it
thirty times as long, because `dataclasses`, `re` and `json` come with it.
"""

from __future__ import annotations

import sys

HOMES = {
    "Criterion": "criteria",
    "StoppingCriteria": "criteria",
    "Generation": "generation",
    "step_batch": "generation",
    "FenceEnd": "endings",
    "JsonEnd": "endings",
    "Repetition": "endings",
    "AmbiguousFinish": "finish",
    "Finish": "finish",
    "ParsedFinish": "finish",
    "Plan": "providers",
    "Finding": "_lint",
    "lint": "_lint",
    "Explanation": "_explain",
    "explain": "_explain",
    "Trace": "_trace",
    "trace": "_trace",
}
"""Name to the module that defines it."""

MODULES = ("providers", "vocabularies", "wire")
"""Public modules that are reached as attributes of the package."""


def __getattr__(name: str) -> object:
    """Import what `name` needs and keep it in the package, so that this is asked once."""
    from importlib import import_module

    if name in HOMES:
        value = getattr(import_module(f"holdback.{HOMES[name]}"), name)
    elif name in MODULES:
        value = import_module(f"holdback.{name}")
    else:
        raise AttributeError(f"module 'holdback' has no attribute {name!r}")
    setattr(sys.modules["holdback"], name, value)
    return value


def __dir__() -> list[str]:
    """All public names, also those not imported yet."""
    return sorted({*vars(sys.modules["holdback"]), *HOMES, *MODULES})
