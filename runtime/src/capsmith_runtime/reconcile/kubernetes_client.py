"""The client with which the author's code reads and writes other objects during a call."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import (
    ApiError,
    CallEndedError,
    InvalidRequestError,
    NotFoundError,
    create_api_error,
)
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, Selection
from capsmith_runtime.reconcile.permissions import Permissions, create_key

T = TypeVar("T")


def wait_for(read: Callable[[], Awaitable[T]], loop: asyncio.AbstractEventLoop | None) -> T:
    """Run ``read`` on the event loop, and block the calling thread until it returns its result.

    If ``loop`` is None, a new event loop runs it.  Raises RuntimeError if called on an event loop.
    """

    async def waited() -> T:
        return await read()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("this blocks the event loop: use the _async method in async code")
    if loop is None:
        return asyncio.run(waited())
    return asyncio.run_coroutine_threadsafe(waited(), loop).result()


ClientOpener = Callable[[], Awaitable[KubeClient]]


class Inherited(NamedTuple):
    """The reconciled object's labels, which new objects in an API group inherit."""

    group: str
    labels: Mapping[str, str]


class ApplyOwner(NamedTuple):
    """Decides which objects a session may change with server-side apply."""

    field_manager: str
    kind: str
    name: str
    uid: str
    external_id: str
    """Id of the owner that survives ``clusterctl move`` and a restore from a backup."""
    annotation: str
    """Annotation of applied objects that records for which object they were applied first."""

    @property
    def mark(self) -> str:
        """Return the value of the annotation for objects that this owner applies."""
        return f"{self.kind}/{self.external_id}"

    def check(self, existing: Object) -> None:
        """Raise AlreadyExistsError unless the provider applied ``existing`` or its object owns it.

        The owner counts because ``clusterctl move`` keeps owners, but not field managers.  Backup
        tools restore no owners, and field managers later or not at all, but the annotation.
        """
        managers = metadata.items(existing, "metadata", "managedFields")
        if (self.field_manager, "Apply") in [
            (entry.get("manager"), entry.get("operation")) for entry in managers
        ]:
            return
        owners = metadata.items(existing, "metadata", "ownerReferences")
        if self.uid in [owner.get("uid") for owner in owners]:
            return
        controller = next((owner for owner in owners if owner.get("controller") is True), None)
        is_marked = metadata.annotations(existing).get(self.annotation) == self.mark
        if is_marked and controller is None:
            return
        if controller is not None:
            hint = (
                f"{controller.get('kind')} {controller.get('name')} controls it; use another name"
            )
        else:
            hint = (
                "delete it or use another name, or take it over with adopt=True or, if it was"
                f" restored from a backup, with the annotation {self.annotation}={self.mark}"
            )
        raise create_api_error(
            409,
            "AlreadyExists",
            f"it was not applied by {self.field_manager}, and {self.kind} {self.name} does not own"
            f" it; {hint}",
        )

    def add_mark(self, obj: JSON, existing: Object) -> JSON:
        """Return ``obj`` with the annotation, whose value stays that of ``existing``.

        Several objects may apply the same one, which must not change with each apply.
        """
        mark = metadata.annotations(existing).get(self.annotation, self.mark)
        annotations = {**metadata.annotations(obj), self.annotation: mark}
        return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def create_apply_owner(scope: object, label: str, obj: JSON) -> ApplyOwner:
    """Return what decides which objects may be applied in a call about ``obj``."""
    group = metadata.text(obj, "apiVersion").rpartition("/")[0]
    return ApplyOwner(
        field_manager=label,
        kind=metadata.text(obj, "kind"),
        name=metadata.name(obj),
        uid=metadata.uid(obj),
        # The group of a claim's external id is that of its provider, which only the scope knows.
        external_id=getattr(scope, "external_id", "") or external_id.of(obj, group),
        annotation=f"{group}/applied-for",
    )


class ClientSession:
    """The requests of a single reconciler call; ``end`` cancels them."""

    def __init__(
        self,
        open_client: ClientOpener,
        permissions: Permissions,
        namespace: str,
        loop: asyncio.AbstractEventLoop | None,
        inherited: Inherited | None = None,
        owner: ApplyOwner | None = None,
    ) -> None:
        self._open_client = open_client
        self.permissions = permissions
        self.namespace = namespace
        self.loop = loop
        self.inherited = inherited
        self.owner = owner
        """Decides which objects may be applied, or None to allow all."""
        self.has_ended = False
        self._running: set[asyncio.Task[Any]] = set()

    async def send(self, request: str, send: Callable[[KubeClient], Awaitable[T]]) -> T:
        """Send a request and return its response.

        Raises KubernetesError, CallEndedError if the call to the reconciler has ended, and
        NotAvailableError if there is no client yet.
        """
        self._check(request)
        # A separate task, so that `end` can cancel the request without cancelling the caller.
        task = asyncio.ensure_future(self._started(send))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await task
        except ApiError as error:
            raise error.for_request(request) from error
        except asyncio.CancelledError:
            # `end` cancels the request but not its caller, which gets an error that explains it.
            current = asyncio.current_task()
            if current is None or not current.cancelling():
                self._check(request)
            raise

    def end(self) -> None:
        """Cancel running requests and reject further ones; call this on the event loop."""
        self.has_ended = True
        for task in tuple(self._running):
            task.cancel()

    async def _started(self, send: Callable[[KubeClient], Awaitable[T]]) -> T:
        return await send(await self._open_client())

    def _check(self, request: str) -> None:
        if self.has_ended:
            raise CallEndedError(f"{request}: the call of the reconciler has ended")


def create_opener(client: KubeClient) -> ClientOpener:
    """Return a function that opens no connection but returns the existing ``client``."""

    async def opened() -> KubeClient:
        return client

    return opened


Objects = list[JSON]

_PAGE = 250


class KubernetesReader:
    """Client that reads objects of the management cluster, within provider.yaml's permissions.

    Objects are plain dictionaries. ``namespace`` defaults to the namespace of the caller's object;
    use "" for cluster-scoped kinds, and to list all namespaces. Each method sends one or more
    requests, and has a variant for asynchronous code whose name ends in ``_async``. Methods raise
    KubernetesError on failure. If ``rbac`` in provider.yaml lacks a rule for the request, they
    raise NotDeclaredError without sending anything.
    """

    _missing = "this scope has no Kubernetes client: replace it, see testing.kubernetes.fake_client"

    def __init__(self, session: ClientSession | None = None) -> None:
        self._session = session

    def get(
        self, api_version: str, kind: str, name: str, *, namespace: str | None = None
    ) -> JSON | None:
        """Return an object, or None if it does not exist."""
        return self._wait(lambda: self.get_async(api_version, kind, name, namespace=namespace))

    async def get_async(
        self, api_version: str, kind: str, name: str, *, namespace: str | None = None
    ) -> JSON | None:
        """Return an object without blocking the event loop; see ``get``."""
        session = self._connected
        resource, key = self._target(session, api_version, kind, name, namespace)
        session.permissions.check(resource, name, "get")
        try:
            return await session.send(
                _words("get", resource, key), lambda client: client.get(resource, key)
            )
        except NotFoundError:
            return None

    def list(
        self, api_version: str, kind: str, *, labels: str = "", namespace: str | None = None
    ) -> Objects:
        """Return the objects that match a label selector such as ``app=db,tier!=test``.

        An empty ``labels`` matches all objects. The objects are in the API server's order.
        """
        return self._wait(
            lambda: self.list_async(api_version, kind, labels=labels, namespace=namespace)
        )

    async def list_async(
        self, api_version: str, kind: str, *, labels: str = "", namespace: str | None = None
    ) -> Objects:
        """Return objects without blocking the event loop; see ``list``."""
        session = self._connected
        resource, key = self._target(session, api_version, kind, "", namespace)
        session.permissions.check(resource, "", "list")
        selection = Selection(namespace=key.namespace, labels=labels)
        return await session.send(
            f"list {resource.plural}", lambda client: _all(client, resource, selection)
        )

    @property
    def _connected(self) -> ClientSession:
        if self._session is None:
            raise RuntimeError(self._missing)
        return self._session

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return wait_for(work, self._connected.loop)
        # The session has ended on the event loop while the method's thread was waiting.
        except concurrent.futures.CancelledError:
            raise CallEndedError("the call has ended") from None

    @staticmethod
    def _target(
        session: ClientSession, api_version: str, kind: str, name: str, namespace: str | None
    ) -> tuple[ResourceType, NamespacedName]:
        resource = session.permissions.resource(api_version, kind)
        where = session.namespace if namespace is None else namespace
        return resource, create_key(resource, where, name)


class KubernetesClient(KubernetesReader):
    """Client for a cluster; in the management cluster, limited to provider.yaml's permissions.

    Objects are plain dictionaries. In the management cluster, ``namespace`` defaults to the
    namespace of the scope's object; use "" for cluster-scoped kinds, and to list all namespaces.
    Each method sends one or more requests, and has a variant for asynchronous code whose name ends
    in ``_async``. Methods raise KubernetesError on failure. If ``rbac`` in provider.yaml lacks a
    rule for the request, they raise NotDeclaredError without sending anything.
    """

    def create(self, obj: JSON, *, namespace: str | None = None) -> JSON:
        """Create an object and return it.

        Raises AlreadyExistsError if it already exists.
        """
        return self._wait(lambda: self.create_async(obj, namespace=namespace))

    async def create_async(self, obj: JSON, *, namespace: str | None = None) -> JSON:
        """Create an object without blocking the event loop; see ``create``."""
        session = self._connected
        resource, key, sent = self._placed(session, obj, namespace)
        session.permissions.check(resource, key.name, "create")
        return await session.send(
            _words("create", resource, key), lambda client: client.create(resource, sent)
        )

    def apply(
        self,
        obj: JSON,
        *,
        namespace: str | None = None,
        force: bool = True,
        adopt: bool = False,
    ) -> JSON:
        """Create an object with server-side apply, or update the fields in ``obj``; return it.

        Fields that an earlier ``apply`` set and that are missing in ``obj`` are removed. Raises
        ConflictError if another field manager owns a field, unless ``force`` is set. Raises
        AlreadyExistsError if the object exists, unless ``adopt`` is set, the provider has applied
        the object before, or the scope's object owns it.  An annotation records for which object it
        was applied, so that it is recognised after a restore from a backup.
        """
        return self._wait(
            lambda: self.apply_async(obj, namespace=namespace, force=force, adopt=adopt)
        )

    async def apply_async(
        self,
        obj: JSON,
        *,
        namespace: str | None = None,
        force: bool = True,
        adopt: bool = False,
    ) -> JSON:
        """Apply an object without blocking the event loop; see ``apply``."""
        session = self._connected
        resource, key, sent = self._placed(session, obj, namespace)
        # The API server also requires `create` when server-side apply creates the object.
        session.permissions.check(resource, key.name, "patch", "create")
        owner = None if adopt else session.owner
        if owner is not None:
            session.permissions.check(resource, key.name, "get")

        async def apply(client: KubeClient) -> JSON:
            checked = sent if owner is None else await _checked(client, resource, key, sent, owner)
            return await client.apply(resource, checked, force=force)

        return await session.send(_words("apply", resource, key), apply)

    def patch(
        self, api_version: str, kind: str, name: str, body: JSON, *, namespace: str | None = None
    ) -> JSON:
        """Apply a JSON merge patch and return the object; None in ``body`` removes a field.

        If ``body`` contains ``metadata.resourceVersion``, raises ConflictError if the object has
        changed since that version.
        """
        return self._wait(
            lambda: self.patch_async(api_version, kind, name, body, namespace=namespace)
        )

    async def patch_async(
        self, api_version: str, kind: str, name: str, body: JSON, *, namespace: str | None = None
    ) -> JSON:
        """Patch an object without blocking the event loop; see ``patch``."""
        session = self._connected
        resource, key = self._target(session, api_version, kind, name, namespace)
        session.permissions.check(resource, name, "patch")
        metadata = dict(body.get("metadata") or {})
        # The client itself adds the version to the patch, as a precondition.
        version = str(metadata.pop("resourceVersion", ""))
        sent = {**body, "metadata": metadata} if metadata else _without(body, "metadata")
        return await session.send(
            _words("patch", resource, key),
            lambda client: client.patch(resource, key, sent, resource_version=version),
        )

    def delete(
        self, api_version: str, kind: str, name: str, *, namespace: str | None = None
    ) -> bool:
        """Request the deletion of an object, or return False if it does not exist.

        Does not wait until the object is gone.
        """
        return self._wait(lambda: self.delete_async(api_version, kind, name, namespace=namespace))

    async def delete_async(
        self, api_version: str, kind: str, name: str, *, namespace: str | None = None
    ) -> bool:
        """Delete an object without blocking the event loop; see ``delete``."""
        session = self._connected
        resource, key = self._target(session, api_version, kind, name, namespace)
        session.permissions.check(resource, name, "delete")
        try:
            await session.send(
                _words("delete", resource, key), lambda client: client.delete(resource, key)
            )
        except NotFoundError:
            return False
        return True

    def _placed(
        self, session: ClientSession, obj: JSON, namespace: str | None
    ) -> tuple[ResourceType, NamespacedName, JSON]:
        """Return an object's resource type, its key, and the object to create.

        The object has the namespace and the inherited labels.
        """
        metadata = obj.get("metadata") or {}
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the object needs metadata.name")
        resource, key = self._target(
            session,
            str(obj.get("apiVersion", "")),
            str(obj.get("kind", "")),
            name,
            metadata.get("namespace") or namespace,
        )
        added: JSON = {"namespace": key.namespace} if key.namespace else {}
        inherited = session.inherited
        # Without the watch filter's label, this manager would not see the object that it creates
        # (MG-01).
        if inherited is not None and inherited.labels and inherited.group == resource.group:
            added["labels"] = {**inherited.labels, **(metadata.get("labels") or {})}
        return resource, key, {**obj, "metadata": {**metadata, **added}}


def connect(client: KubernetesClient, session: ClientSession) -> None:
    """Make a scope's client send its requests through ``session``."""
    client._session = session


def disconnect(client: KubernetesClient) -> None:
    """End a client's session, if it has one."""
    if client._session is not None:
        client._session.end()


async def _checked(
    client: KubeClient, resource: ResourceType, key: NamespacedName, obj: JSON, owner: ApplyOwner
) -> JSON:
    """Return the object to apply, after checking the existing object.

    An object created after this check would be taken over, because server-side apply cannot require
    that no object exists.  An object that was deleted and created again is detected by its uid.
    """
    try:
        existing = await client.get(resource, key)
    except NotFoundError:
        return owner.add_mark(obj, {})
    owner.check(existing)
    marked = owner.add_mark(obj, existing)
    return {**marked, "metadata": {**marked["metadata"], "uid": existing["metadata"]["uid"]}}


async def _all(client: KubeClient, resource: ResourceType, selection: Selection) -> list[JSON]:
    objects: list[JSON] = []
    token = ""
    while True:
        page = await client.list_page(resource, selection, limit=_PAGE, token=token)
        for item in page.items:
            # Items of a list have no apiVersion and kind.
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        objects += page.items
        token = page.token
        if not token:
            return objects


def _without(body: JSON, field: str) -> JSON:
    return {name: value for name, value in body.items() if name != field}


def _words(verb: str, resource: ResourceType, key: NamespacedName) -> str:
    return f"{verb} {resource.kind} {key}"
