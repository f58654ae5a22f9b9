"""Other providers' objects: templates, and the objects that belong to a Machine.

References contain only a group and a kind, so that another provider can be upgraded without a
change to the control plane. API versions are taken from CRDs' contract labels (GEN-01 to GEN-03,
RB-08). The kinds are known only when a control plane references them, so each cache starts on first
use.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CONTROL_PLANE_LABEL, CORE_GROUP
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.watches import on_change

CRD: Final = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
BY_KIND: Final = "kind"
REASON_NO_CONTRACT_VERSION: Final = "ContractVersionNotFound"

_CONTRACTS: Final = {"v1beta2": ("v1beta2", "v1beta1"), "v1beta1": ("v1beta1",)}
"""Contract versions that each core version supports, preferred first (GEN-10)."""
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class ContractKinds:
    """CRDs with a contract label, in one informer for each contract version that core supports."""

    def __init__(self, client: KubeClient, metrics: Metrics, core_version: str) -> None:
        self._informers = {
            contract: Informer(
                client,
                CRD,
                metrics,
                selection=Selection(labels=contract_label(contract)),
                projection=_without_schemas,
                indexes={BY_KIND: _kind},
            )
            for contract in _CONTRACTS[core_version]
        }

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the CRD informers, which the manager runs."""
        return tuple(self._informers.values())

    def resolve(self, group: str, kind: str) -> ResourceType:
        """Return a kind's resource type.

        Raises NotAvailableError if no CRD with a contract label serves it.
        """
        # In order of preference: a CRD may be labelled for several contracts.
        for contract, informer in self._informers.items():
            for crd in informer.by_index(BY_KIND, f"{kind}.{group}"):
                resource = _resource_type(crd, contract)
                if resource is not None:
                    return resource
        message = f"no CRD of {kind}.{group} has a contract label that names one of its versions"
        raise NotAvailableError(Waiting(REASON_NO_CONTRACT_VERSION, message))

    def object_type(self, template: ResourceType) -> ResourceType:
        """Return the resource type of a template's objects, in the template's version (CRD-07).

        Raises NotAvailableError until its CRD exists.
        """
        kind = template.kind.removesuffix("Template")
        # Only the plural comes from the object's CRD: object and template must have the same
        # version.
        plural = self.resolve(template.group, kind).plural
        return ResourceType(template.group, template.version, kind, plural)


def contract_label(contract: str) -> str:
    """Return the name of the CRD label that lists the API versions for a contract version."""
    return f"{CORE_GROUP}/{contract}"


def _resource_type(crd: Object, contract: str) -> ResourceType | None:
    labelled = metadata.labels(crd).get(contract_label(contract), "").split("_")
    # A label may name versions that an upgrade has stopped serving.
    served = {each["name"] for each in metadata.items(crd, "spec", "versions") if each["served"]}
    usable = [name for name in labelled if name in served]
    if not usable:
        return None
    return ResourceType(
        metadata.text(crd, "spec", "group"),
        max(usable, key=rank_version),
        metadata.text(crd, "spec", "names", "kind"),
        metadata.text(crd, "spec", "names", "plural"),
    )


def rank_version(version: str) -> tuple[int, int, int]:
    """Return a sort key in Kubernetes' order: GA, beta, alpha; then by number (GEN-03)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    major, stage, minor = match.groups()
    return ({None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0))


def _kind(crd: JSON) -> Iterable[str]:
    yield f"{metadata.text(crd, 'spec', 'names', 'kind')}.{metadata.text(crd, 'spec', 'group')}"


def _without_schemas(crd: JSON) -> JSON:
    """Return only the used fields of a CRD; the schemas are a thousand times larger."""
    spec = crd["spec"]
    versions = [{"name": v["name"], "served": v.get("served", False)} for v in spec["versions"]]
    kept = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp", "finalizers")
    return {
        "apiVersion": crd.get("apiVersion"),
        "kind": crd.get("kind"),
        "metadata": {name: crd["metadata"][name] for name in kept if name in crd["metadata"]},
        "spec": {"group": spec["group"], "names": spec["names"], "versions": versions},
    }


TEMPLATE_NOT_FOUND: Final = "InfrastructureTemplateNotFound"
_SYNC_SECONDS: Final = 10.0
"""Seconds to wait for a cache that was just started.

Later, no worker waits for it: users may refer to kinds that the manager may not list.
"""

EventHandler = Callable[[JSON], None]


class CacheNotSyncedError(Exception):
    """Raised if a cache could not be filled in time; retry later."""


@dataclass(frozen=True, slots=True)
class ExternalObject:
    """Another provider's object, and the informer that it comes from."""

    informer: Informer
    obj: JSON

    @property
    def resource(self) -> ResourceType:
        """Return the resource type of the object's kind."""
        return self.informer.resource


class ExternalObjects:
    """Runs one informer for each kind; caches only objects that belong to control planes."""

    def __init__(
        self,
        caches: Caches,
        kinds: ContractKinds,
        on_machine_object: EventHandler,
        on_template: EventHandler,
    ) -> None:
        """Initialise without informers.

        ``on_machine_object`` is called for changes to the objects of Machines, and ``on_template``
        for changes to templates.
        """
        self._caches = caches
        self._kinds = kinds
        self._on_machine_object = on_machine_object
        self._on_template = on_template
        # By group, kind and label selector: a user chooses the kinds in references.  A Machine that
        # names a kind of template must not decide which templates the cache contains.
        self._informers: dict[tuple[str, str, str], Informer] = {}
        self._due: dict[Informer, float] = {}
        """For each informer, the time until which it is waited for."""
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run the informers until cancelled, including informers that start later."""
        running: dict[Informer, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                current = set(self._informers.values())
                for informer in running.keys() - current:
                    # Replaced by another informer: the contract version of its kind has changed.
                    running.pop(informer).cancel()
                for informer in current - running.keys():
                    running[informer] = group.create_task(informer.run())
                await self._changed.wait()

    async def get(self, namespace: str, reference: ObjectRef | None) -> ExternalObject | None:
        """Return the object that a Machine references, or None if it does not exist.

        Starts the kind's informer on first use, and waits for it. Raises CacheNotSyncedError if
        that takes too long, and NotAvailableError if the kind cannot be resolved.
        """
        if reference is None:
            return None
        return await self._get(namespace, reference, CONTROL_PLANE_LABEL, self._on_machine_object)

    async def get_template(self, namespace: str, reference: ObjectRef) -> ExternalObject:
        """Return the template that a control plane references.

        Raises CacheNotSyncedError if the cache takes too long, and NotAvailableError if the
        template does not exist or its kind cannot be resolved.
        """
        template = await self._get(namespace, reference, "", self._on_template)
        if template is None:
            message = f"{reference.kind} {reference.name} does not exist"
            raise NotAvailableError(Waiting(TEMPLATE_NOT_FOUND, message))
        return template

    async def _get(
        self, namespace: str, reference: ObjectRef, labels: str, handler: EventHandler
    ) -> ExternalObject | None:
        resource = self._kinds.resolve(reference.group, reference.kind)
        informer = self._informers.get((resource.group, resource.kind, labels))
        # An upgrade of the other provider may change the version that its CRD is labelled with.
        if informer is None or informer.resource != resource:
            informer = self._start(resource, labels, handler)
        if not informer.synced.is_set():
            try:
                async with asyncio.timeout(max(0.0, self._due[informer] - monotonic())):
                    await informer.synced.wait()
            except TimeoutError:
                message = f"no list of {resource.plural}.{resource.group}"
                raise CacheNotSyncedError(message) from None
        obj = informer.get(NamespacedName(namespace, reference.name))
        return ExternalObject(informer, obj) if obj is not None else None

    def _start(self, resource: ResourceType, labels: str, handler: EventHandler) -> Informer:
        informer = self._caches.informer(resource, self._caches.scope.select(labels=labels))
        # Status changes are ignored: only core reads the status of these objects.
        informer.add_handler(on_change(_relevant_fields, handler))
        replaced = self._informers.get((resource.group, resource.kind, labels))
        if replaced is not None:
            del self._due[replaced]
        self._informers[(resource.group, resource.kind, labels)] = informer
        self._due[informer] = monotonic() + _SYNC_SECONDS
        self._changed.set()
        return informer


def _relevant_fields(obj: Object) -> Sequence[object]:
    return (
        metadata.mapping(obj, "spec"),
        metadata.labels(obj),
        metadata.annotations(obj),
        metadata.items(obj, "metadata", "ownerReferences"),
    )
