"""Scaffolds: refreshed while they have no edits, and offered afterwards."""

from __future__ import annotations

import pytest
import yaml

from capsmith.tree import digest
from tests.regenerate.conftest import Change, Provider

PACKAGE = "src/cluster_api_provider_acme"
SAMPLE = "config/samples/acme_machine.yaml"
UNIT_TEST = "tests/test_acme_machine.py"
TEMPLATE = "templates/cluster-template.yaml"
CLOUD = f"{PACKAGE}/cloud.py"
RECONCILER = f"{PACKAGE}/controllers/acme_machine.py"
FIELD = ("size: string!", "size: string!\n      keyName: string!")


def locked(provider: Provider, path: str) -> dict[str, str]:
    lock = yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text())
    return dict(lock["files"][path])


def change_code(change_blueprint: Change) -> None:
    """Simulate a release of capsmith that renames a method of the simulated cloud."""
    for name in ("cloud.py", "controllers/__resource__.infra_machine.py"):
        change_blueprint(f"project/src/__package__/{name}.jinja", "find_server", "look_up_server")


def test_scaffolds_that_nobody_edited_follow_the_description(provider: Provider) -> None:
    provider.edit("provider.yaml", *FIELD)
    said = provider.update()
    assert said.code == 0
    assert {SAMPLE, UNIT_TEST, TEMPLATE} <= said.files("updated")
    for path in (SAMPLE, UNIT_TEST, TEMPLATE):
        assert "keyName" in provider.path(path).read_text()
        assert locked(provider, path)["digest"] == digest(provider.path(path).read_bytes())
    assert provider.update("--check").code == 0
    assert provider.update().files("updated") == set()


def test_permissions_and_line_ends_of_a_scaffold_stay(provider: Provider) -> None:
    provider.path(SAMPLE).chmod(0o600)
    provider.path(SAMPLE).write_bytes(provider.path(SAMPLE).read_bytes().replace(b"\n", b"\r\n"))
    provider.edit("provider.yaml", *FIELD)
    assert SAMPLE in provider.update().files("updated")
    text = provider.path(SAMPLE).read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    assert provider.path(SAMPLE).stat().st_mode & 0o777 == 0o600


def test_an_edited_scaffold_is_kept_and_its_new_text_reported_once(provider: Provider) -> None:
    written = locked(provider, SAMPLE)["digest"]
    provider.append(SAMPLE, "# mine\n")
    mine = provider.path(SAMPLE).read_bytes()
    provider.edit("provider.yaml", *FIELD)
    assert provider.update("--dry-run").findings == {SAMPLE: "scaffold-behind"}
    said = provider.update()
    (finding,) = said.report["findings"]
    assert (said.code, finding["id"], finding["file"]) == (0, "scaffold-behind", SAMPLE)
    assert f"capsmith update --diff --restore {SAMPLE};" in finding["hint"]
    assert provider.path(SAMPLE).read_bytes() == mine
    entry = locked(provider, SAMPLE)
    assert entry["digest"] == written
    assert entry["offered"].startswith("sha256:")
    assert provider.update("--check").report["findings"] == []
    assert provider.update("--check").code == 0


def test_the_new_text_of_an_edited_scaffold_is_shown_and_taken(provider: Provider) -> None:
    provider.append(SAMPLE, "# mine\n")
    provider.edit("provider.yaml", *FIELD)
    provider.update()
    before = provider.tree()
    shown = provider.update("--diff", "--restore", SAMPLE)
    (file,) = shown.report["files"]
    assert file["path"] == SAMPLE
    assert "\n-# mine\n" in file["diff"]
    assert "\n+  keyName: " in file["diff"]
    refused = provider.update("--restore", SAMPLE)
    assert (refused.code, refused.findings) == (1, {SAMPLE: "scaffold-edited"})
    assert provider.tree() == before
    taken = provider.update("--restore", SAMPLE, "--force")
    assert (taken.code, taken.findings) == (0, {SAMPLE: "scaffold-replaced"})
    assert "# mine" not in provider.path(SAMPLE).read_text()
    assert "offered" not in locked(provider, SAMPLE)
    assert provider.update("--check").code == 0


def test_a_scaffold_whose_new_text_was_declined_stays_declined(provider: Provider) -> None:
    original = provider.path(SAMPLE).read_bytes()
    provider.append(SAMPLE, "# mine\n")
    provider.edit("provider.yaml", *FIELD)
    provider.update()
    provider.path(SAMPLE).write_bytes(original)
    for _ in range(2):
        assert provider.update("--check").code == 0
        assert provider.update().code == 0
    assert provider.path(SAMPLE).read_bytes() == original
    assert provider.update("--restore", SAMPLE).files("updated") == {SAMPLE}
    assert "keyName" in provider.path(SAMPLE).read_text()


@pytest.mark.parametrize("how", ["edited", "deleted"])
def test_code_of_another_release_is_written_as_a_whole_or_not_at_all(
    provider: Provider, change_blueprint: Change, how: str
) -> None:
    if how == "edited":
        provider.append(CLOUD, "# mine\n")
    else:
        provider.path(CLOUD).unlink()
    change_code(change_blueprint)
    before = provider.path(RECONCILER).read_bytes()
    said = provider.update()
    assert said.code == 0
    assert said.findings[RECONCILER] == "scaffold-behind"
    assert (CLOUD in said.findings) is (how == "edited")
    assert provider.path(RECONCILER).read_bytes() == before
    for _ in range(2):
        assert provider.update("--check").code == 0
        assert provider.update().report["findings"] == []
    assert provider.path(RECONCILER).read_bytes() == before
    assert provider.update("--restore", RECONCILER).files("updated") == {RECONCILER}
    assert provider.update("--check").code == 0


def test_code_that_nobody_edited_follows_another_release(
    provider: Provider, change_blueprint: Change
) -> None:
    provider.append(TEMPLATE, "# mine\n")
    change_code(change_blueprint)
    said = provider.update()
    assert (said.code, said.ids) == (0, set())
    assert said.files("updated") == {CLOUD, RECONCILER}
    assert "look_up_server" in provider.path(RECONCILER).read_text()


def test_a_scaffold_that_is_generated_later_was_written_once(
    provider: Provider, change_blueprint: Change
) -> None:
    """The lock says what was written, not what two releases after that would have written."""
    provider.append(TEMPLATE, "# mine\n")
    provider.edit("provider.yaml", *FIELD)
    provider.update()
    text = provider.path(TEMPLATE).read_text().removesuffix("# mine\n")
    provider.path(TEMPLATE).write_text(text)
    change_blueprint(
        "manifest.yaml",
        "templates/cluster-template.v1beta2.yaml.jinja, target: templates/cluster-template.yaml, "
        "for_each: component, when: [component_infrastructure, contract_v1beta2], owner: scaffold",
        "templates/cluster-template.v1beta2.yaml.jinja, target: templates/cluster-template.yaml, "
        "for_each: component, when: [component_infrastructure, contract_v1beta2], owner: generated",
    )
    said = provider.update()
    assert (said.code, TEMPLATE in said.files("updated")) == (0, True)


def test_a_scaffold_in_the_place_of_a_file_of_the_author_is_reported(provider: Provider) -> None:
    path = "src/cluster_api_provider_acme/controllers/acme_server.py"
    provider.path(path).write_text("# mine\n")
    provider.edit("provider.yaml", "AcmeMachine", "AcmeServer")
    said = provider.update()
    assert (said.code, said.findings[path]) == (0, "scaffold-exists")
    assert provider.path(path).read_text() == "# mine\n"
    assert provider.update().report["findings"] == []


def test_files_of_a_renamed_package_name_their_successors(provider: Provider) -> None:
    old = "src/cluster_api_provider_acme/cloud.py"
    provider.append(old, "# mine\n")
    provider.append("provider.yaml", "package: acme_provider\n")
    said = provider.update()
    (hint,) = (f["hint"] for f in said.report["findings"] if f["file"] == old)
    assert hint.startswith("Continue in src/acme_provider/cloud.py: ")


def test_left_over_scaffolds_that_nobody_edited_can_be_deleted(provider: Provider) -> None:
    edited = "src/cluster_api_provider_acme/controllers/acme_machine.py"
    provider.append(edited, "# mine\n")
    provider.edit("provider.yaml", "AcmeMachine", "AcmeServer")
    said = provider.update()
    hints = {f["file"]: f["hint"] for f in said.report["findings"]}
    assert "continue in" in hints.pop(edited)
    assert set(hints.values()) == {"Delete it: you have not edited it."}
    assert "tests/test_acme_machine.py" in hints


def test_a_new_kind_whose_scaffold_imports_what_was_deleted_is_reported(
    provider: Provider,
) -> None:
    provider.path(CLOUD).unlink()
    provider.edit(
        "provider.yaml", "infrastructure:\n", "infrastructure:\n  AcmeNet: {implements: Resource}\n"
    )
    said = provider.update()
    assert said.code == 0
    new = {f"{PACKAGE}/controllers/acme_net.py", "tests/test_acme_net.py"}
    assert new <= said.files("created")
    found = {each["file"]: each for each in said.report["findings"]}
    assert {path for path in found if found[path]["id"] == "scaffold-module-deleted"} == new
    assert f"--restore {CLOUD}" in found[f"{PACKAGE}/controllers/acme_net.py"]["hint"]
    assert provider.update().report["findings"] == []


def test_a_new_kind_in_a_repository_with_its_simulation_is_not_reported(provider: Provider) -> None:
    provider.edit(
        "provider.yaml", "infrastructure:\n", "infrastructure:\n  AcmeNet: {implements: Resource}\n"
    )
    assert provider.update().report["findings"] == []
