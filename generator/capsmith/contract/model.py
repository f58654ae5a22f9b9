"""One version of Cluster API's provider contract, as frozen data.

Knows no provider and reads no files; created only by :mod:`capsmith.contract.load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from capsmith.contract.hooks import Hook
from capsmith.contract.upgrade import Upgrade

Data = Mapping[str, Any]
"""Plain data out of a YAML file."""


class Level(StrEnum):
    """How binding a rule is, in the words of RFC 2119; INFO is not binding."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    INFO = "INFO"


class Weight(StrEnum):
    """The severity of a violation; the values are those of a finding's severity."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Proof(StrEnum):
    """The way in which a rule without a static check is verified."""

    BEHAVIOUR = "behaviour"
    """A test that drives the controller."""
    RUNTIME = "runtime"
    """An API server, Cluster API core or clusterctl."""


class Check(NamedTuple):
    """The name of a coded check and its parameters."""

    name: str
    params: Data


class Rule(NamedTuple):
    """One rule of the contract."""

    id: str
    """``IC-05``; never changes."""
    title: str
    level: Level
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
    condition: str = ""
    """When the rule binds at all; empty: always."""
    severity: Weight | None = None
    """Set where the severity of a violation differs from that of its level."""

    @property
    def weight(self) -> Weight:
        """Return the severity of a violation."""
        by_level = {Level.MUST: Weight.ERROR, Level.SHOULD: Weight.WARNING}
        return self.severity or by_level.get(self.level, Weight.INFO)


class ContractField(NamedTuple):
    """One field that the contract names."""

    name: str
    schema: Data
    """Kubernetes structural schema (OpenAPI v3 subset)."""
    required: bool
    rule: str
    """Id of the rule that requires it."""
    feature: str = ""
    """Name of the optional part that it belongs to; empty: always there."""


class ContractValidation(NamedTuple):
    """A CEL rule about the whole spec."""

    rule: str
    message: str
    features: frozenset[str]
    """The optional parts that it reads."""


class TypeShape(NamedTuple):
    """What the contract demands of, or reserves in, the kinds of one role."""

    role: str
    scope: str
    """``Namespaced`` or ``Cluster``."""
    spec: Mapping[str, ContractField]
    """Of a template: the fields of the template's own ``spec``."""
    status: Mapping[str, ContractField]
    printer_columns: tuple[Data, ...]
    subresources: Data
    validations: tuple[ContractValidation, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """One version of the contract; two are equal when they are the same version."""

    version: str
    """``v1beta2``."""
    label: str = field(compare=False)
    """Key of the label on CRDs: ``cluster.x-k8s.io/v1beta2``."""
    rules: Mapping[str, Rule] = field(compare=False, repr=False)
    """By id, read at their first use."""
    types: Mapping[str, TypeShape] = field(compare=False, repr=False)
    """By role, each read at its first use."""
    core: str = field(compare=False)
    """Releases of core that speak it, for people: ``v1.11 and later``."""
    support_end: str = field(compare=False)
    """When core stops speaking it, for people; empty: not announced."""
    conditions: Mapping[str, str] = field(compare=False)
    """Purpose -> condition type: ``ready`` -> ``Ready``."""
    sources: tuple[str, ...] = field(compare=False)
    hooks: Mapping[str, Hook] = field(compare=False, repr=False)
    """Of the runtime SDK by name, the same for all versions; read at their first use."""
    upgrades: Mapping[str, Upgrade] = field(compare=False, repr=False)
    """What has changed since an older version, by that version; read at its first use."""
