"""Records what managers request in the scenarios, for tests/runtime/test_permissions.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.exhaustive import is_left_out
from tests.runtime.plugins.record_requests import FILE, Row, recorded_requests, write_rows
from tests.runtime.support.requests import REQUESTS_OF_MODULES

_SELECTED_FROM = pytest.StashKey[set[Path]]()
"""Modules of which not all scenarios run."""


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if not is_left_out(item):
            item.config.stash.setdefault(_SELECTED_FROM, set()).add(item.path)


@pytest.fixture(scope="module", autouse=True)
def _recorded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep the requests of a module whose scenarios all run and pass."""
    session = request.session
    failed = session.testsfailed
    with recorded_requests() as rows:
        yield
    named = any("::" in each for each in session.config.args)
    selected = request.path in session.config.stash.get(_SELECTED_FROM, set())
    if not named and not selected and session.testsfailed == failed:
        REQUESTS_OF_MODULES[request.path] = rows


def pytest_sessionfinish() -> None:
    """Hand the requests over to the process that has started this one for them."""
    if FILE in os.environ:
        write_rows(set[Row]().union(*REQUESTS_OF_MODULES.values()))
