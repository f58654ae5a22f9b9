"""Check the Pods of workloads for what the API server compares between fields."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from capsmith.judge.checks.apiextensions.model import is_qualified_name
from capsmith.judge.checks.mismatches import Mismatch
from capsmith.manifests.parse import (
    Manifest,
    has_variable,
    is_mapping,
    list_of,
    mapping_of,
    text_of,
    texts_of,
)
from capsmith.yamldoc.compose import Path

_PORTS = "containers[].ports[]"
_KEPT_PATHS = 512
_TEMPLATE = ("spec", "template")
_TEMPLATES: Mapping[str, Path] = {"CronJob": ("spec", "jobTemplate", *_TEMPLATE), "Pod": ()}
"""Paths to the template of Pods, in kinds that have it at another path."""
_SELECTING = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_WORKLOADS = (*_SELECTING, "CronJob", "Job", "Pod", "ReplicationController")
_IN_POLICIES = ("namespaceSelector", "objectSelector")
_SELECTORS = (
    *("spec.selector", "spec.podSelector", "spec.volumeClaimTemplates[].spec.selector"),
    *(
        f"spec.{direction}.{selector}"
        for direction in ("ingress[].from[]", "egress[].to[]")
        for selector in ("podSelector", "namespaceSelector")
    ),
    *(f"webhooks[].{selector}" for selector in _IN_POLICIES),
    *(
        f"spec.{place}.{selector}"
        for place in ("matchConstraints", "matchResources")
        for selector in _IN_POLICIES
    ),
    "aggregationRule.clusterRoleSelectors[]",
)
"""Paths to the label selectors of all kinds but those of Pods."""
_TERM = "DuringSchedulingIgnoredDuringExecution[]"
_OF_PODS = (
    "topologySpreadConstraints[].labelSelector",
    *(
        f"affinity.{kind}.{terms}.{selector}"
        for kind in ("podAffinity", "podAntiAffinity")
        for terms in (f"required{_TERM}", f"preferred{_TERM}.podAffinityTerm")
        for selector in ("labelSelector", "namespaceSelector")
    ),
)
"""Paths to the label selectors in the spec of Pods."""
_KEYED = (
    "metadata.labels",
    "metadata.annotations",
    "spec.template.metadata.labels",
    "spec.template.metadata.annotations",
    "spec.template.spec.nodeSelector",
)
WITH_VALUES, WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")
"""Operators of label selectors."""
_FINALIZERS = frozenset({"foregroundDeletion", "orphan", "kubernetes"})
_QUANTITY = re.compile(r"([+-]?[0-9]*[.]?[0-9]*)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_UNITS = {
    **{
        unit: Fraction(1000**power) for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))
    },
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate("mun", 1)},
}
_BILLION = 10**9
_LARGEST = Fraction(2**63 - 1)
_LONGEST_AMOUNT, _LONGEST_EXPONENT = 1000, 5
"""Longest texts of amounts: Python refuses thousands of digits, and large exponents take long."""
_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_NATIVE = "kubernetes.io/"
_FURTHER = ("hugepages-",)
"""Prefixes of further names of resources without a slash."""


@lru_cache(_KEPT_PATHS)
def _split_path(path: str) -> tuple[tuple[str, bool], ...]:
    """Return the names on a path, each with whether it stands for the items of a list."""
    return tuple((each.removesuffix("[]"), each.endswith("[]")) for each in path.split("."))


def list_values(document: Any, path: str) -> Iterator[tuple[Path, Any]]:
    """Yield the values that are there at a path, in which ``[]`` stands for each item of a list."""
    found: list[tuple[Path, Any]] = [((), document)]
    for name, is_list in _split_path(path):
        fields = [
            ((*where, name), value[name])
            for where, value in found
            if is_mapping(value) and name in value
        ]
        found = fields
        if is_list:
            found = [
                ((*where, number), each)
                for where, items in fields
                for number, each in enumerate(items if isinstance(items, list) else ())
            ]
        if not found:
            return
    yield from found


def find_key_faults(document: Any, further: Sequence[str] = ()) -> Iterator[Mismatch]:
    """Yield the keys of labels, annotations and selectors that the API server refuses.

    ``further`` are paths to more labels, which only objects of some kinds have.
    """
    for place in (*_KEYED, *further):
        for path, part in list_values(document, place):
            # The API server ignores the case of annotations.
            yield from _of_keys(part, path, str.lower if place.endswith("annotations") else str)
    yield from _of_selectors(document, _SELECTORS)


def _of_keys(part: Any, path: Path, convert: Callable[[str], str] = str) -> Iterator[Mismatch]:
    for key in mapping_of(part):
        if isinstance(key, str) and not has_variable(key) and not is_qualified_name(convert(key)):
            yield Mismatch((*path, key), "is not a valid key")


def _of_selectors(document: Any, places: Sequence[str]) -> Iterator[Mismatch]:
    """Yield what the API server refuses in label selectors, beside what their schema forbids."""
    for place in places:
        for path, selector in list_values(document, place):
            yield from _of_keys(mapping_of(selector, "matchLabels"), (*path, "matchLabels"))
            for number, each in enumerate(list_of(selector, "matchExpressions")):
                why = explain_values(each)
                if why:
                    yield Mismatch((*path, "matchExpressions", number, "values"), why)


def explain_values(expression: Any) -> str:
    """Return why the operator of a label selector does not fit its values; empty if it does."""
    operator, has_values = text_of(expression, "operator"), bool(list_of(expression, "values"))
    if operator in WITH_VALUES and not has_values:
        return f"is required by the operator {operator}"
    if operator in WITHOUT_VALUES and has_values:
        return f"is not allowed with the operator {operator}"
    return ""


def is_matched(expression: Any, labels: Mapping[str, Any]) -> bool:
    """Return whether an expression of a label selector may match labels.

    One that is invalid, or that has variables, counts as matched.
    """
    key, operator = text_of(expression, "key"), text_of(expression, "operator")
    values = texts_of(expression, "values")
    if any(map(has_variable, (key, operator, *values))) or explain_values(expression):
        return True
    if operator in WITH_VALUES:
        return (labels.get(key) in values) is (operator == "In")
    return operator not in WITHOUT_VALUES or (key in labels) is (operator == "Exists")


def is_finalizer(text: str) -> bool:
    """Return whether the API server accepts the name of a finalizer."""
    return text in _FINALIZERS or ("/" in text and is_qualified_name(text))


def find_pod_path(manifest: Manifest) -> Path | None:
    """Return the path to the spec of a workload's Pods; None if the object is no workload."""
    if manifest.kind not in _WORKLOADS:
        return None
    return (*_TEMPLATES.get(manifest.kind, _TEMPLATE), "spec")


def find_pod_faults(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield the values in a workload that the API server refuses because of others."""
    place = find_pod_path(manifest)
    if place is None:
        return
    yield from _of_strategy(manifest)
    if manifest.kind in _SELECTING:
        yield from _of_selector(manifest)
    pod = manifest.mapping(*map(str, place))
    for each in _of_selectors(pod, _OF_PODS):
        yield Mismatch((*place, *each.path), each.message)
    for number, each in enumerate(list_of(pod, "tolerations")):
        yield from _of_toleration(each, (*place, "tolerations", number))
    for number, each in enumerate(list_of(pod, "volumes")):
        sources = [key for key, value in mapping_of(each).items() if value is not None]
        sources = [key for key in sources if key != "name"]
        if len(sources) > 1 and all(map(_is_text, sources)):
            yield Mismatch((*place, "volumes", number), f"has both {' and '.join(sources)}")
    is_host = pod.get("hostNetwork") is True
    for path, port in list_values(pod, _PORTS) if is_host else ():
        own, host = (mapping_of(port).get(key) for key in ("containerPort", "hostPort"))
        if isinstance(own, int) and isinstance(host, int) and host not in (0, own):
            message = f"is {host}; on the host's network, it has to be {own}"
            yield Mismatch((*place, *path, "hostPort"), message)
    for field in ("initContainers", "containers"):
        for number, container in enumerate(list_of(pod, field)):
            path = (*place, field, number)
            yield from _of_container(container, path)
            yield from _of_mounts(container, path, _list_volumes(manifest, pod))
            if field == "initContainers":
                yield from _of_init_container(container, path)


def _of_selector(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield that a workload's selector selects everything, or not the workload's own Pods."""
    selector = manifest.mapping("spec").get("selector")
    if not is_mapping(selector):
        return
    wanted = mapping_of(selector, "matchLabels")
    if not wanted and not list_of(selector, "matchExpressions"):
        yield Mismatch(("spec", "selector"), "selects no labels")
        return
    labels = manifest.mapping(*_TEMPLATE, "metadata", "labels")
    texts = (*wanted, *wanted.values(), *labels, *labels.values())
    if any(has_variable(str(each)) for each in texts):
        return
    for key, value in wanted.items():
        if labels.get(key) != value:
            path: Path = ("spec", "selector", "matchLabels", key)
            yield Mismatch(path, "matches no label of spec.template")
    for number, each in enumerate(list_of(selector, "matchExpressions")):
        if not is_matched(each, labels):
            path = ("spec", "selector", "matchExpressions", number)
            yield Mismatch(path, "matches no labels of spec.template")


def _list_volumes(manifest: Manifest, pod: Mapping[str, Any]) -> set[str]:
    """Return the names of the volumes that containers of a workload can mount."""
    claims = manifest.listing("spec", "volumeClaimTemplates")
    names = (text_of(each, "metadata", "name") for each in claims)
    return {*names, *(text_of(each, "name") for each in list_of(pod, "volumes"))}


def _of_mounts(container: Any, path: Path, volumes: set[str]) -> Iterator[Mismatch]:
    for field in ("volumeMounts", "volumeDevices"):
        for number, each in enumerate(list_of(container, field)):
            name = text_of(each, "name")
            if name and name not in volumes and not any(map(has_variable, (name, *volumes))):
                message = f"is {name!r}, which is not a volume"
                yield Mismatch((*path, field, number, "name"), message)


def _of_init_container(container: Any, path: Path) -> Iterator[Mismatch]:
    policy = text_of(container, "restartPolicy")
    if policy == "Always" or has_variable(policy):
        return
    for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if mapping_of(container).get(field) is not None:
            message = "is only allowed with the restartPolicy Always"
            yield Mismatch((*path, field), message)


def _of_strategy(manifest: Manifest) -> Iterator[Mismatch]:
    strategy = manifest.mapping("spec", "strategy")
    rolling = strategy.get("rollingUpdate")
    path: Path = ("spec", "strategy", "rollingUpdate")
    if rolling is not None and strategy.get("type") == "Recreate":
        yield Mismatch(path, "is not allowed with the type Recreate")
    elif all(mapping_of(rolling).get(key) in (0, "0%") for key in ("maxSurge", "maxUnavailable")):
        yield Mismatch(path, "lets no Pod be replaced")


def _of_toleration(toleration: Any, path: Path) -> Iterator[Mismatch]:
    key, value, operator = (text_of(toleration, name) for name in ("key", "value", "operator"))
    if any(map(has_variable, (key, value, operator))):
        return
    if operator == "Exists" and value:
        yield Mismatch((*path, "value"), "is not allowed with the operator Exists")
    if not key and operator != "Exists":
        yield Mismatch(
            (*path, "operator"), f"is {operator!r}; without a key, it has to be 'Exists'"
        )


def _of_container(container: Any, path: Path) -> Iterator[Mismatch]:
    for number, each in enumerate(list_of(container, "env")):
        # An empty text counts as absent.
        if mapping_of(each).get("value") and mapping_of(each).get("valueFrom") is not None:
            yield Mismatch((*path, "env", number), "has both value and valueFrom")
    for field in ("livenessProbe", "startupProbe"):
        if mapping_of(container, field).get("successThreshold") not in (None, 0, 1):
            yield Mismatch((*path, field, "successThreshold"), "is not 1")
    names = [text_of(each, "name") for each in list_of(container, "ports")]
    for number, name in enumerate(names):
        if name and name in names[:number] and not has_variable(name):
            yield Mismatch((*path, "ports", number, "name"), f"is {name} for the second time")
    security = mapping_of(container, "securityContext")
    if security.get("privileged") is True and security.get("allowPrivilegeEscalation") is False:
        yield Mismatch((*path, "securityContext"), "is privileged without privilege escalation")
    yield from _of_resources(mapping_of(container, "resources"), (*path, "resources"))


def _of_resources(resources: Mapping[str, Any], path: Path) -> Iterator[Mismatch]:
    limits, requests = mapping_of(resources, "limits"), mapping_of(resources, "requests")
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name in filter(_is_text, amounts):
            is_known = name in _RESOURCES or "/" in name or name.startswith(_FURTHER)
            if not is_known and not has_variable(name):
                yield Mismatch((*path, field, name), "is not a resource of a container")
            amount = read_amount(amounts[name])
            if is_extended(name) and amount is not None and amount.denominator != 1:
                message = f"is {amounts[name]}, which is not a whole number"
                yield Mismatch((*path, field, name), message)
    for name, value in requests.items():
        request, limit = read_amount(value), read_amount(limits.get(name))
        is_equal = _is_text(name) and is_fixed(name)
        if is_equal and name not in limits and not any(map(has_variable, map(str, limits))):
            yield Mismatch((*path, "requests", name), "needs the same limit")
        if request is None or limit is None:
            continue
        if request > limit or (is_equal and request != limit):
            message = f"is {value}, and the limit is {limits[name]}"
            yield Mismatch((*path, "requests", name), message)


def is_extended(name: str) -> bool:
    """Return whether a resource is one that a device plugin or an operator adds to Nodes."""
    return "/" in name and _NATIVE not in name and not has_variable(name)


def is_fixed(name: str) -> bool:
    """Return whether requests and limits of a resource have to be equal."""
    return is_extended(name) or name.startswith(_FURTHER)


def read_amount(value: Any) -> Fraction | None:
    """Return a quantity's number; None if it is not readable.

    The API server reads a text without digits, such as `Gi`, as 0. The schema rejects these texts,
    because a number is missing.
    """
    text = "" if value is None else str(value).strip()
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST_AMOUNT else None
    if match is None or not re.search("[0-9]", match[1]):
        return None
    unit = match[2] or ""
    if unit not in _UNITS and len(unit) > _LONGEST_EXPONENT:
        return None
    amount = Fraction(match[1]) * _UNITS[unit] if unit in _UNITS else Fraction(match[1] + unit)
    # The API server rounds away from zero, to billionths, and limits amounts with binary units.
    rounded = Fraction(math.ceil(abs(amount) * _BILLION), _BILLION)
    if unit.endswith("i"):
        rounded = min(rounded, _LARGEST)
    return rounded if amount > 0 else -rounded


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
