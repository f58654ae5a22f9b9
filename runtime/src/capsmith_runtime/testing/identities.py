"""A provider's sample identities and their Secrets, in a fake management cluster."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests

NAMESPACE = "default"


class IdentityType(Protocol):
    """Protocol for a kind of identity; repositories without identities do not have its class."""

    @property
    def resource(self) -> ResourceType:
        """Return the kind's resource type in the API server."""
        ...


class AuthoredKind(Protocol):
    """Protocol for a kind whose calls may have the credentials of an identity."""

    @property
    def features(self) -> Collection[str]:
        """Return the names of the kind's features."""
        ...

    @property
    def reconciler(self) -> Any:
        """Return the author's reconciler class."""
        ...


def has_sessions(kind: AuthoredKind) -> bool:
    """Return whether a kind's author uses credentials through sessions."""
    return CREDENTIALS_FEATURE in kind.features and kind.reconciler.session_factory is not None


def find_identity_kinds(component: Component) -> Sequence[IdentityType]:
    """Return the kinds of identities that a component's manager serves."""
    found: list[IdentityType] = []
    for group in component.groups:
        found += getattr(group, "identities", ())
    return found


def add_identities(
    api: FakeApi, manifests: Manifests, kinds: Sequence[IdentityType], namespace: str
) -> None:
    """Add the sample identities and their Secrets, if there are any.

    ``namespace`` is the manager's, which has the Secrets of cluster-scoped identities.
    """
    if not kinds:
        return
    beside: set[str] = set()
    for kind in kinds:
        for identity in manifests.samples(kind.resource.kind):
            if kind.resource.namespaced:
                beside.add(identity["spec"].get("secretRef", {}).get("name", ""))
                identity = _in_namespace(identity, NAMESPACE)
            api.add(identity)
    for secret in manifests.samples("Secret"):
        data = {
            key: base64.b64encode(value.encode()).decode()
            for key, value in secret.get("stringData", {}).items()
        }
        name = secret["metadata"]["name"]
        found = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        api.add(_in_namespace(found, NAMESPACE if name in beside else namespace))
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


def add_namespace(api: FakeApi, kinds: Iterable[IdentityType], namespace: str) -> None:
    """Add a namespace that may use all sample identities; it has copies of the namespaced ones."""
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for kind in kinds:
        for identity in api.all(kind.resource.kind):
            if kind.resource.namespaced:
                secret = identity["spec"].get("secretRef", {}).get("name", "")
                found = api.find("Secret", NamespacedName(NAMESPACE, secret))
                for each in (identity, found) if found else (identity,):
                    api.add(_in_namespace(_without_history(each), namespace))
            else:
                key = NamespacedName("", identity["metadata"]["name"])
                api.change(kind.resource.kind, key, {"spec": {"allowedNamespaces": {"list": None}}})


def refer_to_first(manifests: Manifests, kinds: Iterable[IdentityType]) -> JSON:
    """Return an ``identityRef`` to the first sample identity."""
    kind = next(iter(kinds)).resource.kind
    identity = manifests.samples(kind)[0]
    return {"kind": kind, "name": identity["metadata"]["name"]}


def copy_first(api: FakeApi, manifests: Manifests, kinds: Iterable[IdentityType]) -> JSON:
    """Add a copy of the first sample identity, and return a reference to the copy.

    The copy refers to the same Secret.
    """
    reference = refer_to_first(manifests, kinds)
    (first,) = (
        each for each in api.all(reference["kind"]) if each["metadata"]["name"] == reference["name"]
    )
    name = f"{reference['name']}-copy"
    place = {key: value for key, value in first["metadata"].items() if key == "namespace"}
    api.add({**first, "metadata": {"name": name, **place}})
    return {**reference, "name": name}


def add_other(
    api: FakeApi, manifests: Manifests, kinds: Sequence[IdentityType], values: Mapping[str, str]
) -> tuple[JSON, NamespacedName]:
    """Add a copy of the first sample identity, which refers to a Secret of its own.

    Returns a reference to the copy, and the key of the Secret with the given ``values``.
    """
    reference = copy_first(api, manifests, kinds)
    (identity,) = (
        each for each in api.all(reference["kind"]) if each["metadata"]["name"] == reference["name"]
    )
    metadata, first = identity["metadata"], identity["spec"]["secretRef"]["name"]
    (secret,) = (each for each in api.all("Secret") if each["metadata"]["name"] == first)
    key = NamespacedName(secret["metadata"]["namespace"], f"{first}-copy")
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    api.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": key.namespace, "name": key.name},
            "data": data,
        }
    )
    own = NamespacedName(metadata.get("namespace", ""), metadata["name"])
    api.change(reference["kind"], own, {"spec": {"secretRef": {"name": key.name}}})
    return reference, key


def find_source(manifests: Manifests, kind: IdentityType) -> JSON:
    """Return the reference to the identity from which a kind's sample is derived, or {}."""
    samples = manifests.samples(kind.resource.kind)
    found: JSON = samples[0]["spec"].get("sourceIdentityRef", {}) if samples else {}
    # Without sources, an author may have a field of that name.
    return found if getattr(kind, "sources", ()) else {}


def remove_identity(api: FakeApi, reference: JSON) -> JSON:
    """Remove an identity, whatever finalizers it has, and return it as it was."""
    (identity,) = (
        each for each in api.all(reference["kind"]) if each["metadata"]["name"] == reference["name"]
    )
    metadata = identity["metadata"]
    key = NamespacedName(metadata.get("namespace", ""), metadata["name"])
    api.change(reference["kind"], key, {"metadata": {"finalizers": None}})
    api.remove(reference["kind"], key)
    kept = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    return {**identity, "metadata": kept}


def _without_history(obj: JSON) -> JSON:
    kept = {key: value for key, value in obj.items() if key != "status"}
    return {**kept, "metadata": {"name": obj["metadata"]["name"]}}


def _in_namespace(obj: JSON, namespace: str) -> JSON:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
