"""The parts of a conformance run: sessions with the checks of the roles that a release has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.tools import kubernetes_version
from capsmith.commands.conformance_input import Request, read_objects
from capsmith.commands.conformance_release import Provider
from capsmith.errors import UnreadableInput
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.checks import ADDRESSES, INFRASTRUCTURE, WHOLE_CLUSTER
from capsmith.judge.running.cluster_session import ClusterSession, provided_kind, referenced_roles
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.ipam_objects import IPAM_GROUP, POOL_ROLES, ipam_objects
from capsmith.judge.running.ipam_session import IpamSession
from capsmith.judge.running.model import Check, Timing
from capsmith.judge.running.objects import (
    CORE_GROUP,
    MACHINE_POOL,
    TEMPLATE_NAME,
    provider_objects,
)
from capsmith.judge.running.session import Session
from capsmith.judge.running.settings import parse_pairs

_INFRASTRUCTURE = ("InfraCluster", "InfraMachine")
_WHOLE = ("BootstrapConfig", "BootstrapConfigTemplate", "ControlPlane", "ControlPlaneTemplate")


class Access(NamedTuple):
    """The management cluster of a run."""

    client: KubeClient
    kubeconfig: Path
    clusterctl: Callable[[], Clusterctl]


class Part(NamedTuple):
    """The checks of some roles, and what opens their session in a namespace."""

    checks: tuple[Check[Any], ...]
    open: Callable[[Provider, Request, Access, str], BaseSession]


def parts_of(roles: Mapping[str, str]) -> Iterator[Part]:
    """Yield the parts for the roles of a release, which are given by kind."""
    found = set(roles.values())
    if found.intersection(_INFRASTRUCTURE) or not found.intersection((*_WHOLE, *POOL_ROLES)):
        yield Part(INFRASTRUCTURE, _infrastructure)
    if found.intersection(_WHOLE):
        yield Part(WHOLE_CLUSTER, _whole_cluster)
    if found.intersection(POOL_ROLES):
        yield Part(ADDRESSES, _addresses)


def _infrastructure(
    provider: Provider, request: Request, access: Access, namespace: str
) -> BaseSession:
    documents = _documents(provider, request, access, namespace)
    documents += _pools(provider, request, access, namespace, documents)
    objects = provider_objects(documents, provider.roles)
    machine = (objects.machine_kind, objects.machine_version)
    cluster = (objects.cluster_kind, objects.cluster_version)
    version = _require_installed(access.client, cluster, machine)
    core = CoreObjects(version, namespace, kubernetes_version())
    contract = provider.contract(*machine)
    return Session(access.client, core, contract, _timing(request), objects)


def _whole_cluster(
    provider: Provider, request: Request, access: Access, namespace: str
) -> BaseSession:
    documents = _documents(provider, request, access, namespace)
    own = {kind: role for kind, role in provider.roles.items() if role in _WHOLE}
    roles = provider.roles | referenced_roles(documents)
    provided = provided_kind(documents, own)
    return ClusterSession(
        access.client,
        CoreObjects(_require_installed(access.client, provided), namespace, kubernetes_version()),
        provider.contract(*provided),
        _timing(request),
        provider_objects(documents, roles),
        documents=tuple(documents),
        roles=roles,
    )


def _addresses(provider: Provider, request: Request, access: Access, namespace: str) -> BaseSession:
    documents = [] if request.objects is None else read_objects(request.objects)
    crds = [crd for component in provider.components for crd in component.crds]
    pools = ipam_objects(documents, crds, provider.roles)
    installed = [(kind, version) for version, kind in pools.kinds]
    core = CoreObjects(
        _require_installed(access.client, *installed), namespace, kubernetes_version()
    )
    contract = access.client.preferred_version(IPAM_GROUP).rpartition("/")[2]
    return IpamSession(access.client, core, contract, _timing(request), pools)


def _timing(request: Request) -> Timing:
    return Timing(request.timeout, request.quiet, request.timeout)


def _require_installed(client: KubeClient, *kinds: tuple[str, str]) -> str:
    """Return the version of core's API; raises UnreadableInput without core or one of the kinds.

    Kinds are given with their API versions.
    """
    try:
        for kind, api_version in kinds:
            client.resolve(api_version, kind)
        return client.preferred_version(CORE_GROUP).rpartition("/")[2]
    except (ApiError, LookupError, OSError, HTTPException) as error:
        raise UnreadableInput(
            "conformance-not-installed",
            f"core or the provider is not running in the management cluster: {error}",
            hint="Install both with clusterctl init, or start them with --manager.",
        ) from error


def _documents(provider: Provider, request: Request, access: Access, namespace: str) -> list[JSON]:
    """Return the objects of a cluster: those of a file, or of the generated template."""
    if request.objects is not None:
        return read_objects(request.objects)
    options = {
        "from": _template(provider, request.flavor).resolve(),
        "kubernetes-version": kubernetes_version(),
        "control-plane-machine-count": 1,
        "worker-machine-count": 1,
        "target-namespace": namespace,
    }
    variables = parse_pairs("--variable", request.variables)
    return access.clusterctl().generate(access.kubeconfig, TEMPLATE_NAME, options, variables)


def _pools(
    provider: Provider, request: Request, access: Access, namespace: str, known: list[JSON]
) -> list[JSON]:
    """Return the machine pools of the other templates, one of each kind that is not known."""
    missing = {kind for kind, role in provider.roles.items() if role == MACHINE_POOL}
    missing -= {str(each["kind"]) for each in known}
    found: dict[str, JSON] = {}
    if request.objects is not None:
        return []
    for path in sorted(provider.release.folder.glob("cluster-template-*.yaml")):
        text = path.read_text(encoding="utf-8")
        if not any(f"kind: {kind}\n" in text for kind in missing - found.keys()):
            continue
        flavored = request._replace(flavor=path.stem.removeprefix("cluster-template-"))
        for each in _documents(provider, flavored, access, namespace):
            if each["kind"] in missing:
                found.setdefault(str(each["kind"]), each)
    return list(found.values())


def _template(provider: Provider, flavor: str) -> Path:
    """Return the cluster template of the first release that has one of the flavor."""
    suffix = f"-{flavor}" if flavor else ""
    paths = [each.folder / f"cluster-template{suffix}.yaml" for each in provider.releases]
    for path in paths:
        if path.is_file():
            return path
    raise UnreadableInput(
        "conformance-template",
        "no such cluster template",
        file=str(paths[0]),
        hint="Specify objects with --objects, or another --flavor.",
    )
