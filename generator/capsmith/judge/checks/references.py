"""Follow the references in a release, from a webhook to the Pod that serves it.

Compares names without namespaces, because clusterctl moves everything to one namespace.  Only
components files are checked, because source trees must first be assembled by kustomize.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from capsmith.judge.checks.pod_starts import find_blocking_webhooks, find_start_faults
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact, Bundle
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of, texts_of
from capsmith.manifests.permissions import find_manager_grants, find_missing
from capsmith.manifests.workloads import (
    Mount,
    is_selected,
    list_containers,
    list_missing_volumes,
    list_mounts,
    list_workloads,
)
from capsmith.yamldoc.compose import Path

_HOOKS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_CRD = "CustomResourceDefinition"
_HTTPS = 443


class Client(NamedTuple):
    """A client configuration, which tells the API server or core how to reach a webhook."""

    manifest: Manifest
    path: Path
    config: Mapping[str, Any]
    is_optional: bool = False
    """Whether a request succeeds even if the webhook does not respond."""

    @property
    def service(self) -> Mapping[str, Any]:
        """Return the reference to the Service; empty if the client uses a URL."""
        return mapping_of(self.config, "service")

    @property
    def name(self) -> str:
        """Return the name of the Service that the configuration refers to, or an empty string."""
        return text_of(self.service, "name")


def _is_whole_release(bundle: Bundle) -> bool:
    """Return whether objects that a release refers to must be in it."""
    return bundle.installs and bool(bundle.files(Artefact.COMPONENTS))


def _clients(bundle: Bundle) -> Iterator[Client]:
    """Yield each client configuration with a known Service."""
    for client in _all_clients(bundle):
        if client.name and not has_variable(client.name):
            yield client


def _all_clients(bundle: Bundle) -> Iterator[Client]:
    if not _is_whole_release(bundle):
        return
    for manifest in bundle.of(*_HOOKS):
        for number, hook in enumerate(manifest.listing("webhooks")):
            is_optional = text_of(hook, "failurePolicy") == "Ignore"
            path: Path = ("webhooks", number, "clientConfig")
            yield Client(manifest, path, mapping_of(hook, "clientConfig"), is_optional)
    path = ("spec", "conversion", "webhook", "clientConfig")
    for manifest in bundle.of(_CRD):
        if text_of(manifest.document, "spec", "conversion", "strategy") == "Webhook":
            # Objects are stored and read in the only version, so nothing is ever converted.
            is_unused = len(manifest.listing("spec", "versions")) == 1
            yield Client(manifest, path, manifest.mapping(*path), is_unused)
    for manifest in bundle.of("ExtensionConfig"):
        path = ("spec", "clientConfig")
        yield Client(manifest, path, manifest.mapping(*path))


@check("webhook-service", is_shared=True)
def check_webhook_service(context: Context) -> Iterator[Violation]:
    """CC-36: Each webhook names a Service in the release that leads to a port on a Pod."""
    services = {service.name: service for service in context.bundle.all_of("Service")}
    for client in _clients(context.bundle):
        service = services.get(client.name)
        when = ""
        if service is None:
            message = f"{client.manifest}: Service {client.name} is not in the release"
        else:
            message, when = _explain_unreachable(context.bundle, client, service)
        if message:
            yield Violation(
                client.manifest,
                message,
                path=(*client.path, "service"),
                harmless=client.is_optional,
                when=when,
            )


_UNDECLARED = "no container listens on a port that it does not declare"


def _explain_unreachable(bundle: Bundle, client: Client, service: Manifest) -> tuple[str, str]:
    """Return why no Pod answers at the port of a Service, and when; empty if one may."""
    number = client.service.get("port", _HTTPS)
    ports = [mapping_of(port) for port in service.listing("spec", "ports")]
    port = next((each for each in ports if each.get("port") == number), None)
    if port is None:
        return f"{client.manifest}: {service} has no port {number}", ""
    if text_of(port, "protocol") == "UDP":
        return f"{client.manifest}: port {number} of {service} is not for TCP", ""
    selector = service.mapping("spec", "selector")
    # Without a selector, endpoints come from elsewhere.
    if not selector:
        return "", ""
    selected = [each for each in list_workloads(bundle) if is_selected(each, selector)]
    if not selected:
        return f"{client.manifest}: {service} selects no Pod of the release", ""
    target = str(port.get("targetPort", number))
    message = f"{client.manifest}: {service} leads to port {target}, which no container declares"
    # A port number reaches a container that does not declare it, but a port name must be declared.
    if not target.isdigit():
        is_known = has_variable(target) or target in _ports(selected, "name")
        return "" if is_known else message, ""
    declared = _ports(selected, "containerPort")
    if not declared or target in declared or _is_argument(selected, target):
        return "", ""
    return message, _UNDECLARED


def _ports(workloads: list[Manifest], key: str) -> set[str]:
    """Return the names or numbers of the ports that containers declare."""
    return {
        str(mapping_of(port).get(key, ""))
        for workload in workloads
        for container in list_containers(workload)
        for port in list_of(container, "ports")
    }


def _is_argument(workloads: list[Manifest], port: str) -> bool:
    """Return whether an argument or variable of a container has the number of a port."""
    number = re.compile(rf"(?<!\d){port}(?!\d)")
    return any(
        number.search(str(mapping_of(container).get(key, "")))
        for workload in workloads
        for container in list_containers(workload)
        for key in ("args", "command", "env")
    )


@dataclass(frozen=True, slots=True)
class Injections:
    """Annotations that make another controller write the CA bundle into a client configuration."""

    certificate: str
    """Annotation of cert-manager that names a Certificate."""
    others: tuple[str, ...]
    """Other annotations with the same effect."""


@check("webhook-ca", Injections)
def check_webhook_ca(context: Context, params: Injections) -> Iterator[Violation]:
    """CC-37: Each webhook has a certificate, and the API server gets that certificate's CA."""
    bundle = context.bundle
    certificates = {each.name: each for each in bundle.all_of("Certificate")}
    for client in _clients(bundle):
        annotations = client.manifest.mapping("metadata", "annotations")
        found = annotations.get(params.certificate)
        name = str(found or "").rpartition("/")[2]
        path: Path = ("metadata", "annotations", params.certificate)
        if found is None:
            if not set(params.others) & set(annotations) and _lacks_ca(bundle, client):
                message = f"{client.manifest}: no caBundle, and no annotation {params.certificate}"
                yield _untrusted(client, client.manifest, message, client.path)
        elif name not in certificates and not has_variable(name):
            message = f"{client.manifest}: Certificate {name} is not in the release"
            yield _untrusted(client, client.manifest, message, path)
        elif name in certificates:
            yield from _wrong_names(bundle, client, certificates[name])


def _lacks_ca(bundle: Bundle, client: Client) -> bool:
    """Return whether the API server has no CA for a webhook, and no manager can write it."""
    if _has_text(text_of(client.config, "caBundle")):
        return False
    kind = client.manifest.kind
    if kind == "ExtensionConfig":
        group, resource = "runtime.cluster.x-k8s.io", "extensionconfigs"
    elif kind == _CRD:
        group, resource = "apiextensions.k8s.io", "customresourcedefinitions"
    else:
        group, resource = "admissionregistration.k8s.io", _HOOKS[kind]
    verbs = ("patch", "update")
    return all(
        find_missing(find_manager_grants(bundle, workload), group, resource, verbs) == list(verbs)
        for workload in list_workloads(bundle)
    )


def _has_text(encoded: str) -> bool:
    """Return whether a caBundle is more than the line break that generators write."""
    try:
        return bool(base64.b64decode(encoded).strip())
    except (binascii.Error, ValueError):
        return True


def _wrong_names(bundle: Bundle, client: Client, certificate: Manifest) -> Iterator[Violation]:
    shown = ", ".join(_read_names(certificate))
    if not _is_for(certificate, client.name):
        message = f"{certificate} is for {shown}, and not for Service {client.name}"
        yield _untrusted(client, certificate, message, ("spec", "dnsNames"))
    elif not _is_in_namespace(bundle, certificate, client.name):
        message = f"{certificate} is for {shown}, and not for a Service in its namespace"
        yield _untrusted(client, certificate, message, ("spec", "dnsNames"))


def _is_in_namespace(bundle: Bundle, certificate: Manifest, service: str) -> bool:
    """Return whether a name of a Service can have the namespace into which clusterctl installs.

    clusterctl replaces the certificate's own namespace in the names, and no other.
    """
    namespaces = {each.name for each in bundle.of("Namespace")}
    namespaces.add(text_of(certificate.document, "metadata", "namespace"))
    if any(has_variable(each) for each in namespaces):
        return True
    names = [name.split(".") for name in _read_names(certificate)]
    full = [parts[1] for parts in names if parts[0] == service and parts[2:3] == ["svc"]]
    return not full or not namespaces.isdisjoint(full)


def _untrusted(client: Client, manifest: Manifest, message: str, path: Path) -> Violation:
    return Violation(manifest, message, path=path, harmless=client.is_optional)


def _is_for(certificate: Manifest, service: str) -> bool:
    """Return whether a certificate may be for a Service; False only if its DNS names exclude it."""
    names = _read_names(certificate)
    is_uncertain = any(has_variable(name) or name.startswith("*") for name in names)
    return not names or is_uncertain or service in {name.partition(".")[0] for name in names}


def _read_names(certificate: Manifest) -> list[str]:
    return [name.rstrip(".") for name in texts_of(certificate.mapping("spec"), "dnsNames")]


@check("certificate-references", is_shared=True)
def check_certificate_references(context: Context) -> Iterator[Violation]:
    """CC-38: Each Certificate names an Issuer, and a Secret that a Pod mounts."""
    bundle = context.bundle
    if not _is_whole_release(bundle):
        return
    issuers = {
        (each.kind, each.name)
        for kind in ("Issuer", "ClusterIssuer")
        for each in bundle.all_of(kind)
    }
    mounted = {mount.name for each in list_workloads(bundle) for mount in list_mounts(each)}
    made = {text_of(each.document, "spec", "secretName") for each in bundle.of("Certificate")}
    made |= {each.name for each in bundle.of("Secret")}
    lacking = mounted - made
    for certificate in bundle.of("Certificate"):
        reference = certificate.mapping("spec", "issuerRef")
        kind, name = text_of(reference, "kind") or "Issuer", text_of(reference, "name")
        own = text_of(reference, "group") in ("", "cert-manager.io")
        # CC-81 reports a reference without a name.
        if own and name and (kind, name) not in issuers and not has_variable(name):
            when = "" if kind == "Issuer" else "no ClusterIssuer of this name exists"
            message = f"{certificate}: {kind} {name} is not in the release"
            path: Path = ("spec", "issuerRef")
            yield Violation(certificate, message, path=path, when=when)
        secret = text_of(certificate.document, "spec", "secretName")
        if secret in mounted or certificate.mapping("spec").get("isCA"):
            continue
        served = sorted(lacking & _list_secrets_of_servers(bundle, certificate))
        if served:
            message = f"{certificate} writes Secret {secret}, but Pods mount {', '.join(served)}"
            yield Violation(certificate, message, path=("spec", "secretName"))


def _list_secrets_of_servers(bundle: Bundle, certificate: Manifest) -> set[str]:
    """Return the Secrets of the Pods to which the Services lead that a certificate names."""
    # A certificate for other names is unrelated to what these Pods lack.
    selectors = [
        service.mapping("spec", "selector")
        for service in bundle.all_of("Service")
        if _is_for(certificate, service.name)
    ]
    return {
        mount.name
        for workload in list_workloads(bundle)
        for mount in list_mounts(workload)
        if mount.kind == "Secret"
        and any(selector and is_selected(workload, selector) for selector in selectors)
    }


@check("pod-references", is_shared=True)
def check_pod_references(context: Context) -> Iterator[Violation]:
    """CC-39: The release has what its Deployments' Pods need to start, and does not stop them."""
    bundle = context.bundle
    if not _is_whole_release(bundle):
        return
    accounts = {each.name for each in bundle.all_of("ServiceAccount")}
    mountable = _list_mountable(bundle)
    for workload in list_workloads(bundle):
        template = ("spec", "template", "spec", "serviceAccountName")
        account = text_of(workload.document, *template)
        if account not in (*accounts, "", "default") and not has_variable(account):
            message = f"{workload}: ServiceAccount {account} is not in the release"
            yield Violation(workload, message, path=template)
        selector = workload.mapping("spec", "selector", "matchLabels")
        if selector and not is_selected(workload, selector):
            message = f"{workload}: the selector does not match the labels of the Pods"
            yield Violation(workload, message, path=("spec", "selector", "matchLabels"))
        yield from _missing_mounts(workload, mountable)
        yield from _unknown_probe_ports(workload)
        for name in list_missing_volumes(workload):
            message = f"{workload}: volume {name} is mounted but not declared"
            yield Violation(workload, message, path=("spec", "template", "spec"))
        yield from _missing_priority(workload, bundle)
        yield from _forbidden_users(workload)
        yield from find_start_faults(workload)
    yield from find_blocking_webhooks(bundle)


_PRIORITIES = frozenset({"system-cluster-critical", "system-node-critical"})
"""PriorityClasses that the API server creates."""


def _missing_priority(workload: Manifest, bundle: Bundle) -> Iterator[Violation]:
    path = ("spec", "template", "spec", "priorityClassName")
    name = text_of(workload.document, *path)
    known = {*_PRIORITIES, *(each.name for each in bundle.all_of("PriorityClass"))}
    if name and name not in known and not has_variable(name):
        message = f"{workload}: PriorityClass {name} is not in the release"
        yield Violation(workload, message, path=path, when="no PriorityClass of this name exists")


def _forbidden_users(workload: Manifest) -> Iterator[Violation]:
    """Yield the containers with the user 0 that must not run as root: the kubelet refuses them."""
    of_pod = workload.mapping("spec", "template", "spec", "securityContext")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(workload.listing("spec", "template", "spec", kind)):
            own = mapping_of(container, "securityContext")
            given = {**of_pod, **{key: each for key, each in own.items() if each is not None}}
            user = given.get("runAsUser")
            if given.get("runAsNonRoot") is True and user == 0 and user is not False:
                name = text_of(container, "name")
                message = f"{workload}: container {name} has runAsNonRoot, and the user is 0"
                path = ("spec", "template", "spec", kind, number)
                yield Violation(workload, message, path=path)


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _unknown_probe_ports(workload: Manifest) -> Iterator[Violation]:
    """Yield the probes of ports by a name that their container does not declare."""
    for number, container in enumerate(list_containers(workload)):
        declared = {text_of(port, "name") for port in list_of(container, "ports")}
        for probe in _PROBES:
            for kind in ("httpGet", "tcpSocket"):
                port = str(mapping_of(container, probe, kind).get("port", ""))
                if not port or port.isdigit() or port in declared or has_variable(port):
                    continue
                name = text_of(container, "name")
                message = (
                    f"{workload}: container {name} declares no port {port}, which {probe} asks"
                )
                path = ("spec", "template", "spec", "containers", number, probe)
                yield Violation(workload, message, path=path)


def _list_mountable(bundle: Bundle) -> set[Mount]:
    """Return the Secrets and ConfigMaps of a release, with the Secrets that cert-manager writes."""
    written = (
        text_of(each.document, "spec", "secretName") for each in bundle.all_of("Certificate")
    )
    return {
        *(Mount("Secret", name) for name in written),
        *(
            Mount(kind, each.name)
            for kind in ("Secret", "ConfigMap")
            for each in bundle.all_of(kind)
        ),
    }


def _missing_mounts(workload: Manifest, mountable: Set[Mount]) -> Iterator[Violation]:
    for mount in dict.fromkeys(list_mounts(workload)):
        if mount not in mountable and not has_variable(mount.name):
            message = f"{workload}: {mount.kind} {mount.name} is not in the release"
            when = f"no user creates the {mount.kind} first"
            yield Violation(workload, message, path=("spec", "template", "spec"), when=when)


@dataclass(frozen=True, slots=True)
class BuiltInRoles:
    """ClusterRoles that every API server creates, for the check ``binding-references``."""

    names: tuple[str, ...]
    """Full names of some of these roles."""
    prefixes: tuple[str, ...]
    """Name prefixes of the others."""


@check("binding-references", BuiltInRoles, is_shared=True)
def check_binding_references(context: Context, params: BuiltInRoles) -> Iterator[Violation]:
    """CC-46: Each binding names a role in the release, or a built-in ClusterRole."""
    bundle = context.bundle
    if not bundle.files(Artefact.COMPONENTS):
        return
    built_in = {("ClusterRole", name) for name in params.names}
    for binding in bundle.of("RoleBinding", "ClusterRoleBinding"):
        name = text_of(binding.document, "roleRef", "name")
        kind = text_of(binding.document, "roleRef", "kind")
        is_built_in = kind == "ClusterRole" and name.startswith(params.prefixes)
        is_known = is_built_in or (kind, name) in built_in or bundle.has_named(kind, name)
        # CC-81 reports a reference without a kind.
        if kind and not is_known and not has_variable(name):
            message = f"{binding}: {kind} {name} is not in the release"
            when = "" if kind == "Role" else "no ClusterRole of this name exists"
            yield Violation(binding, message, path=("roleRef",), when=when)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")
_FILES = (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS)


@check("template-kinds", is_shared=True)
def check_template_kinds(context: Context) -> Iterator[Violation]:
    """CC-77: Each provider kind that a cluster template or ClusterClass uses has a CRD."""
    known = context.bundle.known_crds
    # Several providers share a group, so a kind is the provider's if it starts like the provider's
    # kinds.
    own = {(crd.group, _first_word(crd.kind)) for crd in context.bundle.crds}
    for manifest in (each for file in _FILES for each in context.bundle.files(file)):
        for path, group, kind in _named_kinds(manifest.document, ()):
            if (group, kind) not in known and (group, _first_word(kind)) in own:
                message = f"{manifest}: the release has no CRD of kind {kind} in group {group}"
                yield Violation(manifest, message, path=(*path, "kind"))


def _first_word(kind: str) -> str:
    match = _WORD.match(kind)
    return match[0] if match else kind


def _named_kinds(data: Any, path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield each kind that an object has or refers to, with its path and group."""
    entry = mapping_of(data)
    kind, version = text_of(entry, "kind"), text_of(entry, "apiVersion")
    group = text_of(entry, "apiGroup") or version.rpartition("/")[0]
    if kind and group and not has_variable(f"{kind} {group}"):
        yield path, group, kind
    below = enumerate(data) if isinstance(data, list) else entry.items()
    for step, value in below:
        if isinstance(value, dict | list):
            yield from _named_kinds(value, (*path, step))
