"""Who reads and writes the objects of providers (``schemas/contracts/common/access.yaml``).

The data are facts about Cluster API's managers; what a provider must grant is said by the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from capsmith.contract.model import AuditedTest, GrantedBy
from capsmith.contract.reading import load, make_error, validate

if TYPE_CHECKING:
    from capsmith.contract.files import AccessEntry, ManagerEntry

FILE = "access.yaml"


class CoreManager(NamedTuple):
    """A manager in the repository of Cluster API."""

    name: str
    """``core``, ``kubeadm-control-plane`` or ``kubeadm-bootstrap``."""
    title: str
    namespace: str
    account: str
    groups: tuple[str, ...]
    """API groups of whose kinds its own role allows all."""
    label: str
    """The label of the roles that it aggregates; empty: none."""
    sources: Mapping[str, str]
    """The file with its role, by the first series of core in which it is there."""

    @property
    def user(self) -> str:
        """Return the name by which the API server knows it."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"


class ManagerAccess(NamedTuple):
    """Requests of one manager for one purpose."""

    manager: CoreManager
    kinds: tuple[str, ...]
    """Roles of the contract, CustomResourceDefinition or Secret."""
    verbs: tuple[str, ...]
    purpose: str
    permission: GrantedBy
    rules: tuple[str, ...]
    """Ids of the rules that require the permission of providers."""
    since: str
    """The first series of core; empty: no bound."""
    until: str
    """The last series of core; empty: no bound."""
    sources: Mapping[str, str]
    """The file in the repository of Cluster API, by the first series in which it is there."""
    shown: AuditedTest | None
    unseen: str
    """Why no test shows it; empty if one does."""

    def is_in(self, series: str) -> bool:
        """Return whether a series of core makes the requests."""
        order = series_order(series)
        is_too_old = bool(self.since) and order < series_order(self.since)
        return not is_too_old and not (self.until and order > series_order(self.until))


class AccessTable(NamedTuple):
    """All that the managers request."""

    managers: tuple[CoreManager, ...]
    rows: tuple[ManagerAccess, ...]

    def of(self, series: str) -> tuple[ManagerAccess, ...]:
        """Return the requests of a series of core."""
        return tuple(row for row in self.rows if row.is_in(series))


def series_order(series: str) -> tuple[int, ...]:
    """Return the sort key of a series: ``v1.14``."""
    return tuple(int(part) for part in series.removeprefix("v").split("."))


def load_access(reader: Traversable) -> AccessTable:
    """Return the table from the schemas folder ``reader``.

    Raises UnreadableInput for broken data, for a manager without definition, and for a row that
    is not either shown by a test or explained.
    """
    from capsmith.contract.files import AccessFile  # builds pydantic models

    file = reader / "contracts" / "common" / FILE
    content = validate(AccessFile, load(file), str(file))
    managers = {entry.name: _manager(entry) for entry in content.managers}
    if len(managers) < len(content.managers):
        raise make_error(str(file), "a manager is defined twice")
    rows = tuple(_row(entry, managers, str(file)) for entry in content.access)
    return AccessTable(tuple(managers.values()), rows)


def _manager(entry: ManagerEntry) -> CoreManager:
    return CoreManager(
        entry.name,
        entry.title,
        entry.namespace,
        entry.account,
        tuple(entry.groups),
        entry.label,
        entry.source,
    )


def _row(entry: AccessEntry, managers: Mapping[str, CoreManager], file: str) -> ManagerAccess:
    what = f"{entry.manager}, {' '.join(entry.verbs)} {' '.join(entry.kinds)}"
    manager = managers.get(entry.manager)
    if manager is None:
        raise make_error(file, f"{what}: the manager is not defined")
    if (entry.shown is None) is not bool(entry.unseen):
        raise make_error(file, f"{what}: needs either shown or unseen")
    if entry.permission is not GrantedBy.OWN and not entry.rules:
        raise make_error(file, f"{what}: no rule requires the permission of providers")
    if entry.permission is GrantedBy.LABEL and not manager.label:
        raise make_error(file, f"{what}: the manager has no label")
    return ManagerAccess(
        manager,
        tuple(entry.kinds),
        tuple(entry.verbs),
        entry.purpose,
        entry.permission,
        tuple(entry.rules),
        entry.since,
        entry.until,
        entry.source,
        entry.shown,
        entry.unseen,
    )
