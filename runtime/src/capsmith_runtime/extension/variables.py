"""The variables of a topology, and its Cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object

T = TypeVar("T")

BUILTIN = "builtin"


class Variables(Mapping[str, Any]):
    """Values, keyed by variable name; core adds ``builtin`` with names, versions and replicas."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Variables({self._values!r})"

    def value(self, name: str, kind: type[T]) -> T | None:
        """Return a variable as ``str``, ``int``, ``bool`` or a dataclass, or None if it is unset.

        Raises DecodingError for a value of another type; the hook then fails with this error.
        """
        value = self._values.get(name)
        return None if value is None else decode(kind, value, f"variable {name}")

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a variable's value as an untyped mapping, which is empty if the variable is unset.

        Raises DecodingError if the value is not an object; the hook then fails with this error.
        """
        value = self._values.get(name, {})
        if not isinstance(value, Mapping):
            raise DecodingError(f"variable {name}", "an object", value)
        return value

    def builtin(self, *path: str) -> Any:
        """Return one of core's values, for example ``builtin("machineDeployment", "replicas")``.

        Returns None if core does not set it in this request.
        """
        return metadata.lookup(self._values, BUILTIN, *path)

    def overridden_by(self, other: Variables) -> Variables:
        """Return these variables, overridden by ``other`` variables such as those of a template."""
        merged = {**self._values, **other}
        if BUILTIN in merged:
            # Core puts the cluster into the global variables, the holder into those of a template.
            both = (metadata.mapping(values, BUILTIN) for values in (self, other))
            merged[BUILTIN] = {key: value for part in both for key, value in part.items()}
        return Variables(merged)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyCluster:
    """The Cluster that a hook is called for; requests contain no status (RX-07)."""

    name: str
    namespace: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    class_name: str
    """Name of the ClusterClass."""
    version: str
    """The desired Kubernetes version."""
    variables: Variables
    """The variables in ``spec.topology.variables``."""
    raw: Mapping[str, Any]
    """The whole object, with the field names of the API version that the calling core uses."""


def read_variables(obj: Object, *path: str) -> Variables:
    """Return the variables in a list of ``{name, value}`` items; skip items without a name."""
    values = {}
    for item in metadata.items(obj, *path):
        name = metadata.text(item, "name") if isinstance(item, Mapping) else ""
        if name:
            values[name] = item.get("value")
    return Variables(values)


def read_cluster(obj: Object) -> TopologyCluster:
    """Return the Cluster in a request.

    Core sends v1beta1 before core v1.13, and v1beta2 from then on (RX-07).
    """
    class_name = metadata.text(obj, "spec", "topology", "classRef", "name")
    return TopologyCluster(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        uid=metadata.uid(obj),
        labels=metadata.labels(obj),
        annotations=metadata.annotations(obj),
        class_name=class_name or metadata.text(obj, "spec", "topology", "class"),
        version=metadata.text(obj, "spec", "topology", "version"),
        variables=read_variables(obj, "spec", "topology", "variables"),
        raw=obj,
    )
