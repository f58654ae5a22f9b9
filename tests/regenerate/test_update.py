"""``capsmith update``: the outcome for each file, the report, and the exit code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.regenerate.conftest import Change, Provider, run, tree

PACKAGE = "src/cluster_api_provider_acme"
RECONCILER = f"{PACKAGE}/controllers/acme_machine.py"
MODEL = f"{PACKAGE}/_generated/api/acme_machine.py"
MINE = "\n[tool.mine]\nkey = 1\n"


def test_nothing_to_do_changes_nothing(provider: Provider) -> None:
    before = {path: path.stat().st_mtime_ns for path in provider.folder.rglob("*")}
    said = provider.update()
    assert said.code == 0
    assert {file["outcome"] for file in said.report["files"]} <= {"unchanged", "kept"}
    assert {path: path.stat().st_mtime_ns for path in provider.folder.rglob("*")} == before


def test_a_change_of_the_description_reaches_what_is_generated_and_nothing_else(
    provider: Provider,
) -> None:
    provider.path(RECONCILER).write_text("# mine\n")
    provider.path(f"{PACKAGE}/helpers.py").write_text("# mine too\n")
    provider.append("pyproject.toml", MINE)
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.append("provider.yaml", "dependencies: [requests]\n")
    before = provider.tree()
    said = provider.update()
    assert said.code == 0
    assert said.files("merged") == {"pyproject.toml"}
    assert MODEL in said.files("updated")
    after = provider.tree()
    changed = {path for path in after if after[path] != before.get(path)}
    assert changed - {".capsmith/lock.yaml", ".capsmith/base/pyproject.toml"} == (
        said.files("updated") | said.files("merged") | said.files("created")
    )
    assert after.keys() >= before.keys()
    assert b"rack" in after[MODEL][0]
    assert after["pyproject.toml"][0].endswith(MINE.encode())
    assert b"requests" in after["pyproject.toml"][0]
    assert provider.update("--check").code == 0


def test_a_missing_release_series_is_reported(provider: Provider) -> None:
    """Proves: CC-08."""
    provider.edit("provider.yaml", "releases: {v0.1:", "releases: {v0.2:")
    for arguments in (["--dry-run"], []):
        said = provider.update(*arguments)
        assert said.code == 0
        (finding,) = said.report["findings"]
        assert (finding["file"], finding["line"], finding["id"], finding["severity"]) == (
            "metadata.yaml",
            8,
            "release-forgotten",
            "warning",
        )
        assert "v0.1" in finding["message"]
    assert provider.update("--check").report["findings"] == []
    provider.edit("provider.yaml", "releases: {v0.2:", "releases: {v0.1: v1beta2, v0.2:")
    assert provider.update().report["findings"] == []


def test_sections_that_change_their_component_are_reported(provider: Provider) -> None:
    """Proves: CC-51."""
    combined = "components: {infrastructure: [infrastructure, bootstrap]}\n"
    section = "bootstrap:\n  AcmeConfig: {implements: BootstrapConfig}\n"
    provider.append("provider.yaml", section)
    assert _component_changes(provider) == [], "a new section concerns no cluster"
    provider.append("provider.yaml", combined)
    for arguments in (["--dry-run"], []):
        (finding,) = _component_changes(provider, *arguments)
        assert finding["severity"] == "warning"
        assert "`bootstrap` joined another component" in finding["message"]
        assert "Before" in finding["hint"]
        assert "`clusterctl delete --bootstrap acme`" in finding["hint"]
    assert _component_changes(provider) == []
    provider.edit("provider.yaml", combined, "")
    (finding,) = _component_changes(provider)
    assert "`bootstrap` left its component" in finding["message"]
    assert "After" in finding["hint"]
    assert "`clusterctl init --bootstrap acme`" in finding["hint"]
    provider.edit("provider.yaml", section, "")
    assert _component_changes(provider) == [], "there is nothing left to install"


def _component_changes(provider: Provider, *arguments: str) -> list[dict[str, Any]]:
    found = provider.update(*arguments).report["findings"]
    return [finding for finding in found if finding["id"] == "components-changed"]


def test_a_change_of_capsmith_reaches_edited_shared_files(
    provider: Provider, change_blueprint: Change
) -> None:
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    provider.append("Makefile", "\nmine:\n\ttrue\n")
    assert provider.update("--check").ids == {"repository-behind"}
    assert provider.update().files("merged") == {"Makefile"}
    text = provider.path("Makefile").read_text()
    assert "podman" in text
    assert text.endswith("\nmine:\n\ttrue\n")
    assert "capsmith: 9.9.9" in provider.path(".capsmith/lock.yaml").read_text()


def test_permissions_of_a_shared_file_stay(provider: Provider, change_blueprint: Change) -> None:
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    provider.path("Makefile").chmod(0o740)
    assert provider.update().files("updated") == {"Makefile"}
    assert provider.path("Makefile").stat().st_mode & 0o777 == 0o740


def test_an_edited_generated_file_is_refused_by_name_and_nothing_is_done(
    provider: Provider,
) -> None:
    provider.append(MODEL, "# edited\n")
    provider.append("provider.yaml", "dependencies: [requests]\n")
    before = provider.tree()
    for arguments in ([], ["--check"], ["--dry-run"]):
        said = provider.update(*arguments)
        assert said.code == 1
        assert said.findings == {MODEL: "output-edited"}
        assert said.report["files"] == [{"path": MODEL, "outcome": "refused"}]
    assert provider.tree() == before
    forced = provider.update("--force")
    assert forced.code == 0
    assert forced.findings == {MODEL: "output-taken-back"}
    assert "version control" in forced.report["findings"][0]["hint"]
    assert b"# edited" not in provider.path(MODEL).read_bytes()
    assert provider.update("--check").code == 0


def test_only_deleted_generated_files_are_generated_again(provider: Provider) -> None:
    for path in (MODEL, "Makefile", RECONCILER):
        provider.path(path).unlink()
    provider.append("provider.yaml", "title: Another\n")
    assert provider.update().files("created") == {MODEL}
    assert not provider.path("Makefile").exists()
    assert not provider.path(RECONCILER).exists()
    said = provider.update("--restore", "Makefile", "--restore", RECONCILER)
    assert said.files("created") == {"Makefile", RECONCILER}
    assert provider.update("--check").code == 0


@pytest.mark.parametrize("path", ["Makefile", "nowhere", "../outside", ""])
def test_only_what_was_deleted_can_be_restored(provider: Provider, path: str) -> None:
    provider.append("provider.yaml", "title: Another\n")
    before = provider.tree()
    said = provider.update("--restore", path)
    assert said.code == 1
    assert said.ids == {"restore-not-deleted"}
    assert (said.report["files"], said.report["runtime"]) == ([], None)
    assert provider.tree() == before


def test_files_of_a_removed_kind_are_removed_except_the_authors(provider: Provider) -> None:
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    before = provider.tree()
    said = provider.update()
    assert said.code == 0
    left = {path for path, id in said.findings.items() if id == "output-left-over"}
    removed = said.files("removed")
    assert any(path.startswith("config/crd/bases/") for path in removed)
    assert left == {"config/samples/acme_identity.yaml"}
    after = provider.tree()
    assert before.keys() - after.keys() == removed
    assert all(after[path] == before[path] for path in left)
    assert provider.update().ids == set()  # told once: they are the author's now


def test_a_generated_file_that_was_edited_is_not_removed_with_its_kind(provider: Provider) -> None:
    (crd,) = provider.folder.glob("config/crd/bases/*_acmeidentities.yaml")
    name = crd.relative_to(provider.folder).as_posix()
    provider.append(name, "# edited\n")
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    said = provider.update("--force")
    assert said.findings[name] == "output-left-over"
    assert crd.read_text().endswith("# edited\n")


def test_a_renamed_kind_names_the_old_file_of_the_author_and_the_new_one(
    provider: Provider,
) -> None:
    provider.append(RECONCILER, "# mine\n")
    provider.edit("provider.yaml", "AcmeMachine", "AcmeServer")
    said = provider.update()
    assert said.code == 0
    new = RECONCILER.replace("machine", "server")
    (left,) = (f for f in said.report["findings"] if f["file"] == RECONCILER)
    assert left["id"] == "output-left-over"
    assert new in left["hint"]
    assert new in said.files("created")
    assert provider.path(RECONCILER).read_text().endswith("# mine\n")
    assert not provider.path(MODEL).exists()
    # An author who renames the file beforehand keeps it.
    provider.path(new).rename(provider.path(new.replace("server", "host")))
    provider.edit("provider.yaml", "AcmeServer", "AcmeHost")
    assert new.replace("server", "host") in provider.update().files("kept")


def test_a_foreign_file_in_the_place_of_a_new_one_is_refused(provider: Provider) -> None:
    provider.edit("provider.yaml", "AcmeMachine", "AcmeServer")
    model = MODEL.replace("machine", "server")
    provider.path(model).write_text("mine")
    before = provider.tree()
    said = provider.update("--force")
    assert (said.code, said.findings) == (1, {model: "output-not-ours"})
    assert provider.tree() == before


def test_a_base_that_a_merge_needs_is_not_guessed_at(provider: Provider) -> None:
    provider.append("pyproject.toml", MINE)
    provider.append("provider.yaml", "dependencies: [requests]\n")
    provider.path(".capsmith/base/pyproject.toml").unlink()
    before = provider.tree()
    said = provider.update()
    assert (said.code, said.findings) == (2, {".capsmith/base/pyproject.toml": "base-missing"})
    assert provider.tree() == before
    # The way out that the hint names.
    mine = provider.path("pyproject.toml").rename(provider.path("mine.toml"))
    assert provider.update("--restore", "pyproject.toml").code == 0
    mine.rename(provider.path("pyproject.toml"))
    assert provider.update("--check").code == 0


def test_where_nothing_was_generated_there_is_nothing_to_update(provider: Provider) -> None:
    provider.path("empty").mkdir()
    for folder in ("empty", "nowhere"):
        said = run("update", str(provider.path(folder)), "--format", "json")
        assert (said.code, said.ids) == (2, {"nothing-generated"})
    assert not provider.path("nowhere").exists()
    provider.path("provider.yaml").unlink()
    said = provider.update()
    assert (said.code, said.ids) == (2, {"input-missing"})


def test_an_error_in_the_description_is_reported_and_nothing_is_done(provider: Provider) -> None:
    provider.edit("provider.yaml", "implements: InfraMachine", "implements: InfraMachin")
    before = provider.tree()
    said = provider.update()
    assert (said.code, said.ids) == (1, {"spec-not-one-of"})
    assert provider.tree() == before


@pytest.mark.parametrize(
    "arguments",
    [("--check", "--abort"), ("--continue", "--abort"), ("--continue", "--diff"), ("a", "b")],
)
def test_what_excludes_each_other_is_a_mistake_of_usage(arguments: tuple[str, ...]) -> None:
    assert run("update", *arguments).code == 2


def test_another_systems_line_ends_are_no_edits(provider: Provider) -> None:
    for path in provider.folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = provider.tree()
    assert provider.update("--check").code == 0
    assert provider.update().code == 0
    assert provider.tree() == before
    provider.append("Makefile", "mine:\r\n")
    provider.append("pyproject.toml", MINE.replace("\n", "\r\n"))
    provider.append("provider.yaml", "dependencies: [requests]\r\n")
    assert provider.update().code == 0
    content = provider.path("pyproject.toml").read_bytes()
    assert b"requests" in content
    assert content.count(b"\n") == content.count(b"\r\n")


def test_folders_are_named_in_any_way(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.append("provider.yaml", "title: Another\n")
    link = provider.folder.parent / "link"
    link.symlink_to(provider.folder)
    assert run("update", "--check", str(link)).code == 1
    monkeypatch.chdir(provider.folder / "src")
    assert run("update", "..").code == 0
    monkeypatch.chdir(provider.folder)
    assert run("update", "--check").code == 0
    assert tree(link) == provider.tree()
