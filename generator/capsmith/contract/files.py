"""What the files of contract data may contain, as pydantic models.

Imported only when such a file is read, and each model is built at its first use: a command that
needs no contract data does not pay for pydantic.  Opens no file itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

from capsmith.contract.hooks import HookFamily
from capsmith.contract.model import Level, Proof, Weight
from capsmith.contract.upgrade import Actor, ChangeKind, Conversion, Where

_AS_TEXT = Field(strict=False)
"""For enumerations: YAML has only their values."""


class FileModel(BaseModel):
    """A mapping with these keys and no others, whose values are of these types as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class ContractFile(FileModel):
    """``<version>/contract.yaml``."""

    version: str
    label: str
    core: str
    support_end: str = Field(alias="supportEnd")
    conditions: dict[str, str]
    sources: list[str]


class FragmentEntry(FileModel):
    """A schema that several fields share."""

    rule: str
    schema_: dict[str, Any] = Field(alias="schema")


class FragmentsFile(RootModel[dict[str, FragmentEntry]]):
    """``fragments.yaml``."""


class FieldEntry(FileModel):
    """A field of a kind, with a rule and a schema of its own or those of a fragment."""

    fragment: str = ""
    rule: str = ""
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    required: bool = False
    feature: str = ""


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


class RuleEntry(FileModel):
    """One rule."""

    id: str
    title: str
    level: Annotated[Level, _AS_TEXT]
    statement: str
    contracts: list[str] | None = None
    applies_to: list[str]
    check: CheckEntry | None
    proof: Annotated[Proof, _AS_TEXT] | None = None
    source: str = ""
    consequence: str
    hint: str
    condition: str = ""
    severity: Annotated[Weight, _AS_TEXT] | None = None


class RulesFile(FileModel):
    """``rules/<page>.yaml``."""

    source: str
    rules: list[RuleEntry]


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


class ChangeEntry(FileModel):
    """One difference between two contracts; ``path`` is short for equal ``old`` and ``new``."""

    where: Annotated[Where, _AS_TEXT] = Where.OBJECT
    roles: list[str] = []
    kind: Annotated[ChangeKind, _AS_TEXT]
    path: str = ""
    old: str = ""
    new: str = ""
    conversion: Annotated[Conversion, _AS_TEXT] = Conversion.AS_IS
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
