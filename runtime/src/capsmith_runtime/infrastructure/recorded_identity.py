"""The identity that a machine or pool used, recorded in its metadata.

Machines and pools use the identity of their infrastructure cluster.  If a tool deletes all objects
of a cluster together, the infrastructure cluster may be gone first.  The record then still names
the credentials with which a machine's infrastructure can be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.kube.client import JSON


def read_reference(infra_cluster: JSON) -> Object:
    """Return an infrastructure cluster's identity reference; empty if it has none."""
    return metadata.mapping(infra_cluster, "spec", "identityRef")


def read_record(obj: JSON) -> Object | None:
    """Return the recorded identity reference, or None if ``obj`` has no record.

    The reference is empty if the infrastructure cluster had no identity.
    """
    value = metadata.annotations(obj).get(_annotation(obj))
    if value is None:
        return None
    kind, _, name = value.partition("/")
    return {"kind": kind, "name": name} if name else {}


def create_record(obj: JSON, infra_cluster: JSON) -> Mapping[str, str]:
    """Return the annotation for ``obj`` that records its infrastructure cluster's identity."""
    reference = read_reference(infra_cluster)
    name = metadata.text(reference, "name")
    value = f"{metadata.text(reference, 'kind')}/{name}" if name else ""
    return {_annotation(obj): value}


def _annotation(obj: JSON) -> str:
    group = metadata.text(obj, "apiVersion").partition("/")[0]
    return f"{group}/identity"
