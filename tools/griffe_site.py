"""For the site: what docstrings write for editors and Python, said in Markdown.

``:class:`X``` becomes a link or code, and an example (``>>>``) becomes a block of code; in Markdown
it would be a quotation in a quotation in a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|meth|func|attr|data|mod):`~?([\w.]+)`")
EXAMPLE = re.compile(r"^(?P<code>>>> .*(?:\n(?!\s*$).*)*)", re.MULTILINE)
LINKED = {"StopSet", "StopStream", "StopMatch", "StoppingCriteria"}


class Site(griffe.Extension):
    """Rewrites the docstring of every object before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for each object it has read."""
        if isinstance(obj, griffe.Class):
            show_overloads(obj)
        if obj.docstring:
            text = EXAMPLE.sub(lambda found: f"```pycon\n{found['code']}\n```", obj.docstring.value)
            obj.docstring.value = ROLE.sub(lambda found: link(found[1]), text)


def show_overloads(cls: griffe.Class) -> None:
    """A stub has nothing but the overloads of a method; the last one, which has the docstring,
    stands for all.
    """
    for name, overloads in cls.overloads.items():
        if overloads and name not in cls.members:
            *_, method = overloads
            method.overloads = list(overloads)
            cls.set_member(name, method)


def link(name: str) -> str:
    """A reference to a class of the first page, else the name as code."""
    shown = name.removeprefix("holdback.")
    return f"[`{shown}`][holdback.{shown}]" if shown.split(".")[0] in LINKED else f"`{shown}`"
