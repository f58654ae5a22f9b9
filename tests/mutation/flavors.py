"""Break cluster templates, classes and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import Crd, walk_schema
from capsmith.manifests.parse import Manifest, mapping_of, may_vary
from capsmith.manifests.variables import Trouble, scan
from capsmith.provider_yaml.string_formats import is_of_format
from tests.class_operations import REFUSED
from tests.core_mistakes import OF_CLASSES
from tests.mutation.components import first_of
from tests.mutation.mutants import Document, Mutant, Site, added, drop, edited, operator, put

_ALWAYS = (Artefact.COMPONENTS, Artefact.CLUSTER_TEMPLATE)
_OBJECT = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\ndata:\n  a: {}\n"
_TEMPLATES = (
    "{{ if .builtin }}true",
    "{{ .builtin.cluster.name",
    "{{ .builtin | undefined }}",
    "{{ $undefined }}",
    "{{ .undefinedVariable }}",
)
"""What core's webhook refuses, and a variable that no class defines."""
_TEMPLATE, _CLASS = Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS


@operator("variable-trouble")
def variable_trouble(site: Site) -> Iterator[Mutant]:
    forms = ("${A:=}", "${A:-}") if site.params.trouble == Trouble.EMPTY else ("${A-1}", "${}")
    for form in forms:
        yield from _appended(site, _OBJECT.replace("{}", form))
    if site.params.trouble == Trouble.SYNTAX:
        yield from _appended(site, "# ${A.B}\n")


@operator("variable-unasked")
def variable_unasked(site: Site) -> Iterator[Mutant]:
    yield from _appended(site, _OBJECT.replace("{}", "${ONE:=${TWO}}"))


@operator("variable-commented")
def variable_commented(site: Site) -> Iterator[Mutant]:
    yield from _appended(site, "# ${ONLY_HERE}\n")


def _appended(site: Site, text: str) -> Iterator[Mutant]:
    for artefact in _ALWAYS:
        for manifest in first_of(site.bundle.files(artefact)):
            whole = manifest.text + text
            yield Mutant(f"{manifest.file}: {text.strip()!r}", {}, {}, {manifest.file: whole})


@operator("flavor-namespace")
def flavor_namespace(site: Site) -> Iterator[Mutant]:
    for manifest in first_of(site.bundle.files(_TEMPLATE)):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        yield added(manifest, namespace)
        config = {**namespace, "kind": "ConfigMap"}
        elsewhere = [{**config, "metadata": {"name": n, "namespace": n}} for n in ("one", "two")]
        several = (dict(manifest.document), *elsewhere)
        yield Mutant(f"{manifest.file}: several namespaces", {id(manifest): several})


@operator("flavor-variables")
def flavor_variables(site: Site) -> Iterator[Mutant]:
    for manifest in first_of(site.bundle.files(_TEMPLATE)):
        used = {variable.name for variable in scan(manifest.text)}
        for name in site.params.variables:
            if name in used:
                text = re.sub(rf"\b{name}\b", "OTHER", manifest.text)
                yield Mutant(f"{manifest.file}: no {name}", {}, {}, {manifest.file: text})


@operator("class-file-name")
def class_file_name(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.files(_CLASS):
        if manifest.kind == "ClusterClass":
            yield edited(manifest, "another name", put(("metadata", "name"), "other"))
            name = manifest.file.replace("clusterclass-", "clusterclass-other-")
            yield Mutant(f"{manifest.file} called {name}", {}, {manifest.file: name})


@operator("class-plain")
def class_plain(site: Site) -> Iterator[Mutant]:
    for manifest in site.bundle.files(_CLASS):
        yield edited(manifest, "a namespace", put(("metadata", "namespace"), "default"))
        if manifest.kind == "ClusterClass":
            reference = next(iter(manifest.mapping("spec", "infrastructure")))
            place = ("spec", "infrastructure", reference, "namespace")
            yield edited(manifest, "a reference with a namespace", put(place, "default"))
            text = manifest.text + "# ${A}\n"
            yield Mutant(f"{manifest.file}: a variable", {}, {}, {manifest.file: text})


@operator("class-patches")
def class_patches(site: Site) -> Iterator[Mutant]:
    known = site.bundle.known_crds
    for manifest in (*site.bundle.files(_CLASS), *site.bundle.files(_TEMPLATE)):
        for number, patch in enumerate(manifest.listing("spec", "patches")):
            place = ("spec", "patches", number, "definitions", 0)
            definition = patch["definitions"][0]
            yield edited(manifest, "another kind", put((*place, "selector", "kind"), "Other"))
            operation = (*place, "jsonPatches", 0)
            if definition["jsonPatches"][0].get("valueFrom", {}).get("variable"):
                variable = (*operation, "valueFrom", "variable")
                yield edited(manifest, "another variable", put(variable, "undefined"))
            group = definition["selector"]["apiVersion"].partition("/")[0]
            if (group, definition["selector"]["kind"]) in known:
                path = "/spec/template/spec/undeclared"
                yield edited(manifest, f"path {path}", put((*operation, "path"), path))
                whole = {"op": "add", "path": "/spec/template/spec", "value": "other"}
                yield edited(manifest, "a text for a mapping", put(operation, whole))


@operator("class-operations")
def class_operations(site: Site) -> Iterator[Mutant]:
    for manifest in (*site.bundle.files(_CLASS), *site.bundle.files(_TEMPLATE)):
        for number, _ in enumerate(manifest.listing("spec", "patches")):
            operations = ("spec", "patches", number, "definitions", 0, "jsonPatches")
            for refused in REFUSED:
                yield edited(manifest, f"operation {refused}", put((*operations, 0), refused))


@operator("class-templates")
def class_templates(site: Site) -> Iterator[Mutant]:
    for manifest in (*site.bundle.files(_CLASS), *site.bundle.files(_TEMPLATE)):
        for number, patch in enumerate(manifest.listing("spec", "patches")):
            value = ("definitions", 0, "jsonPatches", 0, "valueFrom")
            for place in (("enabledIf",), (*value, "template")):
                if place[0] in patch:
                    for text in _TEMPLATES:
                        edit = put(("spec", "patches", number, *place), text)
                        yield edited(manifest, f"{place[-1]} is {text}", edit)
                else:
                    edit = put(("spec", "patches", number, *place), _TEMPLATES[0])
                    yield edited(manifest, f"{place[-1]} is {_TEMPLATES[0]}", edit)


@operator("objects-fit")
def objects_fit(site: Site) -> Iterator[Mutant]:
    crds = site.bundle.known_crds
    for manifest in (*site.bundle.files(_CLASS), *site.bundle.files(_TEMPLATE)):
        crd = crds.get((manifest.api_group, manifest.kind))
        yield edited(manifest, "a label", put(("metadata", "labels", "seeded"), True))
        if crd is None:
            yield from _with_other_references(manifest, site.params)
            continue
        yield edited(manifest, "an unknown field", put(("spec", "undeclared"), True))
        other = f"{manifest.api_group}/v99"
        yield edited(manifest, f"apiVersion {other}", put(("apiVersion",), other))
        yield edited(manifest, "spec is a text", put(("spec",), "text"))
        yield from _empty(manifest)
        # A webhook may add what is missing.
        is_complete = not site.bundle.all_of("MutatingWebhookConfiguration")
        yield from _beyond_limits(manifest, crd, is_complete)


def _with_other_references(manifest: Manifest, params: Any) -> Iterator[Mutant]:
    """Yield the mutants in which a reference has the form of another API version."""
    for form in params.references:
        for place in form.places if form.api_version == manifest.document["apiVersion"] else ():
            path = tuple(place.path.split("."))
            if manifest.kind in place.kinds and mapping_of(manifest.document, *path):
                key = "apiGroup" if "apiVersion" in form.keys else "apiVersion"
                yield edited(manifest, f"{place.path} has {key}", put((*path, key), "a.b"))
                yield edited(manifest, f"{place.path} has no name", drop((*path, "name")))


def _beyond_limits(manifest: Manifest, crd: Crd, is_complete: bool) -> Iterator[Mutant]:
    """Yield the mutants in which a value is beyond a limit or missing, where no variable is."""
    name = manifest.document["apiVersion"].rpartition("/")[2]
    for version in crd.versions:
        for path, schema in walk_schema(version.schema) if version.name == name else ():
            steps = tuple(path.split("."))
            if steps[0] != "spec" or "[]" in path or "{}" in path or may_vary(manifest, steps):
                continue
            for key, value in _beyond(schema):
                yield edited(manifest, f"{path} breaks {key}", put(steps, value))
            present = mapping_of(manifest.document, *steps)
            for required in sorted(set(present) & set(schema.get("required", ()))):
                if is_complete:
                    yield edited(manifest, f"{path} has no {required}", drop((*steps, required)))


def _beyond(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield limits of a schema with a value of its type that is beyond them."""
    number = schema.get("type") in {"integer", "number"}
    if "enum" in schema:
        yield "enum", "none of them"
    if schema.get("type") == "string" and not is_of_format(schema.get("format", ""), "\0"):
        yield "format", "\0"
    list_type = schema.get("x-kubernetes-list-type")
    if list_type in ("set", "map"):
        yield f"the list type {list_type}", [{}, {}] if list_type == "map" else ["a", "a"]
    for key, value in (
        ("maxLength", "a" * (schema.get("maxLength", 0) + 1)),
        ("minItems", []),
        ("maxItems", [None] * (schema.get("maxItems", 0) + 1)),
        ("minimum", schema.get("minimum", 0) - 1 if number else None),
        ("maximum", schema.get("maximum", 0) + 1 if number else None),
        ("pattern", "\0"),
    ):
        if key in schema:
            yield key, value


def _empty(manifest: Manifest) -> Iterator[Mutant]:
    """Yield the mutant with an unknown field deep in a template."""
    if manifest.kind.endswith("Template"):
        place = ("spec", "template", "spec", "undeclared")
        yield edited(manifest, "an unknown field below", put(place, True))


@operator("template-references")
def template_references(site: Site) -> Iterator[Mutant]:
    for manifest in _list_classes(site):
        for part in ("infrastructure", "controlPlane"):
            for field in ("templateRef", "ref"):
                if field in manifest.mapping("spec", part):
                    path = ("spec", part, field, "name")
                    yield edited(manifest, f"another {part}", put(path, "other"))


@operator("topology-fits")
def topology_fits(site: Site) -> Iterator[Mutant]:
    names = {manifest.name for manifest in _list_classes(site)}
    for manifest in site.bundle.files(_TEMPLATE):
        topology = manifest.mapping("spec", "topology")
        used = mapping_of(topology, "classRef").get("name") or topology.get("class")
        if used not in names:
            continue
        unknown = [{"name": "undefinedVariable", "value": 1}]
        yield edited(manifest, "a variable", put(("spec", "topology", "variables"), unknown))
        workers = [{"class": "undefined", "name": "w"}]
        path = ("spec", "topology", "workers", "machineDeployments")
        yield edited(manifest, "a class of workers", put(path, workers))


def _list_classes(site: Site) -> Iterator[Manifest]:
    for artefact in (_TEMPLATE, _CLASS):
        for manifest in site.bundle.files(artefact):
            if manifest.kind == "ClusterClass":
                yield manifest


@operator("class-definition")
def class_definition(site: Site) -> Iterator[Mutant]:
    for manifest in (*site.bundle.files(_CLASS), *site.bundle.files(_TEMPLATE)):
        is_newest = manifest.document["apiVersion"] == "cluster.x-k8s.io/v1beta2"
        if manifest.kind == "ClusterClass" and is_newest and manifest.listing("spec", "variables"):
            for mistake in OF_CLASSES:
                changed = mistake.applied(manifest.document)
                text = f"{'.'.join(map(str, mistake.path))} is {mistake.value}"
                yield edited(manifest, text, partial(_replace, changed))


def _replace(new: Document, document: Document) -> None:
    document.update(new)
