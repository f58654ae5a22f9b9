"""The desired state of a new Machine and its objects; nothing is created here (CP-19, CRD-09)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.control_plane import MachineDraft, MachineTemplate
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.metadata import label_value
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.controlplane.annotations import (
    Annotations,
    PendingMachine,
    RemediationData,
    digest,
    encode,
)
from capsmith_runtime.controlplane.rollout import CLONED_FROM_KIND, CLONED_FROM_NAME
from capsmith_runtime.kube.client import ResourceType

Metadata = Mapping[str, Mapping[str, str]]
"""Metadata with the keys ``labels`` and ``annotations``."""

_PARTS = ("labels", "annotations")
_EMPTY = "{}"


# In-place propagation of the machine template's metadata, without a rollout (CP-20). Only keys of
# the template are written; keys that it no longer has are removed, and the labels and annotations
# of other writers are kept. The propagated keys are recorded in an annotation of the object:
# clusterctl move keeps annotations, but not managed fields.
def propagate_metadata(obj: Object, template: Metadata, annotation: str) -> dict[str, Any]:
    """Return an object's complete metadata with the template's labels and annotations, for a patch.

    ``annotation`` is the name of the annotation that records the propagated keys and their values'
    digests.
    """
    changed = dict(metadata.mapping(obj, "metadata"))
    previous = _recorded(obj, annotation)
    for part in _PARTS:
        values = dict(metadata.mapping(changed, part))
        for key, value_digest in previous.get(part, {}).items():
            removed = key not in template.get(part, {}) and key in values
            # A value that another writer has changed since then is that writer's, and is kept.
            if removed and _digest(values[key]) == value_digest:
                del values[key]
        changed[part] = {**values, **template.get(part, {})}
    record = _record(template)
    if record != metadata.annotations(obj).get(annotation, _EMPTY):
        changed["annotations"] = {**changed["annotations"], annotation: record}
    return changed


def build_initial_metadata(
    own: Metadata, template: Metadata, annotation: str
) -> dict[str, dict[str, str]]:
    """Return the metadata of a new object; its own values take precedence over the template's."""
    # The object's own values win: core and this controller find objects by them.
    merged = {part: {**template.get(part, {}), **own.get(part, {})} for part in _PARTS}
    if any(template.get(part) for part in _PARTS):
        merged["annotations"][annotation] = _record(template)
    return {part: values for part, values in merged.items() if values}


def _recorded(obj: Object, annotation: str) -> Metadata:
    record = metadata.parse_object(metadata.annotations(obj).get(annotation)) or {}
    return {part: metadata.mapping(record, part) for part in _PARTS}


def _record(template: Metadata) -> str:
    digests = {
        part: {key: _digest(value) for key, value in template[part].items()}
        for part in _PARTS
        if template.get(part)
    }
    return json.dumps(digests, sort_keys=True, separators=(",", ":"))


def _digest(value: str) -> str:
    # Digests rather than values, because annotations of an object have a limited total size.
    return hashlib.sha256(value.encode()).hexdigest()[:8]


CONTROL_PLANE_NAME_LABEL = "cluster.x-k8s.io/control-plane-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredMachine:
    """The settings from which a control plane's new Machines are created."""

    owner: Object
    """The control plane object."""
    cluster: Cluster
    template: MachineTemplate
    version: str
    """Version of Kubernetes; empty if the control plane's CRD has none, so that Machines have none.
    """
    bootstrap: ObjectRef
    """Group and kind of the bootstrap configurations; each has the name of its Machine."""
    bootstrap_spec: Mapping[str, Any] | None
    """Spec of new bootstrap configurations, or None if the control plane's spec sets none.

    KubeadmConfig's CRD rejects an empty spec.
    """
    annotations: Annotations

    @property
    def bootstrap_digest(self) -> str:
        """Return the bootstrap spec's digest, which is the same for a missing and an empty spec."""
        return digest(self.bootstrap_spec or {})

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that identify the objects, which the machine template cannot change."""
        return {
            constants.CLUSTER_NAME_LABEL: self.cluster.name,
            constants.CONTROL_PLANE_LABEL: "",
            CONTROL_PLANE_NAME_LABEL: label_value(metadata.name(self.owner)),
        }

    @property
    def template_metadata(self) -> Metadata:
        """Return the machine template's metadata without labels that it must not set (CP-20)."""
        own = self.labels
        labels = {key: text for key, text in self.template.labels.items() if key not in own}
        return {"labels": labels, "annotations": self.template.annotations}

    def pending_machine(self, name: str, domain: str | None) -> PendingMachine:
        """Return the record of a Machine that is about to be created.

        ``domain`` is its failure domain, or None for any.
        """
        reference = self.template.infrastructure
        return PendingMachine(
            name=name,
            domain=domain,
            infrastructure=f"{reference.kind}.{reference.group}",
            template=reference.name,
            bootstrap_spec=self.bootstrap_digest,
            version=self.version,
        )

    def infrastructure(self, name: str, kind: ResourceType, template: Object) -> dict[str, Any]:
        """Create the manifest of an infrastructure object called ``name`` from a template.

        See CRD-09.
        """
        inner = metadata.mapping(template, "spec", "template")
        group = metadata.text(template, "apiVersion").partition("/")[0]
        own: Metadata = {
            "labels": self.labels,
            "annotations": {
                CLONED_FROM_NAME: metadata.name(template),
                CLONED_FROM_KIND: f"{template['kind']}.{group}",
            },
        }
        obj = self._object(name, kind, own, inner.get("spec"))
        for part in ("labels", "annotations"):
            obj["metadata"][part] = {
                **metadata.mapping(inner, "metadata", part),
                **obj["metadata"][part],
            }
        return obj

    def bootstrap_config(self, name: str, kind: ResourceType) -> dict[str, Any]:
        """Create the bootstrap configuration's manifest, annotated with its spec's digest."""
        annotations = {self.annotations.bootstrap_spec: self.bootstrap_digest}
        own: Metadata = {"labels": self.labels, "annotations": annotations}
        return self._object(name, kind, own, self.bootstrap_spec)

    def machine(
        self,
        pending: PendingMachine,
        infrastructure: Object,
        bootstrap: Object,
        replaced: RemediationData | None,
    ) -> MachineDraft:
        """Create a draft of the Machine.

        ``replaced`` identifies the Machine that the new one replaces; it is None if there is none.
        """
        annotations = {self.annotations.pre_terminate_hook: ""}
        if replaced is not None:
            annotations[self.annotations.remediation_for] = encode(replaced)
        own: Metadata = {"labels": self.labels, "annotations": annotations}
        return MachineDraft(
            metadata={
                "name": pending.name,
                "namespace": self.cluster.namespace,
                **build_initial_metadata(own, self.template_metadata, self.annotations.propagated),
                # Set at creation, so that core knows the owner from the start (CP-19).
                "ownerReferences": [build_controller_reference(self.owner)],
            },
            cluster_name=self.cluster.name,
            version=self.version,
            failure_domain=pending.domain,
            infrastructure=infrastructure,
            bootstrap=bootstrap,
            settings=self.template.settings,
        )

    def _object(
        self, name: str, kind: ResourceType, own: Metadata, spec: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        obj: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": name,
                "namespace": self.cluster.namespace,
                **build_initial_metadata(own, self.template_metadata, self.annotations.propagated),
                # Core makes the Machine the owner as soon as it exists (IM-17).
                "ownerReferences": [_build_owner_reference(self.owner)],
            },
        }
        return obj if spec is None else {**obj, "spec": dict(spec)}


def build_controller_reference(owner: Object) -> dict[str, Any]:
    """Create the reference that makes a control plane the controller of a Machine (CP-19)."""
    return {**_build_owner_reference(owner), "controller": True, "blockOwnerDeletion": True}


def _build_owner_reference(owner: Object) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata.name(owner),
        "uid": metadata.uid(owner),
    }
