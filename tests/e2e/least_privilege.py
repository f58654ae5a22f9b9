"""Compare the permissions of managers with the requests in the API server's audit log.

`tests/runtime/test_permissions.py` shows that the code uses each permission in some situation.
What the life cycles of a test do not need is explained here, and nothing else may be left over.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from capsmith.clusters.processes.audit import (
    ResourceAttributes,
    collect_granted,
    collect_used,
    find_unused,
)
from tests.e2e.stack import Site

_ADMISSION = "required by OwnerReferencesPermissionEnforcement, never requested"
_FAILURES = "sent only if something fails"
_METRICS = "sent only if metrics are served by HTTPS"
_INTERRUPTED = "sent only if the creation of a Machine was interrupted"
_UNCACHED = "sent only if a cache lacks the object"

_EXPLAINED = {
    "*": {
        "update */finalizers.*": _ADMISSION,
        "delete secrets": _ADMISSION,
        "create events.events.k8s.io": _FAILURES,
        "patch leases.coordination.k8s.io": "sent by managers of former releases of the runtime",
        "create tokenreviews.*": _METRICS,
        "create subjectaccessreviews.*": _METRICS,
    },
    "infrastructure": {
        "patch ipaddressclaims.*": "sent only after a move, to change owners",
    },
    "bootstrap": {
        "patch configmaps": "sent only if the holder of the lock is gone",
        "get machines.*": "sent only if another machine holds the lock",
        "patch secrets": "sent only for pools, and after a move",
        "patch skiffconfigs.*": "sent only if the author returns the certificates' expiry",
    },
    "control-plane": {
        "patch secrets": "sent only to renew kubeconfigs, and after a move",
        "get *.bootstrap.*": _INTERRUPTED,
        "get *.infrastructure.*": _INTERRUPTED,
        "get machines.*": _INTERRUPTED,
        "patch *.bootstrap.*": "sent only if labels of the control plane change",
        "delete *.bootstrap.*": "sent only if no Machine could be created",
        "delete *.infrastructure.*": "sent only if no Machine could be created",
    },
    "ipam": {
        "get clusters.*": _UNCACHED,
        "get ipaddressclaims.*": _UNCACHED,
        "get *pools.*": _UNCACHED,
    },
}


_MIGRATION = "sent only if objects are stored in a former version"
_AUTHOR = "declared in provider.yaml for the author's code, which does not use it here"
_AUTOSCALED = "sent only if another autoscaler sets the replicas"
_OTHERS = "used by the same code for objects of the other kinds"
EVERYTHING = MappingProxyType(
    {
        "patch *metalclusters*": _OTHERS,
        "patch *servers*": _OTHERS,
        "patch *tenantidentities*": _OTHERS,
        "patch *templates.*": _MIGRATION,
        "patch nimbusservertemplates/status.*": _MIGRATION,
        "list *templates.*": _MIGRATION,
        "get customresourcedefinitions.*": _MIGRATION,
        "patch customresourcedefinitions/status.*": _MIGRATION,
        **{
            f"{verb} {plural}.*": _AUTHOR
            for verb in ("create", "delete", "get")
            for plural in ("nimbusimages", "nimbussecuritygroups")
        },
        "* networks*.networking.*": _AUTHOR,
        "* network-attachment-definitions.*": _AUTHOR,
        "* configmaps": _AUTHOR,
        "patch machinepools.*": _AUTOSCALED,
        "patch nimbusmachinepools*": "sent only for pools, of which a class creates one",
    }
)
"""Permissions of the example `everything` that a cluster with a remediation does not need."""
POOLS = MappingProxyType(
    {
        "delete tidalmachines.*": "sent only if a pool has fewer replicas than machines",
        "patch machinepools.*": _AUTOSCALED,
        "get machines.*": _UNCACHED,
    }
)
"""Permissions of the example `pools` that a cluster of a class does not need."""


def check_least_privilege(
    site: Site, *types: str, explained: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print the unused permissions of managers; fail for those without an explanation.

    ``explained`` are further explanations, by the pattern of the permissions.
    """
    management = site.management
    unexplained = {}
    for type in types:
        user = site.managers[type].user
        reasons = {**_EXPLAINED["*"], **_EXPLAINED[type], **explained}
        allowed = collect_granted(management.client, user)
        left = find_unused(allowed, collect_used(management.apiserver.audit_log, user))
        print(f"{type}: {len(allowed)} granted, {len(left)} unused")
        for each in sorted(left):
            print(f"  {each}: {_find_reason(each, reasons) or 'NOT EXPLAINED'}")
        unexplained[type] = [str(each) for each in sorted(left) if not _find_reason(each, reasons)]
    assert not any(unexplained.values()), unexplained


def _find_reason(access: ResourceAttributes, reasons: Mapping[str, str]) -> str:
    return next((why for key, why in reasons.items() if fnmatchcase(str(access), key)), "")
