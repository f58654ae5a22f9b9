"""The author's blueprints are laid over capsmith's, noticed when they change, and removed again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.workspace import repository
from tests.regenerate.conftest import ACME, Provider, run, tree
from tests.regenerate.test_git import commit, git

EXTENDS = '{% extends "capsmith:project/Makefile.jinja" %}\n'
AUDIT = EXTENDS + "{% block targets %}\n\n.PHONY: audit\naudit:\n\ttrue\n{% endblock %}\n"
MANIFEST = """\
files:
- {source: NOTICE.jinja, target: NOTICE}
- source: note.md.jinja
  target: docs/{module}.md
  for_each: reconciled_resource
  owner: scaffold
"""
FILES = {
    "manifest.yaml": MANIFEST,
    "project/Makefile.jinja": AUDIT,
    "project/NOTICE.jinja": "{{ provider.title | plain }}, by Acme\n",
    "project/note.md.jinja": "# {{ resource.kind }}\n",
}


def lay(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)  # whatever the umask is
    return folder


def name(provider: Provider) -> None:
    provider.append("provider.yaml", "blueprints: company\n")


@pytest.fixture
def overlaid(provider: Provider) -> Provider:
    """Return an up-to-date provider whose description names an overlay."""
    lay(provider.path("company"), FILES)
    name(provider)
    assert provider.update().code == 0
    return provider


def lock(provider: Provider) -> dict[str, Any]:
    return dict(yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text()))


def test_blueprints_replace_and_join_those_of_capsmith(provider: Provider) -> None:
    before = provider.tree()
    lay(provider.path("company"), FILES)
    name(provider)
    assert provider.update("--check").ids == {"repository-behind"}
    said = provider.update()
    assert said.code == 0
    assert said.files("created") == {"NOTICE", "docs/acme_cluster.md", "docs/acme_machine.md"}
    assert said.files("updated") == {"Makefile"}
    assert provider.path("NOTICE").read_text() == "Acme, by Acme\n"
    assert provider.path("docs/acme_machine.md").read_text() == "# AcmeMachine\n"
    makefile = provider.path("Makefile").read_text()
    assert makefile == before["Makefile"][0].decode() + "\n.PHONY: audit\naudit:\n\ttrue\n"
    owners = {path: file["owner"] for path, file in lock(provider)["files"].items()}
    assert owners["NOTICE"] == "generated"
    assert owners["docs/acme_machine.md"] == "scaffold"
    assert owners["Makefile"] == "merged"
    assert not any(path.startswith("company") for path in owners)
    assert provider.update("--check").code == 0


def test_what_an_overlay_takes_with_it_when_it_goes(overlaid: Provider, generated: Path) -> None:
    overlaid.edit("provider.yaml", "blueprints: company\n", "")
    said = overlaid.update()
    assert said.files("removed") == {"NOTICE"}
    assert said.findings == dict.fromkeys(
        ("docs/acme_cluster.md", "docs/acme_machine.md"), "output-left-over"
    )
    shutil.rmtree(overlaid.path("company"))
    shutil.rmtree(overlaid.path("docs"))
    shutil.copytree(generated / "docs", overlaid.path("docs"))
    assert overlaid.tree() == tree(generated)


def test_one_edited_file_is_refused_and_nothing_is_done(overlaid: Provider) -> None:
    overlaid.append("NOTICE", "mine\n")
    overlaid.edit("company/project/NOTICE.jinja", "by Acme", "by Others")
    before = overlaid.tree()
    assert overlaid.update().findings == {"NOTICE": "output-edited"}
    assert overlaid.tree() == before


def test_edits_of_shared_files_are_merged_with_the_overlay_and_conflict(overlaid: Provider) -> None:
    overlaid.append("Makefile", "mine:\n\tfalse\n")
    overlaid.edit(
        "company/project/Makefile.jinja", EXTENDS, EXTENDS + "{% block lint %}{% endblock %}"
    )
    assert overlaid.update().files("merged") == {"Makefile"}
    text = overlaid.path("Makefile").read_text()
    assert "lint:" not in text
    assert text.endswith("audit:\n\ttrue\nmine:\n\tfalse\n")
    overlaid.edit("Makefile", "audit:\n\ttrue\n", "audit:\n\tmine\n")
    overlaid.edit("company/project/Makefile.jinja", "\ttrue\n", "\ttheirs\n")
    said = overlaid.update()
    assert (said.code, said.files("conflicted")) == (1, {"Makefile"})
    text = overlaid.path("Makefile").read_text()
    start, middle = text.index("<<<<<<<"), text.index(">>>>>>>")
    resolved = text[:start] + "\tboth\n" + text[text.index("\n", middle) + 1 :]
    overlaid.path("Makefile").write_text(resolved)
    assert overlaid.update("--continue").code == 0
    assert overlaid.update("--check").code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.append("company/project/NOTICE.jinja", "more\n"),
        lambda p: p.append("company/project/NOTICE.jinja", "{# nothing that is printed #}\n"),
        lambda p: p.path("company/macros").mkdir() or p.path("company/macros/x").write_text("x"),
        lambda p: p.append("company/manifest.yaml", "# said\n"),
        lambda p: p.path("company/project/Makefile.jinja").unlink(),
        lambda p: shutil.rmtree(p.path("company")),
        lambda p: p.path("company/project/new.jinja").write_text("x"),
    ],
)
def test_every_change_of_the_overlay_is_noticed(
    overlaid: Provider,
    cache_without_memory: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Provider], object],
) -> None:
    """By the memory too: a check that remembers says what one without says."""
    assert [overlaid.update("--check").code for _ in range(2)] == [0, 0]
    change(overlaid)
    remembered = overlaid.update("--check")
    monkeypatch.setenv("CAPSMITH_CACHE", str(cache_without_memory))
    assert overlaid.update("--check") == remembered
    assert remembered.code in (1, 2)


def test_what_does_not_count_is_not_noticed(overlaid: Provider) -> None:
    overlaid.path("company/README.md").write_text("what this is for")
    for path in overlaid.path("company").rglob("*.jinja"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert [overlaid.update("--check").code for _ in range(2)] == [0, 0]


def test_blueprints_from_the_command_line_are_locked_by_what_they_are(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lay(tmp_path / "here", FILES)
    there = Path(shutil.copytree(here, tmp_path / "else" / "where"))
    assert provider.update("--blueprints", str(here)).code == 0
    locked = lock(provider)["blueprints"]
    assert isinstance(locked, dict)
    assert locked.keys() == {"digest"}
    assert str(tmp_path) not in provider.path(".capsmith/lock.yaml").read_text()
    for folder in (here, there, there):
        assert provider.update("--check", "--blueprints", str(folder)).code == 0
    before = provider.tree()
    for _ in range(2):
        (missing,) = provider.update("--check").report["findings"]
        assert missing["id"] == "overlay-missing"
        assert locked["digest"] in missing["message"]
    assert provider.update().ids == {"overlay-missing"}
    assert run("generate", str(provider.path("provider.yaml"))).code == 1
    assert "overlay-missing" in run("doctor", str(provider.folder), "--format", "json").text
    assert provider.tree() == before
    (there / "project/NOTICE.jinja").write_text("other\n")
    assert provider.update("--check", "--blueprints", str(there)).ids == {"repository-behind"}
    assert provider.update("--check", "--no-blueprints").code == 1
    assert provider.update("--no-blueprints").files("removed") == {"NOTICE"}
    assert "blueprints" not in lock(provider)
    assert provider.update("--check").code == 0


def test_blueprints_are_named_in_one_place(overlaid: Provider, tmp_path: Path) -> None:
    other = lay(tmp_path / "other", FILES)
    before = overlaid.tree()
    for option in (["--blueprints", str(other)], ["--no-blueprints"]):
        for _ in range(2):
            assert overlaid.update("--check", *option).ids == {"overlay-twice"}
        assert overlaid.update(*option).ids == {"overlay-twice"}
    assert overlaid.tree() == before


def test_a_repository_elsewhere_gets_its_own_copy(tmp_path: Path) -> None:
    source = lay(tmp_path / "source", {"provider.yaml": ACME.read_text()})
    lay(source / "company", FILES)
    (source / "provider.yaml").write_text(ACME.read_text() + "blueprints: company\n")
    out = tmp_path / "out"
    arguments = ("generate", str(source / "provider.yaml"), "-o", str(out))
    assert run(*arguments).code == 0
    assert tree(out / "company") == tree(source / "company")
    assert Provider(out).update("--check").code == 0
    (source / "company/project/NOTICE.jinja").write_text("new\n")
    (source / "company/project/note.md.jinja").unlink()
    (source / "company/manifest.yaml").write_text(
        MANIFEST.splitlines(True)[0] + MANIFEST.splitlines(True)[1]
    )
    assert run(*arguments).code == 0
    assert tree(out / "company") == tree(source / "company")
    assert (out / "NOTICE").read_text() == "new\n"
    (out / "company/project/NOTICE.jinja").write_text("mine\n")
    before = tree(out)
    assert "output-other-overlay" in run(*arguments, "--format", "json").text
    assert tree(out) == before


def test_in_place_an_overlay_is_no_foreign_file(tmp_path: Path) -> None:
    folder = lay(tmp_path / "new", {"provider.yaml": ACME.read_text() + "blueprints: tools/over\n"})
    lay(folder / "tools/over", FILES)
    assert run("generate", str(folder / "provider.yaml")).code == 0
    assert Provider(folder).update("--check").code == 0


@pytest.mark.parametrize("target", ["docs/author-api.md", "docs/Author-API.md", "vendor"])
def test_files_that_are_copied_as_they_are_cannot_be_added(overlaid: Provider, target: str) -> None:
    overlaid.edit("company/manifest.yaml", "target: NOTICE", f"target: {target}")
    said = run("update", str(overlaid.folder), "--format", "json")
    (finding,) = (each for each in said.report["findings"] if each["severity"] == "error")
    assert (said.code, finding["id"], finding["line"]) == (1, "overlay-target", 2)


def test_errors_are_reported_with_their_lines_and_nothing_is_written(overlaid: Provider) -> None:
    overlaid.path("company/project/NOTICE.jinja").write_text("ok\n{{ nobody }}\n")
    overlaid.path("company/project/note.md.jinja").write_text("{% if %}\n")
    overlaid.edit("company/manifest.yaml", "target: NOTICE", "target: Makefile")
    before = overlaid.tree()
    company = overlaid.path("company")
    expected = {
        (f"{company}/project/NOTICE.jinja", 2, "overlay-undefined"),
        (f"{company}/project/note.md.jinja", 1, "overlay-syntax"),
        (f"{company}/manifest.yaml", 2, "overlay-target"),
    }
    spec = str(overlaid.path("provider.yaml"))
    for arguments in (
        ("update", str(overlaid.folder)),
        ("update", str(overlaid.folder), "--check"),
        ("generate", spec),
        ("validate", spec),
    ):
        said = run(*arguments, "--format", "json")
        assert said.code == 1
        found = {(f["file"], f["line"], f["id"]) for f in said.report["findings"]}
        assert found == expected
    assert overlaid.tree() == before


def test_what_breaks_the_contract_is_refused_with_its_rule(provider: Provider) -> None:
    """The name of the container is clusterctl's business (CC-28)."""
    original = Path(resources.__file__).parents[2] / "blueprints/project/config/manager"
    text = (original / "manager.yaml.jinja").read_text()
    assert "- name: manager\n" in text
    broken = text.replace("- name: manager\n", "- name: controller\n")
    lay(provider.path("company"), {"project/config/manager/manager.yaml.jinja": broken})
    name(provider)
    before = provider.tree()
    for said in (
        provider.update(),
        run("validate", str(provider.path("provider.yaml")), "--format", "json"),
    ):
        assert said.code == 1
        (finding,) = (f for f in said.report["findings"] if f["id"] == "CC-28")
        assert "company/project/config/manager/manager.yaml.jinja" in finding["hint"]
    assert provider.tree() == before


def test_uncommitted_blueprints_are_what_an_update_is_for(overlaid: Provider) -> None:
    git(overlaid.folder, "init", "--quiet")
    commit(overlaid.folder)
    overlaid.edit("company/project/NOTICE.jinja", "by Acme", "by Others")
    overlaid.path("company/macros").mkdir()
    overlaid.path("company/macros/new").write_text("x")
    assert overlaid.update().code == 0
    commit(overlaid.folder)
    overlaid.edit("company/project/NOTICE.jinja", "by Others", "by Acme")
    overlaid.path("companyx").write_text("x")
    assert overlaid.update().ids == {"update-dirty"}


def test_the_next_contract_comes_with_the_same_overlay(tmp_path: Path) -> None:
    spec = ACME.read_text().replace("v1beta2", "v1beta1") + "blueprints: company\n"
    folder = lay(tmp_path / "old", {"provider.yaml": spec})
    lay(folder / "company", FILES)
    assert run("generate", str(folder / "provider.yaml")).code == 0
    provider = Provider(folder)
    before = lock(provider)["blueprints"]
    assert provider.update("--contract", "v1beta1,v1beta2").code == 0
    assert provider.path("NOTICE").exists()
    assert "audit:" in provider.path("Makefile").read_text()
    assert lock(provider)["blueprints"] == before
    assert provider.update("--check").code == 0


def test_an_overlay_that_is_no_longer_read_is_named(overlaid: Provider) -> None:
    said = run("eject", str(overlaid.folder), "--format", "json")
    assert said.code == 0
    assert said.findings["company"] == "eject-unread"
    assert overlaid.path("company/manifest.yaml").read_text() == MANIFEST
    assert overlaid.path("NOTICE").read_text() == "Acme, by Acme\n"


CASED = "files:\n" + "".join(
    f"- {{source: {owner}.jinja, target: docs/Notice-{owner}.txt, owner: {owner}}}\n"
    for owner in ("generated", "merged", "scaffold")
)


@pytest.mark.parametrize("text", ["", "# theirs\n"], ids=["as generated", "edited"])
def test_a_file_whose_name_changes_in_case_is_renamed_where_case_is_ignored(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    owners = ("generated", "merged", "scaffold")
    lay(provider.path("company"), {"manifest.yaml": CASED})
    lay(provider.path("company"), {f"project/{each}.jinja": f"{each}\n" for each in owners})
    name(provider)
    assert provider.update().code == 0
    for owner in owners[1:]:
        provider.append(f"docs/Notice-{owner}.txt", text)
    provider.edit("company/manifest.yaml", "docs/Notice", "docs/NOTICE")
    # As on macOS: both names lead to the file, and the folder has one of them.
    for owner in owners:
        provider.path(f"docs/NOTICE-{owner}.txt").hardlink_to(
            provider.path(f"docs/Notice-{owner}.txt")
        )
    listed = repository._list_folder
    monkeypatch.setattr(
        repository,
        "_list_folder",
        lambda folder: {each for each in listed(folder) if not each.startswith("NOTICE")},
    )
    said = provider.update()
    assert (said.code, said.findings) == (0, {})
    assert not said.files("removed") | said.files("created")
    files = {path for path in lock(provider)["files"] if "notice" in path.lower()}
    assert files == {f"docs/NOTICE-{owner}.txt" for owner in owners}
    for owner in owners:
        kept = f"{owner}\n{text if owner != 'generated' else ''}"
        assert provider.path(f"docs/NOTICE-{owner}.txt").read_text() == kept
    assert provider.update("--check").code == 0
