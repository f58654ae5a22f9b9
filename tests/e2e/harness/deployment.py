"""What an installed Deployment starts, for a process in the place of its Pod."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from .kube import JSON, KubeClient

_CONTAINER = "manager"


@dataclass(frozen=True)
class Launch:
    """A container's command line and environment, as its kubelet would resolve them."""

    service_account: str
    args: tuple[str, ...]
    env: dict[str, str]
    port: int
    """Where the probes look."""
    readiness: str
    liveness: str


def installed(client: KubeClient, namespace: str, pod: str) -> Launch:
    """Read the one Deployment of a namespace; anything that is not understood is an error."""
    (deployment,) = client.list("apps/v1", "Deployment", namespace)
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["name"] == _CONTAINER
    assert "command" not in container, "the image's entry point is what is started here"
    fields = {
        "metadata.namespace": namespace,
        "metadata.name": pod,
        "metadata.uid": str(uuid.uuid4()),
    }
    readiness, liveness = (
        container[f"{name}Probe"]["httpGet"] for name in ("readiness", "liveness")
    )
    assert readiness["port"] == liveness["port"]
    return Launch(
        service_account=spec["serviceAccountName"],
        args=tuple(container["args"]),
        env={each["name"]: _value(each, fields) for each in container.get("env", [])},
        port=_port(container, readiness["port"]),
        readiness=readiness["path"],
        liveness=liveness["path"],
    )


def _value(variable: JSON, fields: dict[str, str]) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    return fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]


def _port(container: JSON, port: Any) -> int:
    ports = {each.get("name"): each["containerPort"] for each in container.get("ports", [])}
    return port if isinstance(port, int) else int(ports[port])
