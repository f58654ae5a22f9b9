"""Unit tests of Ec2ClusterValidator; they need no API server."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.admission import AdmissionWarning
from capsmith_runtime.testing import admission as testing
from capsmith_runtime.testing.kubernetes import fake_client

from cluster_api_provider_ec2._generated.api.ec2_cluster import Ec2ClusterSpec
from cluster_api_provider_ec2._generated.wiring import load
from cluster_api_provider_ec2.webhooks.ec2_cluster import Ec2ClusterValidator

from .infrastructure import REGION

SPEC = testing.spec_from(Ec2ClusterSpec, {"region": REGION, "vpcCIDR": "10.0.0.0/16"})


def _warnings(*objects: dict[str, Any], name: str = "c1", **cidrs: tuple[str, ...]) -> list[str]:
    client = fake_client(load("infrastructure"), *objects)
    cluster = testing.core_cluster("c1", **cidrs) if cidrs else None
    obj = testing.admission_object(SPEC, name, client=client, cluster=cluster)
    found = list(Ec2ClusterValidator().validate_create(obj))
    assert list(Ec2ClusterValidator().validate_update(obj, obj)) == []
    assert all(isinstance(each, AdmissionWarning) for each in found), "nothing is refused"
    return [each.message for each in found]


def _group(owner: str | None) -> dict[str, Any]:
    owners = [{"apiVersion": "x/v1", "kind": "Ec2Cluster", "name": owner, "uid": "1"}]
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "Ec2SecurityGroup",
        "metadata": {
            "name": "c1",
            "namespace": "default",
            "ownerReferences": owners if owner is not None else [],
        },
        "spec": {"region": REGION},
    }


def test_nothing_exists_yet() -> None:
    assert _warnings() == []
    assert _warnings(_group(owner=None), name="") == [], "the name is generated"


def test_addresses_overlap() -> None:
    pods = ("10.0.128.0/17", "fd00::/48")

    assert _warnings(pod_cidrs=pods, service_cidrs=("10.96.0.0/12",)) == [
        "vpcCIDR 10.0.0.0/16 overlaps with 10.0.128.0/17, the pods of Cluster c1"
    ]
    assert _warnings(service_cidrs=("10.0.0.0/8",)) == [
        "vpcCIDR 10.0.0.0/16 overlaps with 10.0.0.0/8, the services of Cluster c1"
    ]


def test_the_security_group_belongs_to_another() -> None:
    assert _warnings(_group(owner="c1")) == []
    for owner in (None, "c2"):
        assert _warnings(_group(owner)) == [
            "Ec2SecurityGroup c1 exists, and the cluster needs one of this name"
        ]
