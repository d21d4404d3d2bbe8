"""Adapters for the places where people meet stop sequences: one module for each package, imported
by its users only.

None of them imports its package before it is used, and none is imported by the rest of the package.
docs/integrations.md tells what each one does, with which versions it is tested, and what it cannot
do.
"""
