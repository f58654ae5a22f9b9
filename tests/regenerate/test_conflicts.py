"""An update that leaves conflicts: what the files contain, how to go on, how to go back."""

from __future__ import annotations

import shutil

import pytest

from capsmith import __version__
from tests.regenerate.conftest import Change, Provider, run
from tests.regenerate.test_git import commit, git

MINE = 'description = "Mine"'
SHARED = "pyproject.toml"
MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"
UNFINISHED = ".capsmith/unfinished"


@pytest.fixture
def conflicting(provider: Provider) -> Provider:
    """Return a provider that both sides changed, with one new field and one kind less."""
    line = next(
        line for line in provider.path(SHARED).read_text().splitlines() if "description" in line
    )
    provider.edit(SHARED, line, MINE)
    provider.edit("provider.yaml", "name: acme\n", "name: acme\ndescription: Theirs\n")
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    return provider


def resolve(provider: Provider, path: str = SHARED) -> None:
    """Choose the author's side of every conflict."""
    lines, ours = [], True
    for line in provider.path(path).read_text().splitlines(keepends=True):
        if line.startswith(("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")):
            ours = line.startswith(("<<<<<<< ", ">>>>>>> "))
        elif ours:
            lines.append(line)
    provider.path(path).write_text("".join(lines))


def test_a_conflict_is_reported_with_its_line_and_the_rest_is_done(conflicting: Provider) -> None:
    said = conflicting.update()
    assert said.code == 1
    assert said.files("conflicted") == {SHARED}
    assert MODEL in said.files("updated")
    (finding,) = (f for f in said.report["findings"] if f["severity"] == "error")
    assert (finding["id"], finding["file"]) == ("update-conflict", SHARED)
    lines = conflicting.path(SHARED).read_text().splitlines()
    assert lines[finding["line"] - 1 : finding["line"] + 4] == [
        "<<<<<<< yours",
        MINE,
        "=======",
        'description = "Theirs"',
        f">>>>>>> capsmith {__version__}",
    ]
    assert "rack" in conflicting.path(MODEL).read_text()


def test_the_origin_is_shown_when_that_is_asked_for(conflicting: Provider) -> None:
    assert conflicting.update("--conflict", "diff3").code == 1
    text = conflicting.path(SHARED).read_text()
    assert f"\n||||||| generated before (capsmith {__version__})\ndescription = " in text
    assert conflicting.update("--continue").code == 1
    resolve(conflicting)
    assert conflicting.update("--continue").code == 0


def test_looking_at_a_conflict_beforehand_changes_nothing(conflicting: Provider) -> None:
    before = conflicting.tree()
    for argument in ("--dry-run", "--diff", "--check"):
        said = conflicting.update(argument)
        assert (said.code, said.files("conflicted")) == (1, {SHARED})
    assert conflicting.tree() == before


def test_until_it_is_resolved_nothing_else_goes_on(conflicting: Provider) -> None:
    conflicting.update()
    before = conflicting.tree()
    for arguments in ([], ["--check"], ["--dry-run"], ["--force"]):
        said = conflicting.update(*arguments)
        assert (said.code, said.ids) == (1, {"update-unfinished"})
    assert "update-unfinished" in run("generate", str(conflicting.path("provider.yaml"))).text
    assert conflicting.tree() == before


@pytest.mark.parametrize("left", ["<<<<<<< yours", "=======", f">>>>>>> capsmith {__version__}"])
def test_a_marker_that_is_left_is_named_and_the_update_stays_unfinished(
    conflicting: Provider, left: str
) -> None:
    conflicting.update()
    resolve(conflicting)
    conflicting.append(SHARED, f"{left}\n")
    before = conflicting.tree()
    said = conflicting.update("--continue")
    assert (said.code, said.findings) == (1, {SHARED: "update-conflict"})
    assert conflicting.tree() == before


@pytest.mark.parametrize("way", ["mine", "deleted", "rewritten"])
def test_the_update_is_finished_when_conflicts_are_resolved(
    conflicting: Provider, way: str
) -> None:
    conflicting.update()
    if way == "mine":
        resolve(conflicting)
    elif way == "deleted":
        conflicting.path(SHARED).unlink()
    else:
        conflicting.path(SHARED).write_bytes(b"\xff entirely mine")
    files = {path: state for path, state in conflicting.tree().items() if path[0] != "."}
    said = conflicting.update("--continue")
    assert (said.code, said.files("merged")) == (0, {SHARED})
    assert {p: state for p, state in conflicting.tree().items() if p[0] != "."} == files
    assert not conflicting.path(UNFINISHED).exists()
    assert conflicting.update("--check").code == 0
    again = conflicting.update("--continue")
    assert (again.code, again.ids) == (1, {"nothing-to-continue"})
    assert again.findings == {str(conflicting.folder): "nothing-to-continue"}


def test_a_resolved_conflict_is_not_reported_again(
    conflicting: Provider, change_blueprint: Change
) -> None:
    conflicting.update()
    resolve(conflicting)
    conflicting.update("--continue")
    change_blueprint("project/pyproject.toml.jinja", "[project]\n", "[project]\n# new\n")
    assert conflicting.update().files("merged") == {SHARED}
    assert MINE in conflicting.path(SHARED).read_text()


def test_abort_restores_everything(conflicting: Provider) -> None:
    conflicting.path(SHARED).chmod(0o640)
    before = conflicting.tree()
    said = conflicting.update()
    assert said.files("removed")
    conflicting.append(SHARED, "work on the conflict\n")
    conflicting.path("notes.txt").write_text("mine\n")
    back = conflicting.update("--abort")
    assert back.code == 0
    assert conflicting.tree() == before | {"notes.txt": (b"mine\n", 0o644)}
    again = conflicting.update("--abort")
    assert (again.code, again.ids) == (1, {"nothing-to-abort"})
    assert again.findings == {str(conflicting.folder): "nothing-to-abort"}


def test_abort_does_not_lose_other_edits(conflicting: Provider) -> None:
    before = conflicting.tree()
    conflicting.update()
    conflicting.append(MODEL, "# mine\n")
    during = conflicting.tree()
    said = conflicting.update("--abort")
    assert (said.code, said.findings) == (1, {MODEL: "abort-edited"})
    assert conflicting.tree() == during
    assert conflicting.update("--abort", "--force").code == 0
    assert conflicting.tree() == before


def test_abort_after_git_restored_the_files(conflicting: Provider) -> None:
    """The user restored the files by other means; the notes of the update are left."""
    before = conflicting.tree()
    copy = conflicting.folder.parent / "copy"
    shutil.copytree(conflicting.folder, copy)
    conflicting.update()
    shutil.copytree(copy, conflicting.folder, dirs_exist_ok=True)
    assert conflicting.update("--abort").code == 0
    assert conflicting.tree() == before


@pytest.mark.parametrize("option", ["--continue", "--abort"])
def test_lost_state_of_an_update_is_reported(conflicting: Provider, option: str) -> None:
    conflicting.update()
    for path in conflicting.path(UNFINISHED).iterdir():
        if path.name != "state.json":
            path.write_text("altered")
    before = conflicting.tree()
    said = conflicting.update(option)
    assert (said.code, said.ids) == (2, {"unfinished-damaged"})
    assert conflicting.tree() == before


def test_a_shared_file_that_is_no_text_is_refused(
    provider: Provider, change_blueprint: Change
) -> None:
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    provider.path("Makefile").write_bytes(b"\0binary")
    before = provider.tree()
    said = provider.update()
    assert (said.code, said.findings) == (1, {"Makefile": "output-not-text"})
    assert provider.tree() == before


def test_generate_merges_as_update_does(conflicting: Provider) -> None:
    said = run("generate", str(conflicting.path("provider.yaml")), "--format", "json")
    assert (said.code, said.files("conflicted")) == (1, {SHARED})
    resolve(conflicting)
    assert conflicting.update("--continue").code == 0
    assert run("generate", str(conflicting.path("provider.yaml"))).code == 0


def test_markers_stay_as_they_are_if_the_state_is_gone(conflicting: Provider) -> None:
    """``git clean -x`` removes the state, which git ignores; the files have markers still."""
    conflicting.update()
    shutil.rmtree(conflicting.path(UNFINISHED))
    before = conflicting.tree()
    said = conflicting.update()
    assert (said.code, said.findings) == (1, {SHARED: "output-in-conflict"})
    assert conflicting.tree() == before

    conflicting.edit(SHARED, "=======\n", "")
    text = conflicting.path(SHARED).read_text().splitlines(keepends=True)
    marks = ("<<<<<<< ", ">>>>>>> ", 'description = "Theirs"')
    conflicting.path(SHARED).write_text("".join(e for e in text if not e.startswith(marks)))
    conflicting.update()
    resolve(conflicting)
    assert conflicting.update("--continue").code == 0
    assert MINE in conflicting.path(SHARED).read_text()
    assert conflicting.update("--check").code == 0


@pytest.mark.parametrize("way", [("stash",), ("checkout", "--", "."), ("reset", "--hard")])
def test_an_update_that_git_undid_is_not_finished(
    conflicting: Provider, way: tuple[str, ...]
) -> None:
    """Otherwise the records would describe files that are no longer there."""
    git(conflicting.folder, "init", "--quiet")
    commit(conflicting.folder)
    conflicting.update()
    git(conflicting.folder, *way)
    before = conflicting.tree()

    said = conflicting.update("--continue")

    assert (said.code, said.ids) == (1, {"update-undone"})
    (finding,) = said.report["findings"]
    assert "README.md, config/" in finding["message"]
    assert " more" in finding["message"]
    assert conflicting.tree() == before
    assert conflicting.update("--abort").code == 0
    assert conflicting.update().files("conflicted") == {SHARED}


def test_an_update_goes_on_after_git_brought_it_back(conflicting: Provider) -> None:
    git(conflicting.folder, "init", "--quiet")
    commit(conflicting.folder)
    conflicting.update()
    git(conflicting.folder, "stash", "--include-untracked")
    assert conflicting.update("--continue").ids == {"nothing-to-continue"}
    git(conflicting.folder, "stash", "pop")
    resolve(conflicting)
    assert conflicting.update("--continue").code == 0
    assert conflicting.update("--check").code == 0


def test_a_file_that_was_restored_on_purpose_is_kept_by_force(conflicting: Provider) -> None:
    git(conflicting.folder, "init", "--quiet")
    commit(conflicting.folder)
    conflicting.update()
    git(conflicting.folder, "checkout", "--", MODEL)
    resolve(conflicting)

    said = conflicting.update("--continue")

    assert said.ids == {"update-undone"}
    assert conflicting.update("--continue", "--force").code == 0
    assert conflicting.update("--allow-dirty").ids == {"output-edited"}


@pytest.mark.parametrize("option", ["--continue", "--abort"])
@pytest.mark.parametrize(("attributes", "end"), [("eol=crlf", b"\r\n"), ("eol=lf", b"\n")])
def test_an_unfinished_update_survives_other_line_ends(
    conflicting: Provider, option: str, attributes: str, end: bytes
) -> None:
    """git stash --include-untracked converts the records, too."""
    other = b"\r\n" if end == b"\n" else b"\n"
    change_line_ends(conflicting, other)
    git(conflicting.folder, "init", "--quiet")
    conflicting.path(".git/info/attributes").write_text(f"* text {attributes}\n")
    commit(conflicting.folder)
    former = {path: (unix(text), mode) for path, (text, mode) in conflicting.tree().items()}
    conflicting.update("--allow-dirty")
    git(conflicting.folder, "stash", "--include-untracked")
    git(conflicting.folder, "stash", "pop")
    assert conflicting.path(SHARED).read_bytes().count(end) > 1
    assert conflicting.update("--continue").ids == {"update-conflict"}
    if option == "--continue":
        resolve(conflicting)

    said = conflicting.update(option)

    assert said.code == 0, said.text
    found = {path: (unix(text), mode) for path, (text, mode) in conflicting.tree().items()}
    if option == "--abort":
        assert found == former
    else:
        assert conflicting.update("--check").code == 0


def change_line_ends(provider: Provider, end: bytes) -> None:
    for path, (content, _) in provider.tree().items():
        provider.path(path).write_bytes(unix(content).replace(b"\n", end))


def unix(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")
