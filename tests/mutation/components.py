"""Break components: namespaces, labels, images, the manager's Deployment, certificates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import Manifest
from capsmith.manifests.permissions import find_managers, list_arguments
from tests.mutation.mutants import (
    Document,
    Mutant,
    Site,
    added,
    drop,
    edited,
    operator,
    put,
    removed,
)

_POD = ("spec", "template", "spec")


@operator("components-name")
def components_name(site: Site) -> Iterator[Mutant]:
    for file in sorted({m.file for m in site.bundle.files(Artefact.COMPONENTS)}):
        name = f"{file.rpartition('/')[0]}/acme-components.yaml"
        yield Mutant(f"{file} called {name}", {}, {file: name})


@operator("namespace-count")
def namespace_count(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of("Namespace"):
        second = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        yield added(manifest, second)


@operator("namespace-there")
def namespace_there(site: Site) -> Iterator[Mutant]:
    if site.bundle.installs:
        yield removed(*site.bundle.of("Namespace"))


@operator("objects-in-namespace")
def objects_in_namespace(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.objects:
        if "namespace" in manifest.mapping("metadata"):
            yield edited(manifest, "another namespace", put(("metadata", "namespace"), "other"))


@operator("selectors-labelled")
def selectors_labelled(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of(*site.params.kinds):
        place = ("spec", "selector", "matchLabels", site.params.label)
        yield edited(manifest, "no label in the selector", drop(place))


@operator("objects-labelled")
def objects_labelled(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of(*site.params.kinds):
        yield edited(manifest, "no label", drop(("metadata", "labels", site.params.label)))


@operator("provider-label-value")
def provider_label_value(site: Site) -> Iterator[Mutant]:
    for value in ("acme", f"{site.params.prefixes[0]}Acme"):
        for manifest in site.bundle.objects[:3]:
            place = ("metadata", "labels", site.params.label)
            yield edited(manifest, f"label {value}", put(place, value))


@operator("images-canonical")
def images_canonical(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of("Deployment"):
        for image in ("acme/manager:v1", "docker.io/acme:v1", "ghcr.io/Acme/manager:v1", ""):
            place = (*_POD, "containers", 0, "image")
            yield edited(manifest, f"image {image!r}", put(place, image))


@operator("container-named")
def container_named(site: Site) -> Iterator[Mutant]:
    for manifest in find_managers(site.bundle, site.params.name):
        yield edited(manifest, "container main", put((*_POD, "containers", 0, "name"), "main"))


@operator("inject-ca-form")
def inject_ca(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.objects:
        given = manifest.mapping("metadata", "annotations")
        if site.params.annotation in given or manifest is site.bundle.objects[0]:
            for value in ("only-a-name", "a/b/c", "acme-system/"):
                annotations = {**given, site.params.annotation: value}
                place = ("metadata", "annotations")
                yield edited(manifest, f"annotation {value}", put(place, annotations))


@operator("cluster-scoped-prefix")
def cluster_scoped_prefix(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of(*site.params.kinds):
        yield edited(manifest, "another name", put(("metadata", "name"), "manager"))


@operator("manager-arguments")
def manager_arguments(site: Site) -> Iterator[Mutant]:
    for manifest in find_managers(site.bundle):
        for argument in site.params.arguments:
            if not any(given.startswith(argument) for given in list_arguments(manifest)):
                continue

            def edit(document: Document, argument: str = argument) -> None:
                for container in document["spec"]["template"]["spec"]["containers"]:
                    given = container.get("args", [])
                    container["args"] = [each for each in given if not each.startswith(argument)]

            yield edited(manifest, f"no {argument}", edit)


@operator("manager-pod")
def manager_pod(site: Site) -> Iterator[Mutant]:
    for manifest in find_managers(site.bundle, site.params.container):
        place = (*_POD, "containers", 0)
        for probe in site.params.probes:
            yield edited(manifest, f"no {probe}", drop((*place, probe)))
        yield edited(manifest, "no environment", put((*place, "env"), []))
        for text, edit in _insecure(place):
            yield edited(manifest, text, edit)


def _insecure(place: tuple[str | int, ...]) -> Iterator[tuple[str, Callable[[Document], Any]]]:
    own, pod = (*place, "securityContext"), (*_POD, "securityContext")
    for key, value in (
        ("allowPrivilegeEscalation", True),
        ("privileged", True),
        ("capabilities", {}),
        ("runAsNonRoot", False),
        ("runAsUser", 0),
        ("seccompProfile", {"type": "Unconfined"}),
    ):
        yield f"{key} is {value}", put((*own, key), value)
    yield "no securityContext", lambda document: (put(own, {})(document), put(pod, {})(document))
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        yield key, put((*_POD, key), True)
    yield "a hostPath", put((*_POD, "volumes"), [{"name": "a", "hostPath": {"path": "/"}}])


@operator("extension-config")
def extension_config(site: Site) -> Iterator[Mutant]:
    service = {"namespace": "acme-system", "name": "acme"}
    for manifest in site.bundle.of("ExtensionConfig"):
        for client in (
            {},
            {"url": "http://acme.example.com"},
            {"url": "https://acme.example.com", "service": service},
            {"service": {"name": "acme"}},
            {"service": {"namespace": "acme"}},
        ):
            yield edited(manifest, f"client {client}", put(("spec", "clientConfig"), client))


@operator("crd-not-shipped")
def crd_not_shipped(site: Site) -> Iterator[Mutant]:
    crds = site.bundle.of("CustomResourceDefinition")
    for name in site.params.names if crds else ():
        yield added(crds[0], _crd(name))


def _crd(name: str) -> Document:
    plural, _, group = name.partition(".")
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": plural}, "versions": []}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": spec,
    }


def first_of(manifests: tuple[Manifest, ...]) -> list[Manifest]:
    """Return the first object of each file."""
    return list({manifest.file: manifest for manifest in reversed(manifests)}.values())


_REFUSED: tuple[tuple[str, tuple[str | int, ...], Any], ...] = (
    ("Deployment", ("spec", "replicas"), "1"),
    ("Deployment", ("spec", "selector"), None),
    ("Deployment", ("metadata", "labels", "team"), "a b"),
    ("Service", ("spec", "ports"), [{"port": 443}, {"port": 8443}]),
    ("ServiceAccount", ("metadata", "name"), "Manager"),
    ("ClusterRole", ("rules", 0, "verbs"), None),
    ("ClusterRoleBinding", ("subjects", 0, "namespace"), None),
    ("ValidatingWebhookConfiguration", ("webhooks", 0, "sideEffects"), None),
    ("Certificate", ("spec", "secretName"), None),
)
"""Values that the API server or cert-manager refuses, by kind and path; None for no value."""


@operator("components-fit")
def components_fit(site: Site) -> Iterator[Mutant]:
    for kind, path, value in _REFUSED:
        for manifest in first_of(site.bundle.of(kind)):
            edit = drop(path) if value is None else put(path, value)
            yield edited(manifest, f"{'.'.join(map(str, path))} is {value}", edit)
