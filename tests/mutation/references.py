"""Break references inside a release: webhooks, certificates, Pods, bindings, kinds of templates."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from capsmith.manifests.bundle import Artefact
from capsmith.manifests.parse import text_of
from capsmith.manifests.workloads import list_mounts
from tests.mutation.mutants import Mutant, Site, added, drop, edited, operator, put, removed

_HOOKS = "ValidatingWebhookConfiguration"
_CLIENTS = (_HOOKS, "MutatingWebhookConfiguration", "CustomResourceDefinition")
_POD = ("spec", "template", "spec")


def _named(site: Site, key: str) -> set[str]:
    """Return the names of the Services or Certificates that webhooks and CRDs use."""
    found: set[str] = set()
    for manifest in site.bundle.of(*_CLIENTS):
        if key == "annotations":
            value = manifest.mapping("metadata", key).get("cert-manager.io/inject-ca-from", "")
            found.add(value.rpartition("/")[2])
        else:
            hooks = [
                *manifest.listing("webhooks"),
                manifest.mapping("spec", "conversion", "webhook"),
            ]
            found |= {text_of(each, "clientConfig", "service", "name") for each in hooks}
    return found - {""}


@operator("webhook-service")
def service(site: Site) -> Iterator[Mutant]:
    for hooks in site.bundle.of(_HOOKS):
        path = ("webhooks", 0, "clientConfig", "service")
        if hooks.document["webhooks"][0].get("failurePolicy") != "Ignore":
            yield edited(hooks, "another Service", put((*path, "name"), "other"))
            yield edited(hooks, "another port", put((*path, "port"), 1))
    used = _named(site, "service")
    for found in site.bundle.of("Service"):
        if found.name in used:
            yield removed(found)
            yield edited(found, "another selector", put(("spec", "selector"), {"a": "b"}))
            target = ("spec", "ports", 0, "targetPort")
            yield edited(found, "another target", put(target, "other"))


@operator("admission-rules")
def rules(site: Site) -> Iterator[Mutant]:
    own = {(crd.group, crd.plural): crd for crd in site.bundle.crds}
    for hooks in site.bundle.of(*_CLIENTS[:2]):
        rule = hooks.document["webhooks"][0]["rules"][0]
        path = ("webhooks", 0, "rules", 0)
        crd = own.get((rule["apiGroups"][0], rule["resources"][0]))
        if crd is not None:
            yield edited(hooks, "another version", put((*path, "apiVersions"), ["v99"]))
            yield edited(hooks, "the kind", put((*path, "resources", 0), crd.kind.lower()))


@operator("api-versions-served")
def removed_versions(site: Site) -> Iterator[Mutant]:
    for each in site.params.removed:
        for manifest in site.bundle.objects:
            is_of_group = manifest.api_group == each.group
            if is_of_group and manifest.kind in (each.kinds or (manifest.kind,)):
                version = f"{each.group}/{each.versions[0]}"
                yield edited(manifest, version, put(("apiVersion",), version))


@operator("objects-once")
def copies(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.of("CustomResourceDefinition"):
        other = copy.deepcopy(dict(manifest.document))
        other["metadata"]["labels"] = {"other": "label"}
        yield added(manifest, other)


@operator("webhook-ca")
def authority(site: Site) -> Iterator[Mutant]:
    for hooks in site.bundle.of(_HOOKS):
        yield edited(hooks, "no annotation", drop(("metadata", "annotations")))
    used = _named(site, "annotations")
    for certificate in site.bundle.of("Certificate"):
        if certificate.name not in used:
            continue
        yield removed(certificate)
        yield edited(certificate, "other names", put(("spec", "dnsNames"), ["other.a.svc"]))


@operator("certificate-references")
def certificates(site: Site) -> Iterator[Mutant]:
    mounted = {mount.name for each in site.bundle.of("Deployment") for mount in list_mounts(each)}
    for certificate in site.bundle.of("Certificate"):
        if text_of(certificate.document, "spec", "secretName") in mounted:
            yield edited(certificate, "another Secret", put(("spec", "secretName"), "other"))
        yield edited(certificate, "another Issuer", put(("spec", "issuerRef", "name"), "other"))


@operator("pod-references")
def pods(site: Site) -> Iterator[Mutant]:
    for deployment in site.bundle.of("Deployment"):
        account = (*_POD, "serviceAccountName")
        yield edited(deployment, "another account", put(account, "other"))
        selector = ("spec", "selector", "matchLabels", "other")
        yield edited(deployment, "another selector", put(selector, "other"))
        source = {"name": "other", "configMap": {"name": "other"}}
        yield edited(deployment, "another volume", put((*_POD, "volumes"), [source]))
        yield edited(deployment, "no replicas", put(("spec", "replicas"), 0))
        system = put((*_POD, "nodeSelector"), {"kubernetes.io/os": "Linux"})
        yield edited(deployment, "another system", system)
        memory = {"limits": {"memory": "128m"}}
        container = (*_POD, "containers", 0, "resources")
        yield edited(deployment, "little memory", put(container, memory))
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
    for hooks in site.bundle.of("ValidatingWebhookConfiguration"):
        yield edited(hooks, "called for all Pods", put(("webhooks", 0, "rules"), [rule]))


@operator("binding-references")
def bindings(site: Site) -> Iterator[Mutant]:
    for binding in site.bundle.of("RoleBinding"):
        if binding.document["roleRef"]["kind"] == "Role":
            yield edited(binding, "another Role", put(("roleRef", "name"), "other"))


@operator("template-kinds")
def kinds(site: Site) -> Iterator[Mutant]:
    groups = {(crd.group, crd.kind) for crd in site.bundle.crds}
    for manifest in site.bundle.files(Artefact.CLUSTER_TEMPLATE):
        if (manifest.api_group, manifest.kind) in groups:
            yield edited(manifest, "another kind", put(("kind",), f"{manifest.kind}Other"))
