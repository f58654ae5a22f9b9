"""Cluster API's provider contract as immutable data, without pydantic and YAML.

``capsmith.contract.files`` defines the file formats, ``capsmith.contract.load`` reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Level(StrEnum):
    """How binding a rule is, in the terms of RFC 2119. INFO is not binding."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    INFO = "INFO"


class Origin(StrEnum):
    """Where a rule comes from: the contract's pages, observed behaviour, or good practice."""

    CONTRACT = "contract"
    """One of the contract's pages about a provider type, clusterctl, IPAM or runtime extensions."""
    OBSERVED = "observed"
    """Behaviour of Cluster API or Kubernetes that none of the contract's pages mentions."""
    ADVICE = "advice"
    """A convention or good practice that neither the contract nor observed behaviour requires."""


class Weight(StrEnum):
    """The severity of a violation, with the same values as :class:`capsmith.findings.Severity`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Proof(StrEnum):
    """How a contract rule without a static check is verified."""

    BEHAVIOUR = "behaviour"
    """A test that runs the controller."""
    RUNTIME = "runtime"
    """A test with an API server, Cluster API core or clusterctl."""


class EffectClass(StrEnum):
    """What happens to core or clusterctl if a provider violates a contract rule."""

    BREAKS = "breaks"
    """Core or clusterctl fails or misbehaves."""
    BREAKS_WHEN = "breaks-when"
    """Core or clusterctl fails or misbehaves, but only under a condition."""
    ADVICE = "advice"
    """Nothing fails, but the provider does not follow a recommendation."""


class FieldOrigin(StrEnum):
    """Whether the contract or capsmith defines a field of a provider's kind."""

    CONTRACT = "contract"
    """The contract defines the field, or core reads or writes it."""
    CAPSMITH = "capsmith"
    """Capsmith defines the field, to help providers comply with a contract rule."""


class HookFamily(StrEnum):
    """A hook's group. The runtime library handles each group in its own module."""

    TOPOLOGY = "topology"
    LIFECYCLE = "lifecycle"
    UPGRADE_PLAN = "upgrade-plan"
    IN_PLACE = "in-place"


class Where(StrEnum):
    """Where a difference between two contract versions is: in objects, CRDs or metadata.yaml."""

    OBJECT = "object"
    """Objects of the provider's kinds."""
    CORE = "core"
    """Objects of core's kinds that the provider writes."""
    CRD = "crd"
    METADATA = "metadata"


class ChangeKind(StrEnum):
    """How a field differs between the old contract version and the new one."""

    MOVED = "moved"
    COPIED = "copied"
    """The new field is added, and the old field is kept alongside it."""
    RETYPED = "retyped"
    """The JSON type or structure differs, and possibly the path as well."""
    NARROWED = "narrowed"
    """Path and type are the same, but some values that were valid are no longer accepted."""
    OPTIONAL = "optional"
    """Path and type are the same, but the field may now be absent."""
    ADDED = "added"
    REMOVED = "removed"


class FieldConversion(StrEnum):
    """How a value is converted from the old field to the new field."""

    AS_IS = "as-is"
    FLAG = "flag"
    """True is kept, and false is omitted."""
    TEXT = "text"
    """A non-empty string is kept. Null and an empty string are omitted."""
    EMPTY_OBJECT = "empty-object"
    """An object whose values are all empty is omitted."""
    EMPTY_LIST = "empty-list"
    MAP_TO_LIST = "map-to-list"
    CONDITIONS = "conditions"
    REFERENCE = "reference"
    """``apiVersion`` becomes ``apiGroup``, and the namespace is omitted."""
    SECONDS = "seconds"
    """A duration string becomes a whole number of seconds."""
    COMPLEMENT = "complement"
    """A number becomes the difference between the total and that number."""
    NONE = "none"
    """The other contract version has no field to convert from or to."""


class Actor(StrEnum):
    """Who must act on a change; by default the generator."""

    GENERATOR = "generator"
    """Capsmith. The data determines the schema and the conversion."""
    AUTHOR = "author"
    """The provider's author, because the field's meaning changes and code must be adapted."""
    USER = "user"


class ReleaseTesting(StrEnum):
    """How thoroughly capsmith is tested with a release of another project."""

    CI = "ci"
    """All tests run for each change."""
    SHORT = "short"
    """A cluster lifecycle test runs for each change, and all tests run every night."""
    NIGHTLY = "nightly"
    """All tests run every night."""
    SOURCE = "source"
    """No tests run; statements about the release are based on its source code."""


class GrantedBy(StrEnum):
    """What grants a Cluster API manager the permission for a request to the API server."""

    LABEL = "label"
    """The manager's own role, or a ClusterRole that the provider labels for aggregation into it."""
    BINDING = "binding"
    """A ClusterRole that the provider binds to the manager."""
    OWN = "own"
    """The manager's own role, so the provider does not have to grant anything."""


class AuditedTest(StrEnum):
    """An end-to-end test that looks for :class:`ManagerAccess` in the API server's audit log."""

    LIFECYCLE = "lifecycle"
    TOPOLOGY = "topology"
    POOLS = "pools"
    KUBEADM = "kubeadm"


# Not from the module calendar, whose names depend on the locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

Data = Mapping[str, Any]
"""Plain data parsed from YAML."""


class Releases(NamedTuple):
    """A range of core's minor releases, such as ``v1.14``.

    If a bound is empty, the range is open on that side.
    """

    since: str = ""
    """First release in which the rule applies."""
    deprecated: str = ""
    """First release that announces the end of the rule."""
    until: str = ""
    """Last release in which the rule applies."""


class Effect(NamedTuple):
    """A violation's effect in a provider that capsmith did not generate."""

    kind: EffectClass
    when: str = ""
    """Condition under which a violation breaks something; set only for ``breaks-when``."""
    roles: tuple[str, ...] = ()
    """Roles for which a violation has this effect and is more than advice; empty for all roles."""


class Check(NamedTuple):
    """The static check that verifies a contract rule: its name, and its parameters."""

    name: str
    params: Data


class Rule(NamedTuple):
    """A contract rule."""

    id: str
    """Permanent id, such as ``IC-05``."""
    title: str
    level: Level
    """How binding the rule is according to its source. Capsmith decides the severity separately."""
    origin: Origin
    statement: str
    contracts: tuple[str, ...]
    """Contract versions in which the rule applies, oldest first."""
    applies_to: tuple[str, ...]
    """Roles that the rule applies to, or parts of a release such as ``components``."""
    check: Check | None
    proof: Proof | None
    """How the rule is verified if it has no check; None for INFO rules and rules with a check."""
    source: str
    """URL of the rule's source: a page in the Cluster API book, or an upstream file."""
    consequence: str
    hint: str
    page: str
    """Name of the rules file, such as ``infra-machine``."""
    row: str = ""
    """Name of the rule's row in the table on its page (``load_pages``); empty if there is none."""
    condition: str = ""
    """Condition under which the rule applies; empty if it always applies."""
    core: Releases = Releases()
    severity: Weight | None = None
    """A violation's severity if the rule sets it explicitly; None if it follows from the level."""
    effect: Effect = Effect(EffectClass.ADVICE)
    """A violation's effect; only meaningful for rules with a check."""

    @property
    def weight(self) -> Weight:
        """Return a violation's severity: the rule's own, or the default for the rule's level."""
        by_level = {Level.MUST: Weight.ERROR, Level.SHOULD: Weight.WARNING}
        return self.severity or by_level.get(self.level, Weight.INFO)


class ContractField(NamedTuple):
    """A field that is defined by the contract or added by capsmith."""

    name: str
    schema: Data
    """Kubernetes structural schema (a subset of OpenAPI v3)."""
    required: bool
    rule: str
    """Id of the rule that requires the field."""
    feature: str = ""
    """Optional feature that the field belongs to; empty if all the role's kinds have the field."""
    origin: FieldOrigin = FieldOrigin.CONTRACT
    own: tuple[str, ...] = ()
    """Properties that capsmith adds to a field defined by the contract."""
    movable: tuple[str, ...] = ()  # paths below it that core needs only for ClusterClasses


class ContractValidation(NamedTuple):
    """A CEL rule that the contract data adds to a kind's whole spec."""

    rule: str
    message: str
    features: frozenset[str]
    """Optional features that the CEL rule reads. All must be enabled for it to be added."""


class TypeShape(NamedTuple):
    """The fields, printer columns and CEL rules that the contract defines for one role's kinds."""

    role: str
    scope: str
    """``Namespaced`` or ``Cluster``."""
    spec: Mapping[str, ContractField]
    """Fields of ``spec``. For a template, these are the fields of the template's own ``spec``."""
    status: Mapping[str, ContractField]
    printer_columns: tuple[Data, ...]
    subresources: Data
    validations: tuple[ContractValidation, ...]


def _shifted(release: str, minors: int) -> str:
    major, _, minor = release.partition(".")
    return f"{major}.{int(minor) + minors}"


class HookDefinition(NamedTuple):
    """A Cluster API runtime SDK hook: its name, family and purpose (RX-05)."""

    name: str
    """Name of the hook, such as ``GeneratePatches``."""
    family: HookFamily
    statement: str
    """When and why core calls the hook."""
    since: str
    """First core release that calls the hook; empty if every release with hooks does."""


class FieldChange(NamedTuple):
    """A field that differs between two contract versions, with its old and new path."""

    where: Where
    roles: tuple[str, ...]
    """Roles or core kinds to which the difference applies; empty for CRDs and metadata.yaml."""
    kind: ChangeKind
    old: str
    """Dotted path in the old contract version; empty if the new one adds the field."""
    new: str
    """Dotted path in the new contract version; empty if it removes the field."""
    conversion: FieldConversion
    lossless: bool
    """Whether a round trip to the new field restores the value without stored conversion data."""
    rules: tuple[str, ...]
    who: tuple[Actor, ...]
    habit: bool
    """Whether the field is only a convention among many providers, and not part of the contract."""
    note: str


class CoreSteps(NamedTuple):
    """The maximum number of minor releases by which core can advance in one upgrade.

    The kubeadm providers are upgraded together with core.
    """

    since: str
    """First core release from which clusterctl enforces the limit, such as ``v1.10``."""
    minors: int
    """Maximum number of minor releases in one step."""
    source: str

    @property
    def path(self) -> tuple[str, ...]:
        """Return ``since``, and the releases after one and two steps of the maximum length."""
        major, _, minor = self.since.partition(".")
        return tuple(f"{major}.{int(minor) + count * self.minors}" for count in range(3))


class ConditionType(NamedTuple):
    """A condition type that core reads from kinds of some roles in the new contract version."""

    roles: tuple[str, ...]
    type: str
    rules: tuple[str, ...]
    note: str


class Upgrade(NamedTuple):
    """All differences between two contract versions."""

    old: str
    new: str
    source: str
    core_steps: CoreSteps
    conditions: tuple[ConditionType, ...]
    changes: tuple[FieldChange, ...]

    def of(self, role: str) -> tuple[FieldChange, ...]:
        """Return the differences that apply to one role's kinds."""
        return tuple(change for change in self.changes if role in change.roles)


class SupportEnd(NamedTuple):
    """The announced end of core's support for a contract version."""

    core: str
    """Core's first minor release without support for the contract version, such as ``v1.16``."""
    date: str
    """Expected month of that release, such as ``2027-04``."""

    @property
    def last(self) -> str:
        """Return the last minor release of core that supports the contract version."""
        return _shifted(self.core, -1)

    def __str__(self) -> str:
        year, _, month = self.date.partition("-")
        return f"{self.core}, announced for {_MONTHS[int(month) - 1]} {year}"


class TestedReleases(NamedTuple):
    """The minor releases that tests run against, such as ``v1.14``, oldest first."""

    core: tuple[str, ...]
    """Core's minor releases that support the contract version."""
    kubernetes: tuple[str, ...]


class ContractReference(NamedTuple):
    """The reference from one Cluster API kind's objects to objects with a role."""

    source: str
    """Cluster API kind, or ``ControlPlane`` for any control plane kind."""
    role: str
    """Role of the referenced kind, such as ``InfraMachine``."""
    fields: Mapping[str, str]
    """Path of the reference, by contract version; empty if the owner does not name the object."""
    is_owner: bool
    """Whether the referring object becomes an owner of the referenced one."""


@dataclass(frozen=True, slots=True)
class Contract:
    """One version of the provider contract, equal to another with the same name."""

    version: str
    """Name of the contract version, such as ``v1beta2``."""
    label: str = field(compare=False)
    """Key of this contract version's label on CRDs, such as ``cluster.x-k8s.io/v1beta2``."""
    rules: Mapping[str, Rule] = field(compare=False, repr=False)
    """Rules by id, loaded when first used."""
    types: Mapping[str, TypeShape] = field(compare=False, repr=False)
    """Type shapes by role, each loaded when first used."""
    releases: Releases = field(compare=False)
    """Core releases that use this version themselves; later ones support it until ``end``."""
    end: SupportEnd | None = field(compare=False)
    """End of core's support for this contract version; None if no end is announced."""
    conditions: Mapping[str, str] = field(compare=False)
    """Condition types by purpose; for example, the purpose ``ready`` has the type ``Ready``."""
    sources: tuple[str, ...] = field(compare=False)
    kubernetes: str = field(compare=False)
    """Kubernetes version in samples, such as ``v1.36.0``; the same for all contract versions."""
    core_release: str = field(compare=False)
    """Core release that a lab runs, such as ``v1.14.2``; the same for all contract versions."""
    tested: TestedReleases = field(compare=False)
    hooks: Mapping[str, HookDefinition] = field(compare=False, repr=False)
    """Runtime SDK hooks by name, loaded when first used; the same for all contract versions."""
    upgrades: Mapping[str, Upgrade] = field(compare=False, repr=False)
    """Differences from older contract versions, keyed by version and loaded when first used."""
    core_kinds: Mapping[str, Mapping[str, Any]] = field(compare=False, repr=False)
    """Schemas of specs by API version and kind of core and kubeadm, loaded when first used."""
    kubernetes_kinds: Mapping[str, Mapping[str, Any]] = field(compare=False, repr=False)
    """Types of fields by API version and kind of Kubernetes, loaded when first used."""
    references: tuple[ContractReference, ...] = field(compare=False, repr=False)
    """References from Cluster API kinds to provider kinds; the same for all contract versions."""

    @property
    def core(self) -> str:
        """Return the core releases that support this version, for display: ``v1.11 and later``."""
        since, until = self.releases.since, self.releases.until
        text = f"{since} to {until}" if until else f"{since} and later"
        if not until or self.end is None:
            return text
        return f"{text}; {_shifted(until, 1)} to {self.end.last} for compatibility only"

    @property
    def support_end(self) -> str:
        """Return the end of core's support, for display; empty if no end is announced."""
        return str(self.end) if self.end is not None else ""


class Comparison(StrEnum):
    """How the old and the new value of a CRD schema keyword are compared."""

    STRUCTURE = "structure"
    """The values are subschemas, which are compared recursively."""
    LOWER_LIMIT = "lower-limit"
    UPPER_LIMIT = "upper-limit"
    EXCLUSIVE_LIMIT = "exclusive-limit"
    DIVISOR = "divisor"
    FORM = "form"
    """A changed value means that the schema accepts different values."""
    PATTERN = "pattern"
    FORMAT = "format"
    CHOICES = "choices"
    NULLABLE = "nullable"
    VALIDATIONS = "validations"
    ALL_OF = "all-of"
    ANY_OF = "any-of"
    FLAG = "flag"
    LIST_TYPE = "list-type"
    MAP_TYPE = "map-type"
    KEYS = "keys"
    IGNORED = "ignored"


class Keyword(NamedTuple):
    """A schema keyword, and the rules that are violated if its value changes."""

    name: str
    comparison: Comparison
    narrowed: str
    """Id of the rule violated if the schema accepts fewer values; empty if that is harmless."""
    widened: str
    """Id of the rule violated if the schema accepts more values; empty if that is harmless."""
    limit: str
    """For an exclusive-limit keyword, the keyword of the limit; empty for other keywords."""
    reason: str
