"""Releases and objects of any content end a run of capsmith conformance with a finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from capsmith.cli import main
from capsmith.clusters.processes.component import ProviderRelease, ReleaseComponent
from capsmith.clusters.processes.repository import ClusterctlRepository, localise_webhooks
from capsmith.errors import UnreadableInput
from capsmith.judge.running.objects import TEMPLATE_NAME, select_provider_objects

_METADATA = "releaseSeries: [{major: 0, minor: 1, contract: v1beta2}]\n"
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: capb-system}\n"
_BROKEN = (
    *("a: !!bool maybe", "a: !!timestamp now", "a: !!int ''", "a: [", "\x07"),
    *("[" * 100_000, "- " * 100_000, "a: &a [*a]", "- 1"),
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "metadata.yaml").write_text(_METADATA)
    (folder / "infrastructure-components.yaml").write_text(_NAMESPACE)
    return folder


def _find(*arguments: str) -> tuple[str, str, str]:
    result = CliRunner().invoke(main, ["conformance", *arguments, "--format", "json"])
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2, result.output
    (finding,) = json.loads(result.stdout)["findings"]
    return finding["id"], Path(finding["file"]).name, finding["hint"]


@pytest.mark.parametrize(
    "text",
    [
        *_BROKEN,
        "releaseSeries: {a: 1}",
        "releaseSeries: [1]",
        "releaseSeries: [{major: .inf, minor: 1}]",
        "releaseSeries: [{major: -1, minor: 1}]",
        "releaseSeries: [{major: true, minor: 1}]",
        "releaseSeries: [{major: 1, minor: null}]",
    ],
)
def test_metadata_without_release_series(release: Path, text: str) -> None:
    (release / "metadata.yaml").write_text(text)
    id, file, hint = _find(str(release), "--manager", "x")
    assert (id, file) == ("release-metadata", "metadata.yaml")
    assert hint


def test_a_namespace_in_metadata_of_another_encoding(release: Path) -> None:
    (release / "metadata.yaml").write_bytes(_METADATA.encode("utf-16"))
    assert _find(str(release), "--manager", "x")[0] == "release-metadata"


@pytest.mark.parametrize("text", _BROKEN)
@pytest.mark.parametrize("type", ["infrastructure", "addon"])
def test_components_that_are_no_yaml(release: Path, type: str, text: str) -> None:
    (release / f"{type}-components.yaml").write_text(text)
    id, file, _ = _find(str(release), "--manager", "x")
    assert file == f"{type}-components.yaml"
    assert id in ("manifest-yaml", "manifest-not-a-mapping")


@pytest.mark.parametrize(
    "text", ["kind: Namespace\n", "kind: [Namespace]\nmetadata: {name: a}\n", "metadata: [a]\n"]
)
def test_components_with_something_else_than_objects(release: Path, text: str) -> None:
    (release / "addon-components.yaml").write_text(f"{_NAMESPACE}---\n{text}")
    id, file, _ = _find(str(release), "--manager", "x")
    assert (id, file) == ("release-object", "addon-components.yaml")


@pytest.mark.parametrize("text", [_NAMESPACE.replace("Namespace", "Other"), _NAMESPACE * 2])
def test_components_without_one_namespace(release: Path, text: str) -> None:
    path = release / "infrastructure-components.yaml"
    path.write_text(text.replace("apiVersion", "---\napiVersion"))
    id, file, _ = _find(str(release), "--manager", "x")
    assert (id, file) == ("release-namespace", path.name)


@pytest.mark.parametrize("option", ["--objects", "--apply"])
@pytest.mark.parametrize(
    "text", ["a: 1\n", "kind: A\napiVersion: v1\n", "kind: A\nmetadata: {name: a}\n"]
)
def test_files_with_something_else_than_objects(release: Path, option: str, text: str) -> None:
    path = release.parent / "objects.yaml"
    path.write_text(text)
    id, file, _ = _find(str(release), "--manager", "x", option, str(path))
    assert (id, file) == ("manifest-object", "objects.yaml")


@pytest.mark.parametrize("option", ["--objects", "--apply"])
def test_files_that_do_not_exist(release: Path, option: str) -> None:
    path = release.parent / "nowhere.yaml"
    id, file, hint = _find(str(release), "--manager", "x", option, str(path))
    assert (id, file) == ("input-missing", "nowhere.yaml")
    assert "identity with its Secret" in hint
    assert "capsmith new" not in hint


@pytest.mark.parametrize("value", [None, 1, "x", [1], [None], {"a": 1}])
def test_objects_with_values_of_other_types(tmp_path: Path, value: object) -> None:
    name = {"name": "capb-system"}
    metadata = {"name": "x", "labels": value, "annotations": value}
    documents = [
        {"kind": "Namespace", "metadata": {**name, "labels": value}},
        {"kind": "Deployment", "metadata": name, "spec": value},
        {"kind": "Deployment", "metadata": name, "spec": {"template": {"spec": value}}},
        {"kind": "ClusterRole", "metadata": name, "rules": value},
        {"kind": "ClusterRole", "metadata": name, "rules": [value, {"verbs": value}]},
        {"kind": "ClusterRoleBinding", "metadata": name, "subjects": value, "roleRef": value},
        {"kind": "CustomResourceDefinition", "metadata": metadata, "spec": value},
        {"kind": "CustomResourceDefinition", "metadata": metadata, "spec": {"conversion": value}},
        {"kind": "ValidatingWebhookConfiguration", "metadata": metadata, "webhooks": value},
    ]
    path = tmp_path / "infrastructure-components.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    component = ReleaseComponent(tmp_path, "infrastructure")
    assert component.label == "infrastructure-capb-system".replace("cap", "").replace("-system", "")
    assert component.listed == []
    assert component.has_webhooks
    assert not component.converts
    assert [localise_webhooks(each, "ca") for each in component.components]


def test_webhooks_with_an_address_keep_it() -> None:
    client = {"url": "https://example.com"}
    webhook = {"kind": "MutatingWebhookConfiguration", "webhooks": [{"clientConfig": client}]}
    assert localise_webhooks(webhook, "ca")["webhooks"] == [{"clientConfig": client}]


def test_binaries_in_a_release_are_left_out(release: Path, tmp_path: Path) -> None:
    (release / "manager-linux-amd64").write_bytes(b"\x7fELF\xff\xfe")
    repository = ClusterctlRepository(tmp_path / "repository")
    ProviderRelease(release, "v0.1.0").add_to(repository, "ca")
    stored = {path.name for path in repository.base.rglob("v0.1.0/*")}
    assert stored == {"metadata.yaml", "infrastructure-components.yaml"}


@pytest.mark.parametrize("value", [None, 1, [], {"template": None}, {"template": {"spec": 1}}])
def test_a_template_with_values_of_other_types(value: object) -> None:
    name: dict[str, Any] = {
        "metadata": {"name": TEMPLATE_NAME},
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1",
    }
    documents = [
        {"kind": "BoxCluster", **name},
        {"kind": "BoxMachineTemplate", **name, "spec": value},
        {"kind": "MachineDeployment", **name, "spec": value},
    ]
    roles = {"BoxCluster": "InfraCluster", "BoxMachineTemplate": "InfraMachineTemplate"}
    objects = select_provider_objects(documents, roles)
    assert objects.machine("a", "b", "c")["spec"] == {}


def test_components_that_are_gone(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput) as caught:
        _ = ReleaseComponent(tmp_path, "infrastructure").components
    assert caught.value.finding.id == "release-yaml"
