"""Manifests of the author when a provider moves from one contract to the next."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.regenerate.conftest import Provider, run
from tests.regenerate.test_contract_upgrade import BOTH, DROP, NEW, OLD, upgraded

SAMPLE = """apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: AcmeMachine
metadata: {name: extra}
spec: {size: small, image: debian}
"""


@pytest.fixture(scope="module")
def generated_old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "acme"
    folder.mkdir()
    (folder / "provider.yaml").write_text(OLD)
    assert run("generate", str(folder / "provider.yaml")).code == 0
    return folder


@pytest.fixture
def old(generated_old: Path, tmp_path: Path) -> Provider:
    return Provider(Path(shutil.copytree(generated_old, tmp_path / "acme")))


@pytest.mark.parametrize(
    "name",
    [
        "templates/my template.yaml",
        "templates/a:b.yaml",
        "templates/line\nend.yaml",
        "config/samples/größe.yaml",
        "config/overlay/patch (1).yaml",
    ],
)
def test_a_manifest_may_have_any_name(old: Provider, name: str) -> None:
    old.path(name).write_text(SAMPLE)
    before = old.tree()
    assert old.update(*BOTH, "--dry-run").code == 0
    assert old.tree() == before
    plan = upgraded(old, *BOTH)
    places = {place for hand in plan["byHand"] for place in hand["places"]}
    assert f"{name}:1" in places
    upgraded(old, *NEW)
    text = run("update", str(old.folder), *DROP).text
    assert f"{name}:1".replace("\n", "\\n") in text
    assert old.path(name).read_text() == SAMPLE


def test_a_manifest_beside_a_scaffold_that_is_a_link_is_found(old: Provider) -> None:
    old.path("templates/extra.yaml").write_text(SAMPLE)
    for scaffold in [*old.path("templates").glob("cluster-*.yaml")]:
        scaffold.rename(scaffold.with_suffix(".moved"))
        scaffold.symlink_to(scaffold.with_suffix(".moved").name)
    plan = upgraded(old, *BOTH)
    assert "templates/extra.yaml:1" in {each for hand in plan["byHand"] for each in hand["places"]}


TEMPLATE = "templates/cluster-template.yaml"


def hands(plan: dict[str, Any], path: str) -> set[str]:
    """Return the stages in which the author must change a file."""
    return {
        hand["when"]
        for hand in plan["byHand"]
        if any(place.startswith(f"{path}:") for place in hand["places"])
    }


def own_versions(provider: Provider) -> set[str]:
    """Return the API versions of the provider's objects in samples and templates."""
    return {
        str(document["apiVersion"]).rpartition("/")[2]
        for folder in ("templates", "config/samples")
        for path in provider.path(folder).glob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if str(document.get("apiVersion", "")).startswith("infrastructure.")
    }


def test_manifests_that_nobody_edited_follow_each_stage(old: Provider) -> None:
    assert own_versions(old) == {"v1alpha1"}
    for stage in (BOTH, NEW, DROP):
        plan = upgraded(old, *stage)
        assert own_versions(old) == {"v1alpha2"}
        assert not [hand for hand in plan["byHand"] if hand["when"]]


def test_an_edited_manifest_is_named_with_the_stage_that_needs_the_change(old: Provider) -> None:
    old.append(TEMPLATE, "# mine\n")
    assert hands(upgraded(old, *BOTH), TEMPLATE) == {"", "before the next stage"}
    text = run("update", str(old.folder), *NEW).text
    assert "author, before you release this: These files use an API version that is not" in text
    assert f"    {TEMPLATE}:" in text
    assert "before you release this" in hands(upgraded(old, *NEW), TEMPLATE)
    assert old.update("--restore", TEMPLATE, "--force").files("updated") == {TEMPLATE}
    assert not hands(upgraded(old, *NEW), TEMPLATE)


def test_a_stage_with_conflicts_ends_with_the_way_to_finish_it(old: Provider) -> None:
    old.edit(".github/workflows/ci.yaml", "VERSION=v0.1.0\n", "VERSION=v0.1.0  # mine\n")
    text = run("update", str(old.folder), *BOTH).text
    assert "[~] v0.2: both contracts (unfinished: conflicts)\n" in text
    assert text.splitlines()[-1].startswith("next: resolve the conflicts")
    assert text.splitlines()[-1].endswith("capsmith update --continue")
    assert "next stage" not in run("doctor", str(old.folder)).text


def test_a_preview_of_a_stage_marks_nothing_as_done(old: Provider) -> None:
    text = run("update", str(old.folder), *BOTH, "--dry-run").text
    assert "[~] v0.2: both contracts (preview)\n" in text
    assert "[x]" not in text
