"""Which tests must run in the same process when several processes share the work."""

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
_LONGEST = (
    "tests/functional/test_kits.py",
    "tests/e2e/test_whole_cluster.py",
    "tests/functional/test_repository.py",
    "tests/e2e/test_machine_pool.py",
    "tests/e2e/test_conformance_command.py",
    "tests/regenerate/test_killed.py",
    "tests/e2e/test_lab.py",
    "tests/e2e/test_contract_upgrade.py",
    "tests/e2e/v1.",
    "tests/e2e/test_documented_commands.py",
    "tests/realapi/test_ipam.py",
    "tests/e2e/test_managed_control_plane.py",
    "tests/e2e/test_tutorial.py",
    "tests/e2e/test_contract_core_first.py",
    "tests/e2e/test_control_plane.py",
    "tests/e2e/test_several_versions.py",
    "tests/regenerate/test_contract_upgrade_of_an_author.py",
    "tests/regenerate/test_former_release.py",
    "tests/e2e/test_kubeadm.py",
    "tests/e2e/test_ec2.py",
    "tests/e2e/test_ipam.py",
    "tests/realapi/test_storage_migration.py",
)
"""What the names of groups of two minutes and more begin with, the longest first.

Those that keep a processor busy alternate with those that wait for servers most of the time.
"""
_BRIEF = ("tests/meta/", "tests/rules/", "tests/traceability/", "tests/unit/", "tests/verify/")
"""Folders whose groups take seconds: at the end they keep all processes busy to the last moment."""


def group_of(nodeid: str) -> str:
    """Return the name of a test's group; one worker runs all tests of a group.

    The group is usually the test's module. The test of permissions compares the requests that
    the runtime's scenarios send, and is in their group. End-to-end tests that share a stack
    form one group across modules, so that the stack is started once; those for different
    releases of core are in different groups.
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
    """Return a test's position in the run: the longest groups first, short ones last.

    A long group that starts late would run alone at the end. Among the others, groups that need
    the tools come last, so that few processes wait for the tools to be built.
    """
    group = group_of(nodeid)
    for place, name in enumerate(_LONGEST):
        if group.startswith(name):
            return place
    if nodeid.startswith(_REAL):
        return len(_LONGEST) + 1
    return len(_LONGEST) + (2 if nodeid.startswith(_BRIEF) else 0)
