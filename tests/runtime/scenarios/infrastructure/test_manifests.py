"""The generated manifests in config/ and the generated code agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.infrastructure.kinds import InfraClusterKind, InfraMachineKind
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.provider import ProviderUnderTest
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("acme")


@dataclass(frozen=True, kw_only=True)
class ManifestCase(Case):
    """One kind of clusters or machines."""

    kind: InfraClusterKind | InfraMachineKind
    is_machine: bool

    @property
    def id(self) -> str:
        """Return the kind alone, because the case does not depend on core."""
        return self.kind.resource.kind


@run_with("acme", "everything", "homelab-v1beta1")
class TestManifests(Conformance):
    """The generated manifests in config/ and the generated code agree."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ManifestCase]:
        """Return each kind of clusters and machines."""
        return [
            ManifestCase(provider=provider, core_version="", kind=kind, is_machine=is_machine)
            for _, controllers in provider.groups_of(InfrastructureControllers)
            for is_machine, kinds in ((False, controllers.clusters), (True, controllers.machines))
            for kind in kinds
        ]

    def test_the_code_talks_to_what_the_crd_serves(self, case: ManifestCase) -> None:
        resource = case.kind.resource
        spec = case.provider.manifests.crd(resource.kind)["spec"]
        (version,) = (v for v in spec["versions"] if v["name"] == resource.version)
        assert spec["group"] == resource.group
        assert spec["names"]["plural"] == resource.plural
        assert spec["scope"] == "Namespaced"
        assert version["served"]
        assert "status" in version["subresources"]

    def test_the_schema_has_what_the_contract_asks(self, case: ManifestCase) -> None:
        manifests, resource = case.provider.manifests, case.kind.resource
        properties = manifests.schema(resource.kind, resource.version)["properties"]
        provisioned = "ready" if manifests.contract == "v1beta1" else "initialization"
        assert {provisioned, "conditions"} <= properties["status"]["properties"].keys()
        if case.is_machine:
            assert "providerID" in properties["spec"]["properties"]
