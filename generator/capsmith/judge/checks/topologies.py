"""Check Clusters of cluster templates against the ClusterClass of the same release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.cluster_classes import list_classes
from capsmith.judge.checks.mismatches import Mismatch, find_value_mismatches
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.null_keywords import drop_null_keywords
from capsmith.manifests.parse import Manifest, has_variable, list_of, mapping_of, may_vary, text_of
from capsmith.yamldoc.compose import Path

_TOPOLOGY = ("spec", "topology")
_WORKERS = ("machineDeployments", "machinePools")


@check("topology-fits", is_shared=True)
def check_topology_fits(context: Context) -> Iterator[Violation]:
    """TP-25: A Cluster has the variables and workers that its ClusterClass defines."""
    classes = {manifest.name: manifest for manifest in list_classes(context)}
    for manifest in context.bundle.files(Artefact.CLUSTER_TEMPLATE):
        topology = manifest.mapping(*_TOPOLOGY)
        name = text_of(topology, "classRef", "name") or text_of(topology, "class")
        if manifest.kind != "Cluster" or name not in classes or has_variable(name):
            continue
        for mismatch in _find_mismatches(topology, classes[name]):
            where = mismatch.varies_with
            if where is None or not may_vary(manifest, where, mismatch.is_deep):
                place = ".".join(map(str, mismatch.path))
                message = f"{manifest}: {place} {mismatch.message}"
                yield Violation(manifest, message, path=mismatch.path)


def _find_mismatches(topology: Mapping[str, Any], of_class: Manifest) -> Iterator[Mismatch]:
    variables = _Variables(of_class)
    yield from variables.find_mismatches(topology, (*_TOPOLOGY, "variables"))
    given = {text_of(each, "name") for each in list_of(topology, "variables")}
    for name in variables.required if not any(map(has_variable, given)) else ():
        if name not in given:
            message = f"has no {name}, which {of_class} requires"
            yield Mismatch((*_TOPOLOGY, "variables"), message)
    control_plane = mapping_of(topology, "controlPlane", "variables")
    path: Path = (*_TOPOLOGY, "controlPlane", "variables")
    yield from variables.find_mismatches(control_plane, (*path, "overrides"))
    for key in _WORKERS:
        known = {text_of(each, "class") for each in of_class.listing("spec", "workers", key)}
        for number, worker in enumerate(list_of(topology, "workers", key)):
            here: Path = (*_TOPOLOGY, "workers", key, number)
            name = text_of(worker, "class")
            if name and name not in known and not any(map(has_variable, (name, *known))):
                yield Mismatch((*here, "class"), f"is {name}, which {of_class} does not have")
            overrides = mapping_of(worker, "variables")
            yield from variables.find_mismatches(overrides, (*here, "variables", "overrides"))


class _Variables:
    """The variables of a ClusterClass."""

    def __init__(self, of_class: Manifest) -> None:
        self._of_class = of_class
        self._schemas = {
            text_of(each, "name"): drop_null_keywords(mapping_of(each, "schema", "openAPIV3Schema"))
            for each in of_class.listing("spec", "variables")
        }
        self.required = tuple(
            text_of(each, "name")
            for each in of_class.listing("spec", "variables")
            if mapping_of(each).get("required") is True
            and mapping_of(each, "schema", "openAPIV3Schema").get("default") is None
        )
        # An extension defines further variables, which are known only while it runs.
        self._is_closed = not any(
            text_of(patch, "external", "discoverVariablesExtension")
            for patch in of_class.listing("spec", "patches")
        )

    def find_mismatches(self, parent: Any, path: Path) -> Iterator[Mismatch]:
        """Yield the values of a list of variables that core's webhook refuses.

        The list is in the last field of ``path``, which is a field of ``parent``.
        """
        for number, variable in enumerate(list_of(parent, str(path[-1]))):
            name, value = text_of(variable, "name"), mapping_of(variable).get("value")
            if not name or has_variable(name):
                continue
            if name in self._schemas:
                schema, where = self._schemas[name], (*path, number, "value")
                yield from find_value_mismatches(schema, value, where, True)
            elif self._is_closed:
                message = f"is {name}, which {self._of_class} does not define"
                yield Mismatch((*path, number, "name"), message)
