"""Generate Python types for converting the author's fields between a version and the hub.

A module contains the fields of the version as ``Spec`` and ``Status``.  ``ChangedSpec``,
``ChangedHubSpec`` and so on contain only the fields that differ; the author's functions return
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from capsmith.output.python_types import (
    QUOTED,
    ClassBuilder,
    PythonClass,
    PythonField,
    PythonModule,
    build_module,
    find_used_names,
    list_members,
)
from capsmith.provider.model import Component, Field, Provider, Resource
from capsmith.provider.versions import PartChanges, VersionChanges, compare_versions
from capsmith.safetext import Identifier, SafeText

HUB: Final = "_hub"
"""Name under which a module imports the hub's types; no field can have this name."""
_WORD: Final = re.compile(rf"{QUOTED.pattern}|\b[A-Za-z_]\w*")


class ConvertedPart(NamedTuple):
    """The conversion of a kind's spec or status between a version and the hub."""

    part: Identifier
    """``spec`` or ``status``."""
    pascal: Identifier
    """``Spec`` or ``Status``."""
    hub_type: Identifier
    """Name of the class for the hub's part, such as ``AcmeMachineSpec``."""
    has_spoke: bool
    """Whether the version has its own fields."""
    has_hub: bool
    to_hub: bool
    """Whether the author's code computes fields of the hub, which requires fields on both sides."""
    from_hub: bool
    """Whether the author's code computes fields of the version."""
    spoke_keys: frozenset[str]
    """Fields that the hub lacks or has with another type."""
    hub_keys: frozenset[str]
    spoke_required: tuple[str, ...]
    """Fields in ``spoke_keys`` that objects in the version must have."""
    hub_required: tuple[str, ...]


class ConvertedVersion(NamedTuple):
    """An API version whose fields the author's code converts."""

    resource: Resource
    template: Resource | None
    version: VersionChanges
    module: Identifier
    """Name of the module, such as ``acme_machine_v1alpha1``."""
    parts: tuple[ConvertedPart, ...]

    @property
    def is_typed(self) -> bool:
        """Return whether any part that differs from the hub has its own type in this version."""
        return any(part.has_spoke for part in self.parts)

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the conversion functions that the author writes."""
        return tuple(
            f"{part.part}_{direction}"
            for part in self.parts
            for direction, needed in (("to_hub", part.to_hub), ("from_hub", part.from_hub))
            if needed
        )

    @property
    def spec(self) -> ConvertedPart | None:
        """Return the conversion of the spec for objects and templates, or None if not needed."""
        return next((part for part in self.parts if part.part == "spec"), None)


def list_converted_versions(component: Component) -> tuple[ConvertedVersion, ...]:
    """Return all versions of a component's kinds whose fields the author's code converts."""
    templates = {str(each.kind): each for each in component.resources if each.role.is_template}
    found = (
        ConvertedVersion(
            resource,
            templates.get(f"{resource.kind}Template"),
            changes,
            Identifier(f"{resource.module}_{changes.version.name}"),
            tuple(_converted(resource, part) for part in changes.parts),
        )
        for resource in component.resources
        if not resource.role.is_template
        for changes in compare_versions(resource)
    )
    return tuple(sorted(found, key=lambda converted: converted.module))


def has_version_functions(provider: Provider) -> bool:
    """Return whether the author's code converts fields of any kind."""
    return any(
        converted.functions
        for component in provider.components
        for converted in list_converted_versions(component)
    )


def find_converted_versions(
    resource: Resource, component: Component
) -> tuple[ConvertedVersion, ...]:
    """Return the converted versions of one kind; a template has its kind's converted versions."""
    return tuple(
        each
        for each in list_converted_versions(component)
        if resource in (each.resource, each.template)
        and (each.spec is not None or resource == each.resource)
    )


def list_hub_types(component: Component) -> dict[Identifier, tuple[Identifier, ...]]:
    """Return the hub classes that conversions need, by module."""
    found: dict[Identifier, set[Identifier]] = {}
    for converted in list_converted_versions(component):
        names = {part.hub_type for part in converted.parts if part.has_hub}
        if names:
            found.setdefault(converted.resource.module, set()).update(names)
    return {module: tuple(sorted(names)) for module, names in sorted(found.items())}


def generate_version_module(converted: ConvertedVersion) -> PythonModule:
    """Return a module with a version's classes and the result types of author functions."""
    classes: list[PythonClass] = []
    # One builder for spec and status, so that a nested class has one name in the module even if
    # both parts contain an object of the same name.
    spoke = ClassBuilder()
    for part in converted.version.parts:
        if not part.spoke:
            continue
        name = _pascal(part.part)
        text = f"{name} in {converted.version.version.name}, without what the contract adds to it."
        spoke.add(name, text, list_members(part.spoke, is_spec=part.part == "spec"))
    classes += spoke.finished
    for part, typed in zip(converted.version.parts, converted.parts, strict=True):
        classes += _changes(part, typed, spoke, converted)
    return build_module(tuple(classes))


def needs_hub(module: PythonModule) -> bool:
    """Return whether any class of the module uses a type of the hub."""
    return bool(find_used_names(module.classes, (HUB,)))


def _converted(resource: Resource, part: PartChanges) -> ConvertedPart:
    pascal = _pascal(part.part)
    has_hub = bool(getattr(resource, f"{part.part}_fields"))
    return ConvertedPart(
        part=Identifier(part.part),
        pascal=pascal,
        hub_type=Identifier(f"{resource.kind}{pascal}"),
        has_spoke=bool(part.spoke),
        has_hub=has_hub,
        to_hub=bool(part.spoke and part.hub_changes),
        from_hub=bool(has_hub and part.spoke_changes),
        spoke_keys=frozenset(field.name for field in part.spoke_changes),
        hub_keys=frozenset(field.name for field in part.hub_changes),
        spoke_required=tuple(f.name for f in part.spoke_changes if _is_needed(part, f)),
        hub_required=tuple(f.name for f in part.hub_changes if _is_needed(part, f)),
    )


def _changes(
    part: PartChanges, typed: ConvertedPart, spoke: ClassBuilder, converted: ConvertedVersion
) -> Iterator[PythonClass]:
    pascal, version = typed.pascal, converted.version.version.name
    stored = converted.resource.storage_version.name
    if typed.from_hub:
        text = f"Fields of {part.part} that {version} has, and not {stored} with the same type."
        fields = _optional(part.spoke_changes, part, part.spoke, spoke, pascal, frozenset())
        yield PythonClass(Identifier(f"Changed{pascal}"), SafeText(text), tuple(fields))
    if typed.to_hub:
        hub = ClassBuilder()
        every = getattr(converted.resource, f"{part.part}_fields")
        name = typed.hub_type
        hub.add(name, "", list_members(every, is_spec=part.part == "spec"))
        text = f"Fields of {part.part} that {stored} has, and not {version} with the same type."
        names = frozenset(str(each) for each in hub.classes)
        fields = _optional(part.hub_changes, part, every, hub, name, names)
        yield PythonClass(Identifier(f"ChangedHub{pascal}"), SafeText(text), tuple(fields))


def _optional(
    changes: Iterable[Field],
    part: PartChanges,
    every: Iterable[Field],
    builder: ClassBuilder,
    owner: Identifier,
    imported: frozenset[str],
) -> Iterator[PythonField]:
    """Yield ``changes`` as fields of a result type, with None as the default where possible."""
    typed = {
        field.name: python
        for field, python in zip(every, builder.classes[owner].fields, strict=True)
    }
    for field in changes:
        python = typed[field.name]
        annotation = _qualified(python.annotation, imported)
        renamed = field.name != python.attribute
        metadata = f"metadata={{'json': {field.name!r}}}"
        assignment = f" = field({metadata})" if renamed else ""
        if not _is_needed(part, field):
            if annotation != "Any" and not annotation.endswith(" | None"):
                annotation = SafeText(f"{annotation} | None")
            assignment = f" = field(default=None, {metadata})" if renamed else " = None"
        yield python._replace(annotation=annotation, assignment=SafeText(assignment))


def _is_needed(part: PartChanges, field: Field) -> bool:
    return part.part == "spec" and field.required and "default" not in field.schema


def _qualified(annotation: str, imported: frozenset[str]) -> SafeText:
    """Return an annotation in which the hub's classes are qualified with their module."""

    def qualified(word: re.Match[str]) -> str:
        return f"{HUB}.{word[0]}" if word[0] in imported else word[0]

    return SafeText(_WORD.sub(qualified, annotation))


def _pascal(part: str) -> Identifier:
    return Identifier(part.capitalize())
