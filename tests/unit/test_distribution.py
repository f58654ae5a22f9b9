"""Tests are handed out to processes by what they share."""

from __future__ import annotations

import pytest

from tests.distribution import group_of

E2E = "tests/e2e/test_move.py::test_move"


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/unit/test_formats.py::test_a[v1.13-v1beta2]", "tests/unit/test_formats.py"),
        ("tests/unit/a.py::TestA::test_b[x::y]", "tests/unit/a.py"),
        (f"{E2E}", "tests/e2e/test_move.py"),
        (f"{E2E}[v1.13-v1beta2]", "tests/e2e/v1.13-v1beta2"),
        ("tests/e2e/test_addon.py::test_b[v1.10-extended]", "tests/e2e/v1.10-extended"),
        (f"{E2E}[whole-v1.10-v1beta1]", "tests/e2e/test_move.py-v1.10"),
        (f"{E2E}[v1.13-pools-machines]", "tests/e2e/test_move.py-v1.13"),
        (f"{E2E}[other]", "tests/e2e/test_move.py"),
    ],
)
def test_group(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group
