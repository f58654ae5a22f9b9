"""Tests are handed out to processes by what they share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribution import _LONGEST, group_of, rank_of

E2E = "tests/e2e/test_move.py::test_move"


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("tests/unit/test_formats.py::test_a[v1.13-v1beta2]", "tests/unit/test_formats.py"),
        ("tests/unit/a.py::TestA::test_b[x::y]", "tests/unit/a.py"),
        ("tests/runtime/scenarios/ipam/test_orphans.py::test_a[b]", "tests/runtime/scenarios"),
        ("tests/runtime/test_permissions.py::test_a", "tests/runtime/scenarios"),
        (f"{E2E}", "tests/e2e/test_move.py"),
        (f"{E2E}[v1.13-v1beta2]", "tests/e2e/v1.13-v1beta2"),
        (f"{E2E}[v1.13-v1beta2-{{ if .a }}[x]]", "tests/e2e/v1.13-v1beta2"),
        ("tests/e2e/test_addon.py::test_b[v1.10-extended]", "tests/e2e/v1.10-extended"),
        (f"{E2E}[whole-v1.10-v1beta1]", "tests/e2e/test_move.py-v1.10"),
        (f"{E2E}[v1.13-pools-machines]", "tests/e2e/test_move.py-v1.13"),
        (f"{E2E}[other]", "tests/e2e/test_move.py"),
    ],
)
def test_group(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


def test_order() -> None:
    """The longest, those that need no tools, those that need them, brief ones; else it stays."""
    tests = [
        "tests/e2e/test_installed.py::test_installed",
        "tests/functional/test_cli.py::test_usage_exits_2",
        "tests/golden/test_golden.py::test_copies_are_copies",
        "tests/realapi/test_rules.py::test_rule",
        "tests/rules/test_rules.py::test_rule",
        "tests/runtime/test_version.py::test_version",
        "tests/unit/test_formats.py::test_a",
    ]
    longest = [
        "tests/e2e/test_whole_cluster.py::test_unhealthy[whole-v1.14-v1beta2]",
        "tests/functional/test_repository.py::test_types[acme]",
        "tests/e2e/test_move.py::test_move[v1.14-v1beta2]",
    ]
    assert sorted([*tests, *longest[::-1]], key=rank_of) == [
        *longest,
        *(tests[i] for i in (1, 2, 0, 3, 5, 4, 6)),
    ]


def test_the_longest_groups_exist() -> None:
    root = Path(__file__).parents[2]
    modules = [name for name in _LONGEST if name.endswith(".py")]
    assert [name for name in modules if not (root / name).is_file()] == []
    assert {group_of(f"{name}::test") for name in modules} == set(modules)
