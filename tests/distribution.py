"""Which tests have to run in one process when several share the work."""

from __future__ import annotations

import re

_STACK = re.compile(r"v1\.\d+-(?:v1beta\d|extended)")
"""The parameters of fixtures that last for the session: they serve several modules."""
_SERIES = re.compile(r"v1\.\d+")


def group_of(nodeid: str) -> str:
    """The name of a test's group: a worker that runs one of a group runs all of it.

    That is its module.  End-to-end tests on one stack belong together across modules, so that it
    is started once; those on different releases of core can go apart.
    """
    module, _, name = nodeid.partition("::")
    parameters = name.partition("[")[2].removesuffix("]")
    if not module.startswith("tests/e2e/") or not parameters:
        return module
    if _STACK.fullmatch(parameters):
        return f"tests/e2e/{parameters}"
    series = _SERIES.search(parameters)
    return f"{module}-{series[0]}" if series else module
