"""A real browser: Debian's Chromium, without a window and without any request of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.served import ServedPage, serve_page
from tests.browser.window import Window, find_programs, open_window


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """A browser that all tests of a process share; skips where there is none, but not in CI."""
    programs = find_programs()
    if programs is None:
        if os.environ.get("CI"):
            pytest.fail("CI has to install Chromium and its driver: see .ci/run")
        pytest.skip("needs Chromium and chromedriver: apt-get install chromium chromium-driver")
    with open_window(*programs, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ServedPage]:
    with serve_page(tmp_path) as served:
        yield served
