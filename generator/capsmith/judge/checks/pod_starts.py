"""Check whether anything in a release itself keeps the Pods of its workloads from starting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capsmith.judge.checks.built_in_pods import read_amount
from capsmith.judge.checks.registry import Violation
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of, texts_of
from capsmith.manifests.workloads import is_selected, list_workloads

_POD = ("spec", "template", "spec")
_SYSTEMS = frozenset({"linux", "windows"})
_ARCHITECTURES = frozenset(
    {"386", "amd64", "arm", "arm64", "loong64", "ppc64le", "riscv64", "s390x"}
)
_OF_KUBELET = {"kubernetes.io/os": _SYSTEMS, "kubernetes.io/arch": _ARCHITECTURES}
"""Labels that each kubelet sets on its node, with Go's names for all values."""
_FORMER_ROLE = "node-role.kubernetes.io/master"
_LEAST_MEMORY = 1024**2
_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_FILTERS = ("namespaceSelector", "objectSelector", "matchConditions")


def find_start_faults(workload: Manifest) -> Iterator[Violation]:
    """Yield why no Pod of a workload runs: its number, its nodes, or its memory (CC-39)."""
    path = ("spec", "replicas")
    if workload.mapping("spec").get("replicas") == 0:
        message = f"{workload}: replicas is 0, so no Pod runs"
        yield Violation(workload, message, path=path, when="nothing scales it up")
    yield from _find_absent_nodes(workload)
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(workload.listing(*_POD, kind)):
            memory = mapping_of(container, "resources", "limits").get("memory")
            amount = read_amount(memory)
            if amount is not None and 0 < amount < _LEAST_MEMORY:
                name = text_of(container, "name")
                message = f"{workload}: container {name} may use {memory} of memory, less than 1Mi"
                place = (*_POD, kind, number, "resources", "limits", "memory")
                yield Violation(workload, message, path=place)


def _find_absent_nodes(workload: Manifest) -> Iterator[Violation]:
    path = (*_POD, "nodeSelector")
    selector = workload.mapping(*path)
    for label, values in _OF_KUBELET.items():
        value = text_of(selector, label)
        if value and value not in values and not has_variable(value):
            message = f"{workload}: no node has the label {label}: {value}"
            yield Violation(workload, message, path=(*path, label))
    if _FORMER_ROLE in selector:
        message = f"{workload}: nodeSelector has the label {_FORMER_ROLE}"
        when = "kubeadm v1.24 or newer has created the nodes"
        yield Violation(workload, message, path=(*path, _FORMER_ROLE), when=when)


def find_blocking_webhooks(bundle: Bundle) -> Iterator[Violation]:
    """Yield the webhooks that the API server calls for the Pods that serve them (CC-39)."""
    workloads = list_workloads(bundle)
    selectors = {
        service.name: service.mapping("spec", "selector") for service in bundle.all_of("Service")
    }
    for configuration in bundle.of(*_HOOKS):
        for number, webhook in enumerate(configuration.listing("webhooks")):
            selector = selectors.get(text_of(webhook, "clientConfig", "service", "name"))
            if not selector or not _is_called_for_pods(webhook):
                continue
            if any(is_selected(each, selector) for each in workloads):
                name = text_of(webhook, "name")
                message = f"{configuration}: webhook {name} is called for the Pods that serve it"
                when = "such a Pod is created while no other one serves the webhook"
                path = ("webhooks", number, "rules")
                yield Violation(configuration, message, path=path, when=when)


def _is_called_for_pods(webhook: Any) -> bool:
    """Return whether each Pod is refused while the webhook does not answer."""
    is_filtered = any(mapping_of(webhook).get(key) for key in _FILTERS)
    is_required = text_of(webhook, "failurePolicy") in ("", "Fail")
    return is_required and not is_filtered and any(map(_has_pods, list_of(webhook, "rules")))


def _has_pods(rule: Any) -> bool:
    resources = {each.removesuffix("/*") for each in texts_of(rule, "resources")}
    return (
        not {"", "*"}.isdisjoint(texts_of(rule, "apiGroups"))
        and not {"v1", "*"}.isdisjoint(texts_of(rule, "apiVersions"))
        and not {"pods", "*"}.isdisjoint(resources)
        and not {"CREATE", "*"}.isdisjoint(texts_of(rule, "operations"))
        and text_of(rule, "scope") in ("", "*", "Namespaced")
    )
