"""What a computer lacks for a lab is in one message."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.requirements import LabNeeds, require_lab, require_lab_command
from capsmith.clusters.node.errors import HostUnsuitable
from capsmith.clusters.processes.errors import ToolsUnavailable


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a user without root and without any tool on PATH or in the Python environment."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_one_thing_has_its_own_error() -> None:
    require_lab(LabNeeds())
    with pytest.raises(ToolsUnavailable, match="not on PATH"):
        require_lab(LabNeeds(go=True))
    with pytest.raises(HostUnsuitable, match="root is needed"):
        require_lab(LabNeeds(node=True))
    with pytest.raises(LabError, match="not found on PATH: docker, kind") as caught:
        require_lab(LabNeeds(kind=True))
    assert "without --kind" in caught.value.finding.hint


def test_several_things_are_in_one_message() -> None:
    with pytest.raises(LabError) as caught:
        require_lab(LabNeeds(go=True, node=True, image=True))
    finding = caught.value.finding
    assert finding.id == "lab-requirements"
    for part in ("the Go toolchain", "root is needed", "neither buildah"):
        assert part in finding.message
    for part in ("'capsmith[go]'", "without a node", "apt-get install buildah"):
        assert part in finding.hint


def test_missing_packages_do_not_hide_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    require_lab_command(["demo", "acme", "--pod"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LabError, match=r"cryptography, trustme$") as caught:
        require_lab_command(["down"])
    assert caught.value.finding.id == "lab-extra"
    with pytest.raises(LabError, match=r"cryptography, trustme; the Go .* root is .* buildah"):
        require_lab_command(["demo", "acme", "--pod"])
