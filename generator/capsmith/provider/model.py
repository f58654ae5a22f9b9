"""The resolved provider, which all blueprints and checks read.

Immutable and complete: None never means "not decided yet", and every name is a
:class:`capsmith.safetext.SafeText`.  Only :mod:`capsmith.resolving.resolve` creates instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from capsmith.contract.model import Contract
from capsmith.safetext import (
    DnsLabel,
    DnsSubdomain,
    Identifier,
    ImageName,
    KindName,
    LicenceId,
    ModuleName,
    RelativePath,
    ReleaseVersion,
    RepositoryUrl,
    SafeText,
    SeriesName,
    VersionName,
)

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import PartLimits


class Hook(NamedTuple):
    """A hook of Cluster API's runtime SDK, and how the extension responds to it (RX-04, RX-05)."""

    hook: Identifier
    """``GeneratePatches``."""
    name: DnsLabel
    """Of the handler: ClusterClasses name ``<name>.<ExtensionConfig>``."""
    method: Identifier
    """The method in the author's class: ``generate_patches``."""
    constant: Identifier
    """``GENERATE_PATCHES``."""
    module: Identifier
    """Of the generated code that reads and writes it: ``topology``."""
    request: Identifier
    """Class that the method is given."""
    answer: SafeText
    """Type of what the method returns: ``Proceed | RetryAfter``."""
    timeout_seconds: int
    ignore_failures: bool
    since: str
    """Release of core that knows it first; empty: all that runtime extensions are for."""
    statement: str


class Release(NamedTuple):
    """A release series and its contract (CC-05)."""

    series: SeriesName
    major: int
    minor: int
    contract: str


Schema = Mapping[str, Any]
"""A Kubernetes structural schema (OpenAPI v3 subset) as plain data."""


class Role(StrEnum):
    """The role of a resource in Cluster API, with the name that the contract's pages use."""

    INFRA_CLUSTER = "InfraCluster"
    INFRA_CLUSTER_TEMPLATE = "InfraClusterTemplate"
    INFRA_MACHINE = "InfraMachine"
    INFRA_MACHINE_TEMPLATE = "InfraMachineTemplate"
    INFRA_MACHINE_POOL = "InfraMachinePool"
    INFRA_MACHINE_POOL_TEMPLATE = "InfraMachinePoolTemplate"
    BOOTSTRAP_CONFIG = "BootstrapConfig"
    BOOTSTRAP_CONFIG_TEMPLATE = "BootstrapConfigTemplate"
    CONTROL_PLANE = "ControlPlane"
    CONTROL_PLANE_TEMPLATE = "ControlPlaneTemplate"
    IP_POOL = "IPPool"
    GLOBAL_IP_POOL = "GlobalIPPool"
    ADDON = "Addon"
    RESOURCE = "Resource"
    IDENTITY = "Identity"

    @property
    def is_template(self) -> bool:
        """Return whether core clones resources of this role and no controller reconciles them."""
        return self.value.endswith("Template")

    @property
    def template(self) -> Role:
        """Return the role of this role's template.

        Raises ValueError for roles without template: identities and templates.
        """
        return Role(self.value + "Template")


class Field(NamedTuple):
    """A field that the author declared, in the vocabulary of Kubernetes' structural schemas."""

    name: str
    """As in YAML; camelCase by convention."""
    attribute: Identifier  # snake_case, as in Python; never a keyword
    schema: Schema
    """Without ``required`` of its own; nested objects carry theirs as a list."""
    required: bool


class PrinterColumn(NamedTuple):
    """A column of ``kubectl get``."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    description: str = ""


class ApiVersion(NamedTuple):
    """An API version of the provider, and the contract whose shape it follows."""

    name: VersionName
    served: bool
    storage: bool
    contract: Contract
    deprecated: bool = False
    deprecation_warning: str = ""
    """Empty for the API server's own text."""


class GroupKind(NamedTuple):
    """A kind, possibly of another provider, without version: the CRD's label names it (GEN-01)."""

    group: DnsSubdomain
    kind: KindName


class OwnField(NamedTuple):
    """The author's schema of a contract field."""

    schema: Schema
    required: bool
    exact: bool = False
    """Whether the schema stays as it is, without properties that only the contract has."""


class ContractFields(NamedTuple):
    """The author's schemas of contract fields, by name."""

    spec: Mapping[str, OwnField]
    status: Mapping[str, OwnField]
    metadata: OwnField | None = None
    """Of a template: that of ``spec.template.metadata``."""
    without: frozenset[str] = frozenset()
    """Paths of fields that the CRD does not have: ``status.failureReason``."""
    has_own_spec: bool = False
    """Of a template: whether the spec is not that of its kind."""


class CrdOptions(NamedTuple):
    """Settings of a CRD version; the defaults change nothing."""

    contract_columns: bool = True
    required_parts: frozenset[str] | None = None
    """Such as ``spec``; None: as the contract requires."""
    part_limits: Mapping[str, Mapping[str, Any]] = {}
    """Further keywords by part: ``status``, ``spec.template``."""
    transition_rules: bool = False
    """Whether a template repeats the rules that compare with the old value."""

    def limits(self, part: str) -> dict[str, Any]:
        """Return additional schema keywords for a part of the object, such as its status."""
        return dict(self.part_limits.get(part, {}))

    def with_parts(
        self, required: Sequence[str] | None, limits: Mapping[Any, PartLimits] | None
    ) -> CrdOptions:
        """Return a copy with the settings of a version; None leaves a setting unchanged."""
        found = self
        if required is not None:
            found = found._replace(required_parts=frozenset(required))
        if limits is not None:
            plain = {
                str(part): each.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for part, each in limits.items()
            }
            found = found._replace(part_limits=plain)
        return found


class VersionFields(NamedTuple):
    """The author's fields, rules and columns of a kind in one API version."""

    spec_fields: tuple[Field, ...]
    status_fields: tuple[Field, ...]
    spec_validations: tuple[Schema, ...]
    object_validations: tuple[Schema, ...]
    printer_columns: tuple[PrinterColumn, ...]
    contract_fields: ContractFields | None = None
    options: CrdOptions = CrdOptions()


class Watch(NamedTuple):
    """Another kind whose changes enqueue objects of the kind that declares the watch."""

    group: str
    """Empty for the core group."""
    version: VersionName
    kind: KindName
    plural: DnsLabel
    namespaced: bool
    path: tuple[str, ...] = ()
    """Field that names the changed object: ``spec``, ``sshKeyRef``, ``name``."""
    label: str = ""
    """Label of the changed object with the name of the one to enqueue."""


class Webhooks(NamedTuple):
    """The admission webhooks of a kind."""

    validation: bool
    defaulting: bool
    deletion: bool
    """Whether deletions are validated too."""
    templates: bool
    """Whether templates are treated like objects."""
    timeout_seconds: int


POOL_FLAVOR = "machinepool"
"""The flavor whose workers are a pool; followed by ``-<kind>`` it is a pool of that kind."""
TOPOLOGY_FLAVOR = "topology"
"""The flavor whose cluster template uses the first ClusterClass."""
WORKLOAD_CLIENT = "workloadClient"
"""The feature of infrastructure clusters and machines whose code gets a client of the workload
cluster."""
_WORKLOAD_TYPES = frozenset({"addon", "control-plane"})
"""The types of provider whose controllers use workload clusters themselves."""
SECRET_REF = "secretRef"
"""The feature of identities that refer to a Secret."""


class Identity(NamedTuple):
    """A kind of identity, and the keys that its Secrets must hold."""

    kind: KindName
    keys: tuple[str, ...]
    """Empty if it refers to no Secret."""
    secret: bool = True
    """Whether it refers to a Secret."""


class Resource(NamedTuple):
    """A custom resource: a kind and everything derived from it."""

    kind: KindName
    role: Role
    group: DnsSubdomain
    plural: DnsLabel
    singular: DnsLabel
    list_kind: KindName
    module: Identifier
    """Python module name: ``acme_machine``."""
    namespaced: bool
    short_names: tuple[DnsLabel, ...]
    categories: tuple[DnsLabel, ...]
    description: str
    spec_fields: tuple[Field, ...]
    """The author's fields; a template repeats the fields of its kind."""
    status_fields: tuple[Field, ...]
    spec_validations: tuple[Schema, ...]
    """``x-kubernetes-validations`` on the whole spec."""
    printer_columns: tuple[PrinterColumn, ...]  # the author's own, besides the contract's
    features: frozenset[str]
    """Optional parts of the contract that are in: names as in schemas/contracts types."""
    versions: tuple[ApiVersion, ...]
    bootstrap: GroupKind | None = None
    """Of a control plane of Machines: the kind of their bootstrap configurations (CP-19)."""
    machine_kind: KindName | None = None
    """Of a pool with Machines: the kind of its machines (MP-07); None for everything else."""
    object_validations: tuple[Schema, ...] = ()  # x-kubernetes-validations on the whole object
    name_schema: Schema | None = None  # limits for metadata.name
    watches: tuple[Watch, ...] = ()  # further kinds whose changes enqueue objects of this one
    provider_type: str = "infrastructure"
    """The type of provider that the kind belongs to: ``control-plane``."""
    webhooks: Webhooks | None = None  # of the kind itself, never of its template
    contract_fields: ContractFields | None = None  # the author's schemas of contract fields
    options: CrdOptions = CrdOptions()
    version_fields: Mapping[str, VersionFields] | None = None
    """The author's fields by version, where they are not those above.

    Empty if the kind had such versions in an earlier release, None if it never had any.
    """

    @property
    def crd_name(self) -> DnsSubdomain:
        """Return ``<plural>.<group>`` (CRD-02)."""
        return DnsSubdomain(f"{self.plural}.{self.group}")

    @property
    def storage_version(self) -> ApiVersion:
        """Return the version in which etcd stores objects."""
        return next(version for version in self.versions if version.storage)

    @property
    def finalizer(self) -> DnsSubdomain:
        """Return ``<kind>.<group>`` in lower case (IC-21).

        Blueprints print it behind the group and a slash.
        """
        return DnsSubdomain(f"{self.singular}.{self.group}")


class PolicyRule(NamedTuple):
    """An RBAC rule for the author's infrastructure code, in addition to the contract's."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()


class Component(NamedTuple):
    """A provider as clusterctl installs it: one components file, one namespace, one manager.

    A repository with infrastructure and bootstrap has two components, unless they are combined.
    """

    type: DnsLabel
    """``infrastructure``: the only type by which clusterctl knows it."""
    label: DnsLabel
    """Manifest label (CC-51): ``infrastructure-acme``."""
    components_file: RelativePath
    """``infrastructure-components.yaml`` (CC-20)."""
    namespace: DnsLabel
    """``acme-system``; cluster-scoped names are prefixed with it (CC-31)."""
    config: RelativePath
    """Folder of the kustomize tree: ``config``."""
    resources: tuple[Resource, ...]
    words: str
    """Its name in sentences: ``infrastructure provider``."""
    kind: KindName
    """What clusterctl's configuration calls it: ``InfrastructureProvider`` (CC-50)."""
    hooks: tuple[Hook, ...] = ()
    """Hooks that a runtime extension answers (RX-05), in the author's order."""
    further_types: tuple[DnsLabel, ...] = ()
    """The other types of provider whose kinds its manager reconciles."""

    @property
    def types(self) -> tuple[DnsLabel, ...]:
        """Return the provider types whose kinds the component's manager reconciles."""
        return (self.type, *self.further_types)

    def part(self, type: str) -> Component:
        """Return a copy that has only the kinds of one provider type."""
        kinds = tuple(each for each in self.resources if each.provider_type == type)
        return self._replace(resources=kinds) if self.further_types else self

    @property
    def attribute(self) -> Identifier:
        """Return the provider type as a Python name, such as ``control_plane``."""
        return self.attributes[0]

    @property
    def attributes(self) -> tuple[Identifier, ...]:
        """Return all provider types as Python names."""
        return tuple(Identifier(type.replace("-", "_")) for type in self.types)

    @property
    def immutable_templates(self) -> tuple[Resource, ...]:
        """Return the templates that must not change: replacing one rolls out machines (IM-13).

        Templates of bootstrap configurations may change.
        """
        return tuple(
            resource
            for resource in self.resources
            if resource.role.is_template and resource.role is not Role.BOOTSTRAP_CONFIG_TEMPLATE
        )

    @property
    def features(self) -> frozenset[str]:
        """Return the features of all the component's kinds."""
        return frozenset[str]().union(*(resource.features for resource in self.resources))

    def role(self, role: Role) -> tuple[Resource, ...]:
        """Return the resources whose role is ``role``."""
        return tuple(resource for resource in self.resources if resource.role is role)

    def find_template(self, kind: Resource) -> Resource | None:
        """Return the resource of a kind's template, or None if the kind has none."""
        templates = self.role(kind.role.template)
        return next((each for each in templates if each.kind == f"{kind.kind}Template"), None)

    def find_pool_machine(self, pool: Resource) -> Resource:
        """Return the kind of the objects that a pool with Machines creates (MP-07)."""
        machines = self.role(Role.INFRA_MACHINE)
        return next(machine for machine in machines if machine.kind == pool.machine_kind)

    def list_shared_fields(self, pool: Resource) -> tuple[str, ...]:
        """Return the names of the fields that machines copy from their pool (MP-11)."""
        of_machines = {field.name for field in self.find_pool_machine(pool).spec_fields}
        return tuple(field.name for field in pool.spec_fields if field.name in of_machines)

    @property
    def has_workload_client(self) -> bool:
        """Return whether the author's code for any kind gets a client for the workload cluster."""
        return WORKLOAD_CLIENT in self.features

    @property
    def uses_workload_clusters(self) -> bool:
        """Return whether the manager sends requests to workload clusters.

        The library's controllers of add-ons and control planes do, even if the author's code does
        not.
        """
        return self.has_workload_client or not _WORKLOAD_TYPES.isdisjoint(self.types)


class Provider(NamedTuple):
    """A provider repository."""

    name: DnsLabel
    title: str
    description: str
    repository: RepositoryUrl
    distribution: DnsLabel
    """Python distribution name: ``cluster-api-provider-acme``."""
    package: Identifier
    """Python import name: ``cluster_api_provider_acme``."""
    environment_prefix: Identifier
    """Prefix of the provider's own environment variables: ``ACME``."""
    image: ImageName
    licence: LicenceId
    owner: str
    """Who holds the copyright; free text."""
    contracts: tuple[Contract, ...]
    """Those that are served, the newest first."""
    releases: tuple[Release, ...]
    """Newest first."""
    former_contracts: tuple[Contract, ...]
    """Contracts of older releases that are no longer followed, the newest first."""
    components: tuple[Component, ...]
    identities: tuple[Identity, ...]
    """The author's order; samples use the first."""
    flavors: tuple[DnsLabel, ...]
    cluster_classes: tuple[DnsLabel, ...]
    rbac: tuple[PolicyRule, ...]
    dependencies: tuple[str, ...]
    dev_dependencies: tuple[str, ...]
    runtime: Literal["vendored", "package"] = "vendored"
    """Whether the repository carries the runtime library, or depends on its distribution."""
    sdk: ModuleName | None = None

    @property
    def kubernetes(self) -> ReleaseVersion:
        """Return the Kubernetes version for samples, such as ``v1.36.0``."""
        return ReleaseVersion(self.contracts[0].kubernetes)

    def contract_of(self, release: Release) -> Contract:
        """Return the contract of a release series.

        Raises LookupError if the series is not this provider's.
        """
        for contract in (*self.contracts, *self.former_contracts):
            if contract.version == release.contract:
                return contract
        raise LookupError(release.contract)

    def component(self, type: str) -> Component | None:
        """Return the component with the kinds of a type such as ``control-plane``, or None."""
        return next((each for each in self.components if type in each.types), None)

    @property
    def credentials(self) -> Identity | None:
        """Return the kind of identity that samples use, or None if the provider has none."""
        return self.identities[0] if self.identities else None

    def identity(self, kind: str) -> Identity:
        """Return the kind of identity named ``kind``.  Raises LookupError if there is none."""
        for identity in self.identities:
            if identity.kind == kind:
                return identity
        raise LookupError(kind)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return the resources of all components."""
        return tuple(r for component in self.components for r in component.resources)
