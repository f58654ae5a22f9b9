"""Check RBAC: core's access to the provider's kinds, and the managers' permissions.

The ClusterRoles of other providers' managers do not aggregate other roles, so only bindings in this
provider can give those managers access.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import NONE, Bundle
from capsmith.manifests.crds import Crd, find_field
from capsmith.manifests.parse import Manifest
from capsmith.manifests.permissions import (
    ACCOUNT,
    Grant,
    ServiceAccount,
    find_aggregated,
    find_bound_grants,
    find_manager_grants,
    find_managers,
    find_missing,
    is_subject,
    list_arguments,
    list_grants,
)

_WITHOUT_ROLE = frozenset({"", NONE, "Resource"})
"""Roles of kinds that the contract does not describe."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A label that aggregates a ClusterRole into another manager's role."""

    label: str
    """Key of the label, whose value is ``true``."""
    exempt: tuple[str, ...]
    """API groups in which the other manager already has all permissions."""


@check("aggregate-role", Aggregation)
def check_aggregate_role(context: Context, params: Aggregation) -> Iterator[Violation]:
    """RB-01, RB-02, ER-04: An aggregated ClusterRole covers the API group of each CRD."""
    if not context.bundle.installs:
        return
    roles = find_aggregated(context.bundle, params.label)
    reported: set[str] = set()
    for crd in context.crds():
        # One role covers a whole group; without it, each kind would repeat the same finding.
        if crd.group in params.exempt or crd.group in reported:
            continue
        if not any(crd.group in grant.groups for role in roles for grant in list_grants(role)):
            reported.add(crd.group)
            yield Violation(
                crd.manifest,
                f"no ClusterRole with label {params.label}: 'true' covers group {crd.group}",
                path=("spec", "group"),
            )


@dataclass(frozen=True, slots=True)
class RoleVerbs:
    """Verbs that a ClusterRole must grant on the kinds with one contract role."""

    role: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AggregatedVerbs:
    """Verbs, by role, that ClusterRoles with a given label must grant."""

    label: str
    """Key of the label, whose value is ``true``."""
    exempt: tuple[str, ...]
    """API groups in which the other manager already has all permissions."""
    kinds: tuple[RoleVerbs, ...]
    """Verbs to grant on the kinds of each role."""


@check("aggregate-verbs", AggregatedVerbs)
def check_aggregate_verbs(context: Context, params: AggregatedVerbs) -> Iterator[Violation]:
    """RB-03, RB-05, ER-05: The aggregated ClusterRole grants the verbs that core uses."""
    roles = find_aggregated(context.bundle, params.label)
    grants = [grant for role in roles for grant in list_grants(role)]
    by_role = {kind.role: kind.verbs for kind in params.kinds}
    for crd in context.crds():
        if crd.group in params.exempt or not any(crd.group in grant.groups for grant in grants):
            continue
        lacking = find_missing(grants, crd.group, crd.plural, by_role.get(crd.role, ()))
        if lacking:
            yield Violation(
                roles[0], f"core cannot {', '.join(lacking)} {_full_name(crd)}", path=("rules",)
            )


@dataclass(frozen=True, slots=True)
class OwnVerbs:
    """Verbs that the provider's own manager needs on the provider's kinds."""

    verbs: tuple[str, ...]
    """Verbs on the kind. The manager needs every one."""
    one_of: tuple[str, ...]
    """Alternative verbs on the kind. The manager needs at least one."""
    status_one_of: tuple[str, ...]
    """Alternative verbs on the kind's status. The manager needs at least one."""
    only_read: tuple[str, ...] = ()
    """Roles of kinds that a manager without any right to write them may only read."""


@check("manager-own-kinds", OwnVerbs)
def check_manager_own_kinds(context: Context, params: OwnVerbs) -> Iterator[Violation]:
    """RB-06: The manager may read and write the provider's kinds."""
    managers = _find_own_managers(context)
    grants = [find_manager_grants(context.bundle, deployment) for deployment in managers]
    for crd in context.crds():
        complaints = [list(_complain_of_access(crd, each, params)) for each in grants]
        # Several managers may share the kinds: one of them has to reconcile each.
        if complaints and all(complaints):
            number = complaints.index(min(complaints, key=len))
            is_read = crd.role in params.only_read and not _may_write(crd, grants[number])
            for complaint, is_reading in complaints[number]:
                yield Violation(
                    managers[number],
                    f"the manager {complaint}",
                    path=ACCOUNT,
                    harmless=is_read and not is_reading,
                )


def _complain_of_access(
    crd: Crd, grants: Iterable[Grant], params: OwnVerbs
) -> Iterator[tuple[str, bool]]:
    """Yield what a manager with these grants cannot do with a kind, and whether that is reading."""
    known = list(grants)
    lacking = find_missing(known, crd.group, crd.plural, params.verbs)
    if lacking:
        yield f"cannot {', '.join(lacking)} {_full_name(crd)}", True
    for resource, verbs in (
        (crd.plural, params.one_of),
        (f"{crd.plural}/status", params.status_one_of),
    ):
        if find_missing(known, crd.group, resource, verbs) == list(verbs):
            yield f"can neither {' nor '.join(verbs)} {resource}.{crd.group}", False


def _find_own_managers(context: Context) -> tuple[Manifest, ...]:
    """Return the Deployments that reconcile the provider's kinds; all if none may write any.

    Other Deployments, such as cloud controller managers, may call their container ``manager``, too.
    """
    managers = find_managers(context.bundle)
    if len(managers) < 2:
        return managers
    crds = context.bundle.crds
    writing = tuple(
        each
        for each in managers
        if any(_may_write(crd, find_manager_grants(context.bundle, each)) for crd in crds)
    )
    return writing or managers


def _may_write(crd: Crd, grants: Iterable[Grant]) -> bool:
    known = list(grants)
    return any(
        not find_missing(known, crd.group, resource, (verb,))
        for resource in (crd.plural, f"{crd.plural}/status")
        for verb in ("patch", "update")
    )


@dataclass(frozen=True, slots=True)
class ResourceVerbs:
    """Verbs on one resource, as a parameter of the check ``manager-finalizers``."""

    group: str
    resource: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnerVerbs:
    """Verbs that the manager needs on the ``finalizers`` of kinds that own other objects."""

    verbs: tuple[str, ...]
    """Verbs on the ``finalizers`` subresource. The manager needs every one."""
    when_granted: tuple[ResourceVerbs, ...] = ()
    """Permissions to create owned objects. Only a manager that has all of them needs ``verbs``."""
    when_creating_helpers: bool = False
    """Whether ``verbs`` are required only of managers that may create a kind without a role.

    The provider itself must define that kind.
    """


@check("manager-finalizers", OwnerVerbs)
def check_manager_finalizers(context: Context, params: OwnerVerbs) -> Iterator[Violation]:
    """RB-04, RB-13, RB-14: The manager may set owner references that block the owner's deletion."""
    for deployment in _find_own_managers(context):
        grants = find_manager_grants(context.bundle, deployment)
        # A manager that cannot create the objects that its kinds would own need not block the
        # kinds' deletion.
        if any(find_missing(grants, a.group, a.resource, a.verbs) for a in params.when_granted):
            continue
        if params.when_creating_helpers and not list_created_helpers(context, grants):
            continue
        for crd in context.crds():
            lacking = find_missing(grants, crd.group, f"{crd.plural}/finalizers", params.verbs)
            if lacking:
                name = f"{crd.plural}/finalizers.{crd.group}"
                yield Violation(
                    deployment, f"the manager cannot {', '.join(lacking)} {name}", path=ACCOUNT
                )


def list_created_helpers(context: Context, grants: Iterable[Grant]) -> list[Crd]:
    """Return the provider's kinds without a role that a manager may create for machines.

    Only namespaced kinds are returned, because a machine can own only objects in its own namespace.
    """
    known = list(grants)
    return [
        each
        for each in context.bundle.crds
        if each.role in _WITHOUT_ROLE
        and each.scope == "Namespaced"
        and not each.kind.endswith("Template")
        and not find_missing(known, each.group, each.plural, ("create",))
    ]


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs that a manager needs on one resource, for the check ``manager-access``."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    roles: tuple[str, ...] = ()
    """Roles. The verbs are needed only if the provider has a kind with one of these roles; empty if
    they are always needed."""
    or_declared: str = ""
    """Field path. The verbs are also needed if a kind that the rule applies to has this field."""
    when: str = ""
    """Condition under which a manager without the verbs fails, as not all managers need them."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Permissions that the manager needs, either always or only under a condition."""

    needs: tuple[Need, ...]
    """Permissions on resources that do not belong to the provider."""
    when_argument: str = ""
    """Prefix of a manager argument. If set, the permissions are needed only if an argument starts
    with it."""
    when_declared: str = ""
    """Field path. If set, they are needed only if a kind that the rule applies to declares it."""


@check("manager-access", Needs)
def check_manager_access(context: Context, params: Needs) -> Iterator[Violation]:
    """RB-07, RB-10, RB-12, MP-12, IP-14: The manager has access to all other resources it needs."""
    if not context.concerned() or not _declared(context, params.when_declared):
        return
    needs = [need for need in params.needs if _is_due(context, need)]
    for deployment in _find_own_managers(context):
        arguments = list_arguments(deployment)
        if params.when_argument and not any(a.startswith(params.when_argument) for a in arguments):
            continue
        grants = find_manager_grants(context.bundle, deployment)
        for need in needs:
            name = f"{need.resource}.{need.group}" if need.group else need.resource
            lacking = find_missing(grants, need.group, need.resource, need.verbs)
            if lacking:
                message = f"the manager cannot {', '.join(lacking)} {name}"
                yield Violation(deployment, message, path=ACCOUNT, when=need.when)


def _is_due(context: Context, need: Need) -> bool:
    if not need.roles or {crd.role for crd in context.bundle.crds} & set(need.roles):
        return True
    return bool(need.or_declared) and _declared(context, need.or_declared)


def _declared(context: Context, path: str) -> bool:
    return not path or any(find_field(version.schema, path) for _, version in context.versions())


def _full_name(crd: Crd) -> str:
    return f"{crd.plural}.{crd.group}"


@dataclass(frozen=True, slots=True)
class AccountAccess:
    """Verbs that another provider's manager needs on the kinds that the rule applies to."""

    namespace: str
    """Namespace into which clusterctl installs the other provider."""
    account: str
    """Name of the ServiceAccount that the other manager runs as.

    The account's user name and groups are valid subjects, too.  clusterctl replaces the namespace
    of a subject that is a ServiceAccount with the namespace of the provider that it installs.
    """
    verbs: tuple[str, ...]
    """Verbs that the other manager needs on each kind."""
    exempt: tuple[str, ...] = ()
    """Names of CRDs that the other provider's own roles already let its manager access."""


@check("account-access", AccountAccess)
def check_account_access(context: Context, params: AccountAccess) -> Iterator[Violation]:
    """RB-11: A ClusterRoleBinding gives another provider's manager access to the kinds."""
    bundle = context.bundle
    if not bundle.installs:
        return
    account = ServiceAccount(params.namespace, params.account)
    grants = _grants(bundle, account, _namespace(bundle))
    for crd in context.crds():
        if crd.manifest.name in params.exempt:
            continue
        lacking = find_missing(grants, crd.group, crd.plural, params.verbs)
        if lacking:
            yield _moved(bundle, account, crd, params.verbs) or Violation(
                crd.manifest,
                f"no ClusterRoleBinding lets {account.user} {_access(crd, lacking)}",
                path=("spec", "names", "plural"),
            )


def _moved(
    bundle: Bundle, account: ServiceAccount, crd: Crd, verbs: Iterable[str]
) -> Violation | None:
    """Return the violation of a subject that is correct as written, but not after installation."""
    for binding in bundle.of("ClusterRoleBinding"):
        if find_missing(
            _of_all_objects(find_bound_grants(bundle, binding)), crd.group, crd.plural, verbs
        ):
            continue
        for number, subject in enumerate(binding.listing("subjects")):
            if is_subject(account, subject, ""):
                message = (
                    f"clusterctl replaces the namespace of this ServiceAccount with "
                    f"{_namespace(bundle)}, so {account.user} cannot {_access(crd, verbs)}"
                )
                return Violation(binding, message, path=("subjects", number, "namespace"))
    return None


def _grants(bundle: Bundle, account: ServiceAccount, installed_in: str) -> list[Grant]:
    return [
        grant
        for binding in bundle.of("ClusterRoleBinding")
        if any(is_subject(account, each, installed_in) for each in binding.listing("subjects"))
        for grant in _of_all_objects(find_bound_grants(bundle, binding))
    ]


def _of_all_objects(grants: Iterable[Grant]) -> Iterator[Grant]:
    """Yield the grants that are not limited to objects with certain names."""
    return (grant for grant in grants if not grant.names)


def _namespace(bundle: Bundle) -> str:
    """Return the namespace in which clusterctl installs the provider; empty if users choose it."""
    return next((manifest.name for manifest in bundle.of("Namespace")), "")


def _access(crd: Crd, verbs: Iterable[str]) -> str:
    return f"{', '.join(verbs)} {crd.plural}.{crd.group}"
