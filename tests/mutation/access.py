"""Break RBAC, and what guards templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from capsmith.judge.checks.access import list_created_helpers
from capsmith.manifests.crds import Crd, find_field
from capsmith.manifests.parse import Manifest
from capsmith.manifests.permissions import (
    Grant,
    ServiceAccount,
    find_aggregated,
    find_manager_grants,
    find_managers,
    find_missing,
    is_subject,
    list_grants,
)
from tests.mutation.mutants import (
    Document,
    Mutant,
    Site,
    at,
    edited,
    operator,
    put,
    removed,
    together,
    undeclare,
    version_path,
)

_SPEC = "spec.template.spec"


@operator("aggregate-role")
def aggregate_role(site: Site) -> Iterator[Mutant]:
    label = site.params.label
    roles = find_aggregated(site.bundle, label)
    if not roles or all(crd.group in site.params.exempt for crd in site.context.crds()):
        return
    for value in ("false", True):
        yield together(
            f"{label}: {value!r}",
            *(edited(role, "", put(("metadata", "labels", label), value)) for role in roles),
        )


@operator("aggregate-verbs")
def aggregate_verbs(site: Site) -> Iterator[Mutant]:
    verbs_of = {entry.role: entry.verbs for entry in site.params.kinds}
    roles = find_aggregated(site.bundle, site.params.label)
    for crd in site.context.crds():
        for verb in verbs_of.get(crd.role, ()) if crd.group not in site.params.exempt else ():
            yield from _without(roles, crd.group, crd.plural, (verb,))


@operator("account-access")
def account_access(site: Site) -> Iterator[Mutant]:
    """Bind no account, the same account of another namespace, or a role with other verbs."""
    account = ServiceAccount(site.params.namespace, site.params.account)
    bindings = [
        (binding, subjects)
        for binding in site.bundle.of("ClusterRoleBinding")
        if (subjects := _others(binding, account)) is not None
    ]
    moved = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    foreign = {"kind": "User", "name": f"system:serviceaccount:other:{account.name}"}
    for crd in site.context.crds():
        if crd.manifest.name in site.params.exempt:
            continue
        for text, more in (("no subject", []), ("moved", [moved]), ("foreign", [foreign])):
            yield together(
                f"{text} of {crd.kind}",
                *(edited(each, "", put(("subjects",), rest + more)) for each, rest in bindings),
            )
        yield from _without(_bound_roles(site, bindings), crd.group, crd.plural, site.params.verbs)


def _others(binding: Manifest, account: ServiceAccount) -> list[Any] | None:
    """Return the subjects of a binding without an account; None if it is no subject."""
    subjects = binding.listing("subjects")
    others = [each for each in subjects if not is_subject(account, each, "")]
    return others if others != subjects else None


def _bound_roles(site: Site, bindings: Iterable[tuple[Manifest, list[Any]]]) -> list[Manifest]:
    names = {binding.mapping("roleRef")["name"] for binding, _ in bindings}
    return [role for role in site.bundle.of("ClusterRole") if role.name in names]


@operator("manager-own-kinds")
def manager_own_kinds(site: Site) -> Iterator[Mutant]:
    params = site.params
    for crd in site.context.crds():
        for verb in params.verbs:
            yield from _denied(site, crd.group, crd.plural, (verb,))
        yield from _denied(site, crd.group, crd.plural, params.one_of)
        yield from _denied(site, crd.group, f"{crd.plural}/status", params.status_one_of)


@operator("manager-finalizers")
def manager_finalizers(site: Site) -> Iterator[Mutant]:
    if not any(_may_all(site, deployment) for deployment in find_managers(site.bundle)):
        return
    for crd in site.context.crds():
        for verb in site.params.verbs:
            yield from _denied(site, crd.group, f"{crd.plural}/finalizers", (verb,))


def _may_all(site: Site, deployment: Manifest) -> bool:
    """Whether a manager may do what makes it need the finalizers."""
    grants = find_manager_grants(site.bundle, deployment)
    if site.params.when_creating_helpers and not list_created_helpers(site.context, grants):
        return False
    return not any(
        find_missing(grants, each.group, each.resource, each.verbs)
        for each in site.params.when_granted
    )


@operator("manager-access")
def manager_access(site: Site) -> Iterator[Mutant]:
    roles = {crd.role for crd in site.bundle.crds}
    if not site.context.concerned() or not _declares(site, site.params.when_declared):
        return
    for need in site.params.needs:
        if need.roles and not roles & set(need.roles):
            continue
        for verb in need.verbs:
            yield from _denied(site, need.group, need.resource, (verb,))


def _declares(site: Site, path: str) -> bool:
    return not path or any(
        find_field(version.schema, path) for _, version in site.context.versions()
    )


def _denied(site: Site, group: str, resource: str, verbs: Iterable[str]) -> Iterator[Mutant]:
    yield from _without(site.bundle.of("ClusterRole", "Role"), group, resource, tuple(verbs))


def _without(
    roles: Iterable[Manifest], group: str, resource: str, verbs: tuple[str, ...]
) -> Iterator[Mutant]:
    """Yield the mutant in which no role allows the verbs; none where none did."""
    mutants = [
        _narrowed(role, group, resource, verbs)
        for role in roles
        if any(grant.covers(group, resource, verb) for grant in list_grants(role) for verb in verbs)
    ]
    if mutants:
        yield together(f"no {', '.join(verbs)} on {resource}.{group}", *mutants)


def _narrowed(role: Manifest, group: str, resource: str, verbs: tuple[str, ...]) -> Mutant:
    def edit(document: Document) -> None:
        for rule in document["rules"]:
            grant = Grant(*(tuple(rule.get(k, ())) for k in ("apiGroups", "resources", "verbs")))
            if any(grant.covers(group, resource, verb) for verb in verbs):
                rule["verbs"] = [v for v in rule["verbs"] if v not in (*verbs, "*")]

    return edited(role, "", edit)


@operator("template-guard")
def template_guard(site: Site) -> Iterator[Mutant]:
    guards = site.bundle.of("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy")
    if guards and site.context.crds():
        yield removed(*guards)


@operator("template-dry-run")
def template_dry_run(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        for rule in ("self == oldSelf", "self.size == oldSelf.size"):
            place = (*crd.schema_path(version.name, _SPEC), "x-kubernetes-validations")
            yield edited(crd.manifest, rule, put(place, [{"rule": rule, "message": "fixed"}]))
        for policy in site.bundle.of("ValidatingAdmissionPolicy"):
            if f"'{crd.plural}'" in str(policy.document):
                yield edited(policy, "no dry-run", lambda document: _forget(document, "dryRun"))


def _forget(data: Any, word: str) -> None:
    """Replace a word in all texts."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, str):
            data[key] = value.replace(word, "other")
        elif isinstance(value, dict | list):
            _forget(value, word)


@operator("template-of-object")
def template_of_object(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        template = _other(site, crd, f"{crd.kind}Template")
        if template is not None:
            yield removed(template.manifest)


@operator("object-of-template")
def object_of_template(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        made = _other(site, crd, crd.kind.removesuffix("Template"))
        if made is not None:
            yield removed(made.manifest)
            for version in (version for version in crd.versions if version.served):
                place = (*version_path(made, version.name), "served")
                yield edited(made.manifest, f"{version.name} not served", put(place, False))


def _other(site: Site, crd: Crd, kind: str) -> Crd | None:
    return next((o for o in site.bundle.crds if (o.group, o.kind) == (crd.group, kind)), None)


@operator("template-shape")
def template_shape(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        yield undeclare(crd, version.name, _SPEC)
        for field in (_SPEC, "spec.template.metadata"):
            place = crd.schema_path(version.name, field)
            yield edited(crd.manifest, f"{field} is a text", put(place, {"type": "string"}))


@operator("template-not-required")
def template_not_required(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        for field in site.params.fields:
            path = crd.schema_path(version.name, _SPEC)

            def edit(
                document: Document, path: tuple[str | int, ...] = path, field: str = field
            ) -> None:
                holder = at(document, path)
                holder["required"] = [*holder.get("required", []), field]

            yield edited(crd.manifest, f"{field} required", edit)


@operator("pool-machine-kind")
def pool_machine_kind(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        if find_field(version.schema, site.params.path) is not None:
            machines = [
                other.manifest
                for other in site.bundle.crds
                if (other.role, other.group) == (site.params.role, crd.group)
            ]
            yield removed(*machines)


@operator("topology-infrastructure-ref")
def infrastructure_ref(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        for path in (site.params.path, f"{site.params.path}.{site.params.keys[0]}"):
            if find_field(version.schema, path) is not None:
                yield undeclare(crd, version.name, path)
