"""Which tests have to run in one process when several share the work."""

from __future__ import annotations

import re

_STACK = re.compile(r"(v1\.\d+-(?:v1beta\d|extended))(?:-.*)?", re.DOTALL)
"""The parameters of fixtures that last for the session: they serve several modules.

Those of the test itself come after them.
"""
_SERIES = re.compile(r"v1\.\d+")
_REAL = ("tests/e2e/", "tests/realapi/", "tests/runtime/")
"""Folders of tests that need the tools, which Go builds for minutes where they are missing."""
_RECORDED = ("tests/runtime/scenarios/", "tests/runtime/test_permissions.py")
"""Tests that record requests of managers, and the one that compares the records."""
_BRIEF = ("tests/meta/", "tests/rules/", "tests/traceability/", "tests/unit/", "tests/verify/")
"""Folders whose groups take seconds: at the end they keep all processes busy to the last moment."""


def group_of(nodeid: str) -> str:
    """The name of a test's group: a worker that runs one of a group runs all of it.

    That is its module.  The test of permissions compares the requests that the scenarios of the
    runtime send, and belongs to them.  End-to-end tests on one stack belong together across
    modules, so that it is started once; those on different releases of core can go apart.
    """
    module, _, name = nodeid.partition("::")
    if module.startswith(_RECORDED):
        return "tests/runtime/scenarios"
    parameters = name.partition("[")[2].removesuffix("]")
    if not module.startswith("tests/e2e/") or not parameters:
        return module
    stack = _STACK.fullmatch(parameters)
    if stack is not None:
        return f"tests/e2e/{stack[1]}"
    series = _SERIES.search(parameters)
    return f"{module}-{series[0]}" if series else module


def rank_of(nodeid: str) -> int:
    """The place of a test in the order of the run: what needs the tools starts once they are built.

    Other long groups come before, so that no process waits for the build; brief ones come last.
    """
    if nodeid.startswith(_REAL):
        return 1
    return 2 if nodeid.startswith(_BRIEF) else 0
