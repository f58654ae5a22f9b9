"""Claims and addresses in the shapes of both versions of ipam.cluster.x-k8s.io."""

from __future__ import annotations

import pytest

from capsmith_runtime.contract.ipam import DIALECTS, IPAddress, IpamDialect
from capsmith_runtime.contract.model import ObjectRef

POOL = ObjectRef("ipam.example.com", "FooPool", "pool")
REFERENCE = {"apiGroup": "ipam.example.com", "kind": "FooPool", "name": "pool"}
LABEL = "cluster.x-k8s.io/cluster-name"

with_dialects = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@with_dialects
@pytest.mark.parametrize("gateway", ["10.0.0.1", None])
def test_an_address_has_all_that_users_configure(dialect: IpamDialect, gateway: str | None) -> None:
    """Proves: IP-06."""
    address = IPAddress(
        name="one",
        namespace="default",
        address="10.0.0.2",
        prefix=0,
        gateway=gateway,
        claim_name="one",
        pool=POOL,
    )
    spec = dialect.build_address_spec(address)
    expected = {"address": "10.0.0.2", "prefix": 0, "claimRef": {"name": "one"}}
    assert spec == {**expected, "poolRef": REFERENCE, **({"gateway": gateway} if gateway else {})}
    obj = {"metadata": {"name": "one", "namespace": "default"}, "spec": spec}
    assert dialect.read_address(obj) == address


@with_dialects
def test_the_cluster_of_a_claim_is_in_the_spec_or_a_label(dialect: IpamDialect) -> None:
    """Proves: IP-07."""
    metadata = {"name": "one", "namespace": "default", "labels": {LABEL: "former"}}
    spec = dialect.build_claim_spec(POOL, "demo")
    assert dialect.read_claim({"metadata": metadata, "spec": spec}).cluster_name == "demo"
    spec = dialect.build_claim_spec(POOL, "")
    assert dialect.read_claim({"metadata": metadata, "spec": spec}).cluster_name == "former"
