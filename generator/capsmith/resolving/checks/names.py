"""Check that clusterctl, Kubernetes and Python accept the provider's names."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from capsmith.output.clusterctl import Hosting, identify_hosting
from capsmith.provider.draft import Draft
from capsmith.provider.sections import SECTION_TYPES, SectionType
from capsmith.safetext import DnsLabel, ImageName
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote, suggest

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
_OPEN_GROUPS = frozenset(
    f"{prefix}.cluster.x-k8s.io" for prefix in ("infrastructure", "bootstrap", "controlplane")
)
"""Groups in which core and the kubeadm control plane may access all kinds, so sections may use each
other's groups (RB-01, RB-02)."""
_TAKEN_PACKAGES = frozenset({"capsmith", "lightkube", "prometheus_client", "tests", "yaml"})


_VERBS = """
    get list watch create update patch delete deletecollection
    approve attest bind escalate impersonate sign use
"""


def check_names(draft: Draft, top: PathReporter) -> None:
    """Check all of the provider's names.

    Ids: CC-*, CRD-05 and ``*-reserved``.
    """
    _check_name(draft, top)
    _check_repository(draft, top)
    _check_package(draft, top)
    _check_sdk(draft, top)
    _check_image(draft, top)
    for section in draft.sections:
        if section.group:
            group = draft.groups[section.section]
            _check_group(group, section, top.at("groups", section.section))
    for kind in draft.kinds:
        if kind.spec.group is not None:
            reporter = top.at(kind.section, kind.name, "group")
            _check_group(kind.spec.group, SECTION_TYPES[kind.section], reporter)
    for main, *_ in draft.components:
        _check_namespace(draft, main, top)
    _check_unused(draft, top)
    _check_licence(draft, top)
    _check_lists(draft, top)


def _check_licence(draft: Draft, top: PathReporter) -> None:
    """Check the licence, because building a Python package fails for licences not in SPDX."""
    if draft.spec.licence in (None, "Apache-2.0"):
        return
    # Imported here, because only a licence other than the default must be looked up.
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    hint = "Look it up at https://spdx.org/licenses; write LicenseRef-<name> for your own."
    try:
        known = str(canonicalize_license_expression(str(draft.spec.licence)))
    except InvalidLicenseExpression:
        known = ""
    if known != draft.spec.licence:
        message = f"unknown SPDX licence {quote(str(draft.spec.licence))}"
        top.add_error(
            "spec-not-a-licence", message, f"Write {known}." if known else hint, "licence"
        )


def _check_name(draft: Draft, top: PathReporter) -> None:
    if draft.spec.name == "cluster-api":
        hint = "Use the name of your infrastructure."
        top.add_error("CC-50", "`cluster-api` is the name of the core provider", hint, "name")
    longest_type = _longest_type(draft)
    longest = DnsLabel.limit - len(longest_type) - 1
    if len(draft.spec.name) > longest:
        message = f"the label `{longest_type}-<name>` would have more than {DnsLabel.limit}"
        top.add_error(
            "CC-51", f"{message} characters", f"Use at most {longest} characters.", "name"
        )


def _longest_type(draft: Draft) -> str:
    return max((main.type for main, *_ in draft.components), key=len, default="")


def _check_repository(draft: Draft, top: PathReporter) -> None:
    if draft.spec.repository.endswith(".git"):
        message = "the URL of the repository page must not end in .git"
        top.add_error("spec-not-a-repository", message, "Remove .git.", "repository")
    path = draft.repository_path
    if urlsplit(draft.spec.repository).netloc == "github.com" and len(path) != 2:
        message = "the URL of a GitHub repository must be https://github.com/<owner>/<name>"
        top.add_error("CC-56", message, "Remove the rest of the path.", "repository")
    if identify_hosting(draft.spec.repository) is Hosting.OTHER:
        message = (
            "clusterctl downloads releases only from GitHub and from GitLab at gitlab.<domain>"
        )
        hint = "Use a repository there, or tell users to copy each release into a local folder."
        top.add_warning("CC-60", message, hint, "repository")
    if not DnsLabel.form.fullmatch(draft.distribution) or len(path[-1]) > DnsLabel.limit:
        message = f"{quote(path[-1])} cannot be used as the name of a Python distribution"
        hint = "Name the repository cluster-api-provider-<name>."
        top.add_error("spec-not-a-repository", message, hint, "repository")


def _check_package(draft: Draft, top: PathReporter) -> None:
    package = draft.package
    where = "package" if draft.spec.package is not None else "repository"
    hint = f"Add `package: cluster_api_provider_{draft.spec.name.replace('-', '_')}`."
    if not package.isidentifier() or keyword.iskeyword(package):
        top.add_error(
            "package-name", f"{quote(package)} is not an importable Python name", hint, where
        )
    # Such a package could only be imported in a checkout, where its folder comes first.
    elif package in sys.stdlib_module_names:
        message = f"{quote(package)} is a module of Python's standard library"
        top.add_error("package-reserved", message, hint, where)
    elif package in _TAKEN_PACKAGES:
        message = f"{quote(package)} is the name of another package"
        top.add_error("package-reserved", message, hint, where)


def _check_sdk(draft: Draft, top: PathReporter) -> None:
    sdk = draft.spec.sdk
    if sdk is None:
        return
    parts = sdk.split(".")
    hint = "Write what follows `import`, such as boto3."
    if any(map(keyword.iskeyword, parts)):
        top.add_error("sdk-name", f"{quote(sdk)} is not an importable Python name", hint, "sdk")
    elif parts[0] in {draft.package, *_TAKEN_PACKAGES, *sys.stdlib_module_names}:
        top.add_error(
            "sdk-reserved", f"{quote(sdk)} is not the SDK of an infrastructure", hint, "sdk"
        )
    elif not any(each.section == "infrastructure" for each in draft.sections):
        hint = "Add infrastructure, or list the package only in dependencies."
        top.add_error(
            "sdk-unused", "only the section infrastructure has an SDK client", hint, "sdk"
        )


def _check_image(draft: Draft, top: PathReporter) -> None:
    image = draft.image
    where = "image" if draft.spec.image is not None else "repository"
    hint = f"Add `image: ghcr.io/<org>/cluster-api-{draft.spec.name}-controller`."
    if len(image) > ImageName.limit or not ImageName.form.fullmatch(image):
        top.add_error("CC-27", f"{quote(image)} is not a valid image name", hint, where)
        return
    host, *path = image.split("/")
    # This is how a container runtime distinguishes a registry from the first part of a path.
    has_host = "." in host or ":" in host or host == "localhost"
    if not has_host or (host == "docker.io" and len(path) < 2):
        message = f"{quote(image)} is not canonical: clusterctl requires the registry host"
        top.add_error("CC-27", message, hint, where)


def _check_group(group: str, section: SectionType, reporter: PathReporter) -> None:
    if "." not in group:
        message = "the API group of custom resources must contain a dot"
        reporter.add_error(
            "CRD-05",
            message,
            f"Write a group such as {section.group.split('.')[0]}.acme.example.com.",
        )
    if re.search(r"(^|\.)(k8s|kubernetes)\.io$", group):
        message = f"{quote(group)} is reserved for the Kubernetes project"
        reporter.add_error("CRD-05", message, "Use a domain of your own.")
    open_groups = _OPEN_GROUPS if section.group in _OPEN_GROUPS else {section.group}
    if group in _CORE_GROUPS - open_groups:
        message = f"{quote(group)} belongs to other parts of Cluster API"
        reporter.add_error("CRD-05", message, f"Use {section.group} or a domain of your own.")


def _check_namespace(draft: Draft, section: SectionType, top: PathReporter) -> None:
    namespace = draft.namespaces[section.section]
    given = draft.spec.namespaces or {}
    where = ("namespaces", section.section) if section.section in given else ("name",)
    if namespace in _SYSTEM_NAMESPACES.split():
        message = f"the namespace {quote(namespace)} is reserved"
        hint = f"Add `namespaces: {{{section.section}: …}}`."
        top.add_error("namespace-reserved", message, hint, *where)
    # A name that is too long for the label has already been reported, and causes this error too.
    named = len(draft.spec.name) + len(_longest_type(draft)) < DnsLabel.limit
    if len(namespace) > DnsLabel.limit and named:
        message = f"the namespace {quote(namespace)} has more than {DnsLabel.limit} characters"
        hint = f"Add `namespaces: {{{section.section}: …}}`."
        top.add_error("namespace-too-long", message, hint, *where)
    for other, *_ in draft.components:
        if other is section:
            break
        if draft.namespaces[other.section] == namespace:
            message = f"{other.section} also has the namespace {quote(namespace)}"
            top.add_error(
                "namespace-shared", message, "Give each section its own namespace.", *where
            )


def _check_unused(draft: Draft, top: PathReporter) -> None:
    """Report groups and namespaces that are set for missing sections."""
    present = {section.section for section in draft.sections}
    for key, given in (("groups", draft.spec.groups), ("namespaces", draft.spec.namespaces)):
        for section in given or {}:
            if section not in present:
                message = f"the section {quote(section)} does not exist"
                top.add_error_at_key("section-unused", message, "Remove it.", key, section)


def _check_lists(draft: Draft, top: PathReporter) -> None:
    _check_templates_are_released(draft, top)
    check_repeats(draft.spec.flavors or (), top.at("flavors"))
    check_repeats(draft.spec.cluster_classes or (), top.at("clusterClasses"))
    for key, requirements in (
        ("dependencies", draft.spec.dependencies),
        ("devDependencies", draft.spec.dev_dependencies),
    ):
        _check_requirements(requirements or (), top.at(key))
    if "topology" in draft.flavors and not draft.cluster_classes:
        message = "the flavor `topology` requires a ClusterClass, but there is none"
        hint = "Add a name, or remove the flavor: `flavors: []`."
        top.add_error("flavor-needs-class", message, hint, "clusterClasses")
    for identity in draft.identities:
        check_repeats(identity.keys, top.at(*identity.path, "keys"))
        check_repeats(identity.sources, top.at(*identity.path, "sources"))
    for index, rule in enumerate(draft.spec.rbac or ()):
        for part, values in (("apiGroups", rule.api_groups), ("verbs", rule.verbs)):
            _check_wildcard(values, top.at("rbac", index, part))
        _check_verbs(rule.verbs, top.at("rbac", index, "verbs"))
        _check_wildcard(rule.resources, top.at("rbac", index, "resources"))


def _check_templates_are_released(draft: Draft, top: PathReporter) -> None:
    """Warn of names of templates and classes that are not generated: clusterctl requests none."""
    if any(section.section == "infrastructure" for section in draft.sections):
        return
    for key, what, names in (
        ("flavors", "cluster templates", draft.spec.flavors),
        ("clusterClasses", "ClusterClasses", draft.spec.cluster_classes),
    ):
        if names:
            message = f"only a provider with the section `infrastructure` releases {what}"
            top.add_warning_at_key("templates-unused", message, "Remove it.", key)


def _check_requirements(requirements: Sequence[str], reporter: PathReporter) -> None:
    """Report requirements that pip cannot read, and distributions that are listed twice."""
    if not requirements:
        return
    # Imported here, because many providers have no requirements of their own.
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    names = []
    for index, text in enumerate(requirements):
        try:
            names.append(str(canonicalize_name(Requirement(text).name)))
        except InvalidRequirement:
            message = f"pip cannot read {quote(text)}"
            hint = "Write versions such as >=2,<3 or ==2.*, and markers such as os_name == 'posix'."
            reporter.add_error("dependency", message, hint, index)
            names.append(text)
    check_repeats(names, reporter)


def _check_wildcard(values: Sequence[str], reporter: PathReporter) -> None:
    if "*" in values:
        message = "`*` grants the manager more permissions than it needs"
        reporter.add_warning(
            "rbac-wildcard", message, "List what the code uses.", values.index("*")
        )


def _check_verbs(verbs: Sequence[str], reporter: PathReporter) -> None:
    """Warn of verbs that look like misspelt ones; API servers may have verbs of their own."""
    known = _VERBS.split()
    for index, verb in enumerate(verbs):
        if verb != "*" and verb not in known and get_close_matches(verb, known, n=1):
            message = f"no request of an API server has the verb {quote(verb)}"
            reporter.add_warning("rbac-verb", message, suggest(verb, known), index)


def check_repeats(names: Sequence[str], reporter: PathReporter) -> None:
    """Report ``spec-repeated`` for each name that occurs more than once in a list."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            reporter.add_error(
                "spec-repeated", f"duplicate entry {quote(name)}", "Keep one.", index
            )
        seen.add(name)
