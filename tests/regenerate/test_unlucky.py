"""Repositories that were copied, cloned, cleaned or extended by others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.regenerate.conftest import Provider, run

LOCK = ".capsmith/lock.yaml"
LARGE = 128 * 1024 * 1024


def enlarge(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.truncate(LARGE)  # takes no space on the disk


@pytest.mark.parametrize("part", ["owner", "files"])
def test_a_lock_of_a_later_form_is_said_to_be_newer(provider: Provider, part: str) -> None:
    lock = yaml.safe_load(provider.path(LOCK).read_text())
    lock["capsmith"] = "9.0.0"
    if part == "owner":
        lock["files"]["Makefile"]["owner"] = "borrowed"
    else:
        lock["entries"] = lock.pop("files")
    provider.path(LOCK).write_text(yaml.safe_dump(lock))
    before = provider.tree()
    for said in (provider.update(), provider.update("--check")):
        assert (said.code, said.ids) == (1, {"lock-newer"})
    assert provider.tree() == before


def test_all_files_that_are_not_regular_are_named_at_once(provider: Provider) -> None:
    for name in ("pyproject.toml", "Makefile", "metadata.yaml"):
        provider.path(name).rename(provider.path(f"{name}.mine"))
        provider.path(name).symlink_to(f"{name}.mine")
    before = provider.tree()
    said = provider.update()
    names = ["Makefile", "metadata.yaml", "pyproject.toml"]
    assert [each["file"] for each in said.report["findings"]] == names
    assert (said.code, said.ids) == (1, {"output-not-regular"})
    text = run("update", str(provider.folder)).text
    assert [line.partition(":")[0] for line in text.splitlines() if "error" in line] == names
    assert provider.tree() == before


def test_a_clone_without_the_vendored_runtime_gets_it_again(provider: Provider) -> None:
    """Many a .gitignore has vendor/."""
    before = provider.tree()
    shutil.rmtree(provider.path("vendor"))
    assert provider.update("--check").ids == {"repository-behind"}
    assert provider.update().code == 0
    assert provider.tree() == before


def test_a_runtime_without_its_record_is_not_replaced(provider: Provider) -> None:
    provider.path("vendor/capsmith_runtime.json").unlink()
    before = provider.tree()
    assert provider.update("--force").ids == {"runtime-record-altered"}
    assert provider.tree() == before


@pytest.mark.parametrize(
    "path", [LOCK, "Makefile", "vendor/capsmith_runtime.json", ".capsmith/unfinished/state.json"]
)
def test_a_large_file_is_named_and_not_read(provider: Provider, path: str) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    enlarge(provider.path(path))
    before = provider.path("metadata.yaml").read_bytes()
    said = provider.update("--force")
    assert (said.code, said.ids) == (2, {"file-too-large"})
    assert said.report["findings"][0]["file"].endswith(path)
    assert provider.path("metadata.yaml").read_bytes() == before


def test_a_large_list_of_pending_changes_is_not_read(provider: Provider) -> None:
    enlarge(provider.path(".capsmith/pending.json"))
    said = provider.update("--continue")
    assert (said.code, said.ids) == (2, {"pending-unreadable"})


def test_a_large_file_of_the_author_stays(provider: Provider) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    enlarge(provider.path("README.md"))
    assert provider.update().code == 0
    assert provider.path("README.md").stat().st_size == LARGE
