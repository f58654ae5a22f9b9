"""Find code that the author must write before an imported provider passes its own tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capsmith.findings import Finding, Location, Severity
from capsmith.output.crd import list_field_paths
from capsmith.output.field_copies import list_function_copies
from capsmith.output.machine_reference import list_other_references
from capsmith.output.python_types import ConvertedVersion, list_converted_versions
from capsmith.output.samples import has_version
from capsmith.output.write_limits import list_absent_fields
from capsmith.provider.described_kinds import MANAGED
from capsmith.provider.model import Provider, Resource, Role

_REFERENCES = (
    "spec.machineTemplate",
    "spec.machineTemplate.infrastructureRef",
    "spec.machineTemplate.spec",
    "spec.machineTemplate.spec.infrastructureRef",
)
"""Paths of which one is missing if a control plane's CRD has no reference as in the contract."""
_SELECTORS = ("spec.clusterSelector", "spec.clusterSelector.matchLabels")
"""Paths by which an add-on selects Clusters."""
_ID = "providerID"
_LIMITS = ("pattern", "minLength")


def find_author_code(provider: Provider, locate: Callable[[str], Location]) -> Iterator[Finding]:
    """Yield a warning for each part of a generated repository that its author must complete.

    Until then, the repository's own tests may fail.  ``import-conversion``: a conversion raises
    NotImplementedError, because one version requires a field that cannot be derived from the other
    and cannot be left empty.  ``import-control-plane``: a control plane's CRD lacks the contract's
    reference to its Machines' infrastructure (CP-13); without the Kubernetes version, which is not
    needed, it is information.  ``import-addon``: an add-on's CRD has no labels of Clusters.
    ``import-provider-id``: the provider IDs that a file creates must satisfy the CRD's limits.
    ``locate`` returns the position of a kind in provider.yaml.
    """
    for component in provider.components:
        for resource in component.resources:
            yield from _check_resource(provider, resource, locate(resource.kind))
            if resource.role is Role.CONTROL_PLANE:
                yield from _check_control_plane(resource, locate(resource.kind))
            elif resource.role is Role.ADDON:
                yield from _check_addon(resource, locate(resource.kind))
        for converted in list_converted_versions(component):
            missing = list(_list_missing_functions(converted))
            if missing:
                yield _make_finding(provider, converted, missing, locate(converted.resource.kind))


def _list_missing_functions(converted: ConvertedVersion) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and required fields for each function that the scaffold lacks."""
    stored, version = converted.resource.storage_version.name, converted.version.version.name
    for function, copies in list_function_copies(converted).items():
        if copies.missing:
            target = str(stored if function.endswith("to_hub") else version)
            yield function, target, ", ".join(copies.missing)


def _make_finding(
    provider: Provider,
    converted: ConvertedVersion,
    missing: list[tuple[str, str, str]],
    location: Location,
) -> Finding:
    path = f"src/{provider.package}/conversions/{converted.module}.py"
    reasons = "; ".join(
        f"{name}, because {version} requires {fields}" for name, version, fields in missing
    )
    return Finding(
        "import-conversion",
        f"{converted.resource.kind}: {path} has no {reasons}",
        location,
        Severity.WARNING,
        "Write it after `capsmith generate`; until then the conversion tests fail.",
    )


def _check_resource(
    provider: Provider, resource: Resource, location: Location
) -> Iterator[Finding]:
    limits = _list_id_limits(resource)
    if limits:
        path = f"src/{provider.package}/cloud.py"
        yield Finding(
            "import-provider-id",
            f"{resource.kind}: spec.providerID has {limits}: the ids in {path} must comply",
            location,
            Severity.WARNING,
            "Correct the ids after `capsmith generate`; until then the tests of machines may fail.",
        )


def _check_control_plane(resource: Resource, location: Location) -> Iterator[Finding]:
    absent = list_absent_fields(resource) if "machines" in resource.features else _REFERENCES
    references = [each for each in _REFERENCES if each in absent]
    if any(path in _REFERENCES for path, _ in list_field_paths(resource)):
        references = []
    if MANAGED not in resource.features and references:
        there = ", ".join(list_other_references(resource))
        instead = f" (it has {there} instead)" if there else ""
        conversion = ", and convert the field that the CRD has instead" if there else ""
        yield Finding(
            "import-control-plane",
            f"{resource.kind}: the CRD has no {references[0]}{instead}, from which the manager"
            " creates the infrastructure of Machines (CP-13)",
            location,
            Severity.WARNING,
            f"Add it to {location.file} in a new API version{conversion}; until then the tests of"
            " the control plane fail.",
        )
    yield from _check_version(resource, location)


def _check_addon(resource: Resource, location: Location) -> Iterator[Finding]:
    """Report an add-on whose CRD has no labels of Clusters, or another field in their place."""
    absent = [path for path in _SELECTORS if path in list_absent_fields(resource)]
    if absent:
        yield Finding(
            "import-addon",
            f"{resource.kind}: the CRD has no {absent[0]}, by which the manager selects Clusters"
            " (AD-03)",
            location,
            Severity.WARNING,
            f"Add it to {location.file} in a new API version, and set it in the conversion, or"
            f" import it with `--role {resource.kind}=Resource`; until then the tests of the add-on"
            " fail.",
        )


def _check_version(resource: Resource, location: Location) -> Iterator[Finding]:
    """Report a control plane whose CRD has no field for the version of Kubernetes."""
    if has_version(resource):
        return
    lacks = f"{resource.kind}: the CRD has no spec.version"
    if MANAGED not in resource.features:
        yield Finding(
            "import-control-plane",
            f"{lacks}, so that its Machines have no version of Kubernetes (CP-08)",
            location,
            Severity.INFO,
            f"Add it to {location.file} in a new API version if their bootstrap data depend on it.",
        )
    elif "version" in resource.features:
        # Without a version in the status either, the service decides which one it runs.
        yield Finding(
            "import-control-plane",
            f"{lacks}, from which the manager reads the version of Kubernetes (CP-08)",
            location,
            Severity.WARNING,
            f"Add it to {location.file} in a new API version, and set it in the conversion; until"
            " then the tests of the control plane fail.",
        )


def _list_id_limits(resource: Resource) -> str:
    """Return the limits of a machine's provider ID as text; empty if there are none."""
    fields = resource.contract_fields
    if resource.role is not Role.INFRA_MACHINE or fields is None or _ID not in fields.spec:
        return ""
    schema = fields.spec[_ID].schema
    # An id is never empty, so the usual minimum of 1 is no limit.
    limits = {key: schema[key] for key in _LIMITS if schema.get(key) not in (None, 0, 1)}
    return " and ".join(f"{key} {value}" for key, value in limits.items())
