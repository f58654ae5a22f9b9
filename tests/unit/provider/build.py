"""Resolved providers for tests, without a provider.yaml."""

from __future__ import annotations

from capsmith import resources
from capsmith.contract.load import load_contract
from capsmith.provider.fields import Field
from capsmith.provider.model import (
    SECRET_REF,
    ApiVersion,
    Component,
    Identity,
    Provider,
    Release,
    Resource,
    Role,
)
from capsmith.safetext import (
    DnsLabel,
    DnsSubdomain,
    Identifier,
    ImageName,
    KindName,
    LicenceId,
    RelativePath,
    RepositoryUrl,
    SeriesName,
    VersionName,
)

SIZE = Field("size", Identifier("size"), {"type": "string", "description": "How large."}, True)
DISK = Field("diskGiB", Identifier("disk_gib"), {"type": "integer", "minimum": 8}, False)
REGION = Field(
    "region",
    Identifier("region"),
    {
        "type": "string",
        "enum": ["north", "south"],
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "cannot change"}],
    },
    True,
)
FEATURES = frozenset({"controlPlaneEndpoint", "failureDomains", "failureDomain", "addresses"})


def version(name: str = "v1alpha1", contract: str = "v1beta2", storage: bool = True) -> ApiVersion:
    data = load_contract(contract, resources.schemas())
    return ApiVersion(VersionName(name), True, storage, data)


def resource(
    kind: str = "AcmeMachine",
    role: Role = Role.INFRA_MACHINE,
    fields: tuple[Field, ...] = (SIZE, DISK),
    contract: str = "v1beta2",
    features: frozenset[str] = FEATURES,
) -> Resource:
    lower = kind.lower()
    plural = lower.removesuffix("y") + "ies" if lower.endswith("y") else lower + "s"
    module = "".join("_" + c.lower() if c.isupper() else c for c in kind).removeprefix("_")
    return Resource(
        kind=KindName(kind),
        role=role,
        group=DnsSubdomain("infrastructure.cluster.x-k8s.io"),
        plural=DnsLabel(plural),
        singular=DnsLabel(lower),
        list_kind=KindName(f"{kind}List"),
        module=Identifier(module),
        namespaced=role is not Role.IDENTITY,
        short_names=(),
        categories=(DnsLabel("cluster-api"),),
        description=f"An {kind}.",
        spec_fields=fields,
        status_fields=(),
        spec_validations=(),
        printer_columns=(),
        features=features,
        versions=(version(contract=contract),),
    )


def _kinds(contract: str, features: frozenset[str]) -> list[Resource]:
    return [
        resource("AcmeCluster", Role.INFRA_CLUSTER, (REGION,), contract, features),
        resource("AcmeClusterTemplate", Role.INFRA_CLUSTER_TEMPLATE, (REGION,), contract, features),
        resource(contract=contract, features=features),
        resource("AcmeMachineTemplate", contract=contract, features=features)._replace(
            role=Role.INFRA_MACHINE_TEMPLATE
        ),
    ]


def provider(
    contract: str = "v1beta2", credentials: bool = False, features: frozenset[str] = FEATURES
) -> Provider:
    kinds = _kinds(contract, features | ({"credentials"} if credentials else set()))
    if credentials:
        parts = features | {SECRET_REF, "allowedNamespaces"}
        kinds.append(resource("AcmeIdentity", Role.IDENTITY, (), contract, parts))
    component = Component(
        type=DnsLabel("infrastructure"),
        label=DnsLabel("infrastructure-acme"),
        components_file=RelativePath("infrastructure-components.yaml"),
        namespace=DnsLabel("acme-system"),
        config=RelativePath("config"),
        resources=tuple(kinds),
        words="infrastructure provider",
        kind=KindName("InfrastructureProvider"),
    )
    return Provider(
        name=DnsLabel("acme"),
        title="Acme",
        description="Clusters on Acme.",
        repository=RepositoryUrl("https://github.com/acme/cluster-api-provider-acme"),
        distribution=DnsLabel("cluster-api-provider-acme"),
        package=Identifier("cluster_api_provider_acme"),
        environment_prefix=Identifier("ACME"),
        image=ImageName("ghcr.io/acme/cluster-api-acme-controller"),
        licence=LicenceId("Apache-2.0"),
        owner="The acme provider authors",
        contracts=(kinds[0].storage_version.contract,),
        releases=(Release(SeriesName("v0.1"), 0, 1, contract),),
        former_contracts=(),
        components=(component,),
        identities=(Identity(KindName("AcmeIdentity"), ("token",)),) if credentials else (),
        flavors=(DnsLabel("topology"),),
        cluster_classes=(DnsLabel("acme"),),
        rbac=(),
        dependencies=(),
        dev_dependencies=(),
    )
