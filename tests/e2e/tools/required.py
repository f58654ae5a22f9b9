"""The tools for tests: missing ones skip the tests with the reason, but never in CI."""

from __future__ import annotations

import os

import pytest

from capsmith.management.errors import ToolsUnavailable
from capsmith.management.tools.build import Progress, Toolbox, toolbox


def required_toolbox(
    tests: str, names: list[str] | None = None, progress: Progress = lambda text: None
) -> Toolbox:
    """The tools of the named modules (all by default) for `tests`, as people call them."""
    try:
        return toolbox(names, progress)
    except ToolsUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(f"{tests} must run in CI: {error}")
        pytest.skip(f"{tests} need {error}")
