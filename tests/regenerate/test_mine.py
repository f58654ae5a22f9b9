"""Files that the author takes over from capsmith and hands back."""

from __future__ import annotations

import pytest

from tests.regenerate.conftest import Change, Provider

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"
RECONCILER = "src/cluster_api_provider_acme/controllers/acme_machine.py"


def test_a_file_that_was_taken_over_is_left_alone(provider: Provider) -> None:
    provider.append(MODEL, "# mine\n")
    assert provider.update().ids == {"output-edited"}
    taken = provider.update("--mine", MODEL)
    assert (taken.code, taken.files("kept") >= {MODEL}) == (0, True)
    assert provider.update("--check").code == 0
    provider.edit("provider.yaml", "size: string!", "size: string!\n      rack: string")
    said = provider.update("--force")
    assert (said.code, said.findings) == (0, {MODEL: "output-behind"})
    assert provider.path(MODEL).read_text().endswith("# mine\n")
    checked = provider.update("--check")
    assert (checked.code, checked.ids) == (0, {"output-behind"})
    (diff,) = (file["diff"] for file in provider.update("--diff").report["files"] if "diff" in file)
    assert "rack" in diff
    provider.path(MODEL).unlink()
    assert provider.update().code == 0
    assert not provider.path(MODEL).exists()


def test_force_replaces_a_generated_file_that_is_handed_back(
    provider: Provider,
) -> None:
    original = provider.path(MODEL).read_text()
    provider.append(MODEL, "# mine\n")
    provider.update("--mine", MODEL)
    before = provider.tree()
    assert provider.update("--not-mine", MODEL).findings == {MODEL: "output-edited"}
    assert provider.tree() == before
    assert provider.update("--not-mine", MODEL, "--force").code == 0
    assert provider.path(MODEL).read_text() == original
    assert provider.update("--check").code == 0


def test_a_shared_file_that_is_handed_back_is_merged_from_its_base(
    provider: Provider, change_blueprint: Change
) -> None:
    provider.append("Makefile", "mine:\n")
    provider.update("--mine", "Makefile")
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    assert provider.update().findings == {"Makefile": "output-behind"}
    assert "podman" not in provider.path("Makefile").read_text()
    assert provider.update("--not-mine", "Makefile").files("merged") == {"Makefile"}
    text = provider.path("Makefile").read_text()
    assert "podman" in text
    assert text.endswith("mine:\n")
    assert provider.update("--check").code == 0


def test_a_link_in_the_place_of_a_file_that_was_taken_over(provider: Provider) -> None:
    provider.path("Makefile").rename(provider.path("real.mk"))
    provider.path("Makefile").symlink_to("real.mk")
    provider.append("provider.yaml", "title: Another\n")
    assert provider.update().ids == {"output-not-regular"}
    assert provider.update("--mine", "Makefile").code == 0
    assert provider.path("Makefile").is_symlink()


@pytest.mark.parametrize("path", ["nowhere", RECONCILER, "provider.yaml", "../outside"])
@pytest.mark.parametrize(
    ("option", "finding"), [("--mine", "mine-already"), ("--not-mine", "mine-not")]
)
def test_what_is_not_capsmiths_is_not_handed_over(
    provider: Provider, option: str, path: str, finding: str
) -> None:
    provider.append("provider.yaml", "title: Another\n")
    before = provider.tree()
    said = provider.update(option, path)
    assert (said.code, said.findings) == (1, {path: finding})
    assert (said.report["files"], said.report["runtime"]) == ([], None)
    assert provider.tree() == before


def test_a_scaffold_that_is_generated_from_now_on_is_taken_over(
    provider: Provider, change_blueprint: Change
) -> None:
    provider.append(RECONCILER, "# mine\n")
    change_blueprint(
        "manifest.yaml",
        "for_each: reconciled_resource, when: infra_machine, owner: scaffold}\n- {source: tests",
        "for_each: reconciled_resource, when: infra_machine, owner: generated}\n- {source: tests",
    )
    said = provider.update()
    assert (said.code, said.findings) == (1, {RECONCILER: "output-was-yours"})
    assert f"--mine {RECONCILER}" in said.report["findings"][0]["hint"]
    assert provider.update("--mine", RECONCILER).code == 0
    assert provider.path(RECONCILER).read_text().endswith("# mine\n")
    assert provider.update("--check").code == 0


def test_a_file_of_a_removed_kind_belongs_to_the_author(provider: Provider) -> None:
    (crd,) = provider.folder.glob("config/crd/bases/*_acmeidentities.yaml")
    name = crd.relative_to(provider.folder).as_posix()
    provider.update("--mine", name)
    provider.edit("provider.yaml", "credentials: AcmeIdentity\n", "")
    said = provider.update()
    assert said.findings[name] == "output-mine-left-over"
    assert crd.exists()
    assert provider.update().report["findings"] == []
    assert name not in provider.path(".capsmith/lock.yaml").read_text()
