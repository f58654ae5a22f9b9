"""The command line and environment of an installed Deployment, for a process instead of a Pod."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capsmith.clusters.processes.errors import UnsupportedDeployment
from capsmith.clusters.processes.kube import JSON, KubeClient

_CONTAINER = "manager"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True)
class Launch:
    """A container's arguments and environment, as its kubelet would resolve them."""

    service_account: str
    args: tuple[str, ...]
    """Without the program: its command after the first word, then its arguments."""
    env: dict[str, str]
    port: int
    """The port of the probes; 0 without any."""
    readiness: str
    """The path of the probe; empty without it."""
    liveness: str
    """The path of the probe; empty without it."""


def installed(client: KubeClient, namespace: str, pod: str) -> Launch:
    """Return what the one Deployment of a namespace starts in a Pod of the given name.

    Its container is the only one, or that with the name `manager`. Raises UnsupportedDeployment if
    there are several Deployments or managers, or a variable has a source without a process.
    """
    deployments = client.list("apps/v1", "Deployment", namespace)
    if len(deployments) != 1:
        found = [each["metadata"]["name"] for each in deployments]
        raise UnsupportedDeployment(
            f"namespace {namespace} must have exactly one Deployment: {found}"
        )
    spec = deployments[0]["spec"]["template"]["spec"]
    container = _manager(spec["containers"], namespace)
    fields = {
        "metadata.namespace": namespace,
        "metadata.name": pod,
        "metadata.uid": str(uuid.uuid4()),
        "spec.serviceAccountName": _account(spec),
        "status.podIP": "127.0.0.1",
    }
    variables = container.get("env") or []
    env = {each["name"]: _value(client, each, fields, namespace) for each in variables}
    words = [*(container.get("command") or [])[1:], *(container.get("args") or [])]
    port, readiness, liveness = _probes(container)
    return Launch(
        service_account=_account(spec),
        args=tuple(_expand(word, env) for word in words),
        env=env,
        port=port,
        readiness=readiness,
        liveness=liveness,
    )


def _manager(containers: list[JSON], namespace: str) -> JSON:
    named = [each for each in containers if each["name"] == _CONTAINER] or containers
    if len(named) != 1:
        names = [each["name"] for each in containers]
        raise UnsupportedDeployment(f"no container of {namespace} is named manager: {names}")
    return named[0]


def _account(spec: JSON) -> str:
    return str(spec.get("serviceAccountName") or "default")


def _value(client: KubeClient, variable: JSON, fields: dict[str, str], namespace: str) -> str:
    source = variable.get("valueFrom")
    if not source:
        return str(variable.get("value", ""))
    if "fieldRef" in source and source["fieldRef"]["fieldPath"] in fields:
        return fields[source["fieldRef"]["fieldPath"]]
    for key, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if key in source:
            return _value_of(client, kind, source[key], namespace)
    raise UnsupportedDeployment(f"variable {variable['name']} comes from {source}")


def _value_of(client: KubeClient, kind: str, reference: JSON, namespace: str) -> str:
    found = client.find("v1", kind, reference["name"], namespace) or {}
    value = (found.get("data") or {}).get(reference["key"])
    if value is None:
        if reference.get("optional"):
            return ""
        raise UnsupportedDeployment(f"{kind} {reference['name']} has no {reference['key']}")
    return base64.b64decode(value).decode() if kind == "Secret" else str(value)


def _expand(word: str, env: dict[str, str]) -> str:
    """Replace `$(NAME)`; an unknown name stays, as in a Pod."""
    return _REFERENCE.sub(lambda match: env.get(match[1], match[0]), word)


def _probes(container: JSON) -> tuple[int, str, str]:
    probes = {name: _probe(container, name) for name in ("readiness", "liveness")}
    ports = {port for port, path in probes.values() if path}
    if len(ports) > 1:
        raise UnsupportedDeployment(f"the probes have several ports: {sorted(ports)}")
    return next(iter(ports), 0), probes["readiness"][1], probes["liveness"][1]


def _probe(container: JSON, name: str) -> tuple[int, str]:
    """Return port and path of a probe by HTTP; 0 and an empty path without one."""
    probe = (container.get(f"{name}Probe") or {}).get("httpGet")
    if not probe:
        return 0, ""
    return _port(container, probe["port"]), str(probe.get("path") or "/")


def _port(container: JSON, port: Any) -> int:
    if isinstance(port, int):
        return port
    for name, number in _named_ports(container):
        if name == port:
            return number
    raise UnsupportedDeployment(f"no port of the container is named {port}")


def _named_ports(container: JSON) -> Iterator[tuple[str, int]]:
    for each in container.get("ports") or []:
        yield each.get("name", ""), int(each["containerPort"])
