"""The tools for tests: missing ones skip the tests with the reason, but never in CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.tools.build import Progress, Toolbox, toolbox
from capsmith.clusters.processes.tools.catalogue import KUBERNETES as MODULE
from capsmith.clusters.processes.tools.catalogue import default_modules, kubernetes_module
from tests.e2e.releases import KUBERNETES_SERIES
from tests.e2e.tools.prometheus import build_promtool


def required_toolbox(
    tests: str, names: list[str] | None = None, progress: Progress = lambda text: None
) -> Toolbox:
    """Return the tools of the named modules; skip `tests`, a description for users, without them.

    By default, these are the tools for every change; `k8s` is the release of
    `KUBERNETES_SERIES`.
    """
    servers = kubernetes_module(KUBERNETES_SERIES)
    chosen = [servers if name == MODULE else name for name in names or default_modules()]
    try:
        return toolbox(chosen, progress)
    except ToolsUnavailable as error:
        _unavailable(tests, error)


def required_promtool(tests: str) -> Path:
    """Return the path of promtool; skip `tests`, a description for users, without it."""
    try:
        return build_promtool()
    except ToolsUnavailable as error:
        _unavailable(tests, error)


def _unavailable(tests: str, error: ToolsUnavailable) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{tests} must run in CI: {error}")
    pytest.skip(f"{tests} need {error}")
