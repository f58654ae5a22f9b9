"""Forged records, and folders that are not what they seem: nothing leaves the folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from capsmith.tree import digest
from tests.regenerate.conftest import Provider, tree

PACKAGE = "src/cluster_api_provider_acme"
LOCK = ".capsmith/lock.yaml"


@pytest.fixture
def outside(provider: Provider) -> Path:
    """Return a folder next to the provider's, which must not change."""
    folder = provider.folder.parent / "outside"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    (folder / "acme_machine.py").write_text("precious")
    return folder


def forge(provider: Provider, path: str, content: bytes, owner: str = "generated") -> None:
    lock = yaml.safe_load(provider.path(LOCK).read_text())
    lock["files"][path] = {"owner": owner, "digest": digest(content)}
    provider.path(LOCK).write_text(yaml.safe_dump(lock))


def replaced(path: Path, target: Path) -> None:
    path.rename(path.with_name(path.name + ".moved"))
    path.symlink_to(target)


@pytest.mark.parametrize(
    "path",
    ["../outside/precious", "/etc/hostname", "a/../../outside/precious", "./a", "a//b", "a\0b"],
)
def test_a_forged_lock_does_not_reach_out(provider: Provider, outside: Path, path: str) -> None:
    forge(provider, path, b"precious")
    before, beside = provider.tree(), tree(outside)
    said = provider.update("--force")
    assert (said.code, said.ids) == (2, {"lock-unreadable"})
    assert (provider.tree(), tree(outside)) == (before, beside)


@pytest.mark.parametrize(
    "path",
    ["provider.yaml", "Provider.yaml", ".capsmith/lock.yaml", ".capsmith/base/Makefile"],
)
def test_a_forged_lock_does_not_take_the_records(provider: Provider, path: str) -> None:
    content = provider.path(path).read_bytes() if provider.path(path).exists() else b""
    forge(provider, path, content)
    before = provider.tree()
    assert provider.update().ids == {"lock-unreadable"}
    assert provider.tree() == before


def test_a_forged_lock_does_not_reach_gits_own(provider: Provider) -> None:
    hooks = provider.path(".git/hooks")
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("mine")
    forge(provider, ".git/hooks/pre-commit", b"mine")
    assert provider.update("--allow-dirty").ids == {"output-not-regular"}
    assert (hooks / "pre-commit").read_text() == "mine"


@pytest.mark.parametrize("owner", ["generated", "merged"])
def test_a_lock_with_another_digest_removes_nothing(provider: Provider, owner: str) -> None:
    provider.path("mine.txt").write_text("mine")
    forge(provider, "mine.txt", b"yours", owner)
    assert provider.update("--force").findings == {"mine.txt": "output-left-over"}
    assert provider.path("mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "link",
    [
        f"{PACKAGE}/_generated/api",
        f"{PACKAGE}/_generated/api/acme_machine.py",
        "pyproject.toml",
        ".capsmith",
        ".capsmith/base",
        ".capsmith/lock.yaml",
        "src",
    ],
)
def test_symlinks_are_not_followed(provider: Provider, outside: Path, link: str) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.append("provider.yaml", "dependencies: [requests]\n")
    path = provider.path(link)
    replaced(path, outside / "precious" if path.is_file() else outside)
    before, beside = provider.tree(), tree(outside)
    for arguments in ([], ["--check"], ["--force"], ["--continue"], ["--abort"]):
        assert provider.update(*arguments).code == 1, arguments
    assert (provider.tree(), tree(outside)) == (before, beside)


@pytest.mark.parametrize("part", [".capsmith/stage", ".capsmith/pending.json.new"])
def test_links_in_place_of_staged_files_are_not_followed(
    provider: Provider, outside: Path, part: str
) -> None:
    provider.append("provider.yaml", "dependencies: [requests]\n")
    provider.path(part).symlink_to(outside if part.endswith("stage") else outside / "precious")
    before, beside = provider.tree(), tree(outside)
    assert provider.update().ids == {"output-not-regular"}
    assert (provider.tree(), tree(outside)) == (before, beside)


def test_a_link_in_the_place_of_the_notes_is_not_followed(
    provider: Provider, outside: Path
) -> None:
    (outside / "state.json").write_text("{}")
    provider.path(".capsmith/unfinished").symlink_to(outside)
    beside = tree(outside)
    for arguments in ([], ["--continue"], ["--abort"], ["--check"]):
        assert provider.update(*arguments).ids == {"output-not-regular"}
    assert tree(outside) == beside


Notes = dict[str, object]


@pytest.mark.parametrize(
    "forged",
    [
        lambda path: {"touched": {path: {"before": "", "after": "", "mode": 420}}},
        lambda path: {"conflicts": [path]},
        lambda path: {"records": {path: "sha256:" + "0" * 64}},
        lambda path: {"records": {"a": path}},
        lambda path: {"touched": {"a": {"before": path, "after": "", "mode": 420}}},
        lambda path: {"touched": []},
        lambda path: {"touched": {"a": {"before": "", "after": "", "mode": float("inf")}}},
        lambda path: {"names": None},
    ],
)
@pytest.mark.parametrize("option", ["--continue", "--abort"])
def test_forged_notes_of_an_update_do_not_reach_out(
    provider: Provider, outside: Path, forged: Callable[[str], Notes], option: str
) -> None:
    notes: Notes = {
        "names": {"ours": "a", "base": "b", "theirs": "c"},
        "conflicts": [],
        "touched": {},
        "records": {},
    } | forged("../outside/precious")
    provider.path(".capsmith/unfinished").mkdir()
    provider.path(".capsmith/unfinished/state.json").write_text(json.dumps(notes))
    before, beside = provider.tree(), tree(outside)
    said = provider.update(option, "--force")
    assert (said.code, said.ids) == (2, {"unfinished-unreadable"})
    assert (provider.tree(), tree(outside)) == (before, beside)


@pytest.mark.parametrize("option", ["--continue", "--abort"])
@pytest.mark.parametrize("path", ["../outside/precious", "/etc/hostname", ".git/config"])
def test_a_forged_list_of_pending_changes_does_not_reach_out(
    provider: Provider, outside: Path, path: str, option: str
) -> None:
    provider.path(".git").mkdir()
    provider.path(".git/config").write_text("precious")
    pending = {"before": {path: digest("precious")}, "after": {path: ""}, "undo": False}
    provider.path(".capsmith/pending.json").write_text(json.dumps(pending))
    beside = tree(outside)
    said = provider.update(option)
    assert said.code in (1, 2)
    assert said.ids & {"pending-unreadable", "output-not-regular"}
    assert tree(outside) == beside
    assert provider.path(".git/config").read_text() == "precious"


def test_what_is_no_file_is_named(provider: Provider) -> None:
    for name in ("Makefile", "metadata.yaml"):
        provider.path(name).unlink()
        provider.path(name).mkdir()
        said = provider.update("--force")
        assert (said.code, said.findings) == (1, {name: "output-not-regular"})
        provider.path(name).rmdir()
