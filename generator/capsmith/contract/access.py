"""Requests that Cluster API's managers make for objects of a provider's kinds.

Loaded from ``schemas/contracts/common/access.yaml``.  The data consists of facts about Cluster API.
The contract rules define which of these requests a provider must permit.
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
    """A manager that the Cluster API project releases: core, or a kubeadm provider."""

    name: str
    """``core``, ``kubeadm-control-plane`` or ``kubeadm-bootstrap``."""
    title: str
    namespace: str
    account: str
    groups: tuple[str, ...]
    """API groups in which the manager's own ClusterRole already allows all requests."""
    label: str
    """Label that aggregates other ClusterRoles into the manager's role; empty if there is none."""
    sources: Mapping[str, str]
    """Paths, in the Cluster API repository, to the file that defines the manager's role. Each is
    keyed by the first release series in which the file has that path.
    """

    @property
    def user(self) -> str:
        """Return the user name that the API server gives the manager's ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"


class ManagerAccess(NamedTuple):
    """The requests to the API server that one Cluster API manager makes for one purpose."""

    manager: CoreManager
    kinds: tuple[str, ...]
    """Kinds of the requested objects: contract roles, CustomResourceDefinition or Secret."""
    verbs: tuple[str, ...]
    purpose: str
    permission: GrantedBy
    rules: tuple[str, ...]
    """Ids of the contract rules that require a provider to permit the requests."""
    since: str
    """First release series of core that makes the requests; empty if there is no lower bound."""
    until: str
    """Last release series of core that makes the requests; empty if there is no upper bound."""
    sources: Mapping[str, str]
    """Paths, in the Cluster API repository, to the source file. Each is keyed by the first release
    series in which the file has that path.
    """
    shown: AuditedTest | None
    unseen: str
    """Reason why no test observes the requests; empty if a test does."""

    def is_in(self, series: str) -> bool:
        """Return whether core's release series ``series`` (``v1.11``) makes the requests."""
        order = rank_core_series(series)
        is_too_old = bool(self.since) and order < rank_core_series(self.since)
        return not is_too_old and not (self.until and order > rank_core_series(self.until))


class AccessTable(NamedTuple):
    """The requests that all Cluster API managers make for objects of a provider's kinds."""

    managers: tuple[CoreManager, ...]
    rows: tuple[ManagerAccess, ...]

    def of(self, series: str) -> tuple[ManagerAccess, ...]:
        """Return the requests that core's release series ``series`` makes."""
        return tuple(row for row in self.rows if row.is_in(series))


def rank_core_series(series: str) -> tuple[int, ...]:
    """Return a sort key for a release series such as ``v1.14``: the major and minor numbers."""
    return tuple(int(part) for part in series.removeprefix("v").split("."))


def load_access(reader: Traversable) -> AccessTable:
    """Load the requests of Cluster API's managers from the schemas folder ``reader``.

    Raises UnreadableInput if the data are invalid, if a row's manager is not defined, or if a row
    does not have exactly one of ``shown`` (a test that shows the request) and ``unseen`` (the
    reason why no test does).
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
