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
    """The level of obligation of a rule, in the terms of RFC 2119; INFO is not binding."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    INFO = "INFO"


class Origin(StrEnum):
    """The origin of a rule."""

    CONTRACT = "contract"
    """A page of the contract for a provider type, clusterctl, IPAM or runtime extensions."""
    OBSERVED = "observed"
    """Behaviour of Cluster API or Kubernetes that no page of the contract promises."""
    ADVICE = "advice"
    """A convention or good practice, based on neither the contract nor observed behaviour."""


class Weight(StrEnum):
    """The severity of a violation, with the same values as :class:`capsmith.findings.Severity`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Proof(StrEnum):
    """The method that verifies a rule without a static check."""

    BEHAVIOUR = "behaviour"
    """A test that drives the controller."""
    RUNTIME = "runtime"
    """A run with an API server, Cluster API core or clusterctl."""


class EffectClass(StrEnum):
    """The effect of a violation with a release of core or clusterctl."""

    BREAKS = "breaks"
    """Core or clusterctl fails or misbehaves."""
    BREAKS_WHEN = "breaks-when"
    """Core or clusterctl fails or misbehaves under a certain condition."""
    ADVICE = "advice"
    """Nothing fails, but the provider does not follow a recommendation."""


class FieldOrigin(StrEnum):
    """The origin of a field: the contract or capsmith."""

    CONTRACT = "contract"
    """The contract defines the field, or core reads or writes the field."""
    CAPSMITH = "capsmith"
    """Capsmith defines the field, to help providers comply with the field's rule."""


class HookFamily(StrEnum):
    """The group of a hook; the runtime handles each group in a separate module."""

    TOPOLOGY = "topology"
    LIFECYCLE = "lifecycle"
    UPGRADE_PLAN = "upgrade-plan"
    IN_PLACE = "in-place"


class Where(StrEnum):
    """The kind of object that a path applies to."""

    OBJECT = "object"
    """The path is in objects of the provider's kinds."""
    CORE = "core"
    """The path is in objects of core's kinds that the provider writes."""
    CRD = "crd"
    METADATA = "metadata"
    """The path is in metadata.yaml."""


class ChangeKind(StrEnum):
    """The difference between a field in the new contract and in the old one."""

    MOVED = "moved"
    COPIED = "copied"
    """The old field is kept next to the new field."""
    RETYPED = "retyped"
    """The JSON type or shape differs, and perhaps the path as well."""
    NARROWED = "narrowed"
    """Path and type are the same, but some values that were valid are refused."""
    OPTIONAL = "optional"
    """Path and type are the same, but the field may now be absent."""
    ADDED = "added"
    REMOVED = "removed"


class FieldConversion(StrEnum):
    """The conversion of a value from the old field to the new field."""

    AS_IS = "as-is"
    FLAG = "flag"
    """True is kept; false is dropped."""
    TEXT = "text"
    """A non-empty string is kept; null and an empty string are dropped."""
    EMPTY_OBJECT = "empty-object"
    """An object whose values are all empty is dropped."""
    EMPTY_LIST = "empty-list"
    MAP_TO_LIST = "map-to-list"
    CONDITIONS = "conditions"
    REFERENCE = "reference"
    """``apiVersion`` becomes ``apiGroup``; the namespace is dropped."""
    SECONDS = "seconds"
    """A duration as a string becomes a number of whole seconds."""
    COMPLEMENT = "complement"
    """A number becomes the total minus that number."""
    NONE = "none"
    """There is no counterpart to convert from or to."""


class Actor(StrEnum):
    """The party that must act on a change; by default the generator."""

    GENERATOR = "generator"
    """Capsmith; schema and conversion follow from the data."""
    AUTHOR = "author"
    """The provider's author, because the meaning of a field changes and code must be adapted."""
    USER = "user"


class ReleaseTesting(StrEnum):
    """The extent to which a release is tested."""

    CI = "ci"
    """All tests run for each change."""
    SHORT = "short"
    """A cluster lifecycle test runs for each change, all tests run every night."""
    NIGHTLY = "nightly"
    """All tests run every night."""
    SOURCE = "source"
    """No tests run; statements about the release are based on its source code."""


class GrantedBy(StrEnum):
    """The role or binding that grants the permission for a request."""

    LABEL = "label"
    """The manager's own role, or a ClusterRole of the provider that has the manager's label."""
    BINDING = "binding"
    """A ClusterRole of the provider that is bound to the manager."""
    OWN = "own"
    """The manager's own role, so the provider does not grant anything."""


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
"""Plain data from a YAML file."""


class Releases(NamedTuple):
    """A range of minor releases of core such as ``v1.14``.

    An empty bound means that there is no limit on that side.
    """

    since: str = ""
    """First release in which the rule holds."""
    deprecated: str = ""
    """First release that announces the end of the rule."""
    until: str = ""
    """Last release in which the rule holds."""


class Effect(NamedTuple):
    """The effect of a violation on providers that capsmith did not generate."""

    kind: EffectClass
    when: str = ""
    """Condition under which the violation breaks something; only for ``breaks-when``."""
    roles: tuple[str, ...] = ()
    """Roles of the kinds that the effect applies to; empty if it applies to all roles of the rule.
    For other roles a violation is only advice."""


class Check(NamedTuple):
    """The name of a static check and its parameters."""

    name: str
    params: Data


class Rule(NamedTuple):
    """A rule of the contract."""

    id: str
    """Permanent id, such as ``IC-05``."""
    title: str
    level: Level
    """Level of the rule in its source.  Capsmith decides the severity of a violation separately."""
    origin: Origin
    statement: str
    contracts: tuple[str, ...]
    """Contract versions in which the rule holds, oldest first."""
    applies_to: tuple[str, ...]
    """Roles (``InfraMachine``) or artefacts (``components``, ``metadata``, ``manager`` …) that the
    rule applies to."""
    check: Check | None
    proof: Proof | None
    """Kind of test that verifies the rule; None for rules with a check and for information."""
    source: str
    """URL of the rule's source: a page of the Cluster API book or a file in an upstream
    repository."""
    consequence: str
    hint: str
    page: str
    """Name of the rules file, such as ``infra-machine``."""
    row: str = ""
    """Name of the rule's row in the table of its page (``load_pages``); empty if it has none."""
    condition: str = ""
    """Condition under which the rule applies; empty if it always applies."""
    core: Releases = Releases()
    severity: Weight | None = None
    """Severity of a violation; None if it follows from the level."""
    effect: Effect = Effect(EffectClass.ADVICE)
    """Effect of a violation; only meaningful for rules with a check."""

    @property
    def weight(self) -> Weight:
        """Return the severity of a violation."""
        by_level = {Level.MUST: Weight.ERROR, Level.SHOULD: Weight.WARNING}
        return self.severity or by_level.get(self.level, Weight.INFO)


class ContractField(NamedTuple):
    """A field that the contract defines or that capsmith adds."""

    name: str
    schema: Data
    """Kubernetes structural schema (a subset of OpenAPI v3)."""
    required: bool
    rule: str
    """Id of the rule that requires the field."""
    feature: str = ""
    """Name of the optional feature that the field belongs to; empty if the field is always
    present."""
    origin: FieldOrigin = FieldOrigin.CONTRACT
    own: tuple[str, ...] = ()
    """Names of properties that capsmith adds to a field of the contract."""


class ContractValidation(NamedTuple):
    """A CEL rule for the whole spec."""

    rule: str
    message: str
    features: frozenset[str]
    """Names of the optional features whose fields the CEL rule reads."""


class TypeShape(NamedTuple):
    """The contract's fields, printer columns and validations for the kinds of one role."""

    role: str
    scope: str
    """``Namespaced`` or ``Cluster``."""
    spec: Mapping[str, ContractField]
    """Fields of ``spec``; for a template, the fields of the template's own ``spec``."""
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
    """Name of the hook, such as ``GeneratePatches``."""
    family: HookFamily
    statement: str
    """When and why core calls the hook."""
    since: str
    """First release of core that has the hook; empty if every release with runtime extensions has
    it."""


class FieldChange(NamedTuple):
    """A difference between two contracts."""

    where: Where
    roles: tuple[str, ...]
    """Roles, or kinds of core, that the difference applies to; empty for CRDs and metadata.yaml."""
    kind: ChangeKind
    old: str
    """Dotted path in the old contract; empty if the field was added."""
    new: str
    """Dotted path in the new contract; empty if the field was removed."""
    conversion: FieldConversion
    lossless: bool
    """Whether a conversion from old to new and back restores the value without the conversion-data
    annotation."""
    rules: tuple[str, ...]
    who: tuple[Actor, ...]
    habit: bool
    """Whether the field is a convention of many providers rather than part of the contract."""
    note: str


class CoreSteps(NamedTuple):
    """The maximum number of minor releases in one upgrade of core and the kubeadm providers."""

    since: str
    """First release of core from which clusterctl enforces the limit, such as ``v1.10``."""
    minors: int
    """Maximum number of minor releases in one step."""
    source: str

    @property
    def path(self) -> tuple[str, ...]:
        """Return ``since`` and the next two releases on the path with the longest allowed steps."""
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
    """First minor release of core without support, such as ``v1.16``."""
    date: str
    """Month in which that release is expected, such as ``2027-04``."""

    @property
    def last(self) -> str:
        """Return the last minor release of core that supports the contract."""
        return _shifted(self.core, -1)

    def __str__(self) -> str:
        year, _, month = self.date.partition("-")
        return f"{self.core}, announced for {_MONTHS[int(month) - 1]} {year}"


class TestedReleases(NamedTuple):
    """The minor releases that tests run with, such as ``v1.14``, oldest first."""

    core: tuple[str, ...]
    """Minor releases of core that support the contract."""
    kubernetes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """A version of the contract.

    Instances are equal if their versions are equal.
    """

    version: str
    """Name of the contract version, such as ``v1beta2``."""
    label: str = field(compare=False)
    """Key of the contract label on CRDs, such as ``cluster.x-k8s.io/v1beta2``."""
    rules: Mapping[str, Rule] = field(compare=False, repr=False)
    """Rules by id, loaded when first used."""
    types: Mapping[str, TypeShape] = field(compare=False, repr=False)
    """Type shapes by role, each loaded when first used."""
    releases: Releases = field(compare=False)
    """Releases of core that use this contract themselves; later releases support it until
    ``end``."""
    end: SupportEnd | None = field(compare=False)
    """End of core's support; None if not announced."""
    conditions: Mapping[str, str] = field(compare=False)
    """Condition types by purpose, such as ``Ready`` for ``ready``."""
    sources: tuple[str, ...] = field(compare=False)
    kubernetes: str = field(compare=False)
    """Kubernetes version in samples, such as ``v1.36.0``; the same for all contract versions."""
    tested: TestedReleases = field(compare=False)
    hooks: Mapping[str, HookDefinition] = field(compare=False, repr=False)
    """Runtime SDK hooks by name, loaded when first used; the same for all contract versions."""
    upgrades: Mapping[str, Upgrade] = field(compare=False, repr=False)
    """Differences from an older contract version, keyed by that version; each loaded when first
    used."""

    @property
    def core(self) -> str:
        """Return the releases of core that support the contract: ``v1.11 and later``."""
        since, until = self.releases.since, self.releases.until
        text = f"{since} to {until}" if until else f"{since} and later"
        if not until or self.end is None:
            return text
        return f"{text}; {_shifted(until, 1)} to {self.end.last} for compatibility only"

    @property
    def support_end(self) -> str:
        """Return the announced end of support, for display; empty if not announced."""
        return str(self.end) if self.end is not None else ""


class Comparison(StrEnum):
    """How two values of a keyword are compared."""

    STRUCTURE = "structure"
    """As part of the walk through both schemas."""
    LOWER_LIMIT = "lower-limit"
    UPPER_LIMIT = "upper-limit"
    EXCLUSIVE_LIMIT = "exclusive-limit"
    DIVISOR = "divisor"
    FORM = "form"
    """Any other value accepts other values."""
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
    """A keyword, and the rules that a change of its value breaks."""

    name: str
    comparison: Comparison
    narrowed: str
    """Id of the rule that fewer accepted values break; empty if that is harmless."""
    widened: str
    """Id of the rule that more accepted values break; empty if that is harmless."""
    limit: str
    """Keyword with the limit that the keyword excludes, or an empty string."""
    reason: str
