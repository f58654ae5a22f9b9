"""What objects of core's and kubeadm's kinds may contain, reduced to what ``verify`` reads.

``python -m tests.core_kinds`` writes ``schemas/core/kinds.json`` from the CRDs of the newest
release that runs in tests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from capsmith import resources
from capsmith.clusters.processes.tools.build import Toolbox
from capsmith.clusters.processes.tools.catalogue import core_module, default_core, kubeadm_module
from tests.e2e.tools.required import required_toolbox

FILE = "kinds.json"
_KEPT = frozenset(
    [
        "type",
        "format",
        "properties",
        "items",
        "required",
        "enum",
        "default",
        "pattern",
        "additionalProperties",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "minProperties",
        "maxProperties",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    ]
)
_SHARED_SIZE = 400
"""Schemas of more characters are in the file only once."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def reduce_crds(crds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schemas of the served versions without descriptions and status."""
    kinds: dict[str, dict[str, Any]] = {}
    for crd in crds:
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        for version in crd["spec"]["versions"]:
            root = version["schema"]["openAPIV3Schema"]
            if version["served"] and "spec" in root["properties"]:
                reduced = _reduce(root["properties"]["spec"])
                kinds.setdefault(f"{group}/{version['name']}", {})[kind] = reduced
    return share({name: dict(sorted(kinds[name].items())) for name in sorted(kinds)})


def _reduce(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    found = {key: schema[key] for key in sorted(schema) if key in _KEPT}
    if "properties" in found:
        found["properties"] = {k: _reduce(v) for k, v in sorted(schema["properties"].items())}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = _reduce(schema[key])
    return found


def share(kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the file's content: parts that occur repeatedly are in a table, each once."""
    count: Counter[str] = Counter()

    def visit(part: Any) -> None:
        if isinstance(part, dict):
            text = _text(part)
            count[text] += 1
            if count[text] == 1:
                for each in part.values():
                    visit(each)

    visit(kinds)
    table: dict[str, int] = {}
    shared: list[Any] = []

    def replace(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        text = _text(part)
        if text in table:
            return {"$shared": table[text]}
        found = {key: replace(value) for key, value in part.items()}
        if count[text] > 1 and len(text) > _SHARED_SIZE:
            table[text] = len(shared)
            shared.append(found)
            return {"$shared": table[text]}
        return found

    return {"kinds": replace(kinds), "shared": shared}


def _text(part: Any) -> str:
    return json.dumps(part, sort_keys=True, separators=(",", ":"))


def read_crds(tools: Toolbox) -> list[dict[str, Any]]:
    """Return the CRDs of core and of the kubeadm providers in the newest release of tests."""
    found = []
    series = default_core()
    for module in (core_module(series), kubeadm_module(series)):
        for file in sorted(tools.folders[module].glob("*.yaml")):
            for document in yaml.load_all(file.read_text(encoding="utf-8"), _LOADER):
                if document and document["kind"] == "CustomResourceDefinition":
                    found.append(document)
    return found


def render(data: Mapping[str, Any]) -> str:
    """Return the file's text: one line for each kind and each shared part."""
    lines = ["{", '"kinds": {']
    groups = []
    for name, kinds in data["kinds"].items():
        rows = ",\n".join(f"{json.dumps(k)}: {_text(v)}" for k, v in kinds.items())
        groups.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
    lines += [",\n".join(groups), "},", '"shared": [']
    lines += [",\n".join(map(_text, data["shared"])), "]", "}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the file."""
    series = default_core()
    tools = required_toolbox("core's kinds", [core_module(series), kubeadm_module(series)])
    text = render(reduce_crds(read_crds(tools)))
    (resources.schemas() / "core" / FILE).write_text(text, encoding="utf-8")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
