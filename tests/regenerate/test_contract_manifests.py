"""Manifests of the author when a provider moves from one contract to the next."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
