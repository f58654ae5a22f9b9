"""Types of the fields of Kubernetes' kinds, which ``verify`` compares with objects of releases.

``python -m tests.kubernetes_kinds`` writes ``schemas/core/kubernetes.json`` from what the newest
API server of tests publishes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from capsmith import resources
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from tests.core_kinds import render, share
from tests.e2e.tools.required import required_toolbox

JSON = Mapping[str, Any]
FILE = "kubernetes.json"
URL = "/openapi/v2"
_OPEN = "x-kubernetes-preserve-unknown-fields"
_KIND = "x-kubernetes-group-version-kind"
_PREFIX = "#/definitions/"
_QUANTITY = "^\\s*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\\s*$"
_SPECIAL: Mapping[str, JSON] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "quantity", "pattern": _QUANTITY},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
}
_BASE64 = "^[A-Za-z0-9+/\\r\\n]*={0,2}[\\r\\n]*$"
_ANSWERED = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups of questions, which are not stored."""
_OTHERS = ("Binding", "CustomResourceDefinition", "Event")
"""Kinds that no release has, or that another rule judges."""
_DROPPED = ("apiVersion", "kind", "status")
"""Fields of each object; other rules compare the first two."""


def reduce_definitions(api: JSON) -> dict[str, Any]:
    """Return the types of the kinds that clients create, without descriptions and status."""
    kinds: dict[str, dict[str, Any]] = {}
    for each in _list_created(api):
        group, version, kind = each["group"], each["version"], each["kind"]
        if group in _ANSWERED or kind in _OTHERS:
            continue
        (name,) = (name for name, part in api["definitions"].items() if part.get(_KIND) == [each])
        types = dict(_reduce(api["definitions"], {"$ref": _PREFIX + name}))
        declared = types["properties"].items()
        types["properties"] = {key: part for key, part in declared if key not in _DROPPED}
        kinds.setdefault(f"{group}/{version}".removeprefix("/"), {})[kind] = types
    return share({name: dict(sorted(kinds[name].items())) for name in sorted(kinds)})


def _list_created(api: JSON) -> Iterator[dict[str, str]]:
    for path, operations in api["paths"].items():
        is_subresource = "/{name}/" in path
        if "post" in operations and not is_subresource and _KIND in operations["post"]:
            yield operations["post"][_KIND]


def _reduce(definitions: JSON, part: JSON) -> JSON:
    if "$ref" in part:
        name = part["$ref"].removeprefix(_PREFIX)
        return _SPECIAL.get(name) or _reduce(definitions, definitions[name])
    found: dict[str, Any] = {key: part[key] for key in ("type",) if key in part}
    if part.get("format") == "int32":
        found["format"] = "int32"
    if part.get("format") == "byte":
        found["pattern"] = _BASE64
    # Types of JSON values, such as RawExtension, have neither properties nor a type of values.
    if part.get("type") == "object" and "additionalProperties" not in part:
        found[_OPEN] = True
    if "properties" in part:
        found["properties"] = {
            name: _reduce(definitions, below)
            for name, below in sorted(part["properties"].items())
            if name != "managedFields"
        }
    for key in ("items", "additionalProperties"):
        if key in part:
            found[key] = _reduce(definitions, part[key])
    return found


def main() -> None:
    """Write the file."""
    tools = required_toolbox("the kinds of Kubernetes", ["k8s"])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        etcd = Etcd(tools, place / "etcd")
        server = ApiServer(tools, Pki(place / "pki"), etcd, place / "server", "kinds")
        try:
            etcd.start()
            server.start()
            text = render(reduce_definitions(server.client.request("GET", URL)))
        finally:
            server.stop()
            etcd.stop()
    (resources.schemas() / "core" / FILE).write_text(text, encoding="utf-8")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
