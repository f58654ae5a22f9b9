"""An editor saves while ``capsmith update`` runs: its text stays, and the command reports it."""

from __future__ import annotations

import pytest

from capsmith.workspace.repository import Change, Repository
from tests.regenerate.conftest import Provider, Said

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"
MINE = "\n# saved meanwhile\n"


@pytest.fixture
def changed(provider: Provider) -> Provider:
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    provider.append("provider.yaml", "dependencies: [requests]\n")
    return provider


def update_while_saving(provider: Provider, name: str, patch: pytest.MonkeyPatch) -> Said:
    """Save a file between the plan of an update and its first write."""
    apply = Repository.apply

    def save_and_apply(repository: Repository, change: Change) -> None:
        provider.append(name, MINE)
        apply(repository, change)

    patch.setattr(Repository, "apply", save_and_apply)
    said = provider.update("--runtime", "package")
    patch.undo()
    return said


@pytest.mark.parametrize("name", ["pyproject.toml", "provider.yaml", MODEL])
def test_a_file_of_the_change_is_kept_and_the_update_refused(
    changed: Provider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = changed.tree()
    said = update_while_saving(changed, name, monkeypatch)
    assert (said.code, said.findings) == (1, {name: "output-saved"})
    content, mode = before[name]
    assert changed.tree() == {**before, name: (content + MINE.encode(), mode)}
    if name == "provider.yaml":
        assert changed.update("--runtime", "package").code == 0
        assert changed.path(name).read_text().endswith(MINE)


def test_any_other_file_stops_nothing(changed: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    said = update_while_saving(changed, "README.md", monkeypatch)
    assert said.code == 0
    assert changed.path("README.md").read_text().endswith(MINE)
    assert b"rack" in changed.tree()[MODEL][0]
