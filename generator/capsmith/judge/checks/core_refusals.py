"""Check objects of core's and kubeadm's kinds as their webhooks do.

Source: https://github.com/kubernetes-sigs/cluster-api/tree/v1.14.2/core/webhooks/admission
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from capsmith.judge.checks.apiextensions.model import is_label_value, is_qualified_name
from capsmith.judge.checks.semver import parse_version
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, text_of
from capsmith.provider_yaml.string_formats import is_duration, is_of_format
from capsmith.yamldoc.compose import Path

Refusal = tuple[Path, str]

_CORE, _KUBEADM = "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
_OF_MACHINES = ("MachineDeployment", "MachineSet", "MachinePool")
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
"""Label that core's webhook adds to selectors and templates."""
_FORMER = "v1beta1"
"""Contract and API version of core v1.10, which accepts a Cluster without references."""
_REFERRING = ("controlPlaneRef", "infrastructureRef", "topology")
_VERSIONED: Mapping[tuple[str, str], tuple[str, ...]] = {
    (_CORE, "Cluster"): ("spec", "topology", "version"),
    (_CORE, "Machine"): ("spec", "version"),
    **{(_CORE, kind): ("spec", "template", "spec", "version") for kind in _OF_MACHINES},
    (_KUBEADM, "KubeadmControlPlane"): ("spec", "version"),
}
_GROUPS = (_CORE, _KUBEADM)
_SHARES = frozenset(
    {"maxInFlight", "maxSurge", "maxUnavailable", "maxUnhealthy", "unhealthyLessThanOrEqualTo"}
)
_SHARE = re.compile("[+-]?[0-9]+%")
_SHORTEST_STARTUP = 30
_DURATIONS = frozenset(
    {
        *("nodeDeletionTimeout", "nodeDrainTimeout", "nodeStartupTimeout"),
        *("nodeVolumeDetachTimeout", "timeout"),
    }
)
"""Fields of v1beta1 that Go parses as durations, when core converts the object."""
_PART = re.compile(r"([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {
    **{"ns": 1, "us": 1000, "µs": 1000, "μs": 1000},
    **{"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9},
}
"""Nanoseconds of the units of durations."""
_LONGEST_TEXT = 1000
_LONGEST = 2**63
"""Nanoseconds that are too many for Go."""
_SCALED = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
"""Prefix of the annotations by which the cluster autoscaler scales workers."""
_OF_CONTROL_PLANES = "cluster.x-k8s.io/control-plane"
_CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"
_CONCURRENCY = "topology.cluster.x-k8s.io/upgrade-concurrency"
_NUMBER = re.compile("([+-]?)0*([0-9]{1,19})")
_MOST = 2**63
"""The lowest number that does not fit into 64 bits."""
_LARGEST_SIZE, _LARGEST_NUMBER = 2**31 - 1, _MOST - 1
_ROLLING: tuple[tuple[str, ...], ...] = (
    ("spec", "rollout", "strategy", "rollingUpdate"),
    ("spec", "rolloutStrategy", "rollingUpdate"),
)
"""Places of a control plane's ``maxSurge`` in v1beta2 and v1beta1."""
_MOST_TO_SURGE = 3
"""Number of replicas from which a control plane can be updated without another Machine."""
_LABELS = ((_CORE, "Cluster"), (_CORE, "MachineDeployment"))
"""Kinds whose names are values of labels."""
_OF_CLUSTERS = (*_OF_MACHINES, "Machine", "MachineHealthCheck")
"""Kinds to which core adds a label with the name of their Cluster."""
_LABEL_NAME, _LONGEST_NAME = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?"), 63
_EXTENSION = ("runtime.cluster.x-k8s.io", "ExtensionConfig")
_SELECTING: Mapping[tuple[str, str], str] = {
    (_CORE, "MachineHealthCheck"): "selector",
    ("addons.cluster.x-k8s.io", "ClusterResourceSet"): "clusterSelector",
}


def find_refusals(manifest: Manifest, contract: str) -> Iterator[Refusal]:
    """Yield the paths in an object of core or kubeadm that their webhooks refuse, and why.

    ``contract`` is the contract version that the releases of core choose.
    """
    kind = (manifest.api_group, manifest.kind)
    if kind in _VERSIONED:
        version = text_of(manifest.document, *_VERSIONED[kind])
        is_version = parse_version(version.removeprefix("v")) is not None
        if version and not has_variable(version) and not is_version:
            yield _VERSIONED[kind], f"is {version!r}, which is not a semantic version"
    if kind in _SELECTING:
        selector = manifest.mapping("spec", _SELECTING[kind])
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield ("spec", _SELECTING[kind]), "selects nothing"
    if manifest.api_group in _GROUPS:
        for path, why in _of_values(manifest.mapping("spec"), ("spec",)):
            # The webhook of control planes reads other texts as 0.
            if kind[1] != "KubeadmControlPlane" or path[-1] != "maxSurge":
                yield path, why
    if manifest.api_group == _CORE and manifest.kind in _OF_CLUSTERS:
        name = text_of(manifest.document, "spec", "clusterName")
        if not has_variable(name) and not is_label_value(name):
            yield ("spec", "clusterName"), f"is {name!r}, which is not a valid value of a label"
    yield from _of_names(manifest)
    yield from _of_annotations(manifest)
    if kind == (_CORE, "Cluster"):
        yield from _of_cluster(manifest)
        version = text_of(manifest.document, "apiVersion").rpartition("/")[2]
        if (contract, version) != (_FORMER, _FORMER):
            yield from _of_empty_cluster(manifest)
    if kind == (_KUBEADM, "KubeadmControlPlane"):
        yield from _of_control_plane(manifest)
    if kind == (_CORE, "Machine"):
        yield from _of_taints(manifest)
        if manifest.mapping("spec") and not _is_bootstrapped(
            manifest.mapping("spec").get("bootstrap")
        ):
            yield ("spec", "bootstrap"), "has neither configRef nor dataSecretName"
    if kind == _EXTENSION:
        yield from _of_extension(manifest)
    if manifest.api_group == _CORE and manifest.kind in _OF_MACHINES:
        yield from _of_machines(manifest)


def _of_values(part: Any, path: Path) -> Iterator[Refusal]:
    """Yield values that core refuses at any place: labels, shares and timeouts."""
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from _of_values(each, (*path, number))
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key in ("variables", "patches", "kubeadmConfigSpec"):
            continue
        if key == "metadata":
            yield from _of_metadata(value, (*path, key))
        elif key in _SHARES and isinstance(value, str) and not has_variable(value):
            if not _SHARE.fullmatch(value) or _read_number(value[:-1]) is None:
                yield (*path, key), f"is {value!r}, which is neither a number nor a percentage"
        elif key == "nodeStartupTimeoutSeconds" and isinstance(value, int):
            if 0 < value < _SHORTEST_STARTUP:
                yield (*path, key), f"is {value}; it has to be at least {_SHORTEST_STARTUP}"
        elif key in _DURATIONS and isinstance(value, str) and not has_variable(value):
            yield from (((*path, key), why) for why in _of_duration(key, value))
        else:
            yield from _of_values(value, (*path, key))


def _of_duration(key: str, value: str) -> Iterator[str]:
    if not is_duration(value):
        yield f"is {value!r}, which is not a duration such as 10m or 1h30m"
        return
    # Python refuses to read numbers of thousands of digits.
    if len(value) > _LONGEST_TEXT:
        return
    duration = sum(Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    if duration >= _LONGEST:
        yield f"is {value!r}, which is too long for a duration"
        return
    # Core drops fractions of seconds, and no second at all turns the check off.
    seconds = int(duration / _UNITS["s"]) * (-1 if value.startswith("-") else 1)
    if key == "nodeStartupTimeout" and seconds and seconds < _SHORTEST_STARTUP:
        yield f"is {value}; it has to be at least {_SHORTEST_STARTUP}s"


def _of_names(manifest: Manifest) -> Iterator[Refusal]:
    """Yield a name that core cannot use as the value of a label, or for an extension."""
    name, kind = manifest.name, (manifest.api_group, manifest.kind)
    if has_variable(name):
        return
    if kind in _LABELS and not is_label_value(name):
        yield ("metadata", "name"), f"is {name!r}, which is not a valid value of a label"
    if kind == _EXTENSION and (len(name) > _LONGEST_NAME or not _LABEL_NAME.fullmatch(name)):
        yield ("metadata", "name"), f"is {name!r}, which is not a valid label of a DNS name"


def _of_extension(manifest: Manifest) -> Iterator[Refusal]:
    client = manifest.mapping("spec").get("clientConfig")
    has_any = any(mapping_of(client).get(key) for key in ("url", "service"))
    if isinstance(client, dict) and not has_any and not any(map(_may_vary, client)):
        yield ("spec", "clientConfig"), "has neither url nor service"


def _of_annotations(manifest: Manifest) -> Iterator[Refusal]:
    """Yield the annotations of an object that core reads as numbers, and that are none."""
    annotations = manifest.mapping("metadata", "annotations")
    sizes = {f"{_SCALED}{size}" for size in ("min-size", "max-size")}
    numbers: set[str] = set()
    is_scaled = sizes <= annotations.keys() and manifest.mapping("spec").get("replicas") is None
    if manifest.kind in ("MachineDeployment", "MachinePool") and is_scaled:
        numbers = sizes
    if manifest.kind == "Cluster" and manifest.mapping("spec", "topology"):
        numbers = {_CONCURRENCY}
    for key in sorted(numbers & annotations.keys()):
        value, path = annotations[key], ("metadata", "annotations", key)
        if not isinstance(value, str) or has_variable(value):
            continue
        number = _read_number(value)
        largest = _LARGEST_NUMBER if key == _CONCURRENCY else _LARGEST_SIZE
        if number is None or abs(number) > largest:
            yield path, f"is {value!r}, which is not a number up to {largest}"
        elif key == _CONCURRENCY and number < 1:
            yield path, f"is {value}; it has to be at least 1"


def _read_number(text: str) -> int | None:
    """Return the number in a text; None if it is not a number, or does not fit into 64 bits."""
    match = _NUMBER.fullmatch(text)
    number = int(match[1] + match[2]) if match is not None else None
    return number if number is not None and -_MOST <= number < _MOST else None


def _of_metadata(metadata: Any, path: Path) -> Iterator[Refusal]:
    for field in ("labels", "annotations"):
        for key, value in mapping_of(metadata, field).items():
            if not isinstance(key, str) or has_variable(key):
                continue
            if not is_qualified_name(key if field == "labels" else key.lower()):
                yield (*path, field, key), "is not a valid key"
            is_label = field == "labels" and isinstance(value, str) and not has_variable(value)
            if is_label and not is_label_value(value):
                yield (*path, field, key), f"is {value!r}, which is not a valid value of a label"


def _of_cluster(manifest: Manifest) -> Iterator[Refusal]:
    for network in ("pods", "services"):
        path = ("spec", "clusterNetwork", network, "cidrBlocks")
        for number, block in enumerate(manifest.listing(*path)):
            if (
                isinstance(block, str)
                and not has_variable(block)
                and not is_of_format("cidr", block)
            ):
                yield (*path, number), f"is {block!r}, which is not a CIDR block"
    for workers in ("machineDeployments", "machinePools"):
        names: set[str] = set()
        place = ("spec", "topology", "workers", workers)
        for number, each in enumerate(manifest.listing(*place)):
            name = text_of(each, "name")
            if name in names and not has_variable(name):
                yield (*place, number, "name"), f"is {name} for the second time"
            names.add(name)
            annotations = mapping_of(each, "metadata", "annotations")
            is_scaled = any(str(key).startswith(_SCALED) for key in annotations)
            if is_scaled and mapping_of(each).get("replicas") is not None:
                message = "is not allowed with annotations of the cluster autoscaler"
                yield (*place, number, "replicas"), message


def _of_empty_cluster(manifest: Manifest) -> Iterator[Refusal]:
    spec = manifest.mapping("spec")
    # A variable may stand for any key.
    if not any(spec.get(key) for key in _REFERRING) and not any(map(_may_vary, spec)):
        yield ("spec",), f"has none of {', '.join(_REFERRING)}"


def _may_vary(key: Any) -> bool:
    return isinstance(key, str) and has_variable(key)


def _of_control_plane(manifest: Manifest) -> Iterator[Refusal]:
    replicas = manifest.mapping("spec").get("replicas")
    etcd = manifest.mapping("spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd")
    if isinstance(replicas, int) and replicas % 2 == 0 and not etcd.get("external"):
        # Zero is refused with an external etcd, too, but it says nothing about a provider.
        yield ("spec", "replicas"), f"is {replicas}; with its own etcd, the number has to be odd"

    for path in _ROLLING:
        surge = manifest.mapping(*path).get("maxSurge")
        if isinstance(surge, str) and not has_variable(surge):
            surge = _read_number(surge) or 0
        if not isinstance(surge, int):
            continue
        if surge not in (0, 1):
            yield (*path, "maxSurge"), f"is {surge}; it has to be 0 or 1"
        elif surge == 0 and isinstance(replicas, int | None) and (replicas or 1) < _MOST_TO_SURGE:
            yield (*path, "maxSurge"), f"is 0, which requires {_MOST_TO_SURGE} replicas"


def _of_taints(manifest: Manifest) -> Iterator[Refusal]:
    """Yield the taint of control planes on a Machine that belongs to none."""
    labels = manifest.mapping("metadata", "labels")
    if _OF_CONTROL_PLANES in labels or any(map(_may_vary, labels)):
        return
    for number, taint in enumerate(manifest.listing("spec", "taints")):
        if text_of(taint, "key") == _CONTROL_PLANE_TAINT:
            yield ("spec", "taints", number, "key"), "is a taint that only control planes have"


def _of_machines(manifest: Manifest) -> Iterator[Refusal]:
    template = ("spec", "template", "spec", "clusterName")
    own = text_of(manifest.document, "spec", "clusterName")
    inner = text_of(manifest.document, *template)
    if own and inner and own != inner and not has_variable(own + inner):
        yield template, f"is {inner}, and spec.clusterName is {own}"
    labels = manifest.mapping("spec", "template", "metadata", "labels")
    for key, value in manifest.mapping("spec", "selector", "matchLabels").items():
        known = labels.get(key)
        if key == _CLUSTER_NAME or known == value or has_variable(f"{key} {value} {known}"):
            continue
        yield ("spec", "selector", "matchLabels", key), "matches no label of spec.template"
    path = ("spec", "template", "spec")
    bootstrap = manifest.mapping(*path).get("bootstrap")
    if manifest.mapping(*path) and not _is_bootstrapped(bootstrap):
        yield (*path, "bootstrap"), "has neither configRef nor dataSecretName"


def _is_bootstrapped(bootstrap: Any) -> bool:
    if isinstance(bootstrap, str):
        return has_variable(bootstrap)
    found = mapping_of(bootstrap)
    keys = {key for key, value in found.items() if value is not None}
    return bool(keys & {"configRef", "dataSecretName"}) or any(map(_may_vary, found))
