"""The object tree, as in ``clusterctl describe``, with similar siblings combined into one row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from capsmith.clusters.conditions import JSON, get_mapping
from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.page.model.calls import AuthorCall
from capsmith.clusters.lab.page.model.reason import describe_reason
from capsmith.clusters.lab.page.model.store import (
    ObjectKey,
    ObjectStore,
    SimulatedServer,
    StoredObject,
    list_owners,
    list_references,
)

_GROUPED = 5
"""Minimum number of equal siblings that share a row."""
_SHOWN = 200
"""Maximum number of members of an open group that are sent."""
_MAX_ROWS = 600
_REST = "Templates, classes and others"
_TYPES = {"Machine": 0, "MachinePool": 1, "MachineDeployment": 2, "MachineSet": 3}


@dataclass(frozen=True)
class TreeQuery:
    """The part of the tree that the user has chosen to see."""

    open: frozenset[str] = frozenset()
    """Ids of the groups whose members are shown."""
    search: str = ""
    """Text that a row's name or kind must contain; empty for all rows."""
    is_waiting_only: bool = False


@dataclass(frozen=True)
class TreeRow:
    """A row in the object tree on the lab's page: one object, or a group of similar ones."""

    id: str
    depth: int
    kind: str
    name: str
    role: str
    """The object's role for its parent, such as ``Bootstrap``; empty if it has none."""
    state: str
    tone: str
    waiting: str
    call: str
    """The object's long-running author call, as kind, name and method; empty if there is none.

    For a group, it is the method and the number of objects.
    """
    call_begin: float | None
    """Start of the call, in seconds since the epoch; None if there is none.

    For a group, it is the start of the first call.
    """
    is_paused: bool
    created: str
    count: int
    """Number of objects in a group; 0 for all other rows."""
    is_open: bool

    def to_data(self) -> JSON:
        """Return the row as JSON data."""
        return asdict(self)


RunningCalls = Mapping[tuple[str, str], AuthorCall]
"""Long-running calls, by kind and key of their object."""
_NO_CALLS: RunningCalls = {}
_NO_CALL = ("", None)


@dataclass
class _Node:
    found: StoredObject | None
    role: str
    server: SimulatedServer | None = None
    machine: ObjectKey | None = None
    """The infrastructure machine of a server; None for all other nodes."""
    is_lost: bool = False
    """Whether the simulated cloud has lost the server of this machine."""


class TreeBuilder:
    """Builds the rows of the object tree that match a query."""

    def __init__(self, store: ObjectStore, query: TreeQuery, running: RunningCalls) -> None:
        self._store = store
        self._running = running
        self._query = query
        self._reasons: dict[ObjectKey, str] = {}
        self._roles = _find_references(store)
        self._children: dict[ObjectKey | None, list[_Node]] = defaultdict(list)
        servers = {each.provider_id: each for each in store.servers or () if each.provider_id}
        for found in store:
            if _is_hidden(found, store):
                continue
            parent, role = self._find_parent(found)
            node = _Node(found, role)
            self._children[parent].append(node)
            self._add_server(node, servers)

    def build(self) -> list[TreeRow]:
        """Return the rows: each Cluster followed by its objects, then everything else."""
        roots = self._children[None]
        clusters = [each for each in roots if _kind(each) == "Cluster"]
        rest = [each for each in roots if _kind(each) != "Cluster"]
        rows: list[TreeRow] = []
        for node in sorted(clusters, key=_order):
            rows += self._rows(node, 0)
        if rest:
            below = [row for node in sorted(rest, key=_order) for row in self._rows(node, 1)]
            # A search opens groups with matching members.
            is_open = _REST in self._query.open or bool(self._query.search)
            if below:
                row = _virtual(_REST, 0, _REST, len(rest), is_open=is_open)
                rows += [row, *(below[:_SHOWN] if is_open else [])]
        left_out = len(rows) - _MAX_ROWS
        if left_out > 0:
            more = _virtual("more", 0, f"{left_out} more rows: search for a name", 0, is_open=False)
            rows = [*rows[:_MAX_ROWS], more]
        return rows

    def _rows(self, node: _Node, depth: int) -> list[TreeRow]:
        """Return the rows of a node and all below it that the query selects."""
        key = node.found.key if node.found else None
        children = sorted(self._children.get(key, []), key=_order) if key is not None else []
        groups = self._identify(self._group(children), key)
        below = [row for id_, group in groups for row in self._show(group, id_, depth + 1)]
        row = self._row(node, depth)
        return [row, *below] if below or self._is_selected(row) else []

    def _show(self, group: list[_Node], group_id: str, depth: int) -> list[TreeRow]:
        """Return the rows of siblings that look the same, below their parent."""
        if len(group) < _GROUPED or self._query.search:
            return [row for node in group for row in self._rows(node, depth)]
        # If the query selects the first member, it selects all of them.
        if not self._rows(group[0], depth):
            return []
        first = self._row(group[0], depth)
        is_open = group_id in self._query.open
        title = f"{len(group)} {first.kind}s"
        call, call_begin = self._describe_calls(group)
        like = replace(first, call=call, call_begin=call_begin)
        row = _virtual(group_id, depth, title, len(group), is_open=is_open, like=like)
        if not is_open:
            return [row]
        return [row, *(each for node in group[:_SHOWN] for each in self._rows(node, depth + 1))]

    def _group(self, nodes: list[_Node]) -> list[list[_Node]]:
        """Return siblings that look the same, and whose children do, in one list each."""
        groups: dict[object, list[_Node]] = {}
        for node in nodes:
            groups.setdefault(self._signature(node), []).append(node)
        return list(groups.values())

    def _identify(
        self, groups: list[list[_Node]], parent: ObjectKey | None
    ) -> Iterator[tuple[str, list[_Node]]]:
        """Yield groups of siblings with their ids.

        An id depends on kind and state only: a group stays open while objects below its members
        come and go, and while reasons change.
        """
        numbers: dict[str, int] = defaultdict(int)
        for group in groups:
            found = group[0].found
            about = (found.key.kind, found.summary.state, found.summary.is_paused) if found else ()
            group_id = f"group:{parent.id if parent else ''}:{':'.join(map(str, about))}"
            numbers[group_id] += 1
            yield f"{group_id}:{numbers[group_id]}", group

    def _signature(self, node: _Node) -> object:
        if node.found is None:
            return node.server.id if node.server else None
        children = self._children.get(node.found.key, ())
        shown = node.found.summary, self._describe_reason(node.found)
        below = tuple(sorted(repr(self._signature_of_child(each)) for each in children))
        method = self._find_call(node)[0].rpartition(" ")[2]
        return node.found.key.kind, shown, node.role, node.is_lost, method, below

    def _signature_of_child(self, node: _Node) -> object:
        # A server's id is unique, so it must not distinguish Machines.
        return "server" if node.found is None else self._signature(node)

    def _is_selected(self, row: TreeRow) -> bool:
        is_done = row.tone in ("ok", "neutral") and not row.is_paused and not row.call
        if self._query.is_waiting_only and is_done:
            return False
        text = self._query.search.lower()
        return not text or text in row.name.lower() or text in row.kind.lower()

    def _row(self, node: _Node, depth: int) -> TreeRow:
        if node.found is None:
            return _server_row(node, depth)
        key, summary = node.found.key, node.found.summary
        metadata = get_mapping(node.found.data.get("metadata"))
        call, call_begin = self._find_call(node)
        return TreeRow(
            id=key.id,
            depth=depth,
            kind=key.kind,
            name=key.name,
            role=node.role,
            state=summary.state,
            tone=summary.tone,
            waiting=self._describe_reason(node.found),
            call=call,
            call_begin=call_begin,
            is_paused=summary.is_paused,
            created=str(metadata.get("creationTimestamp") or ""),
            count=0,
            is_open=False,
        )

    def _describe_reason(self, found: StoredObject) -> str:
        """Return why an object is not done. It is determined once for each object."""
        if found.key not in self._reasons:
            self._reasons[found.key] = describe_reason(self._store, found)
        return self._reasons[found.key]

    def _describe_calls(self, group: list[_Node]) -> tuple[str, float | None]:
        """Return the long calls of a group's members, which have one method, and the first start.

        The page writes the word "since" and the start after the text.
        """
        calls = [self._find_call(node) for node in group]
        begins = [begin for _, begin in calls if begin is not None]
        if not begins:
            return _NO_CALL
        method = calls[0][0].rpartition(" ")[2]
        return f"{method} of {len(group)} objects, the first", min(begins)

    def _find_call(self, node: _Node) -> tuple[str, float | None]:
        """Return the long call and its start for an object, or for an object it refers to."""
        if node.found is None or not self._running:
            return _NO_CALL
        below = self._children.get(node.found.key, ())
        for each in (node, *(child for child in below if child.role)):
            if each.found is None:
                continue
            key = each.found.key
            call = self._running.get((key.kind, "/".join(filter(None, (key.namespace, key.name)))))
            if call is not None:
                method = call.method.rpartition(".")[2]
                return hide_in_line(f"{key.kind}/{key.name} {method}"), call.begin
        return _NO_CALL

    def _find_parent(self, found: StoredObject) -> tuple[ObjectKey | None, str]:
        """Return the key of the object below which an object is shown, and its role there."""
        reference = self._roles.get(found.key)
        role = reference[1] if reference else ""
        for owner in list_owners(found.data):
            parent = self._store.find_uid(str(owner.get("uid") or ""))
            if parent is not None:
                return _skip_hidden(parent, self._store), role
        # A controller sets the owner; until then, the referring object is the parent.
        if reference is not None:
            return reference
        cluster = self._store.find_cluster(found)
        if cluster is not None and cluster.key != found.key:
            return cluster.key, role
        return None, role

    def _add_server(self, node: _Node, servers: dict[str, SimulatedServer]) -> None:
        """Add the server behind an infrastructure machine of the simulated cloud."""
        if self._store.servers is None or node.found is None or node.role != "Infrastructure":
            return
        parent = self._roles[node.found.key][0]
        provider_id = get_mapping(node.found.data.get("spec")).get("providerID")
        if parent.kind != "Machine" or not isinstance(provider_id, str):
            return
        server = servers.get(provider_id)
        node.is_lost = server is None
        lost = SimulatedServer(provider_id.rpartition("/")[2], "", provider_id)
        self._children[node.found.key].append(
            _Node(None, "Server", server or lost, node.found.key, is_lost=server is None)
        )


def _find_references(store: ObjectStore) -> dict[ObjectKey, tuple[ObjectKey, str]]:
    """Return the object that refers to an object, and the role in which it does so."""
    return {key: (each.key, role) for each in store for key, role in list_references(each)}


def _is_hidden(found: StoredObject, store: ObjectStore) -> bool:
    """Return whether ``clusterctl describe`` leaves an object out: the sets of a deployment."""
    if found.key.kind != "MachineSet":
        return False
    return any(store.find_uid(str(each.get("uid"))) for each in list_owners(found.data))


def _skip_hidden(parent: StoredObject, store: ObjectStore) -> ObjectKey:
    """Return the parent, or the deployment of a MachineSet that is not shown."""
    if parent.key.kind == "MachineSet":
        for owner in list_owners(parent.data):
            deployment = store.find_uid(str(owner.get("uid") or ""))
            if deployment is not None:
                return deployment.key
    return parent.key


def _kind(node: _Node) -> str:
    return node.found.key.kind if node.found else "Server"


def _order(node: _Node) -> tuple[object, ...]:
    """Return the sort key: what the cluster needs first, then workers, then the rest, by name."""
    roles = ("Infrastructure", "Control plane", "Bootstrap", "Server")
    rank = roles.index(node.role) if node.role in roles else 4
    name = node.found.key if node.found else ()
    return rank, -_TYPES.get(_kind(node), -1), _kind(node), name


def _server_row(node: _Node, depth: int) -> TreeRow:
    server = node.server or SimulatedServer("", "", "")
    machine = node.machine.id if node.machine else ""
    state, tone = ("Lost", "failed") if node.is_lost else ("Exists", "ok")
    waiting = "the simulated cloud has no such server" if node.is_lost else ""
    return TreeRow(
        # Machines that name the same server by mistake each get a row.
        f"server:{machine}",
        *(depth, "Server", server.name or server.id, "Server", state, tone, waiting),
        call="",
        call_begin=None,
        is_paused=False,
        created="",
        count=0,
        is_open=False,
    )


def _virtual(
    row_id: str, depth: int, title: str, count: int, *, is_open: bool, like: TreeRow | None = None
) -> TreeRow:
    """Return the row of a group, with the state of its members."""
    return TreeRow(
        id=row_id,
        depth=depth,
        kind="",
        name=title,
        role=like.role if like else "",
        state=like.state if like else "",
        tone=like.tone if like else "neutral",
        waiting=like.waiting if like else "",
        call=like.call if like else "",
        call_begin=like.call_begin if like else None,
        is_paused=like.is_paused if like else False,
        created="",
        count=count,
        is_open=is_open,
    )


def compare_rows(before: list[TreeRow], now: list[TreeRow]) -> JSON:
    """Return the differences between two trees as JSON data; empty if there are none.

    ``rows`` holds the new and changed rows, and ``order`` the ids of all rows if the order changed.
    """
    known = {row.id: row for row in before}
    changed = [row.to_data() for row in now if known.get(row.id) != row]
    found: JSON = {"rows": changed} if changed else {}
    order = [row.id for row in now]
    if order != [row.id for row in before]:
        found["order"] = order
    return found


def build_tree(
    store: ObjectStore, query: TreeQuery, running: RunningCalls = _NO_CALLS
) -> list[TreeRow]:
    """Return the rows of the tree that match a query.

    ``running`` holds the author's calls that have been running for a long time; the rows show them.
    """
    return TreeBuilder(store, query, running).build()


def count_states(store: ObjectStore) -> dict[str, int]:
    """Return the number of objects by status. Paused objects also count as ``paused``."""
    counts: dict[str, int] = defaultdict(int)
    for each in store:
        counts[each.summary.tone] += 1
        counts["paused"] += each.summary.is_paused
    return dict(counts)
