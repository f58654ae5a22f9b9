"""Pydantic models for the contract's data files.

Imported only to read such a file.  Each model is built when first used, so a command that needs no
contract data does not spend time on pydantic.  Opens no files.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from capsmith.contract.model import (
    Actor,
    AuditedTest,
    ChangeKind,
    Comparison,
    EffectClass,
    FieldConversion,
    FieldOrigin,
    GrantedBy,
    HookFamily,
    Level,
    Origin,
    Proof,
    ReleaseTesting,
    Weight,
    Where,
)

_AS_TEXT = Field(strict=False)
"""Field settings for enumerations, whose values YAML holds as plain strings."""

_MINOR = r"^v[0-9]+\.[0-9]+$"
_VERB = r"^(create|delete|get|list|patch|update|watch)$"
_MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"


SourceFiles = Annotated[dict[Annotated[str, Field(pattern=_MINOR)], str], Field(min_length=1)]
"""Paths in the Cluster API repository, keyed by the first release in which the file has that path.
"""


class FileModel(BaseModel):
    """Base class for the models: unknown keys are errors, and YAML types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class CoreEntry(FileModel):
    """The core releases that support the contract version. Without ``until``, there is no end."""

    since: Annotated[str, Field(pattern=_MINOR)]
    until: Annotated[str, Field(pattern=_MINOR)] = ""


class SupportEndEntry(FileModel):
    """The first core release without support for the contract version, and its expected date."""

    core: Annotated[str, Field(pattern=_MINOR)]
    date: Annotated[str, Field(pattern=_MONTH)]


class ContractFile(FileModel):
    """The file ``<version>/contract.yaml``, which describes one contract version."""

    version: str
    label: str
    core: CoreEntry
    support_end: SupportEndEntry | None = Field(None, alias="supportEnd")
    conditions: dict[str, str]
    sources: list[str]


class FragmentEntry(FileModel):
    """A schema that several contract fields share: an entry in ``fragments.yaml``."""

    rule: str
    schema_: dict[str, Any] = Field(alias="schema")


class FragmentsFile(RootModel[dict[str, FragmentEntry]]):
    """The file ``fragments.yaml``: schemas that several fields share, by name."""


class FieldEntry(FileModel):
    """A field of a kind. The field's rule and schema are given here or come from a fragment."""

    fragment: str = ""
    rule: str = ""
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    required: bool = False
    feature: str = ""
    origin: Annotated[FieldOrigin, _AS_TEXT] = FieldOrigin.CONTRACT
    own: list[str] = []
    movable: list[str] = []


class ValidationEntry(FileModel):
    """A CEL rule for the whole spec of each kind that has all the listed features."""

    features: list[str]
    rule: str
    message: str


class ShapeFile(FileModel):
    """The file ``types/<role>.yaml``: the contract's fields for one role, such as InfraMachine."""

    role: str
    scope: str
    spec: dict[str, FieldEntry]
    status: dict[str, FieldEntry]
    printer_columns: list[dict[str, Any]] = Field(alias="printerColumns")
    subresources: dict[str, Any]
    validations: list[ValidationEntry] = []


class CheckEntry(FileModel):
    """The name of the static check that a rule uses, and parameters that the check validates."""

    name: str
    params: dict[str, Any] = Field({}, alias="with")


class ReleasesEntry(FileModel):
    """A range of core releases.  If a bound is empty, the range is open on that side."""

    since: Annotated[str, Field(pattern=_MINOR)] = ""
    deprecated: Annotated[str, Field(pattern=_MINOR)] = ""
    until: Annotated[str, Field(pattern=_MINOR)] = ""


class EffectEntry(FileModel):
    """The consequence of violating a rule that has a check, for all or some core releases."""

    class_: Annotated[EffectClass, _AS_TEXT] = Field(alias="class")
    when: str = ""
    roles: list[str] = []


class RuleEntry(FileModel):
    """A contract rule."""

    id: str
    effect: EffectEntry | None = None
    title: str
    level: Annotated[Level, _AS_TEXT]
    origin: Annotated[Origin, _AS_TEXT]
    row: str = ""
    statement: str
    contracts: list[str] | None = None
    applies_to: list[str]
    check: CheckEntry | None
    proof: Annotated[Proof, _AS_TEXT] | None = None
    source: str = ""
    consequence: str
    hint: str
    condition: str = ""
    core: ReleasesEntry = ReleasesEntry()
    severity: Annotated[Weight, _AS_TEXT] | None = None


class RulesFile(FileModel):
    """The file ``rules/<page>.yaml``."""

    source: str
    rules: list[RuleEntry]


class KeywordEntry(FileModel):
    """A structural schema keyword, and the rules that are violated if its value changes."""

    keyword: str
    compare: Annotated[Comparison, _AS_TEXT]
    narrowed: str = ""
    widened: str = ""
    limit: str = ""
    reason: str


class KeywordsFile(FileModel):
    """The file ``releases/keywords.yaml``: how changed schema keywords affect stored objects."""

    source: str
    keywords: list[KeywordEntry]


class PageRowEntry(FileModel):
    """A row in a contract page's rule table, as listed in ``common/pages.yaml``."""

    row: str
    title: str
    mandatory: bool
    when: str = ""
    see: str = ""


class PageEntry(FileModel):
    """A contract page that describes one resource, as listed in ``common/pages.yaml``."""

    page: str
    role: str
    rows: list[PageRowEntry]


class PagesFile(FileModel):
    """The file ``common/pages.yaml``: the contract's pages, with the rows of their rule tables."""

    pages: list[PageEntry]


class HookEntry(FileModel):
    """A hook of Cluster API's runtime SDK, as listed in ``common/hooks.yaml``."""

    hook: str
    family: Annotated[HookFamily, _AS_TEXT]
    statement: str
    since: str = ""


class HooksFile(FileModel):
    """The file ``common/hooks.yaml``: the hooks of Cluster API's runtime SDK."""

    source: str
    hooks: list[HookEntry]


class ManagerEntry(FileModel):
    """A manager that the Cluster API project releases, as listed in ``common/access.yaml``."""

    name: str
    title: str
    namespace: str
    account: str
    groups: list[str]
    label: str = ""
    source: SourceFiles


class AccessEntry(FileModel):
    """Requests that one manager makes for one purpose.

    If neither ``since`` nor ``until`` is set, the manager makes them in every core release.
    """

    manager: str
    kinds: Annotated[list[str], Field(min_length=1)]
    verbs: Annotated[list[Annotated[str, Field(pattern=_VERB)]], Field(min_length=1)]
    purpose: str
    permission: Annotated[GrantedBy, _AS_TEXT]
    rules: list[str] = []
    since: Annotated[str, Field(pattern=_MINOR)] = ""
    until: Annotated[str, Field(pattern=_MINOR)] = ""
    source: SourceFiles
    shown: Annotated[AuditedTest, _AS_TEXT] | None = None
    unseen: str = ""


class AccessFile(FileModel):
    """The file ``common/access.yaml``: what Cluster API's managers request from the API server."""

    managers: list[ManagerEntry]
    access: list[AccessEntry]


class ReferenceEntry(FileModel):
    """A row in ``common/references.yaml``: a field that refers to one of a provider's kinds."""

    source: str = Field(alias="from")
    role: str
    field: dict[str, str] = {}
    owner: bool = False


class ReferencesFile(FileModel):
    """The file ``common/references.yaml``: fields that refer to providers' kinds."""

    references: list[ReferenceEntry]


class ChangeEntry(FileModel):
    """A difference between two contract versions.

    If the old and the new path are the same, ``path`` is set instead of ``old`` and ``new``.
    """

    where: Annotated[Where, _AS_TEXT] = Where.OBJECT
    roles: list[str] = []
    kind: Annotated[ChangeKind, _AS_TEXT]
    path: str = ""
    old: str = ""
    new: str = ""
    conversion: Annotated[FieldConversion, _AS_TEXT] = FieldConversion.AS_IS
    lossless: bool | None = None
    rules: list[str] = []
    who: list[Annotated[Actor, _AS_TEXT]] = [Actor.GENERATOR]
    habit: bool = False
    note: str


class CoreStepsEntry(FileModel):
    """The number of core's minor releases that one ``clusterctl upgrade`` may span."""

    since: str
    minors: int
    source: str


class ConditionTypeEntry(FileModel):
    """A condition type that the new contract version reads: an entry in an upgrade file."""

    roles: list[str]
    type: str
    rules: list[str]
    note: str


class UpgradeFile(FileModel):
    """The file ``upgrades/<old>-to-<new>.yaml``: what changes between two contract versions."""

    old: str = Field(alias="from")
    new: str = Field(alias="to")
    source: str
    core_steps: CoreStepsEntry = Field(alias="coreSteps")
    conditions: list[ConditionTypeEntry]
    changes: list[ChangeEntry]


class SupportedEntry(FileModel):
    """A release that capsmith supports, or a whole minor release if no test runs against it."""

    release: Annotated[str, Field(pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]
    run: Annotated[ReleaseTesting, _AS_TEXT]
    kubeadm: bool = False
    note: str = ""


class CompatibilityFile(FileModel):
    """The file ``compatibility.yaml``: the supported releases of core, Kubernetes and others."""

    core: list[SupportedEntry]
    kubernetes: list[SupportedEntry]
    cert_manager: list[SupportedEntry] = Field(alias="certManager")
    python: list[SupportedEntry]
