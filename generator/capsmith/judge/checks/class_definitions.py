"""Check ClusterClasses as core's webhook does: variables, worker classes, names and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.apiextensions.defaults import find_default_faults
from capsmith.judge.checks.apiextensions.structural import Keywords, find_structural_faults
from capsmith.judge.checks.cluster_classes import list_classes
from capsmith.judge.checks.mismatches import find_value_mismatches
from capsmith.judge.checks.name_templates import Names, explain_name
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.judge.checks.semver import SemanticVersion, is_later, parse_tolerant
from capsmith.judge.checks.validations import RULES, find_rule_faults, find_rule_places
from capsmith.manifests.crds import find_wrong_types
from capsmith.manifests.null_keywords import drop_null_keywords
from capsmith.manifests.parse import (
    Manifest,
    find_value,
    has_variable,
    list_of,
    mapping_of,
    may_vary,
    text_of,
)
from capsmith.yamldoc.compose import Path

Refusal = tuple[Path, str]

_RESERVED = "builtin"
_WRAPPER = "variable"
_DEPTH = len(("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", _WRAPPER))
_WORKERS: Mapping[str, Names] = {
    "machineDeployments": {"machineDeployment": {"topologyName": "mdtopology"}},
    "machinePools": {"machinePool": {"topologyName": "mptopology"}},
}
"""Lists of worker classes, each with what the templates of their names may read."""


@check("class-definition", Keywords, is_shared=True)
def check_class_definition(context: Context, params: Keywords) -> Iterator[Violation]:
    """TP-26: Core's webhook accepts each ClusterClass; its patches are checked separately."""
    for manifest in list_classes(context):
        for path, message in find_class_refusals(manifest, params):
            if may_vary(manifest, path):
                continue
            yield Violation(manifest, f"{manifest}: {message}", path=path)


def find_class_refusals(manifest: Manifest, words: Keywords) -> Iterator[Refusal]:
    """Yield the paths in a ClusterClass that core's webhook refuses, each with the reason."""
    yield from _of_variables(manifest, words)
    for key in _WORKERS:
        names: set[str] = set()
        for number, each in enumerate(manifest.listing("spec", "workers", key)):
            name = text_of(each, "class")
            if name in names and not has_variable(name):
                yield ("spec", "workers", key, number, "class"), f"two {key} have the class {name}"
            names.add(name)
    yield from _of_references(manifest.mapping("spec"), ("spec",))
    yield from _of_naming(manifest)
    yield from _of_versions(manifest)
    control_plane = manifest.mapping("spec", "controlPlane")
    for key in ("healthCheck", "machineHealthCheck"):
        if control_plane.get(key) and not control_plane.get("machineInfrastructure"):
            message = "the control plane has health checks without machineInfrastructure"
            yield ("spec", "controlPlane", key), message


def _of_variables(manifest: Manifest, words: Keywords) -> Iterator[Refusal]:
    names: set[str] = set()
    for number, variable in enumerate(manifest.listing("spec", "variables")):
        path: Path = ("spec", "variables", number)
        name = text_of(variable, "name")
        if has_variable(name):
            continue
        if name in names:
            yield (*path, "name"), f"two variables have the name {name}"
        names.add(name)
        if name == _RESERVED or "." in name:
            why = "is reserved" if name == _RESERVED else "has a dot"
            yield (*path, "name"), f"the name of variable {name} {why}"
        schema = mapping_of(variable, "schema").get("openAPIV3Schema")
        if isinstance(schema, Mapping):
            for below, message in _of_schema(schema, words):
                place = (*path, "schema", "openAPIV3Schema", *below)
                yield place, f"the schema of variable {name}: {message}"


def _of_schema(schema: Mapping[str, Any], words: Keywords) -> Iterator[Refusal]:
    """Yield the faults of a variable's schema; core wraps it in an object."""
    schema = drop_null_keywords(schema)
    wrapped = {"type": "object", "properties": {_WRAPPER: schema}}
    # The other checks read a schema of the right types only.
    version = {"schema": {"openAPIV3Schema": wrapped}}
    wrong = list(find_wrong_types({"spec": {"versions": [version]}}))
    if wrong:
        yield from ((path[_DEPTH:], f"must be {what}") for path, what in wrong)
        return
    faults = find_structural_faults(wrapped, words, False) or list(find_default_faults(wrapped))
    for fault in faults:
        yield fault.path[2:], fault.message
    if faults:
        return
    for key in ("enum", "example"):
        values = schema.get(key)
        for value in list_of(schema, key) if key == "enum" else [values]:
            for mismatch in find_value_mismatches({**schema, "enum": []}, value, (), True):
                yield (key,), f"{key} {mismatch.message}"
    for place in find_rule_places(wrapped):
        for rule in place.rules:
            for problem in find_rule_faults(mapping_of(rule), place):
                yield (*place.path[2:], RULES), problem.message


def _of_references(part: Any, path: Path) -> Iterator[Refusal]:
    """Yield the references to kinds that are no templates."""
    for key, value in mapping_of(part).items():
        if key in ("ref", "templateRef"):
            kind = text_of(value, "kind")
            if kind and not kind.endswith("Template") and not has_variable(kind):
                yield (*path, key, "kind"), f"{kind} is not a kind of template"
        elif key not in ("patches", "variables") and isinstance(value, dict):
            yield from _of_references(value, (*path, key))
        elif key in _WORKERS:
            for number, each in enumerate(list_of(part, key)):
                yield from _of_references(each, (*path, key, number))


def _of_naming(manifest: Manifest) -> Iterator[Refusal]:
    """Yield the templates of names that core cannot use."""
    parts: list[tuple[Path, Names]] = [
        (("spec", "infrastructureNamingStrategy"), {}),
        (("spec", "infrastructure", "naming"), {}),
        (("spec", "controlPlane", "naming"), {}),
        (("spec", "controlPlane", "namingStrategy"), {}),
    ]
    for list_name, names in _WORKERS.items():
        for number in range(len(manifest.listing("spec", "workers", list_name))):
            for key in ("naming", "namingStrategy"):
                parts.append((("spec", "workers", list_name, number, key), names))
    for path, names in parts:
        text = text_of(find_value(manifest.document, path), "template")
        problem = explain_name(text, names) if text and not has_variable(text) else ""
        if problem:
            yield (*path, "template"), f"the template of names {text!r} {problem}"


def _of_versions(manifest: Manifest) -> Iterator[Refusal]:
    previous: SemanticVersion | None = None
    for number, text in enumerate(manifest.listing("spec", "kubernetesVersions")):
        path: Path = ("spec", "kubernetesVersions", number)
        if not isinstance(text, str) or has_variable(text):
            return
        version = parse_tolerant(text)
        if version is None:
            yield path, f"{text} is not a version of Kubernetes"
            continue
        if previous is not None:
            minor, next_minor = previous.numbers[1], version.numbers[1]
            if not is_later(version, previous):
                yield path, f"version {text} is not newer than the one before"
            elif next_minor not in (minor, minor + 1):
                yield path, f"version {text} is not of the next minor release"
        previous = version
