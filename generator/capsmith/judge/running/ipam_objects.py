"""Pools of addresses: given by the user, or made for kinds with ranges and a prefix.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.clusters.processes.kube import JSON
from capsmith.errors import UnreadableInput

IPAM_GROUP = "ipam.cluster.x-k8s.io"
POOL_ROLES = ("IPPool", "GlobalIPPool")
_NAME = "conformance"
_RANGES = ("198.51.100.10-198.51.100.13", "203.0.113.10-203.0.113.13")
"""Of the networks for documentation, one for each kind: few, so that they can be exhausted."""
_PREFIX = 24


@dataclass(frozen=True)
class IpamObjects:
    """One pool of each kind."""

    documents: tuple[JSON, ...]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """API version and kind of each pool."""
        return [(str(each["apiVersion"]), str(each["kind"])) for each in self.documents]

    @property
    def names(self) -> list[str]:
        """The kinds of the pools."""
        return [kind for _, kind in self.kinds]

    def group(self, kind: str) -> str:
        """Return the API group of a kind."""
        version = next(version for version, each in self.kinds if each == kind)
        return version.partition("/")[0]

    def pool(self, kind: str, namespace: str) -> JSON:
        """Return the pool of a kind; the namespace is also the name of one without a namespace."""
        document = next(each for each in self.documents if each["kind"] == kind)
        metadata = {**(document.get("metadata") or {}), "name": namespace, "namespace": namespace}
        return {**document, "metadata": metadata}


def ipam_objects(
    documents: Iterable[JSON], crds: Sequence[JSON], roles: Mapping[str, str]
) -> IpamObjects:
    """Return one pool of each kind: of the documents, else made where the schema is known.

    Raises UnreadableInput (``conformance-objects``) if there is no pool of any kind.
    """
    found = {each["kind"]: each for each in documents if roles.get(each["kind"]) in POOL_ROLES}
    for number, crd in enumerate(crds):
        kind = crd["spec"]["names"]["kind"]
        if roles.get(kind) in POOL_ROLES and kind not in found:
            made = _made(crd, _RANGES[number % len(_RANGES)])
            if made is not None:
                found[kind] = made
    if not found:
        raise UnreadableInput(
            "conformance-objects",
            "no object is a pool of addresses",
            hint="Specify a pool with few addresses with --objects.",
        )
    return IpamObjects(tuple(found.values()))


def _made(crd: JSON, addresses: str) -> JSON | None:
    """Return a pool of a kind whose spec needs nothing but addresses and a prefix."""
    version = next(each for each in crd["spec"]["versions"] if each["storage"])
    spec: dict[str, Any] = _properties(version["schema"]["openAPIV3Schema"]).get("spec") or {}
    fields = _properties(spec)
    listed = fields.get("addresses") or {}
    is_known = listed.get("type") == "array" and (listed.get("items") or {}).get("type") == "string"
    if not is_known or set(spec.get("required") or ()) - {"addresses", "prefix", "gateway"}:
        return None
    values: JSON = {"addresses": [addresses], "prefix": _PREFIX}
    values["gateway"] = f"{addresses.rpartition('.')[0].partition('-')[0].rpartition('.')[0]}.1"
    return {
        "apiVersion": f"{crd['spec']['group']}/{version['name']}",
        "kind": crd["spec"]["names"]["kind"],
        "metadata": {"name": _NAME},
        "spec": {key: value for key, value in values.items() if key in fields},
    }


def _properties(schema: JSON) -> dict[str, Any]:
    return dict(schema.get("properties") or {})
