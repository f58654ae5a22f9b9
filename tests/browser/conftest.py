"""A real browser: Debian's Chromium, without a window and without any request of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from tests.browser.served import ServedPage, serve_page

CHROMIUM, DRIVER = "chromium", "chromedriver"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
    # No name is resolved, so nothing but the loopback interface can be reached.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@contextmanager
def open_browser(folder: Path) -> Iterator[Chrome]:
    """Return a context manager that provides a browser with an empty profile in ``folder``."""
    options = ChromeOptions()
    options.binary_location = str(shutil.which(CHROMIUM))
    for argument in (*ARGUMENTS, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options, ChromeService(str(shutil.which(DRIVER))))
    try:
        yield browser
    finally:
        browser.quit()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    missing = [name for name in (CHROMIUM, DRIVER) if shutil.which(name) is None]
    if missing and "CI" not in os.environ:
        pytest.skip(f"not installed: {', '.join(missing)}")
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(tmp_path: Path) -> Iterator[ServedPage]:
    with serve_page(tmp_path) as served:
        yield served
