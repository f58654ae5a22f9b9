"""Check ClusterClass patches: selected templates, paths, variables, operations, Go templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from capsmith.judge.checks.patch_values import explain_value
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import OPEN, Crd
from capsmith.manifests.go_template import TemplateError, parse_template
from capsmith.manifests.parse import (
    SAMPLE,
    Manifest,
    has_variable,
    list_of,
    mapping_of,
    text_of,
    texts_of,
)
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import join_names

_BUILTIN = "builtin"
_WITH_VALUE = frozenset({"add", "replace"})
_INDEX = re.compile(r"[+-]?0*[0-9]{1,19}")
"""What Go reads as a number, if it is not too large for 64 bits."""
_SMALLEST_INDEX, _LARGEST_INDEX = -(2**63), 2**63 - 1
_ROOT = re.compile(r"[^.\[]+")
_ANY = re.escape(SAMPLE)
_RESERVED = "inline"
"""Name that core gives the variables of the class itself."""
_EXTENSIONS = (
    *("generatePatchesExtension", "validateTopologyExtension"),
    *("generateExtension", "validateExtension"),
)
"""Fields of external patches of which core requires one; the last two are those of v1beta1."""
_CLASSES = {
    "machineDeploymentClass": "machineDeployments",
    "machinePoolClass": "machinePools",
}
"""Fields of a selector, each with the list of worker classes that it refers to."""
_APPLIED = "the patch is applied"


@check("class-patches", is_shared=True)
def check_class_patches(context: Context) -> Iterator[Violation]:
    """TP-22: Each ClusterClass patch selects a template and uses only declared names."""
    known = context.bundle.known_crds
    for manifest in list_classes(context):
        written = list(_list_written_fields(manifest, known))
        for path, message in (*_find_undefined(manifest), *_find_undeclared(written)):
            yield Violation(manifest, f"{manifest}: {message}", path=path)
        yield from _find_wrong_values(manifest, written)


def list_classes(context: Context) -> Iterator[Manifest]:
    """Yield the ClusterClasses of a release."""
    for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS):
        for manifest in context.bundle.files(artefact):
            if manifest.kind == "ClusterClass":
                yield manifest


class _Operation(NamedTuple):
    """A JSON patch operation of a ClusterClass."""

    path: Path
    """Where it is in the ClusterClass."""
    patch: str
    """The name of its patch."""
    definition: Any
    """What selects the templates that it changes."""
    value: Any


def _list_operations(manifest: Manifest) -> Iterator[_Operation]:
    for number, patch in enumerate(manifest.listing("spec", "patches")):
        for index, definition in enumerate(list_of(patch, "definitions")):
            path: Path = ("spec", "patches", number, "definitions", index, "jsonPatches")
            for place, value in enumerate(list_of(definition, "jsonPatches")):
                yield _Operation((*path, place), text_of(patch, "name"), definition, value)


def _find_undefined(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Yield selectors that match nothing in the class, and variables that it does not define."""
    spec = manifest.mapping("spec")
    variables = {text_of(each, "name") for each in manifest.listing("spec", "variables")}
    for number, patch in enumerate(manifest.listing("spec", "patches")):
        name = text_of(patch, "name")
        for index, definition in enumerate(list_of(patch, "definitions")):
            path: Path = ("spec", "patches", number, "definitions", index)
            selector = mapping_of(definition, "selector")
            for message in _unmatched(selector, spec):
                yield (*path, "selector"), f"patch {name} selects {message}"
            undefined = dict(_undefined(definition, variables))
            if undefined:
                message = f"patch {name} reads variables that the class does not define: "
                first = min(undefined.values())
                yield (*path, "jsonPatches", first), message + ", ".join(sorted(undefined))


class _Field(NamedTuple):
    """A field that a patch writes."""

    is_declared: bool
    """Whether it is declared, or this cannot be decided."""
    schema: Any = None
    """None if it is unknown."""


class _Written(NamedTuple):
    """An operation whose kind has a CRD, and the field that it writes."""

    operation: _Operation
    crd: Crd
    field: _Field


def _list_written_fields(
    manifest: Manifest, known: Mapping[tuple[str, str], Crd]
) -> Iterator[_Written]:
    """Yield the operations whose kind has a CRD."""
    # A patch of such a template is judged by the kind that core creates from it, because only that
    # reaches the API server.
    made = {_kind(each) for each in _made_from(manifest.mapping("spec"))}
    for each in _list_operations(manifest):
        kind, target = _kind(mapping_of(each.definition, "selector")), text_of(each.value, "path")
        crd, pointer = _changed(kind, target, kind in made, known)
        if crd is not None:
            yield _Written(each, crd, _find_field(crd, each.definition, pointer))


def _find_undeclared(written: Sequence[_Written]) -> Iterator[tuple[Path, str]]:
    """Yield the operations that write fields which the CRD does not declare."""
    for operation, crd, field in written:
        if not field.is_declared:
            target = text_of(operation.value, "path")
            message = f"patch {operation.patch} writes {target}, which {crd.kind} does not declare"
            yield (*operation.path, "path"), message


def _find_wrong_values(manifest: Manifest, written: Sequence[_Written]) -> Iterator[Violation]:
    """Yield the operations that write values which the API server refuses in their field."""
    variables = {
        text_of(each, "name"): mapping_of(each, "schema", "openAPIV3Schema")
        for each in manifest.listing("spec", "variables")
    }
    for operation, crd, field in written:
        why = explain_value(operation.value, field.schema, variables)
        if why:
            message = f"{manifest}: patch {operation.patch} of {crd.kind}: {why}"
            yield Violation(manifest, message, path=operation.path, when=_APPLIED)


def _changed(
    kind: tuple[str, str], pointer: str, made: bool, known: Mapping[tuple[str, str], Crd]
) -> tuple[Crd | None, str]:
    """Return the CRD whose schema must declare a patched field, and the JSON pointer in that kind.

    ``made`` is whether core patches the template in memory, as it does for the infrastructure
    cluster and the control plane; only objects created from such templates reach the API server.
    """
    if not made:
        return known.get(kind), pointer
    group, name = kind
    return known.get((group, name.removesuffix("Template"))), pointer.removeprefix("/spec/template")


def _undefined(definition: Any, variables: Set[str]) -> Iterator[tuple[str, int]]:
    """Yield undefined variables, each with the index of the JSON patch operation that uses it."""
    defined = {*variables, _BUILTIN}
    for place, operation in reversed(list(enumerate(list_of(definition, "jsonPatches")))):
        root = _ROOT.search(text_of(operation, "valueFrom", "variable"))
        if root and text_of(operation, "op") in _WITH_VALUE and root[0] not in defined:
            yield root[0], place


def _unmatched(selector: Any, spec: Any) -> Iterator[str]:
    """Yield the parts of a selector that match no template; core requires every part to match."""
    kind = text_of(selector, "kind")
    selected = (text_of(selector, "apiVersion"), kind)
    parts = dict(_matched(mapping_of(selector, "matchResources"), spec))
    if not parts:
        yield f"{kind}, but matchResources enables nothing"
    for place, references in parts.items():
        found = [(text_of(each, "apiVersion"), text_of(each, "kind")) for each in references]
        if selected not in found:
            versions = [version for version, other in found if other == kind]
            instead = f"; there it is {versions[0]}" if versions else ""
            yield f"{' '.join(selected)}, which the class does not use for {place}{instead}"


def _matched(resources: Any, spec: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield each enabled part of a selector with the references that the part can match."""
    if resources.get("infrastructureCluster") is True:
        yield "the infrastructure cluster", [_reference(mapping_of(spec, "infrastructure"))]
    if resources.get("controlPlane") is True:
        yield "the control plane", list(_of_control_plane(spec))
    for field, group in _CLASSES.items():
        workers = list_of(spec, "workers", group)
        for name in texts_of(resources, field, "names"):
            # Core allows one star, at the beginning or end of a name.
            if "*" in name[1:-1] or name.count("*") > 1:
                yield f"{field} {name}", []
                continue
            # A clusterctl variable may have any value.
            pattern = re.compile(re.escape(name).replace(r"\*", ".*").replace(_ANY, ".*"))
            yield f"{field} {name}", [
                reference
                for worker in workers
                if pattern.fullmatch(text_of(worker, "class")) or SAMPLE in text_of(worker, "class")
                for reference in _of_worker(worker)
            ]


def _made_from(spec: Any) -> tuple[Any, Any]:
    """Return the references to the templates that core patches only in memory."""
    infrastructure, control_plane = (
        mapping_of(spec, field) for field in ("infrastructure", "controlPlane")
    )
    return _reference(infrastructure), _reference(control_plane)


def _of_control_plane(spec: Any) -> tuple[Any, Any]:
    control_plane = mapping_of(spec, "controlPlane")
    machines = mapping_of(control_plane, "machineInfrastructure")
    return _reference(control_plane), _reference(machines)


def _of_worker(worker: Any) -> tuple[Any, Any]:
    # Until v1beta1 of ClusterClass, both are in a field called template.
    parts = mapping_of(worker, "template") or worker
    bootstrap, infrastructure = (
        mapping_of(parts, field) for field in ("bootstrap", "infrastructure")
    )
    return _reference(bootstrap), _reference(infrastructure)


def _reference(parent: Any) -> Any:
    return mapping_of(parent, "templateRef") or mapping_of(parent, "ref")


def _kind(reference: Any) -> tuple[str, str]:
    return text_of(reference, "apiVersion").rpartition("/")[0], text_of(reference, "kind")


def _find_field(crd: Crd, definition: Any, pointer: str) -> _Field:
    """Return the field to which a JSON pointer leads."""
    name = text_of(definition, "selector", "apiVersion").rpartition("/")[2]
    schema: Any = next((each.schema for each in crd.versions if each.name == name), None)
    for part in pointer.removeprefix("/").split("/"):
        data = mapping_of(schema)
        # Below this point any field may be declared, so nothing is reported.
        if not data or data.get(OPEN) is True or "${" in part:
            return _Field(True)
        if mapping_of(data, "items"):
            schema = data["items"]
        elif "additionalProperties" in data:
            schema = data["additionalProperties"]
        else:
            # The escapes of JSON pointers (RFC 6901), in this order: `~01` means `~1`.
            step = part.replace("~1", "/").replace("~0", "~")
            schema = mapping_of(data, "properties").get(step)
            if schema is None:
                return _Field(False)
            # The API server itself defines the schema of metadata, and CRDs do not repeat it.
            if step == "metadata":
                return _Field(True)
    return _Field(True, schema)


@dataclass(frozen=True, slots=True)
class BuiltinVariables:
    """What core knows of each cluster and its parts, for the check ``class-operations``."""

    builtins: tuple[str, ...]
    """Names below ``builtin`` that a ``valueFrom.variable`` may have."""


@check("class-operations", BuiltinVariables, is_shared=True)
def check_class_operations(context: Context, params: BuiltinVariables) -> Iterator[Violation]:
    """TP-24: Each operation of a ClusterClass patch is one that core's webhook accepts."""
    builtins = {f"{_BUILTIN}.{each}" for each in params.builtins}
    for manifest in list_classes(context):
        for path, message in find_refused_operations(manifest, builtins):
            yield Violation(manifest, f"{manifest}: {message}", path=path)


def find_refused_operations(manifest: Manifest, builtins: Set[str]) -> Iterator[tuple[Path, str]]:
    """Yield the places in a ClusterClass that core refuses, each with the reason (TP-24)."""
    names: set[str] = set()
    for number, patch in enumerate(manifest.listing("spec", "patches")):
        here: Path = ("spec", "patches", number)
        name = text_of(patch, "name")
        if name in names and not has_variable(name):
            yield (*here, "name"), f"two patches have the name {name}"
        names.add(name)
        yield from (
            ((*here, *field), message) for field, message in _refusals_of_patch(patch, name)
        )
    for each in _list_operations(manifest):
        for field, message in _refusals(each.value, builtins):
            yield (*each.path, *field), f"patch {each.patch}: {message}"


def _refusals_of_patch(patch: Any, name: str) -> Iterator[tuple[Path, str]]:
    """Yield why core refuses a patch, apart from its operations, each with the field."""
    if name == _RESERVED:
        yield ("name",), f"the name {name} is reserved"
    inline, external = (mapping_of(patch).get(key) for key in ("definitions", "external"))
    if (inline is None) == (external is None):
        count = "neither" if inline is None else "both"
        yield (), f"patch {name} has {count} of definitions and external"
    # A variable may stand for any key.
    is_known = isinstance(external, dict) and not any(has_variable(str(key)) for key in external)
    if is_known and not any(map(mapping_of(external).get, _EXTENSIONS)):
        yield ("external",), f"patch {name} names no extension that generates or validates"


def _refusals(operation: Any, builtins: Set[str]) -> Iterator[tuple[Path, str]]:
    """Yield why core refuses an operation, each with the field that the reason is about."""
    op, target = text_of(operation, "op"), text_of(operation, "path")
    if op not in {*_WITH_VALUE, "remove"} and not has_variable(op):
        yield ("op",), f"{op or 'an empty text'} is not an operation: add, replace or remove"
    if not target.startswith("/spec") and not has_variable(target):
        yield ("path",), f"{target or 'an empty path'} does not begin with /spec"
    indexes = [part for part in target.split("/") if _is_index(part)]
    if op == "add" and any(each.strip("+-0") for each in indexes):
        yield ("path",), f"{target} adds to a list neither at the beginning, 0, nor at the end, -"
    if op in {"replace", "remove"} and indexes:
        yield ("path",), f"{target} has an element of a list, which core does not {op}"
    if op in _WITH_VALUE:
        yield from _value_refusals(operation, builtins)


def _is_index(part: str) -> bool:
    """Return whether Go reads a step of a path as a number."""
    if not _INDEX.fullmatch(part):
        return False
    # Python refuses to convert thousands of zeros.
    number = int(part.lstrip("+-").lstrip("0") or "0")
    return _SMALLEST_INDEX <= (-number if part.startswith("-") else number) <= _LARGEST_INDEX


def _value_refusals(operation: Any, builtins: Set[str]) -> Iterator[tuple[Path, str]]:
    has_value, has_source = (
        mapping_of(operation).get(key) is not None for key in ("value", "valueFrom")
    )
    if has_value == has_source:
        yield (), f"an operation has {'both' if has_value else 'neither'} of value and valueFrom"
    if not has_source:
        return
    template, variable = (text_of(operation, "valueFrom", key) for key in ("template", "variable"))
    if bool(template) == bool(variable):
        count = "both" if template else "neither"
        yield ("valueFrom",), f"valueFrom has {count} of template and variable"
    root = _ROOT.search(variable)
    if root and root[0] == _BUILTIN and variable not in builtins and not has_variable(variable):
        yield ("valueFrom", "variable"), f"core has no variable {variable}"


_DISCOVERY = "discoverVariablesExtension"


class _Text(NamedTuple):
    """A Go template in a patch."""

    path: Path
    name: str
    """Description of the template for messages."""
    text: str


@check("class-templates")
def check_class_templates(context: Context) -> Iterator[Violation]:
    """TP-23: Go templates in patches parse and read variables that the class defines."""
    for manifest in list_classes(context):
        yield from _template_problems(manifest)


def _template_problems(manifest: Manifest) -> Iterator[Violation]:
    defined = {text_of(each, "name") for each in manifest.listing("spec", "variables")}
    patches = manifest.listing("spec", "patches")
    # An extension defines further variables, which are known only while it runs.
    is_closed = not any(text_of(patch, "external", _DISCOVERY) for patch in patches)
    for path, name, text in _texts(manifest):
        try:
            template = parse_template(text)
        except TemplateError as error:
            line = text.count("\n", 0, error.position) + 1
            where = f" in line {line} of it" if "\n" in text.strip() else ""
            message = f"{manifest}: {name} does not parse: {error}{where}"
            yield Violation(manifest, message, path=path)
            continue
        unknown = sorted(template.variables - defined - {_BUILTIN})
        if unknown and is_closed:
            message = (
                f"{manifest}: {name} reads {join_names(unknown)}, which the class does not define"
            )
            yield Violation(manifest, message, path=path, when=_APPLIED)


def _texts(manifest: Manifest) -> list[_Text]:
    """Return the Go templates whose text does not depend on a clusterctl variable."""
    found: list[_Text] = []
    for number, patch in enumerate(manifest.listing("spec", "patches")):
        here: Path = ("spec", "patches", number)
        name = f"enabledIf of patch {text_of(patch, 'name')}"
        found.append(_Text((*here, "enabledIf"), name, _enabled_if(patch)))
    for each in _list_operations(manifest):
        if text_of(each.value, "op") in _WITH_VALUE:
            path = (*each.path, "valueFrom", "template")
            text = text_of(each.value, "valueFrom", "template")
            found.append(_Text(path, f"a template of patch {each.patch}", text))
    return [each for each in found if each.text and not has_variable(each.text)]


def _enabled_if(patch: object) -> str:
    return text_of(mapping_of(patch), "enabledIf")
