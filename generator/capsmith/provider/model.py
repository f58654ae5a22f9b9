"""The resolved provider, which all blueprints and checks read.

Immutable and complete: None never means "not decided yet", and every name is a
:class:`capsmith.safetext.SafeText`.  Only :mod:`capsmith.resolving.resolve` creates instances.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

from capsmith.contract.model import Contract
from capsmith.provider.fields import (
    ContractFields,
    CrdOptions,
    Field,
    PrinterColumn,
    Schema,
    VersionFields,
)
from capsmith.provider.manager import Manager
from capsmith.safetext import (
    DnsLabel,
    DnsSubdomain,
    FinalizerName,
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


class Hook(NamedTuple):
    """A Cluster API runtime hook, and its handler in the extension (RX-04, RX-05)."""

    hook: Identifier
    """Name of the hook, such as ``GeneratePatches``."""
    name: DnsLabel
    """Name of the handler. ClusterClasses refer to it as ``<name>.<ExtensionConfig>``."""
    method: Identifier
    """Name of the method in the author's class, such as ``generate_patches``."""
    constant: Identifier
    """Name of the hook's constant, such as ``GENERATE_PATCHES``."""
    module: Identifier
    """Name of the generated module with the hook's requests and responses, such as ``topology``."""
    request: Identifier
    """Class of the method's parameter."""
    answer: SafeText
    """The method's return type, such as ``Proceed | RetryAfter``."""
    timeout_seconds: int
    ignore_failures: bool
    since: str
    """First core release that calls the hook; empty if core has always called it."""
    statement: str


class Release(NamedTuple):
    """One of the provider's release series, and its contract version (CC-05)."""

    series: SeriesName
    major: int
    minor: int
    contract: str


class Role(StrEnum):
    """A kind's role in Cluster API; the names are those of the contract's documentation."""

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
    REMEDIATION = "Remediation"
    REMEDIATION_TEMPLATE = "RemediationTemplate"
    RESOURCE = "Resource"
    IDENTITY = "Identity"

    @property
    def is_template(self) -> bool:
        """Return whether the role is a template, which core clones and which has no reconciler.

        InfraMachineTemplate is an exception: if it reports capacity, its status is reconciled.
        """
        return self.value.endswith("Template")

    @property
    def template(self) -> Role:
        """Return the role of this role's template. Raises ValueError if it has none."""
        return Role(self.value + "Template")


class ApiVersion(NamedTuple):
    """One of the provider's API versions, and its contract version."""

    name: VersionName
    served: bool
    storage: bool
    contract: Contract
    deprecated: bool = False
    deprecation_warning: str = ""
    """Warning for API clients; empty for the API server's default warning."""


class GroupKind(NamedTuple):
    """A kind, possibly another provider's. Its version is in the CRD's contract label (GEN-01)."""

    group: DnsSubdomain
    kind: KindName


class Watch(NamedTuple):
    """Another kind to watch. Changes to its objects enqueue objects of the declaring kind."""

    group: str
    """API group of the watched kind; empty for the core group."""
    version: VersionName
    kind: KindName
    plural: DnsLabel
    namespaced: bool
    path: tuple[str, ...] = ()
    """Path to the field, in the enqueued object, that names the watched object, such as ``("spec",
    "sshKeyRef", "name")``."""
    label: str = ""
    """Label on the watched object that holds the name of the object to enqueue."""


class Webhooks(NamedTuple):
    """A kind's admission webhooks."""

    validation: bool
    defaulting: bool
    deletion: bool
    """Whether the author's code also validates deletions."""
    templates: bool
    """Whether the author's code also validates templates and sets their defaults."""
    timeout_seconds: int


POOL_FLAVOR = "machinepool"
"""Flavor whose workers are a machine pool. ``machinepool-<kind>`` uses a pool of that kind."""
TOPOLOGY_FLAVOR = "topology"
"""Flavor whose cluster template uses the provider's first ClusterClass."""
WORKLOAD_CLIENT = "workloadClient"
"""Feature that gives author code for clusters and machines a client for the workload cluster."""
_WORKLOAD_TYPES = frozenset({"addon", "control-plane"})
"""Provider types whose controllers use workload clusters themselves."""
SECRET_REF = "secretRef"
"""Feature of identities that refer to a Secret."""
SOURCE_REF = "sourceIdentityRef"
"""Feature of identities that may be derived from other identities."""


class Identity(NamedTuple):
    """An identity kind, and the keys that its Secrets must have."""

    kind: KindName
    keys: tuple[str, ...]
    """Required keys of the Secret; empty if the identity does not refer to a Secret."""
    secret: bool = True
    """Whether the identity refers to a Secret."""
    sources: tuple[KindName, ...] = ()
    """Kinds of identities that an identity of this kind may be derived from."""


class Resource(NamedTuple):
    """A custom resource: a kind, and everything that capsmith derives from it."""

    kind: KindName
    role: Role
    group: DnsSubdomain
    plural: DnsLabel
    singular: DnsLabel
    list_kind: KindName
    module: Identifier
    """Name of the Python module, such as ``acme_machine``."""
    namespaced: bool
    short_names: tuple[DnsLabel, ...]
    categories: tuple[DnsLabel, ...]
    description: str
    spec_fields: tuple[Field, ...]
    """The author's fields in ``spec``. A template has its kind's fields."""
    status_fields: tuple[Field, ...]
    spec_validations: tuple[Schema, ...]
    """The author's ``x-kubernetes-validations`` for the whole spec."""
    printer_columns: tuple[PrinterColumn, ...]  # the author's own, besides the contract's
    features: frozenset[str]
    """Enabled optional contract features, named as in ``schemas/contracts``."""
    versions: tuple[ApiVersion, ...]
    bootstrap: GroupKind | None = None
    """Kind of bootstrap configuration for a control plane's Machines, if it has any (CP-19)."""
    machine_kind: KindName | None = None
    """Kind of a pool's machines (MP-07); None unless the resource is a pool with Machines."""
    instance_fields: tuple[Field, ...] = ()  # the author's, of each machine in a pool's status
    object_validations: tuple[Schema, ...] = ()  # x-kubernetes-validations on the whole object
    name_schema: Schema | None = None  # limits for metadata.name
    watches: tuple[Watch, ...] = ()  # further kinds whose changes enqueue objects of this one
    provider_type: str = "infrastructure"
    """Provider type that the kind belongs to, such as ``control-plane``."""
    webhooks: Webhooks | None = None  # of the kind itself, never of its template
    contract_fields: ContractFields | None = None  # the author's schemas of contract fields
    options: CrdOptions = CrdOptions()
    version_fields: Mapping[str, VersionFields] | None = None
    """The author's fields by API version, for versions that differ from the attributes above.

    Empty if only the kind's earlier releases had such versions, and None if it never had any.
    """

    @property
    def crd_name(self) -> DnsSubdomain:
        """Return the CRD's name: ``<plural>.<group>`` (CRD-02)."""
        return DnsSubdomain(f"{self.plural}.{self.group}")

    @property
    def storage_version(self) -> ApiVersion:
        """Return the API version in which the API server stores objects."""
        return next(version for version in self.versions if version.storage)

    @property
    def finalizer(self) -> FinalizerName:
        """Return ``<kind>.<group>`` in lowercase, or ``<group>/<kind>`` if too long (IC-21)."""
        usual = f"{self.singular}.{self.group}"
        is_short = len(usual) <= DnsLabel.limit
        return FinalizerName(usual if is_short else f"{self.group}/{self.singular}")


class PolicyRule(NamedTuple):
    """An RBAC rule that the author's code needs in addition to the contract's rules."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()


class Component(NamedTuple):
    """A unit that clusterctl installs: one components file, one namespace, one manager.

    A repository with an infrastructure and a bootstrap provider has two components, unless the
    author combines them.
    """

    type: DnsLabel
    """Provider type under which clusterctl installs the component, such as ``infrastructure``."""
    label: DnsLabel
    """Value of the provider label on manifests (CC-51), such as ``infrastructure-acme``."""
    components_file: RelativePath
    """Name of the components file, such as ``infrastructure-components.yaml`` (CC-20)."""
    namespace: DnsLabel
    """Namespace, such as ``acme-system``. It also prefixes cluster-scoped names (CC-31)."""
    config: RelativePath
    """Path to the component's kustomize tree in the repository, such as ``config``."""
    resources: tuple[Resource, ...]
    words: str
    """Noun phrase for the component in sentences, such as ``infrastructure provider``."""
    kind: KindName
    """Provider type in clusterctl's configuration, such as ``InfrastructureProvider`` (CC-50)."""
    hooks: tuple[Hook, ...] = ()
    """A runtime extension's hooks (RX-05), in the author's order."""
    further_types: tuple[DnsLabel, ...] = ()
    """Other provider types whose kinds the component's manager reconciles."""

    @property
    def types(self) -> tuple[DnsLabel, ...]:
        """Return the provider types whose kinds the component's manager reconciles."""
        return (self.type, *self.further_types)

    def part(self, type: str) -> Component:
        """Return a copy with only the kinds that belong to provider type ``type``."""
        kinds = tuple(each for each in self.resources if each.provider_type == type)
        return self._replace(resources=kinds) if self.further_types else self

    @property
    def attribute(self) -> Identifier:
        """Return the provider type as a Python identifier, such as ``control_plane``."""
        return self.attributes[0]

    @property
    def attributes(self) -> tuple[Identifier, ...]:
        """Return :attr:`types` as Python identifiers, such as ``control_plane``."""
        return tuple(Identifier(type.replace("-", "_")) for type in self.types)

    @property
    def immutable_templates(self) -> tuple[Resource, ...]:
        """Return the templates that must not change: replacing one rolls out machines (IM-13).

        Templates of bootstrap configurations and remediations may change.
        """
        free = (Role.BOOTSTRAP_CONFIG_TEMPLATE, Role.REMEDIATION_TEMPLATE)
        templates = (resource for resource in self.resources if resource.role.is_template)
        return tuple(resource for resource in templates if resource.role not in free)

    @property
    def features(self) -> frozenset[str]:
        """Return all features that any of the component's kinds has."""
        return frozenset[str]().union(*(resource.features for resource in self.resources))

    def role(self, role: Role) -> tuple[Resource, ...]:
        """Return the resources that have the given role; empty if there are none."""
        return tuple(resource for resource in self.resources if resource.role is role)

    def find_template(self, kind: Resource) -> Resource | None:
        """Return the template of ``kind``, or None if it has none."""
        templates = self.role(kind.role.template)
        return next((each for each in templates if each.kind == f"{kind.kind}Template"), None)

    def find_pool_machine(self, pool: Resource) -> Resource:
        """Return the kind of the machines that a pool with Machines creates (MP-07)."""
        return next(m for m in self.role(Role.INFRA_MACHINE) if m.kind == pool.machine_kind)

    def list_shared_fields(self, pool: Resource) -> tuple[str, ...]:
        """Return the names of the fields that machines copy from their pool (MP-11)."""
        of_machines = {field.name for field in self.find_pool_machine(pool).spec_fields}
        return tuple(field.name for field in pool.spec_fields if field.name in of_machines)

    @property
    def has_workload_client(self) -> bool:
        """Return whether the author's code gets a workload cluster client for at least one kind."""
        return WORKLOAD_CLIENT in self.features

    @property
    def uses_workload_clusters(self) -> bool:
        """Return whether the manager sends requests to workload clusters.

        Add-ons and control planes always do, even if the author's code does not.
        """
        return self.has_workload_client or not _WORKLOAD_TYPES.isdisjoint(self.types)


class Provider(NamedTuple):
    """A provider's repository: all data that blueprints need to generate it."""

    name: DnsLabel
    title: str
    description: str
    repository: RepositoryUrl
    distribution: DnsLabel
    """Name of the Python distribution, such as ``cluster-api-provider-acme``."""
    package: Identifier
    """Name of the Python package, such as ``cluster_api_provider_acme``."""
    environment_prefix: Identifier
    """Prefix of the provider's environment variables, such as ``ACME``."""
    image: ImageName
    licence: LicenceId
    owner: str
    """Copyright holder, as free text."""
    contracts: tuple[Contract, ...]
    """Contract versions of the served API versions, newest first."""
    releases: tuple[Release, ...]
    """Release series, newest first."""
    former_contracts: tuple[Contract, ...]
    """Contract versions that only earlier release series have, newest first."""
    components: tuple[Component, ...]
    identities: tuple[Identity, ...]
    """Identity kinds, in the author's order. Samples use the first one."""
    flavors: tuple[DnsLabel, ...]
    cluster_classes: tuple[DnsLabel, ...]
    rbac: tuple[PolicyRule, ...]
    dependencies: tuple[str, ...]
    dev_dependencies: tuple[str, ...]
    runtime: Literal["vendored", "package"] = "vendored"
    """Whether the runtime library is vendored into the repository or installed as a package."""
    sdk: ModuleName | None = None
    e2e: bool = False  # whether it runs Cluster API's own end-to-end tests
    manager: Manager = Manager()

    @property
    def kubernetes(self) -> ReleaseVersion:
        """Return the Kubernetes version to use in samples, such as ``v1.36.0``."""
        return ReleaseVersion(self.contracts[0].kubernetes)

    def contract_of(self, release: Release) -> Contract:
        """Return a release series' contract.

        Raises LookupError if the provider does not have that release series.
        """
        known = {each.version: each for each in (*self.contracts, *self.former_contracts)}
        return known[release.contract]

    def component(self, type: str) -> Component | None:
        """Return the component that contains a provider type's kinds, or None if there is none."""
        return next((each for each in self.components if type in each.types), None)

    @property
    def credentials(self) -> Identity | None:
        """Return the identity kind that samples use, or None if the provider has none."""
        return self.identities[0] if self.identities else None

    def identity(self, kind: str) -> Identity:
        """Return the identity kind named ``kind``. Raises LookupError if there is none."""
        return {str(each.kind): each for each in self.identities}[kind]

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return the resources of all components."""
        return tuple(r for component in self.components for r in component.resources)
