"""What a computer lacks for a node, and the cgroups of Pods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.clusters.node import host
from capsmith.clusters.node.errors import HostUnsuitable
from capsmith.clusters.node.host import (
    TOOLS,
    HostFacts,
    create_cgroups,
    find_missing,
    remove_cgroups,
    require_host,
)

GOOD = HostFacts(
    is_root=True,
    may_unshare=True,
    has_overlay=True,
    cgroups=("cpu", "memory", "pids"),
    tools=dict.fromkeys(TOOLS, "/usr/bin/tool"),
)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (GOOD, []),
        (replace(GOOD, is_root=False, may_unshare=False, cgroups=()), ["root is needed"]),
        (replace(GOOD, may_unshare=False), ["CAP_SYS_ADMIN"]),
        (replace(GOOD, has_overlay=False), ["modprobe overlay"]),
        (replace(GOOD, cgroups=("cpu",)), ["no cgroups can be created for memory, pids"]),
        (
            replace(GOOD, tools={**GOOD.tools, "runc": None, "ip": None}),
            ["apt-get install iproute2 runc"],
        ),
    ],
    ids=["good", "user", "container", "overlay", "cgroups", "tools"],
)
def test_each_missing_part_is_reported(facts: HostFacts, expected: list[str]) -> None:
    found = find_missing(facts)
    assert len(found) == len(expected)
    assert all(part in message for part, message in zip(expected, found, strict=True))


def test_all_missing_parts_are_in_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = replace(GOOD, has_overlay=False, cgroups=())
    monkeypatch.setattr(host, "read_facts", lambda: facts)
    with pytest.raises(HostUnsuitable) as raised:
        require_host()
    assert raised.value.finding.id == "lab-node-host"
    assert "overlay" in str(raised.value)
    assert "cgroups" in str(raised.value)


def test_cgroups_of_version_1_are_created_and_removed_with_all_below(tmp_path: Path) -> None:
    for name in ("cpu", "memory", "unified"):
        (tmp_path / name).mkdir()
    create_cgroups("capsmith-lab-a", tmp_path)
    assert sorted(each.parent.name for each in tmp_path.glob("*/capsmith-lab-a")) == [
        "cpu",
        "memory",
    ]
    for name in ("cpu", "unified"):
        (tmp_path / name / "capsmith-lab-a" / "kubepods" / "pod1").mkdir(parents=True)
    remove_cgroups("capsmith-lab-a", tmp_path)
    assert list(tmp_path.glob("*/*")) == []


def test_cgroups_are_removed_when_their_processes_have_ended(tmp_path: Path) -> None:
    group = tmp_path / "cpu" / "lab"
    group.mkdir(parents=True)
    (group / "process").touch()
    waits: list[float] = []

    def end(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            (group / "process").unlink()

    remove_cgroups("lab", tmp_path, end)
    assert not group.exists()
    assert len(waits) == 2


def test_cgroups_whose_processes_do_not_end_stay(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "process").touch()
    waits: list[float] = []
    remove_cgroups("lab", tmp_path, waits.append)
    assert 1 < sum(waits) <= 10


def write_group(group: Path, known: str, enabled: str) -> Path:
    """Write the files that a cgroup of version 2 has, and return that of enabled controllers."""
    group.mkdir(exist_ok=True)
    (group / "cgroup.controllers").write_text(known)
    (group / "cgroup.subtree_control").write_text(enabled)
    return group / "cgroup.subtree_control"


def test_controllers_of_version_2_are_enabled_in_the_root_first(tmp_path: Path) -> None:
    root = write_group(tmp_path, "cpuset cpu io memory hugetlb pids rdma\n", "cpu memory\n")
    group = write_group(tmp_path / "lab", "cpuset cpu memory hugetlb pids\n", "")
    create_cgroups("lab", tmp_path)
    assert root.read_text() == "+cpuset +hugetlb +pids"
    assert group.read_text() == "+cpu +cpuset +hugetlb +memory +pids"


def test_controllers_that_the_kernel_lacks_are_not_enabled(tmp_path: Path) -> None:
    root = write_group(tmp_path, "cpu memory pids\n", "cpu memory pids\n")
    write_group(tmp_path / "lab", "cpu memory pids\n", "")
    create_cgroups("lab", tmp_path)
    assert root.read_text() == "cpu memory pids\n"


def test_a_root_that_enables_no_controllers_is_reported(tmp_path: Path) -> None:
    root = write_group(tmp_path, "cpu memory pids\n", "")
    root.unlink()
    root.mkdir()
    with pytest.raises(HostUnsuitable, match="cpu, memory, pids cannot be enabled") as raised:
        create_cgroups("lab", tmp_path)
    assert raised.value.finding.id == "lab-node-host"


def test_a_group_without_the_controllers_of_the_root_is_reported(tmp_path: Path) -> None:
    write_group(tmp_path, "cpu memory pids\n", "cpu memory pids\n")
    write_group(tmp_path / "lab", "cpu\n", "")
    with pytest.raises(HostUnsuitable, match="the cgroup lab has no memory, pids"):
        create_cgroups("lab", tmp_path)


def test_no_cgroups_are_no_error(tmp_path: Path) -> None:
    remove_cgroups("capsmith-lab-a", tmp_path / "none")
