"""Sections of kinds without a role: those of their group, or of the other kinds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from capsmith.commands.load import load_contracts
from capsmith.contract.model import Contract
from capsmith.findings import Severity
from capsmith.importing.refusals import check_data
from tests.unit.importing.crds import crd, imported, provider, template_of

_ADDONS = "addons.cluster.x-k8s.io"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
_CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
_IPAM = "ipam.cluster.x-k8s.io"


def _contracts() -> dict[str, Contract]:
    return {each.version: each for each in load_contracts()}


def _labelled(made: dict[str, Any], type_: str) -> dict[str, Any]:
    made["metadata"]["labels"]["cluster.x-k8s.io/provider"] = f"{type_}-acme"
    return made


def _endpoint() -> dict[str, Any]:
    fields = {"host": {"type": "string"}, "port": {"type": "integer", "format": "int32"}}
    return {"controlPlaneEndpoint": {"type": "object", "properties": fields}}


def _addons(group: str = _ADDONS) -> list[dict[str, Any]]:
    selector = {"clusterSelector": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return [
        _labelled(crd("AcmeChart", group=group, spec=selector), "addon"),
        _labelled(crd("AcmeRelease", group=group, spec={"size": {"type": "string"}}), "addon"),
    ]


def _pools() -> list[dict[str, Any]]:
    return [
        _labelled(crd("AcmeIPPool", group=_IPAM), "ipam"),
        _labelled(crd("AcmeLease", group="net.acme.io"), "ipam"),
    ]


def _configs() -> list[dict[str, Any]]:
    secret = {"dataSecretName": {"type": "string"}}
    return [
        _labelled(crd("AcmeConfig", group=_BOOTSTRAP, status=secret), "bootstrap"),
        _labelled(crd("AcmeConfigTemplate", group=_BOOTSTRAP), "bootstrap"),
        _labelled(crd("AcmeToken", group=_BOOTSTRAP), "bootstrap"),
    ]


@pytest.mark.parametrize(
    ("crds", "sections"),
    [
        (_addons(), {"addon": {"AcmeChart": "Addon", "AcmeRelease": "Resource"}}),
        (
            _addons("addon.cluster.x-k8s.io"),
            {"addon": {"AcmeChart": "Addon", "AcmeRelease": "Resource"}},
        ),
        (_pools(), {"ipam": {"AcmeIPPool": "IPPool", "AcmeLease": "Resource"}}),
        (_configs(), {"bootstrap": {"AcmeConfig": "BootstrapConfig", "AcmeToken": "Resource"}}),
        (_addons()[1:], {"addon": {"AcmeRelease": "Resource"}}),
        # Without infrastructure nothing reads identities as such.
        (
            [
                *_configs(),
                _labelled(
                    crd("AcmeClusterIdentity", group=_BOOTSTRAP, scope="Cluster"), "bootstrap"
                ),
            ],
            {
                "bootstrap": {
                    "AcmeConfig": "BootstrapConfig",
                    "AcmeToken": "Resource",
                    "AcmeClusterIdentity": "Resource",
                }
            },
        ),
    ],
    ids=["addon", "addon-group", "ipam", "bootstrap", "no-role", "identity"],
)
def test_a_provider_without_infrastructure_is_valid(
    crds: list[dict[str, Any]], sections: dict[str, dict[str, str]]
) -> None:
    data = yaml.safe_load(imported(*crds).text)
    found = {
        section: {kind: entry["implements"] for kind, entry in data[section].items()}
        for section in ("infrastructure", "bootstrap", "controlPlane", "ipam", "addon")
        if section in data
    }
    assert found == sections
    assert "credentials" not in data
    findings = check_data(data, _contracts()).findings
    assert [each.message for each in findings if each.severity is Severity.ERROR] == []


def test_kinds_are_in_the_section_of_their_group() -> None:
    made = imported(
        *provider(),
        _labelled(crd("AcmeVolume"), "infrastructure"),
        _labelled(crd("AcmeDisk", group="disks.acme.io"), "infrastructure"),
        *_configs(),
    )
    data = yaml.safe_load(made.text)
    assert {"AcmeVolume", "AcmeDisk"} <= set(data["infrastructure"])
    assert set(data["bootstrap"]) == {"AcmeConfig", "AcmeToken"}


def test_a_kind_of_remediation_has_a_template() -> None:
    spec = {"strategy": {"type": "string"}}
    pair = [crd("AcmeRemediation", spec=spec), template_of("AcmeRemediation", spec)]
    made = imported(*provider(), *pair, crd("AcmeHostRemediation", spec=spec))
    data = yaml.safe_load(made.text)["infrastructure"]
    assert data["AcmeRemediation"]["implements"] == "Remediation"
    assert "AcmeRemediationTemplate" not in data
    assert data["AcmeHostRemediation"]["implements"] == "Resource"


def test_sections_that_share_a_group_are_one_component() -> None:
    plane = {"version": {"type": "string"}, "controlPlaneEndpoint": {"type": "object"}}
    crds = [*provider(), crd("AcmeManagedControlPlane", spec=plane)]
    found = yaml.safe_load(imported(*crds).text)
    assert found["components"] == {"infrastructure": ["infrastructure", "controlPlane"]}
    apart = [*provider(), crd("AcmeControlPlane", spec=plane, group=_CONTROL_PLANE)]
    assert "components" not in yaml.safe_load(imported(*apart).text)


def test_a_contract_that_only_some_kinds_follow_is_left_out() -> None:
    """As in ibmcloud v0.14.0, of which only some kinds follow the newest contract."""
    crds = provider()
    for made in crds[2:]:
        labels = made["metadata"]["labels"]
        labels["cluster.x-k8s.io/v1beta1"] = labels.pop("cluster.x-k8s.io/v1beta2")
    data = yaml.safe_load(imported(*crds).text)
    assert data["contracts"] == ["v1beta1"]
    assert data["apiVersions"] == ["v1beta1"]


def test_a_cluster_in_a_group_of_its_own_needs_no_template() -> None:
    spec = {"providerID": {"type": "string"}}
    pair = [crd("AcmeMachine", spec=spec), template_of("AcmeMachine", spec)]
    crds = [crd("AcmeCluster", spec=_endpoint()), *pair]
    for made in crds:
        made["spec"]["group"] = "acme.io"
    data = yaml.safe_load(imported(*crds).text)
    roles = {kind: entry["implements"] for kind, entry in data["infrastructure"].items()}
    assert roles == {"AcmeCluster": "InfraCluster", "AcmeMachine": "InfraMachine"}
    assert data["infrastructure"]["AcmeCluster"]["template"] is False
