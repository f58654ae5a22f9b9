"""What is reported when a run is interrupted, and by the run after it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

import pytest

from capsmith.workspace.journal import Journal
from tests.regenerate.conftest import Provider, Said, run

Interrupt = Callable[..., str]


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Run a command that Ctrl-C stops between two renames."""

    def interrupt(*arguments: str) -> str:
        def stop(journal: Journal) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_conclude", stop)
            said = run(*arguments)
        assert said.code == 1
        return said.text

    return interrupt


@pytest.fixture
def changed(provider: Provider) -> Provider:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    return provider


def messages(said: Said) -> list[str]:
    return [finding["message"] for finding in said.report["findings"]]


def test_an_interruption_names_the_ways_on(changed: Provider, interrupted: Interrupt) -> None:
    text = interrupted("update", str(changed.folder))
    assert "capsmith update --continue" in text
    assert "--abort" in text
    assert "Aborted" not in text


def test_the_next_update_reports_that_it_completed_the_run(
    changed: Provider, interrupted: Interrupt
) -> None:
    interrupted("update", str(changed.folder))
    said = changed.update()
    assert (said.code, said.findings) == (0, {str(changed.folder): "run-completed"})
    assert changed.update().report["findings"] == []


def test_eject_again_completes_it(changed: Provider, interrupted: Interrupt) -> None:
    assert changed.update().code == 0
    interrupted("eject", str(changed.folder))
    said = run("eject", str(changed.folder), "--format", "json")
    assert (said.code, said.ids) == (0, {"run-completed"})
    assert not changed.path(".capsmith").exists()


def test_a_version_that_the_completed_run_dropped_is_no_error(
    provider: Provider, interrupted: Interrupt
) -> None:
    provider.edit(
        "provider.yaml",
        "releases:",
        "apiVersions: [{name: v1alpha1, served: false}, {name: v1alpha2, storage: true}]\n"
        "releases:",
    )
    assert provider.update().code == 0
    drop = ("--drop-api-version", "v1alpha1")
    interrupted("update", str(provider.folder), *drop)
    said = provider.update(*drop)
    assert (said.code, said.ids) == (0, {"run-completed"})
    assert provider.update(*drop).ids == {"drop-unknown"}


def test_continuing_an_abort_says_what_it_did(changed: Provider, interrupted: Interrupt) -> None:
    before = changed.tree()
    interrupted("update", str(changed.folder))
    interrupted("update", "--abort", str(changed.folder))
    said = changed.update("--continue")
    assert (said.code, said.findings) == (0, {str(changed.folder): "update-concluded"})
    assert messages(said) == [
        "the interrupted undo of the update is complete: the previous state is restored"
    ]
    assert changed.tree() == before


def test_an_unfinished_update_names_its_conflicts(provider: Provider) -> None:
    workflow = ".github/workflows/ci.yaml"
    provider.edit(workflow, "VERSION=v0.1.0\n", "VERSION=v0.1.0  # mine\n")
    provider.edit("provider.yaml", "releases: {", "releases: {v0.2: v1beta2, ")
    assert provider.update().files("conflicted") == {workflow}
    said = provider.update()
    assert said.ids == {"update-unfinished"}
    assert messages(said)[0].endswith(f" in {workflow}")


@pytest.mark.parametrize("command", ["update", "doctor", "eject"])
def test_a_file_instead_of_a_folder_is_named(provider: Provider, command: str) -> None:
    said = run(command, str(provider.path("provider.yaml")), "--format", "json")
    assert (said.code, said.ids) == (2, {"output-not-a-folder"})
    assert set(said.findings) == {str(provider.path("provider.yaml"))}


def test_runs_that_only_read_do_not_exclude_each_other(provider: Provider) -> None:
    reader = os.open(provider.folder, os.O_RDONLY)
    try:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert provider.update("--check").code == 0
        assert provider.update("--dry-run").code == 0
        assert run("doctor", str(provider.folder)).code == 0
        assert provider.update().ids == {"output-busy"}
    finally:
        os.close(reader)
