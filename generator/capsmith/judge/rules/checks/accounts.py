"""RBAC: what managers of other providers may do, whose ClusterRoles aggregate no other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd
from capsmith.manifests.permissions import Grant, ServiceAccount, bound_grants, is_subject, missing


@dataclass(frozen=True, slots=True)
class AccountAccess:
    """Verbs of another provider's manager on the kinds of the rule."""

    namespace: str
    """The namespace in which clusterctl installs that provider."""
    account: str
    """The ServiceAccount of its manager.

    Its user name and its groups are subjects too.  clusterctl replaces the namespace of a subject
    that is a ServiceAccount with that of the provider which it installs.
    """
    verbs: tuple[str, ...]
    """Verbs on each kind."""
    exempt: tuple[str, ...] = ()
    """CRDs of kinds that the provider's own roles name."""


@check("account-access", AccountAccess)
def account_access(context: Context, params: AccountAccess) -> Iterator[Problem]:
    """RB-11: a ClusterRoleBinding gives the manager of another provider access to the kinds."""
    bundle = context.bundle
    if not bundle.installs:
        return
    account = ServiceAccount(params.namespace, params.account)
    grants = _grants(bundle, account, _namespace(bundle))
    for crd in context.crds():
        if crd.manifest.name in params.exempt:
            continue
        lacking = missing(grants, crd.group, crd.plural, params.verbs)
        if lacking:
            yield _moved(bundle, account, crd, params.verbs) or Problem(
                crd.manifest,
                f"no ClusterRoleBinding lets {account.user} {_access(crd, lacking)}",
                path=("spec", "names", "plural"),
            )


def _moved(
    bundle: Bundle, account: ServiceAccount, crd: Crd, verbs: Iterable[str]
) -> Problem | None:
    """Return the problem of a subject that is right as it is written, but not when installed."""
    for binding in bundle.of("ClusterRoleBinding"):
        if missing(_of_all_objects(bound_grants(bundle, binding)), crd.group, crd.plural, verbs):
            continue
        for number, subject in enumerate(binding.listing("subjects")):
            if is_subject(account, subject, ""):
                message = (
                    f"clusterctl replaces the namespace of this ServiceAccount with "
                    f"{_namespace(bundle)}, so {account.user} cannot {_access(crd, verbs)}"
                )
                return Problem(binding, message, path=("subjects", number, "namespace"))
    return None


def _grants(bundle: Bundle, account: ServiceAccount, installed_in: str) -> list[Grant]:
    return [
        grant
        for binding in bundle.of("ClusterRoleBinding")
        if any(is_subject(account, each, installed_in) for each in binding.listing("subjects"))
        for grant in _of_all_objects(bound_grants(bundle, binding))
    ]


def _of_all_objects(grants: Iterable[Grant]) -> Iterator[Grant]:
    """Yield the grants that are not limited to objects of some names."""
    return (grant for grant in grants if not grant.names)


def _namespace(bundle: Bundle) -> str:
    """Return the namespace in which clusterctl installs the provider; empty: the user names it."""
    return next((manifest.name for manifest in bundle.of("Namespace")), "")


def _access(crd: Crd, verbs: Iterable[str]) -> str:
    return f"{', '.join(verbs)} {crd.plural}.{crd.group}"
