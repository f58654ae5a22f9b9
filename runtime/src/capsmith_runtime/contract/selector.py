"""Label selectors of Kubernetes in objects."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether the labels match the selector; an empty selector matches everything."""
    wanted = metadata.mapping(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(item, labels) for item in metadata.items(selector, "matchExpressions"))


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    values = metadata.items(expression, "values")
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    # An unknown operator matches nothing: it must not allow more than intended.
    return operator == "DoesNotExist" and key not in labels
