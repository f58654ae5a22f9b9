"""``capsmith update`` that only looks: ``--check``, ``--dry-run`` and ``--diff``."""

from __future__ import annotations

import pytest

from tests.regenerate.conftest import Provider, run

PACKAGE = "src/cluster_api_provider_acme"
MODEL = f"{PACKAGE}/_generated/api/acme_machine.py"


@pytest.mark.parametrize("argument", ["--check", "--dry-run", "--diff"])
def test_a_preview_changes_nothing_and_reports_the_changes(
    provider: Provider, argument: str
) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    before = provider.tree()
    said = provider.update(argument)
    assert said.code == (1 if argument == "--check" else 0)
    assert provider.tree() == before
    would = said.files("updated")
    assert would
    assert provider.update().files("updated") == would


def test_check_reports_drift_of_every_kind(provider: Provider) -> None:
    base = provider.path(".capsmith/base/Makefile")
    for damage in (
        lambda: provider.path(MODEL).unlink(),
        lambda: provider.edit(".capsmith/lock.yaml", "owner: scaffold", "owner: generated"),
        lambda: base.unlink(),
        lambda: base.write_text("another"),
        lambda: provider.append("provider.yaml", "# a comment\n"),
    ):
        assert provider.update("--check").code == 0
        damage()
        assert provider.update("--check").code == 1
        assert provider.update().code == 0
    assert provider.update("--check").code == 0


def test_a_diff_shows_each_change(provider: Provider) -> None:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    provider.path("tests/test_conformance.py").unlink()
    said = provider.update("--diff")
    diffs = {file["path"]: file["diff"] for file in said.report["files"] if "diff" in file}
    assert set(diffs) == said.files("updated") | said.files("removed") | said.files("created")
    assert "rack" in diffs[MODEL]
    assert all("\n+++ /dev/null\n" in diffs[path] for path in said.files("removed"))
    text = run("update", "--diff", str(provider.folder)).text
    assert f"\n--- a/{MODEL}\n+++ b/{MODEL}\n@@ " in text


def test_a_diff_of_an_edited_generated_file_shows_the_edit(provider: Provider) -> None:
    provider.append(MODEL, "# edited \x1b[31m\n")
    said = run("update", "--check", "--diff", str(provider.folder))
    assert said.code == 1
    assert "\n-# edited \\x1b[31m\n" in said.text
