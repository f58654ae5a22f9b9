"""Resolves API versions of external kinds by the contract labels of CRDs (GEN-01…03, RB-08).

References have a group and a kind only, so that a provider can be upgraded under a control plane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CORE_GROUP
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting

CRD: Final = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
BY_KIND: Final = "kind"
REASON: Final = "ContractVersionNotFound"

_CONTRACTS: Final = {"v1beta2": ("v1beta2", "v1beta1"), "v1beta1": ("v1beta1",)}
"""Contracts that a version of core supports, the preferred one first (GEN-10)."""
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


class ContractKinds:
    """CRDs with a contract label; one informer per contract that core supports."""

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
        """Informers that the manager runs."""
        return tuple(self._informers.values())

    def resolve(self, group: str, kind: str) -> ResourceType:
        """Return the resource type of a kind.

        Raises NotAvailableError if no CRD with a contract label serves it.
        """
        for contract, informer in self._informers.items():
            for crd in informer.by_index(BY_KIND, f"{kind}.{group}"):
                resource = _resource_type(crd, contract)
                if resource is not None:
                    return resource
        message = f"no CRD of {kind}.{group} has the label of a contract, and a version of it"
        raise NotAvailableError(Waiting(REASON, message))

    def object_type(self, template: ResourceType) -> ResourceType:
        """Return the type of objects created from a template, in the template's version (CRD-07).

        Raises NotAvailableError as long as there is no CRD.
        """
        kind = template.kind.removesuffix("Template")
        plural = self.resolve(template.group, kind).plural
        return ResourceType(template.group, template.version, kind, plural)


def contract_label(contract: str) -> str:
    """Return the label of CRDs whose value lists the versions for a contract."""
    return f"{CORE_GROUP}/{contract}"


def _resource_type(crd: Object, contract: str) -> ResourceType | None:
    labelled = metadata.labels(crd).get(contract_label(contract), "").split("_")
    served = {each["name"] for each in metadata.items(crd, "spec", "versions") if each["served"]}
    usable = [name for name in labelled if name in served]
    if not usable:
        return None
    return ResourceType(
        metadata.text(crd, "spec", "group"),
        max(usable, key=_version_priority),
        metadata.text(crd, "spec", "names", "kind"),
        metadata.text(crd, "spec", "names", "plural"),
    )


def _version_priority(version: str) -> tuple[int, int, int]:
    """Sort as Kubernetes does: GA, beta, alpha; then by number (GEN-03)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0)
    major, stage, minor = match.groups()
    return ({None: 2, "beta": 1, "alpha": 0}[stage], int(major), int(minor or 0))


def _kind(crd: JSON) -> Iterable[str]:
    yield f"{metadata.text(crd, 'spec', 'names', 'kind')}.{metadata.text(crd, 'spec', 'group')}"


def _without_schemas(crd: JSON) -> JSON:
    """Keep what is used of a CRD; the schemas are a thousand times larger."""
    spec = crd["spec"]
    versions = [{"name": v["name"], "served": v.get("served", False)} for v in spec["versions"]]
    kept = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp", "finalizers")
    return {
        "apiVersion": crd.get("apiVersion"),
        "kind": crd.get("kind"),
        "metadata": {name: crd["metadata"][name] for name in kept if name in crd["metadata"]},
        "spec": {"group": spec["group"], "names": spec["names"], "versions": versions},
    }
