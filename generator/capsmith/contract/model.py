"""One version of Cluster API's provider contract, as frozen data.

Knows no provider and reads no files; created only by :mod:`capsmith.contract.load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from capsmith.contract.hooks import Hook
from capsmith.contract.terms import EffectClass, FieldOrigin, Level, Origin, Proof, Weight
from capsmith.contract.upgrade import Upgrade

# Not of the module calendar, whose names depend on the locale.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

Data = Mapping[str, Any]
"""Plain data out of a YAML file."""


class Releases(NamedTuple):
    """Minor releases of core, as ``v1.14``; empty: no bound."""

    since: str = ""
    """The first one in which the rule holds."""
    deprecated: str = ""
    """The first one that announces the end of the rule."""
    until: str = ""
    """The last one in which the rule holds."""


class Effect(NamedTuple):
    """The effect of a violation, for providers that capsmith did not generate."""

    kind: EffectClass
    when: str = ""
    """The condition of ``breaks-when``."""
    roles: tuple[str, ...] = ()
    """Roles of the kinds to which it applies; empty: all of the rule.  For others it is advice."""


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
    """The row of the page's table that stands for the rule; empty: none (``load_pages``)."""
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
    """One field that the contract names, or that capsmith adds."""

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


def _shifted(release: str, minors: int) -> str:
    major, _, minor = release.partition(".")
    return f"{major}.{int(minor) + minors}"


class SupportEnd(NamedTuple):
    """The announced end of core's support for a contract."""

    core: str
    """The first minor release without support: ``v1.16``."""
    date: str
    """The month of that release: ``2027-04``."""

    @property
    def last(self) -> str:
        """Return the last minor release of core with support."""
        return _shifted(self.core, -1)

    def __str__(self) -> str:
        year, _, month = self.date.partition("-")
        return f"{self.core}, announced for {_MONTHS[int(month) - 1]} {year}"


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
    releases: Releases = field(compare=False)
    """Releases of core whose contract it is; later ones support it until ``end``."""
    end: SupportEnd | None = field(compare=False)
    """The end of core's support; None if not announced."""
    conditions: Mapping[str, str] = field(compare=False)
    """Purpose -> condition type: ``ready`` -> ``Ready``."""
    sources: tuple[str, ...] = field(compare=False)
    kubernetes: str = field(compare=False)
    """The version of Kubernetes in samples, the same for all versions: ``v1.36.0``."""
    hooks: Mapping[str, Hook] = field(compare=False, repr=False)
    """Of the runtime SDK by name, the same for all versions; read at their first use."""
    upgrades: Mapping[str, Upgrade] = field(compare=False, repr=False)
    """What has changed since an older version, by that version; read at its first use."""

    @property
    def core(self) -> str:
        """Return the releases of core that support it, for display: ``v1.11 and later``."""
        since, until = self.releases.since, self.releases.until
        text = f"{since} to {until}" if until else f"{since} and later"
        if not until or self.end is None:
            return text
        return f"{text}; {_shifted(until, 1)} to {self.end.last} for compatibility only"

    @property
    def support_end(self) -> str:
        """Return the announced end of support, for display; empty if not announced."""
        return str(self.end) if self.end is not None else ""
