"""With git, without it, and in repositories that hold more than the provider."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.regenerate.conftest import Change, Provider, run

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"
RECORD = "vendor/capsmith_runtime.json"
MARKERS = ("<" * 7, "=" * 7, ">" * 7)
POOLS = "ipam:\n  AcmePool: {implements: IPPool}\n"
EXTENSION = "runtimeExtension: {hooks: [DiscoverVariables]}\n"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **IDENTITY},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")


@pytest.fixture
def changed(provider: Provider) -> Provider:
    """Return a provider that has something to update."""
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    return provider


@pytest.fixture
def committed(provider: Provider) -> Provider:
    """Return a git repository in which only provider.yaml has uncommitted changes."""
    git(provider.folder, "init", "--quiet", "--initial-branch=master")
    commit(provider.folder)
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    return provider


def refused(provider: Provider, *named: str) -> None:
    before = provider.tree()
    said = provider.update()
    assert (said.code, said.ids) == (1, {"update-dirty"})
    (finding,) = said.report["findings"]
    assert all(path in finding["message"] for path in named)
    assert provider.tree() == before


def test_a_changed_description_is_no_obstacle(committed: Provider) -> None:
    assert committed.update().code == 0
    assert MODEL in git(committed.folder, "status", "--porcelain")


def test_uncommitted_changes_are_refused_by_name(committed: Provider) -> None:
    committed.append("Makefile", "mine:\n")
    committed.path("new file.txt").write_text("mine")
    committed.path("src/é").write_text("mine")
    git(committed.folder, "add", "src/é")
    refused(committed, "Makefile", "new file.txt", "src/é")
    assert committed.update("--check").ids == {"repository-behind"}
    assert committed.update("--dry-run").code == 0
    assert committed.update("--allow-dirty").code == 0
    assert committed.path("Makefile").read_text().endswith("mine:\n")


def test_many_uncommitted_changes_are_counted(committed: Provider) -> None:
    for number in range(20):
        committed.path(f"note-{number:02}").write_text("mine")
    refused(committed, "note-00", " and 13 more")


def test_uncommitted_changes_matter_only_when_there_is_something_to_do(
    committed: Provider,
) -> None:
    git(committed.folder, "checkout", "--quiet", "provider.yaml")
    committed.append("Makefile", "mine:\n")
    assert committed.update().code == 0


def test_ignored_files_are_no_changes(committed: Provider) -> None:
    committed.path("out").mkdir()
    committed.path("out/manifest.yaml").write_text("made")
    assert committed.update().code == 0


def test_a_repository_of_many_projects(changed: Provider) -> None:
    whole = changed.folder.parent
    git(whole, "init", "--quiet")
    commit(whole)
    (whole / "beside.txt").write_text("dirty")
    (whole / "acme2").mkdir()
    (whole / "acme2/provider.yaml").write_text("dirty")
    assert changed.update().code == 0
    assert git(whole, "diff", "--name-only").count("acme/") > 3
    changed.edit("provider.yaml", "rack: string", "rack: string!")
    refused(changed, MODEL)  # its path in the provider's folder
    commit(whole)
    changed.edit("provider.yaml", "rack: string!", "rack: integer")
    assert changed.update().code == 0


def test_an_untracked_folder_in_another_repository_is_named(changed: Provider) -> None:
    """A provider that was created in the clone of another project, such as capsmith."""
    whole = changed.folder.parent
    git(whole, "init", "--quiet")

    refused(changed, "all of acme/ is untracked", str(whole.resolve()))

    git(changed.folder, "init", "--quiet")
    refused(changed, ".dockerignore", " and ")
    commit(changed.folder)
    assert changed.update().code == 0


def test_an_untracked_folder_deep_in_another_repository_is_named(changed: Provider) -> None:
    projects = changed.folder.parent / "projects"
    projects.mkdir()
    moved = Provider(changed.folder.rename(projects / "acme"))
    git(projects.parent, "init", "--quiet")

    refused(moved, "all of projects/acme/ is untracked", str(projects.parent.resolve()))

    assert moved.update("--allow-dirty").code == 0


def test_a_description_in_a_subfolder_is_a_change(committed: Provider) -> None:
    committed.path("examples").mkdir()
    committed.path("examples/provider.yaml").write_text("mine")
    refused(committed, "examples/")


def test_without_git(changed: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    git(changed.folder, "init", "--quiet")
    changed.append("Makefile", "mine:\n")
    monkeypatch.setenv("PATH", str(changed.folder))
    assert shutil.which("git") is None
    assert changed.update().code == 0


def test_in_a_hook_of_another_repository(
    committed: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert committed.update().code == 0


def test_looking_starts_no_program_and_writes_nothing(committed: Provider, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    git(committed.folder, "config", "core.fsmonitor", str(program))
    (tmp_path / "started").unlink(missing_ok=True)
    index = committed.path(".git/index").read_bytes()
    committed.path("Makefile").touch()
    assert committed.update().code == 0
    assert not (tmp_path / "started").exists()
    assert committed.path(".git/index").read_bytes() == index


def test_a_repository_that_a_clone_contains_names_no_program(
    changed: Provider, tmp_path: Path
) -> None:
    """A clone can contain files that git takes for a bare repository, with a configuration."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\ncat\n")
    program.chmod(0o755)
    above = changed.folder.parent
    git(above, "init", "--quiet")
    commit(above)
    for name in ("HEAD", "index", "objects", "refs", "info"):
        (above / ".git" / name).rename(above / name)
    shutil.rmtree(above / ".git")
    (above / "info/attributes").write_text("* filter=x\n")
    (above / "config").write_text(
        "[core]\nrepositoryFormatVersion = 0\nbare = false\nworktree = .\n"
        f'[filter "x"]\nclean = {program}\n'
    )
    changed.path("Makefile").touch()

    said = changed.update()

    assert not (tmp_path / "started").exists()
    assert said.ids == {"git-unusable"}


def test_objects_that_a_partial_clone_lacks_are_not_fetched(
    committed: Provider, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{program}"),
        ("protocol.ext.allow", "always"),
    ):
        git(committed.folder, "config", name, value)
    tree = git(committed.folder, "rev-parse", "HEAD^{tree}").strip()
    committed.path(f".git/objects/{tree[:2]}/{tree[2:]}").unlink()

    said = committed.update()

    assert not (tmp_path / "started").exists()
    assert said.ids == {"git-unusable"}


def test_a_deleted_file_that_is_written_again_is_no_obstacle(committed: Provider) -> None:
    """The hints say: delete the edited file, it comes back; or name it with --restore."""
    committed.path(MODEL).unlink()
    committed.path("Makefile").unlink()
    refused(committed, "Makefile")
    said = committed.update("--restore", "Makefile")
    assert (said.code, said.files("created")) == (0, {MODEL, "Makefile"})


def test_a_record_that_is_gone_is_no_obstacle(committed: Provider) -> None:
    committed.append("pyproject.toml", "\n[tool.mine]\n")
    committed.append("provider.yaml", "dependencies: [requests]\n")
    commit(committed.folder)
    committed.path(".capsmith/base/pyproject.toml").unlink()
    assert committed.update().ids == {"base-missing"}
    mine = committed.path("pyproject.toml").rename(committed.folder.parent / "mine.toml")
    assert committed.update("--restore", "pyproject.toml").code == 0
    mine.rename(committed.path("pyproject.toml"))
    assert committed.update("--allow-dirty").code == 0


@pytest.mark.parametrize("side", [None, "--ours", "--theirs"])
def test_branches_that_both_ran_update_are_merged(committed: Provider, side: str | None) -> None:
    """The command in the hints loses nothing, and the update after it is complete."""
    folder = committed.folder
    committed.append("pyproject.toml", "\n[tool.mine]\n")
    assert committed.update("--allow-dirty").code == 0
    commit(folder)
    git(folder, "branch", "other")
    committed.edit("provider.yaml", "rack: string", "rack: string\n      row: string")
    committed.append("provider.yaml", "dependencies: [requests]\n")
    assert committed.update().code == 0
    commit(folder)
    git(folder, "checkout", "--quiet", "other")
    committed.edit(
        "provider.yaml", "region: {type: string,", "region: {type: string, minLength: 2,"
    )
    assert committed.update().code == 0
    commit(folder)
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "--quiet", "-")
    if side is not None:
        git(folder, "checkout", side, "--", ".capsmith/lock.yaml")
    said = committed.update("--allow-dirty")
    way = "git checkout HEAD -- .capsmith && capsmith update --allow-dirty"
    if side is None:
        assert (said.code, said.ids) == (2, {"lock-conflict"})
        assert way in said.report["findings"][0]["hint"]
    git(folder, "checkout", "HEAD", "--", ".capsmith")
    assert committed.update("--allow-dirty").code == 0
    assert committed.update("--check").code == 0
    text = committed.path("pyproject.toml").read_text()
    assert "requests" in text
    assert text.endswith("[tool.mine]\n")


def test_an_unresolved_conflict_of_branches_is_not_merged(committed: Provider) -> None:
    """Markers around markers could not be resolved."""
    folder = committed.folder
    git(folder, "checkout", "--quiet", "provider.yaml")
    for branch in ("one", "other"):
        git(folder, "checkout", "--quiet", "-b", branch, "master")
        committed.append("pyproject.toml", f"\n[tool.{branch}]\n")
        commit(folder)
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "--quiet", "one")
    assert committed.update("--allow-dirty").code == 0  # nothing to merge
    committed.append("provider.yaml", "dependencies: [requests]\n")
    before = committed.tree()

    said = committed.update("--allow-dirty")

    assert (said.code, said.findings) == (1, {"pyproject.toml": "output-in-conflict"})
    line = committed.path("pyproject.toml").read_text().splitlines().index("<<<<<<< HEAD") + 1
    assert said.report["findings"][0]["line"] == line
    assert committed.tree() == before
    text = committed.path("pyproject.toml").read_text()
    committed.path("pyproject.toml").write_text(
        "".join(line for line in text.splitlines(keepends=True) if line[:7] not in MARKERS)
    )
    assert committed.update("--allow-dirty").code == 0
    merged = committed.path("pyproject.toml").read_text()
    assert all(each in merged for each in ("requests", "[tool.one]", "[tool.other]"))


@pytest.mark.parametrize("side", [None, "--theirs"])
def test_branches_that_both_changed_the_runtime_are_merged(
    committed: Provider, side: str | None
) -> None:
    """The record of the copy conflicts as the lock does, and its hint is the way out."""
    folder, copy = committed.folder, "vendor/capsmith_runtime"
    git(folder, "branch", "other")
    committed.append("provider.yaml", POOLS)
    assert committed.update().code == 0
    commit(folder)
    git(folder, "checkout", "--quiet", "other")
    committed.append("provider.yaml", EXTENSION)
    assert committed.update("--allow-dirty").code == 0
    commit(folder)
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "--quiet", "-")
    text = committed.path("provider.yaml").read_text()
    committed.path("provider.yaml").write_text(
        "".join(line for line in text.splitlines(keepends=True) if line[:7] not in MARKERS)
    )
    git(folder, "checkout", "--ours", "--", "pyproject.toml", ".gitattributes")
    if side is not None:
        git(folder, "checkout", side, "--", RECORD)
    git(folder, "checkout", "HEAD", "--", ".capsmith")

    said = committed.update("--allow-dirty")

    (finding,) = said.report["findings"]
    assert (said.code, finding["id"]) == (2, "runtime-record-altered")
    assert f"move {copy} and {RECORD} out of the repository" in finding["hint"]
    shutil.move(committed.path(copy), folder.parent / "copy")
    committed.path(RECORD).unlink()
    assert committed.update("--allow-dirty", "--force").code == 0
    assert committed.update("--check").code == 0


def test_a_git_that_does_not_tell_is_named(committed: Provider) -> None:
    committed.path(".git/index").write_bytes(b"junk")
    before = committed.tree()
    said = committed.update()
    assert (said.code, said.ids) == (1, {"git-unusable"})
    assert committed.tree() == before
    assert committed.update("--allow-dirty").code == 0


def test_conflicts_are_resolved_in_a_dirty_tree(committed: Provider) -> None:
    committed.append("Makefile", "mine:\n")
    commit(committed.folder)
    line = "description = "
    text = committed.path("pyproject.toml").read_text()
    (old,) = (each for each in text.splitlines() if each.startswith(line))
    committed.edit("pyproject.toml", old, f'{line}"Mine"')
    committed.edit("provider.yaml", "name: acme\n", "name: acme\ndescription: Theirs\n")
    commit(committed.folder)
    assert committed.update().files("conflicted") == {"pyproject.toml"}
    committed.path("pyproject.toml").write_text(text)
    assert committed.update("--continue").code == 0
    assert committed.update().code == 0


def test_generate_does_not_ask_git(committed: Provider) -> None:
    committed.append("Makefile", "mine:\n")
    assert run("generate", str(committed.path("provider.yaml"))).code == 0


@pytest.fixture
def sparse(committed: Provider) -> Provider:
    """Return a repository in which git has left out the folders .github and docs."""
    commit(committed.folder)
    git(committed.folder, "sparse-checkout", "set", ".capsmith", "config", "src", "tests", "vendor")
    assert not committed.path(".github").exists()
    return committed


def test_shared_files_that_a_sparse_checkout_hides_are_not_taken_for_deleted(
    sparse: Provider, change_blueprint: Change
) -> None:
    workflow = ".github/workflows/ci.yaml"
    change_blueprint(f"project/{workflow}.jinja", "name: ci\n", "name: checks\n")
    before = sparse.tree()

    said = sparse.update()

    assert (said.code, said.ids) == (1, {"update-sparse"})
    (finding,) = said.report["findings"]
    assert finding["message"].endswith(f": {workflow}")
    assert sparse.tree() == before
    git(sparse.folder, "sparse-checkout", "disable")
    assert sparse.update().code == 0
    assert "name: checks\n" in sparse.path(workflow).read_text()


def test_a_sparse_checkout_is_no_obstacle_to_other_changes(sparse: Provider) -> None:
    assert sparse.update().code == 0
    git(sparse.folder, "sparse-checkout", "disable")
    assert sparse.update("--check", "--allow-dirty").code == 0


def test_records_that_a_sparse_checkout_hides_are_named(committed: Provider) -> None:
    commit(committed.folder)
    git(committed.folder, "sparse-checkout", "set", "config", "src", "tests", "vendor")
    said = committed.update()
    assert (said.code, said.ids) == (1, {"update-sparse"})


def test_doctor_names_the_patterns_that_hide_generated_files(committed: Provider) -> None:
    commit(committed.folder)
    assert "files-ignored" not in run("doctor", str(committed.folder), "--format", "json").ids
    # Tracked files are in each clone, whatever the patterns say.
    (committed.folder / ".gitignore").write_text("*.md\n\nvendor/\n/config/crd\n!/README.md\n")
    assert "files-ignored" not in run("doctor", str(committed.folder), "--format", "json").ids

    git(committed.folder, "rm", "-r", "--quiet", "--cached", ".")
    said = run("doctor", str(committed.folder), "--format", "json")

    found = [each for each in said.report["findings"] if each["id"] == "files-ignored"]
    assert [(each["severity"], each["line"], Path(each["file"]).name) for each in found] == [
        ("warning", 1, ".gitignore"),
        ("warning", 3, ".gitignore"),
        ("warning", 4, ".gitignore"),
    ]
    assert "CONTRIBUTING.md" in found[0]["message"]
    assert "README.md" not in found[0]["message"]
    assert "the vendored runtime" in found[1]["message"]
    assert said.code == 0


def test_doctor_knows_patterns_outside_of_the_folder(committed: Provider) -> None:
    (committed.folder / ".git/info/exclude").write_text("/Makefile\n")
    git(committed.folder, "rm", "--quiet", "--cached", "Makefile")
    (found,) = run("doctor", str(committed.folder), "--format", "json").report["findings"]
    assert (found["id"], found["line"]) == ("files-ignored", 1)
    assert found["file"].endswith(".git/info/exclude")
    assert "Makefile" in found["message"]
