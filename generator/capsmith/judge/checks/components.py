"""Check components files for content that clusterctl rejects, waits for or would leave behind.

Also checks the manager's Deployment and ExtensionConfigs, which are part of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact, classify_manifest
from capsmith.manifests.kustomize import CLUSTER_SCOPED
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of
from capsmith.manifests.permissions import (
    CONTAINERS,
    POD,
    containers,
    find_managers,
    list_arguments,
)

_LABEL_VALUE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:{_HOST_PART}(?:[.]{_HOST_PART})*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_IMAGE = re.compile(
    rf"(?P<host>{_HOST}|{_NAME_PART})(?P<path>(?:/{_NAME_PART})+)"
    "(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    "(?:@(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}))?"
)
_LONGEST_PATH = 255


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What may precede ``components.yaml`` in a file name, for the check ``components-name``."""

    prefixes: tuple[str, ...]


@check("components-name", Prefixes)
def check_components_name(context: Context, params: Prefixes) -> Iterator[Violation]:
    """CC-20: The name of the components file contains the provider type."""
    seen: set[str] = set()
    for manifest in context.bundle.files(Artefact.COMPONENTS):
        name = manifest.base_name
        if name in seen or name in {f"{prefix}components.yaml" for prefix in params.prefixes}:
            continue
        seen.add(name)
        known = ", ".join(f"{prefix}components.yaml" for prefix in params.prefixes)
        yield Violation(manifest, f"the file is named {name}; expected one of {known}")


@check("namespace-count")
def check_namespace_count(context: Context) -> Iterator[Violation]:
    """CC-22: There is at most one Namespace."""
    found = context.bundle.of("Namespace")
    # Which Namespace is the right one is unknown: the first one counts, and all others are
    # reported.
    for manifest in found[1:]:
        yield Violation(
            manifest,
            f"Namespace {manifest.name} is redundant: {found[0].name} already exists",
            path=("metadata", "name"),
        )


@check("namespace-there")
def check_namespace_there(context: Context) -> Iterator[Violation]:
    """CC-34: There is a Namespace; clusterctl uses it as the default target namespace."""
    if context.bundle.installs and not context.bundle.of("Namespace"):
        first = context.bundle.of("Deployment")[0]
        yield Violation(first, "no Namespace, so clusterctl cannot determine the default one")


@check("objects-in-namespace")
def check_objects_in_namespace(context: Context) -> Iterator[Violation]:
    """CC-35: All namespaced objects are in the components' namespace."""
    namespaces = context.bundle.of("Namespace")
    # With none or several, the right Namespace is unknown; other rules report that.
    if len(namespaces) != 1 or has_variable(namespaces[0].name):
        return
    for manifest in context.bundle.files(Artefact.COMPONENTS):
        found = text_of(manifest.document, "metadata", "namespace")
        is_other = found and found != namespaces[0].name and not has_variable(found)
        if manifest.kind not in CLUSTER_SCOPED and is_other:
            yield Violation(
                manifest,
                f"{manifest} is in namespace {found}; expected {namespaces[0].name}",
                path=("metadata", "namespace"),
            )


@dataclass(frozen=True, slots=True)
class LabelOn:
    """A label and the kinds that need it, for ``selectors-labelled`` and ``objects-labelled``."""

    label: str
    """Key of the label."""
    kinds: tuple[str, ...]
    """Kinds whose objects should have the label."""


@check("selectors-labelled", LabelOn)
def check_selectors_labelled(context: Context, params: LabelOn) -> Iterator[Violation]:
    """CC-26: Selectors contain the provider label, starting with the first release."""
    for manifest in context.bundle.of(*params.kinds):
        if params.label not in manifest.mapping("spec", "selector", "matchLabels"):
            yield Violation(
                manifest,
                f"{manifest}: the selector has no label {params.label}",
                path=("spec", "selector", "matchLabels"),
            )


@check("objects-labelled", LabelOn)
def check_objects_labelled(context: Context, params: LabelOn) -> Iterator[Violation]:
    """MG-09: Shared objects have the provider label."""
    if not context.bundle.installs:
        return
    for manifest in context.bundle.of(*params.kinds):
        if params.label not in manifest.mapping("metadata", "labels"):
            yield Violation(
                manifest, f"{manifest} has no label {params.label}", path=("metadata", "labels")
            )


@dataclass(frozen=True, slots=True)
class LabelValue:
    """A label, and the prefixes that its value may start with."""

    label: str
    """Key of the label."""
    prefixes: tuple[str, ...]
    """Prefixes that the value may start with."""


@check("provider-label-value", LabelValue)
def check_provider_label_value(context: Context, params: LabelValue) -> Iterator[Violation]:
    """CC-51: The provider label's value is a provider type, a hyphen and a lowercase name."""
    reported: set[str] = set()
    for manifest in context.bundle.objects:
        value = manifest.mapping("metadata", "labels").get(params.label)
        # A wrong value is on every object of a release, and a finding for each would hide all
        # others.
        if value is None or str(value) in reported or has_variable(str(value)):
            continue
        good = isinstance(value, str) and _LABEL_VALUE.fullmatch(value)
        if not good or not str(value).startswith(params.prefixes):
            reported.add(str(value))
            known = ", ".join(params.prefixes)
            yield Violation(
                manifest,
                f"{manifest}: label {params.label} is {value!r}; expected a lower-case name "
                f"after one of {known}",
                path=("metadata", "labels", params.label),
            )


_UNCHANGED = "the build of the release sets no other image"
"""Sources have a placeholder, which `kustomize edit set image` replaces."""


@check("images-canonical")
def check_images_canonical(context: Context) -> Iterator[Violation]:
    """CC-27: Image names have the canonical form that clusterctl can parse."""
    for manifest in context.bundle.of("Deployment", "DaemonSet"):
        found = [
            (key, number, text_of(container, "image"))
            for key in ("initContainers", "containers")
            for number, container in enumerate(manifest.listing(*POD, key))
        ]
        for key, number, image in found:
            # A user gives the rest of the name.
            if not is_canonical(image) and not has_variable(image):
                yield Violation(
                    manifest,
                    f"{manifest}: image {image!r} is not canonical; "
                    "expected <registry host>/<path>:<tag>",
                    path=(*POD, key, number, "image"),
                    when=_UNCHANGED if classify_manifest(manifest) is Artefact.SOURCE else "",
                )


def is_canonical(image: str) -> bool:
    """Return whether Docker's reference parser takes an image's name without adding anything."""
    match = _IMAGE.fullmatch(image)
    if not match or len(match["path"].removeprefix("/")) > _LONGEST_PATH:
        return False
    host, path = match["host"], match["path"]
    # The rule of Docker's reference parser: a first component without a dot, colon or upper case
    # belongs to the path.
    is_host = "." in host or ":" in host or host == "localhost" or host != host.lower()
    library = host == "docker.io" and path.count("/") == 1
    return is_host and not library and host != "index.docker.io"


@dataclass(frozen=True, slots=True)
class Container:
    """The name of the manager's container, for the check ``container-named``."""

    name: str


@check("container-named", Container)
def check_container_named(context: Context, params: Container) -> Iterator[Violation]:
    """CC-28: The manager's container has the name by which clusterctl finds it."""
    deployments = context.bundle.of("Deployment")
    if deployments and not find_managers(context.bundle, params.name):
        names = [text_of(part, "name") for d in deployments for part in containers(d)]
        yield Violation(
            deployments[0],
            f"no container is named {params.name!r}; found: {', '.join(names) or 'none'}",
            path=CONTAINERS,
        )


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation with a two-part value, and the kind of object that the second part names."""

    annotation: str
    """Key of the annotation."""
    names: str = "certificate"
    """Kind of object that the part after the slash names, in the wording used in messages."""


@check("inject-ca-form", Annotation)
def check_inject_ca_form(context: Context, params: Annotation) -> Iterator[Violation]:
    """CC-30, RX-02: The annotation has the form ``<namespace>/<name>``, with both parts."""
    for manifest in context.bundle.objects:
        value = manifest.mapping("metadata", "annotations").get(params.annotation)
        if value is None:
            continue
        parts = str(value).split("/")
        if (len(parts) != 2 or not all(parts)) and not has_variable(str(value)):
            yield Violation(
                manifest,
                f"{manifest}: {params.annotation} is {value!r}; "
                f"expected <namespace>/<{params.names}>",
                path=("metadata", "annotations", params.annotation),
            )


@dataclass(frozen=True, slots=True)
class Kinds:
    """Cluster-scoped kinds; the check ``cluster-scoped-prefix`` checks their objects' names."""

    kinds: tuple[str, ...]


@check("cluster-scoped-prefix", Kinds)
def check_cluster_scoped_prefix(context: Context, params: Kinds) -> Iterator[Violation]:
    """CC-31: Names of cluster-scoped objects start with the namespace, so clusterctl finds them."""
    namespaces = context.bundle.of("Namespace")
    if len(namespaces) != 1 or has_variable(namespaces[0].name):
        return
    prefix = f"{namespaces[0].name}-"
    for manifest in context.bundle.of(*params.kinds):
        if not manifest.name.startswith(prefix) and not has_variable(manifest.name):
            yield Violation(
                manifest,
                f"{manifest}: the name does not start with {prefix!r}",
                path=("metadata", "name"),
            )


@dataclass(frozen=True, slots=True)
class RequiredArguments:
    """Command-line options that the manager's Deployment must set, for ``manager-arguments``."""

    arguments: tuple[str, ...]


@check("manager-arguments", RequiredArguments)
def check_manager_arguments(context: Context, params: RequiredArguments) -> Iterator[Violation]:
    """MG-02, MG-03: The manager's Deployment sets the required options."""
    for deployment in find_managers(context.bundle):
        arguments = list_arguments(deployment)
        for argument in params.arguments:
            if not any(one == argument or one.startswith(f"{argument}=") for one in arguments):
                yield Violation(
                    deployment, f"{deployment}: no argument {argument}", path=CONTAINERS
                )


@dataclass(frozen=True, slots=True)
class Pod:
    """Settings that the manager's container must have, for the check ``manager-pod``."""

    container: str
    """Name of the manager's container."""
    probes: tuple[str, ...]
    """Keys of the probes that the container must have."""
    environment: tuple[str, ...]
    """Names of the environment variables that the container must have."""


@check("manager-pod", Pod)
def check_manager_pod(context: Context, params: Pod) -> Iterator[Violation]:
    """MG-08: The manager has probes, environment variables and restricted Pod Security."""
    for deployment in find_managers(context.bundle, params.container):
        for complaint in (*_container(deployment, params), *_restricted(deployment)):
            yield Violation(deployment, f"{deployment}: {complaint}", path=CONTAINERS)


def _container(deployment: Manifest, params: Pod) -> Iterator[str]:
    for container in containers(deployment):
        if text_of(container, "name") != params.container:
            continue
        for probe in params.probes:
            if not mapping_of(container, probe):
                yield f"container {params.container} has no {probe}"
        names = [text_of(entry, "name") for entry in list_of(container, "env")]
        for name in params.environment:
            if name not in names:
                yield f"container {params.container} has no environment variable {name}"


def _restricted(deployment: Manifest) -> Iterator[str]:
    """Yield what the ``restricted`` Pod Security profile would reject."""
    pod = deployment.mapping("spec", "template", "spec")
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key) is True:
            yield f"{key} is true"
    for volume in list_of(pod, "volumes"):
        if "hostPath" in mapping_of(volume):
            yield f"volume {text_of(volume, 'name')} is a hostPath"
    for container in (*list_of(pod, "initContainers"), *list_of(pod, "containers")):
        for complaint in _security(pod, mapping_of(container)):
            yield f"container {text_of(container, 'name')}: {complaint}"


def _security(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    own = mapping_of(container, "securityContext")
    both = {**mapping_of(pod, "securityContext"), **own}
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if own.get("privileged") is True:
        yield "privileged is true"
    if "ALL" not in list_of(own, "capabilities", "drop"):
        yield "capabilities.drop has no ALL"
    if both.get("runAsNonRoot") is not True:
        yield "runAsNonRoot is not true"
    if both.get("runAsUser") == 0:
        yield "runAsUser is 0"
    if text_of(both, "seccompProfile", "type") not in {"RuntimeDefault", "Localhost"}:
        yield "seccompProfile.type is not RuntimeDefault"


@check("extension-config")
def check_extension_config(context: Context) -> Iterator[Violation]:
    """RX-01: An ExtensionConfig specifies exactly one way to reach its server, over TLS."""
    for manifest in context.bundle.of("ExtensionConfig"):
        client = manifest.mapping("spec", "clientConfig")
        ways = [key for key in ("url", "service") if client.get(key)]
        if len(ways) != 1:
            yield Violation(
                manifest,
                f"{manifest}: spec.clientConfig has {' and '.join(ways) or 'neither'}; "
                "expected one of url, service",
                path=("spec", "clientConfig"),
            )
        url = text_of(client, "url")
        if url and not url.startswith("https://") and not has_variable(url):
            yield Violation(
                manifest,
                f"{manifest}: {url!r} is not an https URL",
                path=("spec", "clientConfig", "url"),
            )
        service = mapping_of(client, "service")
        missing = [key for key in ("namespace", "name") if not text_of(service, key)]
        if service and missing:
            yield Violation(
                manifest,
                f"{manifest}: spec.clientConfig.service has no {', '.join(missing)}",
                path=("spec", "clientConfig", "service"),
            )
