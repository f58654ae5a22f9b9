"""Check that clusterctl can use cluster templates and ClusterClasses, and check all variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import EXAMPLE_FOLDERS, Artefact
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, text_of
from capsmith.manifests.variables import Trouble, Variable, find_required, scan
from capsmith.yamldoc.compose import Path, format_path


@check("flavor-namespace")
def check_flavor_namespace(context: Context) -> Iterator[Violation]:
    """CC-71: All objects are in one namespace, and the template contains no Namespace."""
    for found in _by_file(context, Artefact.CLUSTER_TEMPLATE).values():
        namespaces: dict[str, Manifest] = {}
        for manifest in found:
            if manifest.kind == "Namespace":
                yield Violation(manifest, f"{manifest} is in a cluster template", path=("kind",))
            elif text_of(manifest.document, "metadata", "namespace"):
                namespaces.setdefault(manifest.document["metadata"]["namespace"], manifest)
        if len(namespaces) > 1:
            yield Violation(
                list(namespaces.values())[1],
                f"several namespaces: {', '.join(namespaces)}",
                path=("metadata", "namespace"),
            )


@dataclass(frozen=True, slots=True)
class Variables:
    """Variables that cluster templates should contain, for the check ``flavor-variables``."""

    variables: tuple[str, ...]
    """Variables that a cluster template should contain, except for those below."""
    of_machines: tuple[str, ...] = ()
    """Variables that are not needed if the template's control plane has no Machines."""
    of_namespaces: tuple[str, ...] = ()
    """Variables that are not needed if none of the template's objects has a namespace."""


@check("flavor-variables", Variables)
def check_flavor_variables(context: Context, params: Variables) -> Iterator[Violation]:
    """CC-72: The template has the variables that ``clusterctl generate cluster`` sets."""
    for found in _by_file(context, Artefact.CLUSTER_TEMPLATE).values():
        variables = _scan(found[0].text)
        used = {name for each in variables for name in (each.name, *each.inner)}
        if _is_managed(context, found):
            used.update(params.of_machines)
        if not any(text_of(each.document, "metadata", "namespace") for each in found):
            used.update(params.of_namespaces)
        missing = [name for name in params.variables if name not in used]
        if missing:
            yield Violation(found[0], f"common variables are not used: {', '.join(missing)}")


@check("class-file-name")
def check_class_file_name(context: Context) -> Iterator[Violation]:
    """CC-73: The file name contains the ClusterClass's name, which clusterctl looks for."""
    for found in _by_file(context, Artefact.CLUSTER_CLASS).values():
        name = found[0].base_name.removeprefix("clusterclass-").removesuffix(".yaml")
        classes = [manifest.name for manifest in found if manifest.kind == "ClusterClass"]
        # clusterctl looks for the class among the files of a release, where no example is.
        if EXAMPLE_FOLDERS.intersection(PurePosixPath(found[0].file).parts[:-1]):
            continue
        if name not in classes:
            classes = ["a name with a variable" if has_variable(each) else each for each in classes]
            yield Violation(
                found[0],
                f"the file has no ClusterClass {name}; found: {', '.join(classes) or 'none'}",
            )


@check("class-plain")
def check_class_plain(context: Context) -> Iterator[Violation]:
    """CC-74: A ClusterClass file has no variables, no namespaces, and no other file's objects."""
    owners: dict[tuple[str, str], str] = {}
    for file, found in _by_file(context, Artefact.CLUSTER_CLASS).items():
        for variable in _scan(found[0].text):
            yield Violation(found[0], f"variable {variable.text} in a ClusterClass", variable.line)
        for manifest in found:
            if text_of(manifest.document, "metadata", "namespace"):
                yield Violation(
                    manifest, f"{manifest} has a namespace", path=("metadata", "namespace")
                )
            # In a provider's template, such a field belongs to the author and is not resolved by
            # core.
            if manifest.kind == "ClusterClass":
                for path in _namespaced_refs(manifest.mapping("spec"), ("spec",)):
                    message = f"{manifest}: {format_path(path)} has a namespace"
                    yield Violation(manifest, message, path=(*path, "namespace"))
            other = owners.setdefault((manifest.kind, manifest.name), file)
            if other != file:
                yield Violation(
                    manifest, f"{manifest} is also in {other}", path=("metadata", "name")
                )


def _namespaced_refs(data: Any, path: Path) -> Iterator[Path]:
    """Yield the paths to references (kind and name) that contain a namespace."""
    entry = mapping_of(data)
    if {"kind", "name", "namespace"} <= set(entry):
        yield path
    below = enumerate(data) if isinstance(data, list) else entry.items()
    for step, value in below:
        yield from _namespaced_refs(value, (*path, step))


def _is_managed(context: Context, template: list[Manifest]) -> bool:
    """Return whether the control plane of a cluster template certainly has no Machines (CP-25)."""
    cluster = next((each for each in template if each.kind == "Cluster"), None)
    if cluster is None:
        return False
    topology = cluster.mapping("spec", "topology")
    if topology:
        name = text_of(topology, "classRef", "name") or text_of(topology, "class")
        classes = context.bundle.files(Artefact.CLUSTER_CLASS)
        found = [each for each in classes if (each.kind, each.name) == ("ClusterClass", name)]
        return any("machineInfrastructure" not in _of_class(each) for each in found)
    kind = text_of(cluster.document, "spec", "controlPlaneRef", "kind")
    return any(
        each.kind == kind and not {"machineTemplate", "replicas"} & set(each.mapping("spec"))
        for each in template
    )


def _of_class(cluster_class: Manifest) -> Mapping[str, Any]:
    return cluster_class.mapping("spec", "controlPlane")


def _by_file(context: Context, wanted: Artefact) -> dict[str, list[Manifest]]:
    files: dict[str, list[Manifest]] = {}
    for manifest in context.bundle.files(wanted):
        files.setdefault(manifest.file, []).append(manifest)
    return files


_MEANING = {
    Trouble.SYNTAX: "is malformed",
    Trouble.EMPTY: "has no default and must be set",
}
_ALWAYS = (Artefact.COMPONENTS, Artefact.CLUSTER_TEMPLATE)


@dataclass(frozen=True, slots=True)
class TroubleKind:
    """The problem that ``variable-trouble`` reports: ``syntax`` or ``empty``."""

    trouble: str


@check("variable-trouble", TroubleKind, is_shared=True)
def check_variable_trouble(context: Context, params: TroubleKind) -> Iterator[Violation]:
    """CC-40, CC-41: Variables have a form that clusterctl accepts, and no default is empty."""
    trouble = Trouble(params.trouble)
    for manifest, variables in _files(context, (*_ALWAYS, Artefact.SOURCE)):
        for variable in variables:
            # clusterctl refuses a file because of an invalid form even in a comment.
            if variable.trouble is trouble and (
                trouble is Trouble.SYNTAX or not variable.commented
            ):
                message = f"variable {variable.text} {_MEANING[trouble]}"
                yield Violation(manifest, message, variable.line)


@dataclass(frozen=True, slots=True)
class Given:
    """Variables that never need a default, because clusterctl provides their values."""

    given: tuple[str, ...]


@check("variable-unasked", Given)
def check_variable_unasked(context: Context, params: Given) -> Iterator[Violation]:
    """CC-42: If any occurrence of a variable has no default, the first one has none either.

    clusterctl requires a value only if the first occurrence has no default; elsewhere, a missing
    value becomes an empty string.
    """
    for manifest, variables in _files(context, _ALWAYS):
        known = {*find_required(variables), *params.given}
        for variable in variables:
            if variable.commented or variable.trouble is Trouble.SYNTAX:
                continue
            own = () if variable.default is not None else (variable.name,)
            for name in (*own, *variable.inner):
                if name not in known:
                    known.add(name)
                    message = f"clusterctl does not require {name} in {variable.text}"
                    yield Violation(manifest, f"{message}; if unset, it is empty", variable.line)


@check("variable-commented", is_shared=True)
def check_variable_commented(context: Context) -> Iterator[Violation]:
    """CC-43: No variable occurs only in comments, because clusterctl would still require it."""
    for manifest, variables in _files(context, _ALWAYS):
        used = find_required(variable for variable in variables if not variable.commented)
        for name in sorted(find_required(variables) - used):
            first = next(variable for variable in variables if variable.name == name)
            yield Violation(manifest, f"a comment contains variable {first.text}", first.line)


# Several checks read the files of a provider one after another.
_scan = lru_cache(16)(scan)


def _files(
    context: Context, artefacts: tuple[Artefact, ...]
) -> Iterator[tuple[Manifest, tuple[Variable, ...]]]:
    """Yield each file, represented by its first object, with the variables in the file."""
    seen: set[str] = set()
    for manifest in (m for artefact in artefacts for m in context.bundle.files(artefact)):
        if manifest.file not in seen:
            seen.add(manifest.file)
            yield manifest, _scan(manifest.text)
