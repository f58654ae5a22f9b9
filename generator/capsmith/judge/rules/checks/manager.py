"""The Deployment of the manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of
from capsmith.manifests.permissions import CONTAINERS, arguments, containers, manager_deployments


@dataclass(frozen=True, slots=True)
class Arguments:
    """Command-line options."""

    arguments: tuple[str, ...]


@check("manager-arguments", Arguments)
def manager_arguments(context: Context, params: Arguments) -> Iterator[Problem]:
    """MG-02, MG-03: the Deployment sets an option."""
    for deployment in manager_deployments(context.bundle):
        given = arguments(deployment)
        for argument in params.arguments:
            if not any(one == argument or one.startswith(f"{argument}=") for one in given):
                yield Problem(deployment, f"{deployment}: no argument {argument}", path=CONTAINERS)


@dataclass(frozen=True, slots=True)
class Pod:
    """What the manager's container must have."""

    container: str
    """The name of the container."""
    probes: tuple[str, ...]
    """Keys of the container."""
    environment: tuple[str, ...]
    """Names of environment variables."""


@check("manager-pod", Pod)
def manager_pod(context: Context, params: Pod) -> Iterator[Problem]:
    """MG-08: probes, its own name, and the restricted Pod Security profile."""
    for deployment in manager_deployments(context.bundle, params.container):
        for complaint in (*_container(deployment, params), *_restricted(deployment)):
            yield Problem(deployment, f"{deployment}: {complaint}", path=CONTAINERS)


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
    """Yield what the ``restricted`` profile of Pod Security would reject."""
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
