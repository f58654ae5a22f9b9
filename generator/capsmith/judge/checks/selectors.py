"""Check the label selectors in objects of core, which its webhooks parse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.apiextensions.model import is_label_value, is_qualified_name
from capsmith.judge.checks.built_in_pods import (
    WITH_VALUES,
    WITHOUT_VALUES,
    explain_values,
    is_matched,
    list_values,
)
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, text_of, texts_of
from capsmith.yamldoc.compose import Path

_SELECTORS: Mapping[str, tuple[str, ...]] = {
    "ClusterResourceSet": ("spec.clusterSelector",),
    "ExtensionConfig": ("spec.namespaceSelector",),
    "MachineDeployment": ("spec.selector",),
    "MachineDrainRule": (
        *("spec.machines[].selector", "spec.machines[].clusterSelector"),
        *("spec.pods[].selector", "spec.pods[].namespaceSelector"),
    ),
    "MachineHealthCheck": ("spec.selector",),
    "MachineSet": ("spec.selector",),
}
_OF_TEMPLATES = frozenset({"MachineDeployment", "MachineSet"})
"""Kinds whose selector has to match the labels of their template."""
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"


def find_selector_faults(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Yield what core refuses in the label selectors of an object, and why."""
    for place in _SELECTORS.get(manifest.kind, ()):
        for path, selector in list_values(manifest.document, place):
            yield from _of_labels(mapping_of(selector, "matchLabels"), (*path, "matchLabels"))
            for number, each in enumerate(list_of(selector, "matchExpressions")):
                yield from _of_expression(each, (*path, "matchExpressions", number))
            if manifest.kind in _OF_TEMPLATES:
                labels = manifest.mapping("spec", "template", "metadata", "labels")
                yield from _unmatched(selector, labels, path)
    cluster = text_of(manifest.document, "spec", "clusterName")
    if manifest.kind == "MachineHealthCheck":
        name = manifest.mapping("spec", "selector", "matchLabels").get(_CLUSTER_NAME, cluster)
        if name != cluster and not has_variable(f"{name} {cluster}"):
            path = ("spec", "selector", "matchLabels", _CLUSTER_NAME)
            yield path, f"is {name}, and spec.clusterName is {cluster}"


def _of_labels(labels: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key, value in labels.items():
        if isinstance(key, str) and not has_variable(key) and not is_qualified_name(key):
            yield (*path, key), "is not a valid key"
        elif isinstance(value, str) and not has_variable(value) and not is_label_value(value):
            yield (*path, key), f"is {value!r}, which is not a valid value of a label"


def _of_expression(expression: Any, path: Path) -> Iterator[tuple[Path, str]]:
    key, operator = text_of(expression, "key"), text_of(expression, "operator")
    # The schema requires both, but accepts empty texts.
    has_key, has_operator = (
        isinstance(mapping_of(expression).get(name), str) for name in ("key", "operator")
    )
    if has_key and not has_variable(key) and not is_qualified_name(key):
        yield (*path, "key"), f"is {key!r}, which is not a valid key"
    if not has_operator or has_variable(operator):
        return
    if operator not in (*WITH_VALUES, *WITHOUT_VALUES):
        known = ", ".join((*WITH_VALUES, *WITHOUT_VALUES))
        yield (*path, "operator"), f"is {operator!r}; expected one of {known}"
    why = explain_values(expression)
    if why:
        yield (*path, "values"), why
    for value in texts_of(expression, "values"):
        if not has_variable(value) and not is_label_value(value):
            yield (*path, "values"), f"has {value!r}, which is not a valid value of a label"


def _unmatched(selector: Any, labels: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the expressions of a selector that the labels of a template do not match."""
    if any(has_variable(f"{key} {value}") for key, value in labels.items()):
        return
    for number, each in enumerate(list_of(selector, "matchExpressions")):
        # Core adds the name of the cluster to the labels.
        if text_of(each, "key") != _CLUSTER_NAME and not is_matched(each, labels):
            yield (*path, "matchExpressions", number), "matches no labels of spec.template"
