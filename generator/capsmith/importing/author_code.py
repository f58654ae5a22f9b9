"""Find the code without which an imported provider does not pass its own tests."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.findings import Finding, Location, Severity
from capsmith.output.python_types import ConvertedVersion, list_converted_versions
from capsmith.provider.model import Provider


def find_author_code(provider: Provider, location: Location) -> Iterator[Finding]:
    """Yield a warning for each file that the author has to write after ``capsmith generate``.

    ``import-conversion`` names a scaffold of conversions that raises NotImplementedError, because
    a version requires a field that the other version lacks or gives another type.
    """
    for component in provider.components:
        for converted in list_converted_versions(component):
            missing = list(_list_missing_functions(converted))
            if missing:
                yield _make_finding(provider, converted, missing, location)


def _list_missing_functions(converted: ConvertedVersion) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and required fields for each function that the scaffold lacks."""
    stored = str(converted.resource.storage_version.name)
    for part in converted.parts:
        if part.to_hub and part.hub_required:
            yield f"{part.part}_to_hub", stored, ", ".join(map(str, part.hub_required))
        if part.from_hub and part.spoke_required:
            version = str(converted.version.version.name)
            yield f"{part.part}_from_hub", version, ", ".join(map(str, part.spoke_required))


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
