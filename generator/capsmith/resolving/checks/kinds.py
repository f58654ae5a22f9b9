"""Check kinds: unique names, existing templates and features, and webhooks."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider.credentials import find_identity_section
from capsmith.provider.described_kinds import (
    WITHOUT_TEMPLATE,
    supports_classes,
    template_short_names,
)
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftKind
from capsmith.provider.naming import name_module, pluralise
from capsmith.provider_yaml.field_schemas import convert_field, is_required
from capsmith.resolving.checks.contract_fields import check_template_fields
from capsmith.resolving.checks.fields import check_column_forms, check_own_fields
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import TemplateSpec, TemplateVersionSpec

_CONSEQUENCES: Mapping[str, str] = {
    "InfraCluster": "no ClusterClass can use {kind}, so the provider releases none",
    "ControlPlane": "no ClusterClass can use {kind}, so the provider releases none",
    "InfraMachinePool": "no ClusterClass can have workers in {kind}",
}
"""Consequences of leaving out the template, by role; for other roles it cannot be left out."""


def check_templates(draft: Draft, contracts: Iterable[Contract], top: PathReporter) -> None:
    """Report kinds that have a template but cannot, or that lack one but must have it.

    Ids: ``template-unknown``, ``template-needed``, ``template-left-out``, ``part-fields-required``,
    and the ids of field checks for templates' status.
    """
    known = list(contracts)
    for kind in draft.kinds:
        here = top.at(kind.section, kind.name)
        if kind.spec.template is not None:
            _check_template(kind, known, here)
    if draft.spec.cluster_classes and not supports_classes(draft.spec):
        message = "a ClusterClass requires a template for each kind of cluster and control plane"
        hint = "Remove `template: false`, or write `clusterClasses: []`."
        roles = {kind.spec.implements for kind in draft.kinds}
        if draft.spec.machines is False and "ControlPlane" not in roles:
            message = "a ClusterClass requires a control plane, and kubeadm's consists of machines"
            hint = "Add a kind that implements ControlPlane, or write `clusterClasses: []`."
        top.add_error("template-needed", message, hint, "clusterClasses")


def _check_template(kind: DraftKind, contracts: Iterable[Contract], reporter: PathReporter) -> None:
    template, role = kind.spec.template, kind.spec.implements
    if role in WITHOUT_TEMPLATE:
        message = f"a kind that implements {role} cannot have a template"
        reporter.add_error_at_key("template-unknown", message, "Remove it.", "template")
    elif template is False and role not in _CONSEQUENCES:
        message = f"core only creates {quote(kind.name)} from templates"
        reporter.add_error("template-needed", message, "Remove `template: false`.", "template")
    elif template is False:
        message = "without a template, " + _CONSEQUENCES[role].format(kind=kind.name)
        reporter.add_warning("template-left-out", message, "Remove `template: false`.", "template")
    elif template is not None and not isinstance(template, bool):
        reserved = {
            name: field.rule
            for contract in contracts
            for name, field in contract.types[f"{role}Template"].status.items()
        }
        here = reporter.at("template")
        check_own_fields(template.status or {}, reserved, here.at("status"))
        for version, own in (template.versions or {}).items():
            check_own_fields(own.status or {}, reserved, here.at("versions", version, "status"))
        check_column_forms(template.printer_columns, here)
        for version, own in (template.versions or {}).items():
            check_column_forms(own.printer_columns, here.at("versions", version))
        _check_part_fields(template, reporter.at("template"))
        check_template_fields(kind, contracts, template, reporter.at("template"))


def _check_part_fields(template: TemplateSpec, reporter: PathReporter) -> None:
    """Report fields beside ``template`` or ``spec`` that have these names or are required."""
    described: dict[str, TemplateVersionSpec] = {"": template, **(template.versions or {})}
    for version, written in described.items():
        here = reporter.at("versions", version) if version else reporter
        for part, fields in (written.part_fields or {}).items():
            names = {"template"} if part == "spec" else {"metadata", "spec"}
            check_own_fields(fields, dict.fromkeys(names, "CRD-08"), here.at("partFields", part))
            for name, field in fields.items():
                if is_required(field) and "default" not in convert_field(field):
                    message = f"{quote(name)} is required, but templates of releases do not set it"
                    hint = "Give it a default, or do not require it."
                    here.add_error("part-fields-required", message, hint, "partFields", part, name)


_RESERVED = """
    Cluster ClusterClass Machine MachinePool InfraCluster InfraMachine InfraMachinePool
    BootstrapConfig ControlPlane IPAddress IPAddressClaim Addon Identity Secret
    Resource Any Literal Mapping
"""


_CORE_SHORT_NAMES = """
    cl cc ma md ms mp mhc mhs crs crsb po svc no ns cm sa deploy ds rs sts ing pv pvc ev ep crd
    crds cs quota limits rc csr hpa cj netpol pdb pc sc
"""


_LONGEST_SUFFIX = "TemplateList"


_FILES_OF_SAMPLES: Mapping[str, str] = {
    "kustomization": "config/samples/kustomization.yaml",
    # clusterctl's own file has this name, in whatever folder.
    "metadata": "config/samples/metadata.yaml",
}
_FILES_OF_TESTS: Mapping[str, str] = {"conformance": "tests/test_conformance.py"}
"""Files beside those of kinds, by the name of the module that a kind with the same file has."""


def _named_kinds(draft: Draft) -> Iterator[tuple[str, Path]]:
    """Yield the kinds that the author names, each with its path in provider.yaml."""
    for kind in draft.kinds:
        yield kind.name, (kind.section, kind.name)
    for identity in draft.identities:
        yield identity.kind, identity.kind_path


def check_kind_names(draft: Draft, top: PathReporter) -> None:
    """Report kinds whose name is reserved or would make a derived name too long.

    Ids: CRD-02 (CRD name), CRD-04 (list kind), TP-02 (suffixes) and
    ``kind-reserved``.
    """
    for kind, path in _named_kinds(draft):
        _check_name(kind, draft, top.at(*path))


def _check_name(kind: str, draft: Draft, reporter: PathReporter) -> None:
    for suffix in ("Template", "List"):
        if kind.endswith(suffix) and not (suffix == "Template" and _is_free(kind, draft)):
            message = f"a kind cannot end in {suffix}: that name is derived from another kind"
            reporter.add_error_at_key("TP-02", message, f"Use {quote(kind.removesuffix(suffix))}.")
    own = next((each for each in draft.kinds if each.name == kind), None)
    # The reconciler of such a kind would have the name of its base class.
    is_base = own is not None and own.spec.implements == kind == "Remediation"
    if kind in _RESERVED.split() or keyword.iskeyword(kind) or is_base:
        message = f"{quote(kind)} is a reserved name of Cluster API, Kubernetes or Python"
        reporter.add_error_at_key(
            "kind-reserved", message, f"Add a prefix, such as {quote('Acme' + kind)}."
        )
    identity = reporter.path[0] == "credentials"
    section = find_identity_section(draft) if identity else str(reporter.path[0])
    suffix = "List" if identity else _LONGEST_SUFFIX
    if len(kind) + len(suffix) > KindName.limit:
        longest = KindName.limit - len(suffix)
        message = f"{quote(kind + suffix)} would have more than {KindName.limit} characters"
        reporter.add_error_at_key("CRD-04", message, f"Use at most {longest} characters.")
        return
    group, plural = draft.groups[section], pluralise(kind.lower())
    if own is not None:
        group, plural = own.group, own.plural
    length = max(len(f"{plural}."), len(f"{kind}templates.")) + len(group)
    if len(plural) > DnsLabel.limit or length > DnsSubdomain.limit:
        message = f"the CRD's name `<plural>.<group>` would have more than {DnsSubdomain.limit}"
        reporter.add_error_at_key(
            "CRD-02", f"{message} characters", "Shorten the kind or the group."
        )


def _is_free(kind: str, draft: Draft) -> bool:
    """Return whether a kind has the role Resource, no template, and no template's name."""
    templates = {f"{each.name}Template" for each in draft.kinds if each.has_template}
    own = [each for each in draft.kinds if each.name == kind and not each.has_template]
    return bool(own) and own[0].spec.implements == "Resource" and kind not in templates


def check_clashes(draft: Draft, top: PathReporter) -> None:
    """Report ``kind-clash`` for kinds, plurals and Python names that are not unique."""
    taken: dict[str, tuple[str, Path]] = {}
    for kind, path in _named_kinds(draft):
        reporter = top.at(*path)
        module = name_module(kind, draft.spec.words or ())
        for name in (kind.lower(), pluralise(kind.lower()), str(module)):
            other, former = taken.setdefault(name, (kind, path))
            if other != kind:
                message = f"{quote(kind)} and {quote(other)} would both be named {quote(name)}"
                reporter.add_error_at_key("kind-clash", message, "Choose names that differ more.")
                break
            if former != path and path[0] == "credentials":
                message = f"{quote(kind)} is already a kind of {former[0]}"
                reporter.add_error("kind-clash", message, "Choose another kind for the identities.")
                break
            if former != path:
                message = f"{quote(kind)} is already a kind of {former[0]}"
                reporter.add_error_at_key("kind-clash", message, "Choose another name.")
                break


def check_crd_names(draft: Draft, top: PathReporter) -> None:
    """Report ``kind-clash`` for a `plural` that another kind of the API group has as a name."""
    taken: dict[tuple[str, str], str] = {}
    for identity in draft.identities:
        group = draft.groups[find_identity_section(draft)]
        _take_names(taken, group, identity.kind, pluralise(identity.kind.lower()))
    for kind in draft.kinds:
        if kind.spec.plural is None:
            _take_names(taken, kind.group, kind.name, kind.plural)
        if kind.has_template:
            template = f"{kind.name}Template"
            _take_names(taken, kind.group, template, pluralise(template.lower()))
    for kind in draft.kinds:
        if kind.spec.plural is None:
            continue
        other = taken.get((kind.group, kind.plural), kind.name)
        _take_names(taken, kind.group, kind.name, kind.plural)
        if other != kind.name:
            message = f"{quote(other)} is already named {quote(kind.plural)} in {kind.group}"
            here = top.at(kind.section, kind.name)
            here.add_error("kind-clash", message, "Choose another plural.", "plural")


def _take_names(taken: dict[tuple[str, str], str], group: str, kind: str, plural: str) -> None:
    for name in (kind.lower(), plural):
        taken.setdefault((group, name), kind)


def check_files(draft: Draft, top: PathReporter) -> None:
    """Report kinds whose generated files would have the names of other files.

    Ids: ``kind-reserved`` and ``kind-clash``.
    """
    words = draft.spec.words or ()
    taken = dict(_FILES_OF_SAMPLES)
    for identity in draft.identities:
        _check_file(identity.kind, words, taken, top.at(*identity.kind_path))
    taken |= _FILES_OF_TESTS
    if draft.spec.sdk is not None:
        taken["client"] = "tests/test_client.py"
    if draft.spec.runtime_extension is not None:
        taken["extension"] = "tests/test_extension.py"
    webhooks = {
        f"{name_module(kind.name, words)}_webhook": kind.name
        for kind in draft.kinds
        if kind.webhooks is not None
    }
    for kind in draft.kinds:
        reporter = top.at(kind.section, kind.name)
        _check_file(kind.name, words, taken, reporter)
        module = name_module(kind.name, words)
        if module in webhooks:
            message = f"the webhooks of {quote(webhooks[module])} have `tests/test_{module}.py`"
            hint = "Choose names that differ more."
            reporter.add_error_at_key("kind-clash", message, hint)


def _check_file(
    kind: str, words: Sequence[str], taken: Mapping[str, str], reporter: PathReporter
) -> None:
    path = taken.get(name_module(kind, words))
    if path is not None:
        message = f"a file of {quote(kind)} would be {quote(path)}, which has another meaning"
        hint = f"Add a prefix, such as {quote('Acme' + kind)}."
        reporter.add_error_at_key("kind-reserved", message, hint)


def check_short_names(draft: Draft, top: PathReporter) -> None:
    """Report short names that are already used by another kind.

    Ids: ``short-name-clash`` and ``short-name-taken``.
    """
    taken = set(draft.kubectl_names)
    for kind in draft.kinds:
        reporter = top.at(kind.section, kind.name)
        singular = kind.name.lower()
        _check_short_names(singular, kind.spec.short_names or (), taken, reporter.at("shortNames"))
        names = template_short_names(kind.spec)
        _check_short_names(
            f"{singular}template", names, taken, reporter.at("template", "shortNames")
        )


def _check_short_names(
    singular: str, names: Sequence[str], taken: set[str], reporter: PathReporter
) -> None:
    own = {singular, pluralise(singular)}
    for index, name in enumerate(names):
        here = reporter.at(index)
        # The API server also accepts a short name that equals the kind's own name.
        if name in taken and name not in own:
            message = f"{quote(name)} is the name of a kind, or of another short name"
            here.add_error("short-name-clash", message, "Choose another name.")
        elif name in _CORE_SHORT_NAMES.split():
            message = f"{quote(name)} is a short name of Kubernetes or Cluster API"
            hint = "Choose another name; otherwise, kubectl picks one of the two."
            here.add_warning("short-name-taken", message, hint)
        taken.add(name)
        own.discard(name)


def check_scope(kind: DraftKind, reporter: PathReporter) -> None:
    """Report a scope, group or plural that the author sets even though the contract determines it.

    Ids: ``kind-scope``, ``kind-group`` and ``kind-plural``.
    """
    if kind.spec.implements == "Resource":
        return
    if kind.spec.scope is not None:
        message = f"the contract sets the scope of a kind that implements {kind.spec.implements}"
        reporter.add_error_at_key("kind-scope", message, "Remove it.", "scope")
    for key, value in (("group", kind.spec.group), ("plural", kind.spec.plural)):
        if value is not None:
            message = f"only a kind that implements Resource can have its own {key}"
            reporter.add_error_at_key(f"kind-{key}", message, "Remove it.", key)


def check_features(kind: DraftKind, reporter: PathReporter) -> None:
    """Report ``feature-unknown`` for features that the kind's role does not have."""
    known = kind.known_features
    for name in kind.spec.features or {}:
        if name == CREDENTIALS_FEATURE and name not in known:
            hint = "Remove it here and use the key `credentials` at the top."
            message = f"{quote(name)} is derived from the kind that holds the credentials"
            reporter.add_error_at_key("feature-unknown", message, hint, "features", name)
        elif name not in known:
            message = f"{kind.spec.implements} has no feature {quote(name)}"
            hint = suggest(name, known)
            reporter.add_error_at_key("feature-unknown", message, hint, "features", name)


def check_webhooks(draft: Draft, top: PathReporter) -> None:
    """Report webhook settings that have no effect.

    Ids: ``webhooks-empty``, ``webhooks-deletion`` and ``webhooks-templates``.
    """
    for kind in draft.kinds:
        if kind.webhooks is not None:
            _check_settings(kind, top.at(kind.section, kind.name, "webhooks"))


def _check_settings(kind: DraftKind, reporter: PathReporter) -> None:
    webhooks, written = kind.webhooks, kind.spec.webhooks
    if webhooks is None or written is None:
        return
    if not (webhooks.validation or webhooks.defaulting):
        message = "these webhooks neither validate nor default anything"
        hint = "Add `validation: true` or `defaulting: true`, or remove `webhooks`."
        reporter.add_error_at_key("webhooks-empty", message, hint)
    elif webhooks.deletion and not webhooks.validation:
        message = "`deletion` requires `validation: true`"
        reporter.add_error_at_key(
            "webhooks-deletion",
            message,
            "Add `validation: true`, or remove `deletion`.",
            "deletion",
        )
    if written.templates is not None and not kind.has_template:
        message = f"{quote(kind.name)} has no templates"
        reporter.add_error_at_key("webhooks-templates", message, "Remove this.", "templates")
