"""Names of the provider as a whole: can clusterctl, Kubernetes and Python live with them?"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from capsmith.provider import derive
from capsmith.provider.sections import SectionType
from capsmith.safetext import DnsLabel, ImageName
from capsmith.spec.place import Place
from capsmith.spec.quote import shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec

_SYSTEM_NAMESPACES = """
    default kube-system kube-public kube-node-lease cert-manager capi-system
    capi-kubeadm-bootstrap-system capi-kubeadm-control-plane-system
"""
_CORE_GROUPS = frozenset(
    f"{prefix}cluster.x-k8s.io"
    for prefix in (
        *("", "infrastructure.", "bootstrap.", "controlplane.", "ipam.", "addons."),
        *("runtime.", "clusterctl."),
    )
)
_TAKEN_PACKAGES = frozenset({"capsmith", "lightkube", "prometheus_client", "tests", "yaml"})


def check_names(spec: ProviderSpec, top: Place) -> None:
    """Everything about the provider that is a name; ids CC-*, CRD-05 and ``*-reserved``."""
    _name(spec, top)
    _repository(spec, top)
    _package(spec, top)
    _image(spec, top)
    for section in derive.sections(spec):
        if section.group:
            _group(spec, section, top)
        _namespace(spec, section, top)
    _unused(spec, top)
    _licence(spec, top)
    _lists(spec, top)


def _licence(spec: ProviderSpec, top: Place) -> None:
    """What builds the Python package refuses a licence that SPDX does not know."""
    if spec.licence in (None, "Apache-2.0"):
        return
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    hint = "see https://spdx.org/licenses; one of your own is LicenseRef-<name>"
    try:
        known = str(canonicalize_license_expression(str(spec.licence)))
    except InvalidLicenseExpression:
        known = ""
    if known != spec.licence:
        message = f"SPDX knows no licence {shown(str(spec.licence))}"
        top.error("spec-not-a-licence", message, f"write {known}" if known else hint, "licence")


def _name(spec: ProviderSpec, top: Place) -> None:
    if spec.name == "cluster-api":
        hint = "take the name of your infrastructure"
        top.error("CC-50", "`cluster-api` is the name of the core provider", hint, "name")
    longest_type = _longest_type(spec)
    longest = DnsLabel.limit - len(longest_type) - 1
    if len(spec.name) > longest:
        message = f"the label `{longest_type}-<name>` would have more than {DnsLabel.limit}"
        top.error("CC-51", f"{message} characters", f"use at most {longest} characters", "name")


def _longest_type(spec: ProviderSpec) -> str:
    return max((section.type for section in derive.sections(spec)), key=len, default="")


def _repository(spec: ProviderSpec, top: Place) -> None:
    if spec.repository.endswith(".git"):
        message = "the address of the repository's page does not end in .git"
        top.error("spec-not-a-repository", message, "leave .git out", "repository")
    path = derive.repository_path(spec.repository)
    if urlsplit(spec.repository).netloc == "github.com" and len(path) != 2:
        message = "a repository of GitHub is https://github.com/<owner>/<name>"
        top.error("CC-56", message, "leave the rest out", "repository")
    if not DnsLabel.form.fullmatch(derive.distribution(spec)) or len(path[-1]) > DnsLabel.limit:
        message = f"{shown(path[-1])} gives no name for a Python distribution"
        hint = "name the repository cluster-api-provider-<name>"
        top.error("spec-not-a-repository", message, hint, "repository")


def _package(spec: ProviderSpec, top: Place) -> None:
    package = derive.package(spec)
    where = "package" if spec.package is not None else "repository"
    hint = f"add `package: cluster_api_provider_{spec.name.replace('-', '_')}`"
    if not package.isidentifier() or keyword.iskeyword(package):
        top.error("package-name", f"{shown(package)} cannot be imported by Python", hint, where)
    elif package in sys.stdlib_module_names:
        message = f"{shown(package)} is a module of Python's standard library"
        top.error("package-reserved", message, hint, where)
    elif package in _TAKEN_PACKAGES:
        message = f"{shown(package)} is the name of another package"
        top.error("package-reserved", message, hint, where)


def _image(spec: ProviderSpec, top: Place) -> None:
    image = derive.image(spec)
    where = "image" if spec.image is not None else "repository"
    hint = f"add `image: ghcr.io/<org>/cluster-api-{spec.name}-controller`"
    if len(image) > ImageName.limit or not ImageName.form.fullmatch(image):
        top.error("CC-27", f"{shown(image)} is no image name", hint, where)
        return
    host, *path = image.split("/")
    has_host = "." in host or ":" in host or host == "localhost"
    if not has_host or (host == "docker.io" and len(path) < 2):
        message = f"{shown(image)} is not canonical: clusterctl wants the registry's host"
        top.error("CC-27", message, hint, where)


def _group(spec: ProviderSpec, section: SectionType, top: Place) -> None:
    group = derive.group(spec, section.section)
    place = top.at("groups", section.section)
    if "." not in group:
        message = "an API group of custom resources has a dot in it"
        place.error("CRD-05", message, f"such as {section.group.split('.')[0]}.acme.example.com")
    if re.search(r"(^|\.)(k8s|kubernetes)\.io$", group):
        message = f"{shown(group)} is reserved for the Kubernetes project"
        place.error("CRD-05", message, "use a domain of your own")
    if group in _CORE_GROUPS - {section.group}:
        message = f"{shown(group)} belongs to other parts of Cluster API"
        place.error("CRD-05", message, f"use {section.group} or a domain of your own")


def _namespace(spec: ProviderSpec, section: SectionType, top: Place) -> None:
    namespace = derive.namespace(spec, section.section)
    given = spec.namespaces or {}
    where = ("namespaces", section.section) if section.section in given else ("name",)
    if namespace in _SYSTEM_NAMESPACES.split():
        message = f"the namespace {shown(namespace)} belongs to somebody else"
        hint = f"add `namespaces: {{{section.section}: …}}`"
        top.error("namespace-reserved", message, hint, *where)
    named = len(spec.name) + len(_longest_type(spec)) < DnsLabel.limit
    if len(namespace) > DnsLabel.limit and named:
        message = f"the namespace {shown(namespace)} has more than {DnsLabel.limit} characters"
        hint = f"add `namespaces: {{{section.section}: …}}`"
        top.error("namespace-too-long", message, hint, *where)
    for other in derive.sections(spec):
        if other is section:
            break
        if derive.namespace(spec, other.section) == namespace:
            message = f"{other.section} has the namespace {shown(namespace)} too"
            top.error("namespace-shared", message, "give each a namespace of its own", *where)


def _unused(spec: ProviderSpec, top: Place) -> None:
    """Groups and namespaces of sections that are not there."""
    there = {section.section for section in derive.sections(spec)}
    for key, given in (("groups", spec.groups), ("namespaces", spec.namespaces)):
        for section in given or {}:
            if section not in there:
                message = f"there is no section {shown(section)}"
                top.error_at_key("section-unused", message, "leave it out", key, section)


def _lists(spec: ProviderSpec, top: Place) -> None:
    repeats(spec.flavors or (), top.at("flavors"))
    repeats(spec.cluster_classes or (), top.at("clusterClasses"))
    repeats(
        [re.split(r"[^A-Za-z0-9._-]", d)[0].lower() for d in spec.dependencies or ()],
        top.at("dependencies"),
    )
    flavors = spec.flavors if spec.flavors is not None else ("topology",)
    if "topology" in flavors and spec.cluster_classes == ():
        message = "the flavor `topology` uses a ClusterClass, and there is none"
        hint = "add a name, or leave the flavor out: `flavors: []`"
        top.error("flavor-needs-class", message, hint, "clusterClasses")
    if not isinstance(spec.credentials, str | None):
        repeats(spec.credentials.keys or (), top.at("credentials", "keys"))
    for index, rule in enumerate(spec.rbac or ()):
        for part, values in (("apiGroups", rule.api_groups), ("verbs", rule.verbs)):
            _wildcard(values, top.at("rbac", index, part))
        _wildcard(rule.resources, top.at("rbac", index, "resources"))


def _wildcard(values: Sequence[str], place: Place) -> None:
    if "*" in values:
        message = "`*` gives the manager more than it needs"
        place.warning("rbac-wildcard", message, "name what the code uses", values.index("*"))


def repeats(names: Sequence[str], place: Place) -> None:
    """A finding for each name that stands in a list twice."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            place.error("spec-repeated", f"{shown(name)} stands here twice", "keep one", index)
        seen.add(name)
