"""The kinds: names that do not clash, roles that are filled, features that exist."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from capsmith.contract.model import Contract
from capsmith.provider.described_kinds import (
    FIELD,
    WITHOUT_TEMPLATE,
    is_machine_based,
    supports_classes,
    template_short_names,
)
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftKind
from capsmith.provider.naming import attribute, pluralise
from capsmith.resolving.checks.contract_fields import check_contract_fields, check_template_fields
from capsmith.resolving.checks.fields import check_examples, check_fields, check_own_fields
from capsmith.resolving.checks.pools import check_pools
from capsmith.resolving.checks.sections import check_sections
from capsmith.resolving.checks.version_fields import (
    check_columns,
    check_kind_versions,
    check_version_fields,
)
from capsmith.resolving.checks.watches import check_watches
from capsmith.safetext import DnsLabel, DnsSubdomain, KindName
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import did_you_mean, listed, shown
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import KindSpec


def check_control_planes(draft: Draft, top: Place) -> None:
    """Report ``bootstrap-missing``, ``-unknown``, ``-unused`` and ``field-reserved``."""
    for kind in draft.kinds_of("controlPlane"):
        place = top.at("controlPlane", kind.name)
        if is_machine_based(kind.spec):
            _bootstrap(draft, kind, place)
            _field(kind.spec, place)
        elif getattr(kind.spec, "bootstrap", None) is not None:
            message = "a managed control plane has no Machines to bootstrap"
            place.error_at_key("bootstrap-unused", message, "Remove it.", "bootstrap")


def _bootstrap(draft: Draft, kind: DraftKind, place: Place) -> None:
    if kind.bootstrap is not None:
        return
    named = getattr(kind.spec, "bootstrap", None)
    kinds = [each.name for each in draft.kinds_of("bootstrap")]
    if named is not None:
        message = f"{shown(named)} is not a kind of the section bootstrap"
        hint = "Use one of them, or that of another provider: {group: …, kind: …}."
        place.error("bootstrap-unknown", message, hint, "bootstrap")
    elif kinds:
        message = f"the kind of bootstrap configurations is ambiguous: {listed(kinds)}"
        place.error_at_key("bootstrap-missing", message, "Choose one: `bootstrap: <kind>`.")
    else:
        message = "its Machines require bootstrap configurations, but there is no section bootstrap"
        hint = "Add one, or name the kind of another provider: `bootstrap: {group: …, kind: …}`."
        place.error_at_key("bootstrap-missing", message, hint)


def _field(described: KindSpec, place: Place) -> None:
    if FIELD in (described.spec or {}):
        message = f"{shown(FIELD)} holds the spec of the Machines' bootstrap configurations"
        place.error_at_key("field-reserved", message, "Remove it.", "spec", FIELD)


_ROLE = "Identity"


def check_identities(draft: Draft, contracts: list[Contract], top: Place) -> None:
    """Report ``credentials-keys``, and their fields as those of other kinds."""
    reserved = {
        name: field.rule
        for contract in contracts
        for name, field in contract.types[_ROLE].spec.items()
    }
    for identity in draft.identities:
        place = top.at(*identity.path)
        check_own_fields(identity.fields, reserved, place.at("spec"))
        check_examples(identity.fields, place.at("spec"))
        if identity.keys and not identity.secret:
            message = "the keys name entries of a Secret, but the identity does not refer to one"
            place.error_at_key("credentials-keys", message, "Remove them.", "keys")


_CONSEQUENCES: Mapping[str, str] = {
    "InfraCluster": "no ClusterClass can use {kind}, so the provider releases none",
    "ControlPlane": "no ClusterClass can use {kind}, so the provider releases none",
    "InfraMachinePool": "no ClusterClass can have workers in {kind}",
}
"""What is impossible without the template, by role; of other roles it cannot be left out."""


def check_templates(draft: Draft, contracts: Iterable[Contract], top: Place) -> None:
    """Report ``template-*``, and the ids of fields for those in the status of templates."""
    known = list(contracts)
    for kind in draft.kinds:
        here = top.at(kind.section, kind.name)
        if kind.spec.template is not None:
            _check(kind, known, here)
    if draft.spec.cluster_classes and not supports_classes(draft.spec):
        message = "a ClusterClass requires a template for each kind of cluster and control plane"
        hint = "Remove `template: false`, or write `clusterClasses: []`."
        top.error("template-needed", message, hint, "clusterClasses")


def _check(kind: DraftKind, contracts: Iterable[Contract], place: Place) -> None:
    template, role = kind.spec.template, kind.spec.implements
    if role in WITHOUT_TEMPLATE:
        message = f"a kind that implements {role} cannot have a template"
        place.error_at_key("template-unknown", message, "Remove it.", "template")
    elif template is False and role not in _CONSEQUENCES:
        message = f"core only creates {shown(kind.name)} from templates"
        place.error("template-needed", message, "Remove `template: false`.", "template")
    elif template is False:
        message = "without a template, " + _CONSEQUENCES[role].format(kind=kind.name)
        place.warning("template-left-out", message, "Remove `template: false`.", "template")
    elif template is not None and not isinstance(template, bool):
        reserved = {
            name: field.rule
            for contract in contracts
            for name, field in contract.types[f"{role}Template"].status.items()
        }
        check_own_fields(template.status or {}, reserved, place.at("template", "status"))
        check_template_fields(kind, contracts, template, place.at("template"))


_RESERVED = """
    Cluster ClusterClass Machine MachinePool InfraCluster InfraMachine InfraMachinePool
    BootstrapConfig ControlPlane IPPool GlobalIPPool IPAddress IPAddressClaim Addon Identity Secret
    Resource Any Literal Mapping
"""
_CORE_SHORT_NAMES = """
    cl cc ma md ms mp mhc mhs crs crsb po svc no ns cm sa deploy ds rs sts ing pv pvc ev ep crd
    crds cs quota limits rc csr hpa cj netpol pdb pc sc
"""
_FINALIZER_LIMIT = 63
_LONGEST_SUFFIX = "TemplateList"


def check_kinds(draft: Draft, contracts: Mapping[str, Contract], top: Place) -> None:
    """Report CRD-02, CRD-04, TP-02, ``kind-*``, ``short-name-*``, ``feature-unknown`` and below."""
    check_sections(draft, top)
    _clashes(draft, top)
    _short_names(draft, top)
    for kind, path in named_kinds(draft):
        _name(kind, draft, top.at(*path))
    served = draft.spec.contracts
    served_first = sorted(contracts, key=lambda version: (version not in served, version))
    known = [contracts[version] for version in served_first]
    for each in draft.kinds:
        here = top.at(each.section, each.name)
        _scope(each, here)
        _features(each, here)
        check_fields(draft, each.spec, known, here)
        check_columns(each.spec, known, here)
        check_version_fields(draft, each, known, here)
        check_kind_versions(draft, each, here)
        check_contract_fields(draft, each, contracts, here)
        check_watches(each, draft, here)
    check_templates(draft, known, top)
    check_identities(draft, known, top)
    check_pools(draft, top)
    check_control_planes(draft, top)


def named_kinds(draft: Draft) -> Iterator[tuple[str, Path]]:
    """Yield the kinds that the author names, and their places."""
    for kind in draft.kinds:
        yield kind.name, (kind.section, kind.name)
    for identity in draft.identities:
        yield identity.kind, identity.kind_path


def _name(kind: str, draft: Draft, place: Place) -> None:
    for suffix in ("Template", "List"):
        if kind.endswith(suffix) and not (suffix == "Template" and _is_free(kind, draft)):
            message = f"a kind cannot end in {suffix}: that name is derived from another kind"
            place.error_at_key("TP-02", message, f"Use {shown(kind.removesuffix(suffix))}.")
    if kind in _RESERVED.split() or keyword.iskeyword(kind):
        message = f"{shown(kind)} is a reserved name of Cluster API, Kubernetes or Python"
        place.error_at_key(
            "kind-reserved", message, f"Add a prefix, such as {shown('Acme' + kind)}."
        )
    identity = place.path[0] == "credentials"
    section = "infrastructure" if identity else str(place.path[0])
    suffix = "List" if identity else _LONGEST_SUFFIX
    if len(kind) + len(suffix) > KindName.limit:
        longest = KindName.limit - len(suffix)
        message = f"{shown(kind + suffix)} would have more than {KindName.limit} characters"
        place.error_at_key("CRD-04", message, f"Use at most {longest} characters.")
        return
    own = next((each for each in draft.kinds if each.name == kind), None)
    group, plural = draft.groups[section], pluralise(kind.lower())
    if own is not None:
        group, plural = own.group, own.plural
    if len(plural) > DnsLabel.limit or len(plural) + len("templates.") + len(group) > 253:
        message = f"the CRD's name `<plural>.<group>` would have more than {DnsSubdomain.limit}"
        place.error_at_key("CRD-02", f"{message} characters", "Shorten the kind or the group.")
    if len(kind) + 1 + len(group) > _FINALIZER_LIMIT:
        message = f"the finalizer `<kind>.<group>` would have more than {_FINALIZER_LIMIT}"
        place.error_at_key("IC-21", f"{message} characters", "Shorten the kind or the group.")


def _is_free(kind: str, draft: Draft) -> bool:
    """Return whether a kind is one without template, and its name is that of no template."""
    templates = {f"{each.name}Template" for each in draft.kinds if each.has_template}
    own = [each for each in draft.kinds if each.name == kind and not each.has_template]
    return bool(own) and own[0].spec.implements == "Resource" and kind not in templates


def _clashes(draft: Draft, top: Place) -> None:
    taken: dict[str, tuple[str, Path]] = {}
    for kind, path in named_kinds(draft):
        place = top.at(*path)
        for name in (kind.lower(), pluralise(kind.lower()), str(attribute(kind))):
            other, former = taken.setdefault(name, (kind, path))
            if other != kind:
                message = f"{shown(kind)} and {shown(other)} would both be named {shown(name)}"
                place.error_at_key("kind-clash", message, "Choose names that differ more.")
                break
            if former != path and path[0] == "credentials":
                message = f"{shown(kind)} is already a kind of {former[0]}"
                place.error("kind-clash", message, "Choose another kind for the identities.")
                break
            if former != path:
                message = f"{shown(kind)} is already a kind of {former[0]}"
                place.error_at_key("kind-clash", message, "Choose another name.")
                break


def _short_names(draft: Draft, top: Place) -> None:
    taken = set(draft.kubectl_names)
    for kind in draft.kinds:
        place = top.at(kind.section, kind.name)
        singular = kind.name.lower()
        _check_short_names(singular, kind.spec.short_names or (), taken, place.at("shortNames"))
        names = template_short_names(kind.spec)
        _check_short_names(f"{singular}template", names, taken, place.at("template", "shortNames"))


def _check_short_names(singular: str, names: Sequence[str], taken: set[str], place: Place) -> None:
    own = {singular, pluralise(singular)}
    for index, name in enumerate(names):
        here = place.at(index)
        # The API server accepts a short name that is the kind's own name as well.
        if name in taken and name not in own:
            message = f"{shown(name)} is the name of a kind, or of another short name"
            here.error("short-name-clash", message, "Choose another name.")
        elif name in _CORE_SHORT_NAMES.split():
            message = f"{shown(name)} is a short name of Kubernetes or Cluster API"
            hint = "Choose another name; otherwise, kubectl picks one of the two."
            here.warning("short-name-taken", message, hint)
        taken.add(name)
        own.discard(name)


def _scope(kind: DraftKind, place: Place) -> None:
    if kind.spec.implements == "Resource":
        return
    if kind.spec.scope is not None:
        message = f"the contract sets the scope of a kind that implements {kind.spec.implements}"
        place.error_at_key("kind-scope", message, "Remove it.", "scope")
    for key, value in (("group", kind.spec.group), ("plural", kind.spec.plural)):
        if value is not None:
            message = f"only a kind that implements Resource can have its own {key}"
            place.error_at_key(f"kind-{key}", message, "Remove it.", key)


def _features(kind: DraftKind, place: Place) -> None:
    known = kind.known_features
    for name in kind.spec.features or {}:
        if name == CREDENTIALS_FEATURE:
            hint = "Remove it here and use the key `credentials` at the top."
            message = f"{shown(name)} is derived from the kind that holds the credentials"
            place.error_at_key("feature-unknown", message, hint, "features", name)
        elif name not in known:
            message = f"{kind.spec.implements} has no feature {shown(name)}"
            hint = did_you_mean(name, known)
            place.error_at_key("feature-unknown", message, hint, "features", name)
