"""Simulate Pods in a workload cluster: real controllers create them, simulated Nodes "run" them.

No container runs. A Pod is placed on a Node that its node selector, its tolerations and its
required host anti-affinity allow. It is ready immediately, and is gone as soon as it is deleted or
evicted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from capsmith.clusters.lab.simulated.loop import reconcile_each
from capsmith.clusters.processes.kube import JSON, KubeClient

CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "serviceaccount-controller",
)
"""Controllers in kube-controller-manager that clusters with Deployments need."""
READY = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
"""Conditions of a Pod whose containers are running."""
_MIRROR = "kubernetes.io/config.mirror"
_HOST = "kubernetes.io/hostname"
_BLOCKING = ("NoSchedule", "NoExecute")
_LOOK_SECONDS = 1.0
_APPS = "apps/v1"


class Controllers(Protocol):
    """Protocol for a workload cluster's kube-controller-manager, which runs as a process."""

    @property
    def running(self) -> bool:
        """Return whether the process is running."""

    def start(self) -> None:
        """Start the process, without waiting for it to become ready."""

    def stop(self) -> None:
        """Stop the process if it is running."""


class SimulatedPods:
    """Controllers, scheduler and kubelets for a cluster's Pods, from its first Deployment on."""

    def __init__(
        self, client: KubeClient, controllers: Callable[[], Controllers], log: Path
    ) -> None:
        """Define the simulation, without starting a process.

        ``controllers`` returns the cluster's kube-controller-manager, not yet started.
        """
        self._client = client
        self._define = controllers
        self._log = log
        self._controllers: Controllers | None = None
        self._due = 0.0

    def tick(self) -> None:
        """Advance each Pod by one step, if the cluster has had a Deployment."""
        if self._controllers is None:
            now = time.monotonic()
            if now < self._due:
                return
            self._due = now + _LOOK_SECONDS
            if not self._client.list(_APPS, "Deployment"):
                return
            self._controllers = self._define()
        if not self._controllers.running:
            self._controllers.start()
        self._reconcile()

    def stop(self) -> None:
        """Stop the workload cluster's kube-controller-manager, if it was started."""
        if self._controllers is not None:
            self._controllers.stop()

    def _reconcile(self) -> None:
        pods = [each for each in self._client.list("v1", "Pod") if not _is_mirror(each)]
        nodes = self._client.list("v1", "Node")
        reconcile_each(self._log, pods, lambda pod: self._take_step(pod, pods, nodes))

    def _take_step(self, pod: JSON, pods: list[JSON], nodes: list[JSON]) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            self._finish(pod)
        elif not pod["spec"].get("nodeName"):
            self._schedule(pod, pods, nodes)
        elif pod.get("status", {}).get("phase", "Pending") == "Pending":
            self._client.patch(pod, {"status": build_running_status()}, "status")

    def _schedule(self, pod: JSON, pods: list[JSON], nodes: list[JSON]) -> None:
        node = find_node(pod, pods, nodes)
        if node is None:
            return
        metadata = pod["metadata"]
        path = self._client.path("v1", "Pod", metadata["name"], metadata["namespace"], "binding")
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}}
        self._client.request("POST", path, body={**body, "target": target})
        # The Pods that are placed next must see it there.
        pod["spec"]["nodeName"] = node

    def _finish(self, pod: JSON) -> None:
        """End a Pod that is being deleted, unless only a finalizer keeps it."""
        if not pod["metadata"].get("deletionGracePeriodSeconds"):
            return
        # Only the phase: eviction has added a condition, which must stay.
        self._client.patch(pod, {"status": {"phase": "Succeeded"}}, "status")
        metadata = pod["metadata"]
        path = self._client.path("v1", "Pod", metadata["name"], metadata["namespace"])
        self._client.request("DELETE", path, query={"gracePeriodSeconds": "0"})


def build_running_status() -> JSON:
    """Return the status of a Pod whose containers are running."""
    conditions = [{"type": name, "status": "True"} for name in READY]
    return {"phase": "Running", "conditions": conditions}


def find_node(pod: JSON, pods: Iterable[JSON], nodes: Iterable[JSON]) -> str | None:
    """Return the name of the first Node on which the Pod may run, or None if there is none.

    Only host anti-affinity is considered, not preferences, resources or other topologies.
    """
    refused = _find_refused_nodes(pod, pods)
    for node in nodes:
        name = str(node["metadata"]["name"])
        if name not in refused and _accepts(node, pod["spec"]):
            return name
    return None


def _find_refused_nodes(pod: JSON, pods: Iterable[JSON]) -> set[str]:
    """Return the Nodes of Pods beside which the Pod must not run."""
    affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    selectors = [each.get("labelSelector") for each in terms if each["topologyKey"] == _HOST]
    namespace = pod["metadata"]["namespace"]
    return {
        other["spec"]["nodeName"]
        for other in pods
        if other["spec"].get("nodeName")
        and other["metadata"]["namespace"] == namespace
        and any(is_selected(selector, other["metadata"].get("labels")) for selector in selectors)
    }


def _accepts(node: JSON, spec: JSON) -> bool:
    labels = node["metadata"].get("labels") or {}
    node_selector = spec.get("nodeSelector") or {}
    if node["spec"].get("unschedulable") or not node_selector.items() <= labels.items():
        return False
    tolerations = spec.get("tolerations") or []
    taints = [each for each in node["spec"].get("taints") or [] if each["effect"] in _BLOCKING]
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in taints)


def _tolerates(toleration: JSON, taint: JSON) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    value = taint.get("value") or ""
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == value


def is_selected(selector: JSON | None, labels: JSON | None) -> bool:
    """Return whether a label selector matches labels.  None matches nothing, {} everything."""
    if selector is None:
        return False
    found = labels or {}
    exact = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    return exact.items() <= found.items() and all(_matches(each, found) for each in expressions)


def _matches(expression: JSON, labels: JSON) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def _is_mirror(pod: JSON) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})
