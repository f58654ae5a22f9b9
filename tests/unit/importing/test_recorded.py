"""What import says of public providers whose repositories need code of their author.

``recorded.yaml`` has the cases.  Each message names a file and the reason before anything is
written, and the generated code fails exactly where the messages say.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capsmith.commands.build import build
from capsmith.commands.import_crds import ImportOptions, import_provider
from capsmith.commands.load import load_text
from capsmith.errors import Refused
from capsmith.findings import Finding
from capsmith.output.samples import build_example_control_plane
from capsmith.provider.model import Provider
from tests.unit.importing.crds import crd, imported, provider

_CASES: Final[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "recorded.yaml").read_text()
)
_REPOSITORY = "https://github.com/acme/cluster-api-provider-acme"
_PLANES = "controlplane.cluster.x-k8s.io"
_STATUS: Final[dict[str, Any]] = {"ready": {"type": "boolean"}}


def _fields(described: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return fields, and the names of those that are required."""
    properties = {name.removesuffix("!"): schema for name, schema in described.items()}
    return properties, [name[:-1] for name in described if name.endswith("!")]


def _converted_kind(kind: str, case: dict[str, Any]) -> dict[str, Any]:
    # Without a field in both versions, there would be nothing to convert.
    both = {"zone": {"type": "string"}}
    spec, required = _fields(case["hub"] | both)
    older = _older_version(case["spoke"] | both, {})
    return crd(kind, spec=spec, around={"required": required}, versions=[older])


def _older_version(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    properties, required = _fields(spec)
    parts: dict[str, Any] = {
        "spec": {"type": "object", "properties": properties, "required": required}
    }
    if status:
        parts["status"] = {"type": "object", "properties": status}
    return {
        "name": "v1alpha1",
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        "subresources": {"status": {}},
    }


def _converted_crds() -> list[dict[str, Any]]:
    return [
        *provider(),
        *(_converted_kind(kind, case) for kind, case in _CASES["conversions"].items()),
    ]


@cache
def _converted_provider() -> Provider:
    roles = dict.fromkeys(_CASES["conversions"], "Resource")
    loaded = load_text(imported(*_converted_crds(), roles=roles).text, "provider.yaml").provider
    assert loaded is not None
    return loaded


def _report(folder: Path, *crds: dict[str, Any], **options: Any) -> tuple[Finding, ...]:
    """Return what a dry run says, and what the run that writes says: both are the same."""
    path, output = folder / "components.yaml", folder / "provider.yaml"
    path.write_text(yaml.safe_dump_all(crds))
    settings = ImportOptions("acme", _REPOSITORY, partial=True, **options)
    before = import_provider([path], output, settings._replace(dry_run=True)).report.findings
    assert not output.exists()
    assert import_provider([path], output, settings).report.findings == before
    for dry_run in (True, False):
        with pytest.raises(Refused, match="already exists"):
            import_provider([path], output, settings._replace(dry_run=dry_run))
    return before


def test_each_conversion_that_the_author_has_to_write_is_named_before(tmp_path: Path) -> None:
    roles = dict.fromkeys(_CASES["conversions"], "Resource")
    found = [
        each
        for each in _report(tmp_path, *_converted_crds(), roles=roles)
        if each.id == "import-conversion"
    ]
    needed = {kind: case for kind, case in _CASES["conversions"].items() if case["missing"]}
    lines = (tmp_path / "provider.yaml").read_text().splitlines()
    assert {each.message.split(":")[0] for each in found} == set(needed)
    for each in found:
        kind = each.message.split(":")[0]
        assert lines[each.location.line - 1] == f"  {kind}:"
        for function, fields in needed[kind]["missing"].items():
            version = "v1beta1" if function.endswith("to_hub") else "v1alpha1"
            assert f"{function}, because {version} requires {', '.join(fields)}" in each.message
        assert each.message.count(", because ") == len(needed[kind]["missing"])


def test_the_generated_conversions_fail_where_import_says() -> None:
    found = _converted_provider()
    failing: dict[str, set[str]] = {}
    for file in build(found):
        if f"/{found.package}/conversions/" not in f"/{file.path}":
            continue
        for node in ast.walk(ast.parse(file.text)):
            if isinstance(node, ast.FunctionDef) and "NotImplementedError" in ast.dump(node):
                failing.setdefault(Path(str(file.path)).name, set()).add(node.name)
    modules = {
        f"{resource.module}_v1alpha1.py": set(_CASES["conversions"][resource.kind]["missing"])
        for component in found.components
        for resource in component.resources
        if _CASES["conversions"].get(resource.kind, {}).get("missing")
    }
    assert failing == modules


def _control_plane(
    kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None, **parts: Any
) -> dict[str, Any]:
    """Return the CRD of a control plane that follows contract v1beta1."""
    properties, required = _fields(spec)
    settings = {
        "spec": properties,
        "around": {"required": required},
        "status": _STATUS | (status or {}),
    }
    plane = crd(kind, group=_PLANES, **settings, **parts)
    labels = plane["metadata"]["labels"]
    versions = (each["name"] for each in plane["spec"]["versions"])
    labels["cluster.x-k8s.io/v1beta1"] = "_".join(sorted(versions))
    del labels["cluster.x-k8s.io/v1beta2"]
    return plane


@pytest.mark.parametrize("kind", _CASES["movedFields"])
def test_fields_at_another_path_come_back(kind: str, tmp_path: Path) -> None:
    case = _CASES["movedFields"][kind]
    older = [_older_version(case["spoke"], _STATUS)] if "spoke" in case else []
    plane = _control_plane(kind, case["spec"], versions=older)
    assert _report(tmp_path, plane) == ()
    written = yaml.safe_load((tmp_path / "provider.yaml").read_text())["controlPlane"][kind]
    place = written["versions"]["v1alpha1"] if older else written
    assert place["contractFields"]["paths"] == case["paths"]
    # The paths alone describe the fields: the author's types do not have them.
    names = {path.split(".")[1] for path in case["paths"].values()}
    assert names.isdisjoint(place.get("spec", {}))
    (found,) = imported(plane).crds
    assert [each for each in found.differences if each.field.startswith(".spec")] == []


@pytest.mark.parametrize("kind", _CASES["controlPlanes"])
def test_a_control_plane_without_a_version_says_so(kind: str, tmp_path: Path) -> None:
    case = _CASES["controlPlanes"][kind]
    (found,) = _report(tmp_path, _control_plane(kind, case["spec"], status=case["status"]))
    assert (found.id, str(found.severity)) == ("import-control-plane", "info")
    assert found.message.startswith(f"{kind}: the CRD has no {case['lacks']}")
    text = (tmp_path / "provider.yaml").read_text()
    assert text.splitlines()[found.location.line - 1] == f"  {kind}:"
    loaded = load_text(text, "provider.yaml").provider
    assert loaded is not None
    (plane,) = (each for each in loaded.resources if str(each.kind) == kind)
    assert "version" not in build_example_control_plane(plane, loaded)


@pytest.mark.parametrize("kind", _CASES["withoutMachines"])
def test_a_provider_without_machines_says_so(kind: str, tmp_path: Path) -> None:
    (found,) = _report(tmp_path, crd(kind, status={"ready": {"type": "boolean"}}))
    assert (found.id, str(found.severity)) == ("import-machines", "info")
    written = yaml.safe_load((tmp_path / "provider.yaml").read_text())
    assert written["machines"] is False
    assert list(written["infrastructure"]) == [kind]
    assert load_text((tmp_path / "provider.yaml").read_text(), "provider.yaml").provider
