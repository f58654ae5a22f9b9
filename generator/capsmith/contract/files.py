"""What the files of contract data may contain, as pydantic models.

Imported only when such a file is read, and each model is built at its first use: a command that
needs no contract data does not pay for pydantic.  Opens no file itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from capsmith.contract.model import (
    Actor,
    AuditedTest,
    ChangeKind,
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
"""For enumerations: YAML has only their values."""

_MINOR = r"^v[0-9]+\.[0-9]+$"
_VERB = r"^(create|delete|get|list|patch|update|watch)$"
_MONTH = r"^[0-9]{4}-(0[1-9]|1[0-2])$"


SourceFiles = Annotated[dict[Annotated[str, Field(pattern=_MINOR)], str], Field(min_length=1)]
"""A file of Cluster API's repository by the first release of core from which on it is there."""


class FileModel(BaseModel):
    """A mapping with these keys and no others, whose values are of these types as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class CoreEntry(FileModel):
    """The releases of core whose contract it is; without ``until`` also the newest."""

    since: Annotated[str, Field(pattern=_MINOR)]
    until: Annotated[str, Field(pattern=_MINOR)] = ""


class SupportEndEntry(FileModel):
    """The first release of core without support for the contract, and its announced month."""

    core: Annotated[str, Field(pattern=_MINOR)]
    date: Annotated[str, Field(pattern=_MONTH)]


class ContractFile(FileModel):
    """``<version>/contract.yaml``."""

    version: str
    label: str
    core: CoreEntry
    support_end: SupportEndEntry | None = Field(None, alias="supportEnd")
    conditions: dict[str, str]
    sources: list[str]


class FragmentEntry(FileModel):
    """A schema that several fields share."""

    rule: str
    schema_: dict[str, Any] = Field(alias="schema")


class FragmentsFile(RootModel[dict[str, FragmentEntry]]):
    """``fragments.yaml``."""


class FieldEntry(FileModel):
    """A field of a kind, with its own rule and schema or with those of a fragment."""

    fragment: str = ""
    rule: str = ""
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    required: bool = False
    feature: str = ""
    origin: Annotated[FieldOrigin, _AS_TEXT] = FieldOrigin.CONTRACT
    own: list[str] = []


class ValidationEntry(FileModel):
    """A CEL rule about the whole spec, for kinds with all of these features."""

    features: list[str]
    rule: str
    message: str


class ShapeFile(FileModel):
    """``types/<role>.yaml``."""

    role: str
    scope: str
    spec: dict[str, FieldEntry]
    status: dict[str, FieldEntry]
    printer_columns: list[dict[str, Any]] = Field(alias="printerColumns")
    subresources: dict[str, Any]
    validations: list[ValidationEntry] = []


class CheckEntry(FileModel):
    """The check of a rule; its parameters are validated by the check."""

    name: str
    params: dict[str, Any] = Field({}, alias="with")


class ReleasesEntry(FileModel):
    """Releases of core; empty: no bound."""

    since: Annotated[str, Field(pattern=_MINOR)] = ""
    deprecated: Annotated[str, Field(pattern=_MINOR)] = ""
    until: Annotated[str, Field(pattern=_MINOR)] = ""


class EffectEntry(FileModel):
    """What a violation of a checked rule does under a release of core or clusterctl."""

    class_: Annotated[EffectClass, _AS_TEXT] = Field(alias="class")
    when: str = ""
    roles: list[str] = []


class RuleEntry(FileModel):
    """One rule."""

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
    """``rules/<page>.yaml``."""

    source: str
    rules: list[RuleEntry]


class PageRowEntry(FileModel):
    """One row of the table on a page."""

    row: str
    title: str
    mandatory: bool
    when: str = ""
    see: str = ""


class PageEntry(FileModel):
    """A page of the contract on one resource."""

    page: str
    role: str
    rows: list[PageRowEntry]


class PagesFile(FileModel):
    """``common/pages.yaml``."""

    pages: list[PageEntry]


class HookEntry(FileModel):
    """One hook of the runtime SDK."""

    hook: str
    family: Annotated[HookFamily, _AS_TEXT]
    statement: str
    since: str = ""


class HooksFile(FileModel):
    """``common/hooks.yaml``."""

    source: str
    hooks: list[HookEntry]


class ManagerEntry(FileModel):
    """A manager in the repository of Cluster API."""

    name: str
    title: str
    namespace: str
    account: str
    groups: list[str]
    label: str = ""
    source: SourceFiles


class AccessEntry(FileModel):
    """What one manager requests for one purpose; without bounds in all releases of core."""

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
    """``common/access.yaml``."""

    managers: list[ManagerEntry]
    access: list[AccessEntry]


class ChangeEntry(FileModel):
    """One difference between two contracts; ``path`` is short for equal ``old`` and ``new``."""

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
    """How far clusterctl upgrades core in one command."""

    since: str
    minors: int
    source: str


class UpgradeFile(FileModel):
    """``upgrades/<old>-to-<new>.yaml``."""

    old: str = Field(alias="from")
    new: str = Field(alias="to")
    source: str
    core_steps: CoreStepsEntry = Field(alias="coreSteps")
    changes: list[ChangeEntry]


class SupportedEntry(FileModel):
    """A release of a project, or its series if no release is run."""

    release: Annotated[str, Field(pattern=r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$")]
    run: Annotated[ReleaseTesting, _AS_TEXT]
    kubeadm: bool = False
    note: str = ""


class CompatibilityFile(FileModel):
    """``compatibility.yaml``."""

    core: list[SupportedEntry]
    kubernetes: list[SupportedEntry]
    cert_manager: list[SupportedEntry] = Field(alias="certManager")
    python: list[SupportedEntry]
