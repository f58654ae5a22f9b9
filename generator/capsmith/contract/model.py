"""Cluster API's provider contract as immutable data: rules, fields and versions.

Imports neither pydantic nor YAML.  :mod:`capsmith.contract.files` defines the file formats with the
same enums, and :mod:`capsmith.contract.load` reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Level(StrEnum):
    """How binding a rule is, in the terms of RFC 2119; INFO is not binding."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    INFO = "INFO"


class Origin(StrEnum):
    """The origin of a rule."""

    CONTRACT = "contract"
    """A page of the contract: of a provider type, clusterctl, IPAM or runtime extensions."""
    OBSERVED = "observed"
    """The behaviour of Cluster API or Kubernetes; no page of the contract promises it."""
    ADVICE = "advice"
    """Neither: a habit, or good practice."""


class Weight(StrEnum):
    """The severity of a violation, with the same values as :class:`capsmith.findings.Severity`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Proof(StrEnum):
    """How a rule without a static check is verified."""

    BEHAVIOUR = "behaviour"
    """A test that drives the controller."""
    RUNTIME = "runtime"
    """An API server, Cluster API core or clusterctl."""


class EffectClass(StrEnum):
    """What a violation does under a release of core or clusterctl."""

    BREAKS = "breaks"
    """Core or clusterctl fails or misbehaves."""
    BREAKS_WHEN = "breaks-when"
    """It does under a condition."""
    ADVICE = "advice"
    """Nothing fails."""


class FieldOrigin(StrEnum):
    """Who defines a field: the contract or capsmith."""

    CONTRACT = "contract"
    """The contract, or core, which reads or writes it."""
    CAPSMITH = "capsmith"
    """Capsmith's API; the rule of the field is one that it helps to keep."""


class HookFamily(StrEnum):
    """The subject of a hook; each family has its own code."""

    TOPOLOGY = "topology"
    LIFECYCLE = "lifecycle"
    UPGRADE_PLAN = "upgrade-plan"
    IN_PLACE = "in-place"


class Where(StrEnum):
    """The part of an object that a path starts in."""

    OBJECT = "object"
    """Objects of the provider's kinds."""
    CORE = "core"
    """Objects of core's kinds that the provider writes."""
    CRD = "crd"
    METADATA = "metadata"
    """metadata.yaml."""


class ChangeKind(StrEnum):
    """How a field of the new contract differs from the old one."""

    MOVED = "moved"
    COPIED = "copied"
    """The old field stays next to the new one."""
    RETYPED = "retyped"
    """Of another JSON type or shape, and perhaps elsewhere."""
    NARROWED = "narrowed"
    """Same place and type; values that were fine are refused."""
    OPTIONAL = "optional"
    """Same place and type; may now be absent."""
    ADDED = "added"
    REMOVED = "removed"


class FieldConversion(StrEnum):
    """How a value is converted from the old field to the new one."""

    AS_IS = "as-is"
    FLAG = "flag"
    """True stays, false becomes absent."""
    TEXT = "text"
    """Null and empty become absent."""
    EMPTY_OBJECT = "empty-object"
    """An object of empty values becomes absent."""
    EMPTY_LIST = "empty-list"
    MAP_TO_LIST = "map-to-list"
    CONDITIONS = "conditions"
    REFERENCE = "reference"
    """``apiVersion`` to ``apiGroup``; the namespace goes."""
    SECONDS = "seconds"
    """A duration as text to whole seconds."""
    COMPLEMENT = "complement"
    """The difference to the whole."""
    NONE = "none"
    """There is nothing to convert from, or to."""


class Actor(StrEnum):
    """Who must act on a change; by default the generator."""

    GENERATOR = "generator"
    """Capsmith: schema and conversion follow from the data."""
    AUTHOR = "author"
    """The meaning changes, so the provider's code does."""
    USER = "user"


class ReleaseTesting(StrEnum):
    """Where a release is tested."""

    CI = "ci"
    """All tests, for each change."""
    SHORT = "short"
    """The life of a cluster for each change, all tests every night."""
    NIGHTLY = "nightly"
    """All tests, every night."""
    SOURCE = "source"
    """Nowhere: what capsmith says of it is read from its source."""


class GrantedBy(StrEnum):
    """What grants the permission for a request."""

    LABEL = "label"
    """The manager's own groups, or a ClusterRole of the provider that has the manager's label."""
    BINDING = "binding"
    """A ClusterRole of the provider that is bound to the manager."""
    OWN = "own"
    """The manager's own role; the provider grants nothing."""


class AuditedTest(StrEnum):
    """An end-to-end test whose audit log shows the requests."""

    LIFECYCLE = "lifecycle"
    TOPOLOGY = "topology"
    POOLS = "pools"
    KUBEADM = "kubeadm"


# Not of the module calendar, whose names depend on the locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

Data = Mapping[str, Any]
"""Plain data out of a YAML file."""


class Releases(NamedTuple):
    """A range of minor releases of core such as ``v1.14``; an empty bound means unbounded."""

    since: str = ""
    """The first one in which the rule holds."""
    deprecated: str = ""
    """The first one that announces the end of the rule."""
    until: str = ""
    """The last one in which the rule holds."""


class Effect(NamedTuple):
    """The effect of a violation on providers that capsmith did not generate."""

    kind: EffectClass
    when: str = ""
    """The condition of ``breaks-when``."""
    roles: tuple[str, ...] = ()
    """Roles of the kinds to which it applies; empty: all of the rule.  For others it is advice."""


class Check(NamedTuple):
    """The name of a static check and its parameters."""

    name: str
    params: Data


class Rule(NamedTuple):
    """A rule of the contract."""

    id: str
    """``IC-05``; never changes."""
    title: str
    level: Level
    """The level of the source; the severity of a violation is capsmith's."""
    origin: Origin
    statement: str
    contracts: tuple[str, ...]
    """Versions in which the rule holds, the oldest first."""
    applies_to: tuple[str, ...]
    """Roles (``InfraMachine``) or artefacts (``components``, ``metadata``, ``manager`` …)."""
    check: Check | None
    proof: Proof | None
    """None for checked rules and for information."""
    source: str
    """Where the rule comes from: a page of the book or a file of upstream."""
    consequence: str
    hint: str
    page: str
    """The rules file: ``infra-machine``."""
    row: str = ""
    """The row for the rule in the table of its page; empty: none (``load_pages``)."""
    condition: str = ""
    """When the rule binds at all; empty: always."""
    core: Releases = Releases()
    severity: Weight | None = None
    """Set where the severity of a violation differs from that of its level."""
    effect: Effect = Effect(EffectClass.ADVICE)
    """What a violation does; of checked rules only."""

    @property
    def weight(self) -> Weight:
        """Return the severity of a violation."""
        by_level = {Level.MUST: Weight.ERROR, Level.SHOULD: Weight.WARNING}
        return self.severity or by_level.get(self.level, Weight.INFO)


class ContractField(NamedTuple):
    """A field that the contract defines or that capsmith adds."""

    name: str
    schema: Data
    """Kubernetes structural schema (OpenAPI v3 subset)."""
    required: bool
    rule: str
    """Id of the rule that requires it."""
    feature: str = ""
    """Name of the optional part that it belongs to; empty: always there."""
    origin: FieldOrigin = FieldOrigin.CONTRACT
    own: tuple[str, ...] = ()
    """Properties of a contract's field that are capsmith's own."""


class ContractValidation(NamedTuple):
    """A CEL rule for the whole spec."""

    rule: str
    message: str
    features: frozenset[str]
    """The optional parts that it reads."""


class TypeShape(NamedTuple):
    """The contract's fields, printer columns and validations for the kinds of one role."""

    role: str
    scope: str
    """``Namespaced`` or ``Cluster``."""
    spec: Mapping[str, ContractField]
    """Of a template: the fields of the template's own ``spec``."""
    status: Mapping[str, ContractField]
    printer_columns: tuple[Data, ...]
    subresources: Data
    validations: tuple[ContractValidation, ...]


def _shifted(release: str, minors: int) -> str:
    major, _, minor = release.partition(".")
    return f"{major}.{int(minor) + minors}"


class HookDefinition(NamedTuple):
    """A hook of the runtime SDK: its name, family and purpose (RX-05)."""

    name: str
    """``GeneratePatches``."""
    family: HookFamily
    statement: str
    """When core calls it, and what for."""
    since: str
    """First release of core that knows it; empty: every release with runtime extensions."""


class FieldChange(NamedTuple):
    """A difference between two contracts."""

    where: Where
    roles: tuple[str, ...]
    """Roles, or kinds of core; empty for CRDs and metadata.yaml."""
    kind: ChangeKind
    old: str
    """Dotted path; empty for what is added."""
    new: str
    """Dotted path; empty for what is removed."""
    conversion: FieldConversion
    lossless: bool
    """Whether old -> new -> old gives the same without the conversion-data annotation."""
    rules: tuple[str, ...]
    who: tuple[Actor, ...]
    habit: bool
    """Whether the field is a convention of many providers, not part of the contract."""
    note: str


class CoreSteps(NamedTuple):
    """How far clusterctl may upgrade core and kubeadm's providers in one command."""

    since: str
    """The first release of core from which clusterctl refuses longer steps: ``v1.10``."""
    minors: int
    """The most minor releases of one step."""
    source: str

    @property
    def path(self) -> tuple[str, ...]:
        """Return the first three releases of a path with longest steps, from ``since`` on."""
        major, _, minor = self.since.partition(".")
        return tuple(f"{major}.{int(minor) + count * self.minors}" for count in range(3))


class Upgrade(NamedTuple):
    """All differences between two contracts."""

    old: str
    new: str
    source: str
    core_steps: CoreSteps
    changes: tuple[FieldChange, ...]

    def of(self, role: str) -> tuple[FieldChange, ...]:
        """Return the changes for the kinds of one role."""
        return tuple(change for change in self.changes if role in change.roles)


class SupportEnd(NamedTuple):
    """The announced end of core's support for a contract."""

    core: str
    """The first minor release without support: ``v1.16``."""
    date: str
    """The month of that release: ``2027-04``."""

    @property
    def last(self) -> str:
        """Return the last minor release of core that supports the contract."""
        return _shifted(self.core, -1)

    def __str__(self) -> str:
        year, _, month = self.date.partition("-")
        return f"{self.core}, announced for {_MONTHS[int(month) - 1]} {year}"


class TestedReleases(NamedTuple):
    """The minor releases that the project's tests run with, oldest first, such as ``v1.14``."""

    core: tuple[str, ...]
    """Those that support the contract."""
    kubernetes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """A version of the contract.  Instances are equal if their versions are."""

    version: str
    """``v1beta2``."""
    label: str = field(compare=False)
    """Key of the label on CRDs: ``cluster.x-k8s.io/v1beta2``."""
    rules: Mapping[str, Rule] = field(compare=False, repr=False)
    """By id, read at their first use."""
    types: Mapping[str, TypeShape] = field(compare=False, repr=False)
    """By role, each read at its first use."""
    releases: Releases = field(compare=False)
    """Releases of core whose contract it is; later ones support it until ``end``."""
    end: SupportEnd | None = field(compare=False)
    """The end of core's support; None if not announced."""
    conditions: Mapping[str, str] = field(compare=False)
    """Purpose -> condition type: ``ready`` -> ``Ready``."""
    sources: tuple[str, ...] = field(compare=False)
    kubernetes: str = field(compare=False)
    """The version of Kubernetes in samples, the same for all versions: ``v1.36.0``."""
    tested: TestedReleases = field(compare=False)
    hooks: Mapping[str, HookDefinition] = field(compare=False, repr=False)
    """Of the runtime SDK by name, the same for all versions; read at their first use."""
    upgrades: Mapping[str, Upgrade] = field(compare=False, repr=False)
    """What has changed since an older version, by that version; read at its first use."""

    @property
    def core(self) -> str:
        """Return the supporting releases of core, for display: ``v1.11 and later``."""
        since, until = self.releases.since, self.releases.until
        text = f"{since} to {until}" if until else f"{since} and later"
        if not until or self.end is None:
            return text
        return f"{text}; {_shifted(until, 1)} to {self.end.last} for compatibility only"

    @property
    def support_end(self) -> str:
        """Return the announced end of support, for display; empty if not announced."""
        return str(self.end) if self.end is not None else ""
