"""Generate Python source for a kind's fields: dataclasses for the hub and other versions.

All source is built from checked identifiers and the ``repr`` of plain data, so user input cannot
become code.  If the author's code converts a version's fields to and from the hub, the version's
module contains these fields as ``Spec`` and ``Status``.  Classes such as ``ChangedSpec`` and
``ChangedHubSpec`` contain only the fields that differ, and the author's functions return them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from capsmith.printable import quote_python, replace_unprintable
from capsmith.provider import naming
from capsmith.provider.fields import Field, Schema
from capsmith.provider.model import Component, Provider, Resource
from capsmith.provider.versions import PartChanges, VersionChanges, compare_versions
from capsmith.safetext import Identifier, SafeText

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_SHADOWING = frozenset({"str", "int", "float", "bool", "tuple", "dict", "field", "dataclass"})
"""Names that annotations and defaults in a class body refer to, so that no field may have them."""
_WIDTH = 90
QUOTED = re.compile(r"""'(\\.|[^'\\])*'|"(\\.|[^"\\])*\"""")
_WORD = re.compile(r"\w+")


class PythonField(NamedTuple):
    """A generated dataclass's field, as source code."""

    attribute: Identifier
    annotation: SafeText
    assignment: SafeText
    """Default value as ``" = …"``; empty if there is no default."""
    docstring: SafeText
    """Content of the docstring; empty if there is no description."""


class PythonClass(NamedTuple):
    """A generated dataclass, as source code."""

    name: Identifier
    docstring: SafeText
    fields: tuple[PythonField, ...]


class PythonModule(NamedTuple):
    """One kind's dataclasses. Each class comes after the classes that it uses."""

    abc_imports: tuple[SafeText, ...]
    dataclass_imports: tuple[SafeText, ...]
    typing_imports: tuple[SafeText, ...]
    classes: tuple[PythonClass, ...]


class Member(NamedTuple):
    """A dataclass field before its source code is generated."""

    name: str
    attribute: Identifier
    schema: Schema
    required: bool


@dataclass(slots=True)
class ClassBuilder:
    """Builds uniquely named dataclasses from structural schemas."""

    classes: dict[str, PythonClass] = field(default_factory=dict)
    members: dict[str, tuple[Member, ...]] = field(default_factory=dict)

    @property
    def finished(self) -> tuple[PythonClass, ...]:
        """Return the classes built so far. Each comes after the classes that it uses."""
        # A class is finished, and therefore added, after the classes that its fields need.
        return tuple(self.classes.values())

    def add(self, name: Identifier, docstring: str, members: Iterable[Member]) -> Identifier:
        """Add a dataclass, plus one per nested object. Return the outer one's unique name."""
        unique = Identifier(_unused(name, self.members))
        known = tuple(members)
        # Before the fields, which add nested classes: from now on, the name is taken.
        self.members[unique] = known
        fields = tuple(self._field(unique, member) for member in known)
        self.classes[unique] = PythonClass(unique, _docstring(docstring), fields)
        return unique

    def _field(self, owner: Identifier, member: Member) -> PythonField:
        schema = member.schema
        hint = Identifier(owner + naming.pascal(member.name))
        annotation = self._annotation(schema, hint)
        default = self._default(schema, annotation, member.required)
        if default == "None" and annotation != "Any" and not annotation.endswith(" | None"):
            annotation = SafeText(f"{annotation} | None")
        return PythonField(
            attribute=member.attribute,
            annotation=annotation,
            assignment=_assignment(member, default),
            docstring=_docstring(str(schema.get("description", ""))),
        )

    def _annotation(self, schema: Schema, hint: Identifier) -> SafeText:
        text = self._plain_annotation(schema, hint)
        return SafeText(f"{text} | None" if schema.get("nullable") and text != "Any" else text)

    def _plain_annotation(self, schema: Schema, hint: Identifier) -> str:
        if schema.get("x-kubernetes-int-or-string"):
            return "int | str"
        choices = [choice for choice in schema.get("enum", ()) if choice is not None]
        if choices and all(isinstance(choice, str | int) for choice in choices):
            return f"Literal[{', '.join(_literal(choice) for choice in choices)}]"
        kind = schema.get("type")
        if kind == "array":
            return f"tuple[{self._annotation(schema.get('items', {}), hint)}, ...]"
        if kind == "object":
            return self._object(schema, hint)
        return _SCALARS.get(str(kind), "Any")

    def _object(self, schema: Schema, hint: Identifier) -> str:
        if schema.get("properties"):
            return self.add(hint, str(schema.get("description", "")), _members(schema))
        values = schema.get("additionalProperties")
        inner = self._annotation(values, hint) if isinstance(values, Mapping) else "Any"
        return f"Mapping[str, {inner}]"

    def _default(self, schema: Schema, annotation: SafeText, required: bool) -> str:
        """Return the source of the default value; empty if a value must be given."""
        if schema.get("default") is not None:
            return self._expression(schema, str(annotation), schema["default"])
        if required:
            return ""
        if annotation.endswith(" | None"):
            return "None"
        if annotation.startswith("tuple["):
            return "()"
        return "{}" if annotation.startswith("Mapping[") else "None"

    def _expression(self, schema: Schema, annotation: str, value: Any) -> str:
        annotation = annotation.removesuffix(" | None")
        if isinstance(value, list) and annotation.startswith("tuple["):
            inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
            items = [self._expression(schema.get("items", {}), inner, item) for item in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(value, Mapping) and annotation in self.members:
            return self._instance(annotation, value)
        if isinstance(value, Mapping) and annotation.startswith("Mapping[str, "):
            inner = annotation.removeprefix("Mapping[str, ").removesuffix("]")
            values = schema.get("additionalProperties")
            below = values if isinstance(values, Mapping) else {}
            pairs = (f"{_literal(k)}: {self._expression(below, inner, value[k])}" for k in value)
            return "{" + ", ".join(pairs) + "}"
        return _literal(value)

    def _instance(self, name: str, value: Mapping[str, Any]) -> str:
        annotations = {f.attribute: f.annotation for f in self.classes[name].fields}
        arguments = [
            f"{m.attribute}={self._expression(m.schema, annotations[m.attribute], value[m.name])}"
            for m in self.members[name]
            if m.name in value
        ]
        return f"{name}({', '.join(arguments)})"


def generate_module(resource: Resource) -> PythonModule:
    """Return a module with ``<Kind>Spec`` and classes for other parts of the kind that have fields.

    The other classes are ``<Kind>Status`` and, for the machines in a pool,
    ``<Kind>InstanceStatus``.
    """
    builder = ClassBuilder()
    parts = {
        "Spec": resource.spec_fields,
        "Status": resource.status_fields,
        "InstanceStatus": resource.instance_fields,
    }
    for part, fields in parts.items():
        if fields or part == "Spec":
            text = f"{part} of {resource.kind}, without what the contract adds to it."
            if part == "InstanceStatus":
                text = f"Your status fields of one machine of a {resource.kind}."
            name = Identifier(f"{resource.kind}{part}")
            builder.add(name, text, list_members(fields, is_spec=part == "Spec"))
    return build_module(builder.finished)


def list_members(fields: Iterable[Field], *, is_spec: bool) -> list[Member]:
    """Return the dataclass fields for a spec or status. All status fields are optional."""
    return [
        Member(f.name, _attribute(f.attribute), f.schema, f.required and is_spec) for f in fields
    ]


def build_module(classes: tuple[PythonClass, ...]) -> PythonModule:
    """Return a module with the given classes and the imports they need."""
    return PythonModule(
        abc_imports=find_used_names(classes, ("Mapping",)),
        dataclass_imports=(SafeText("dataclass"), *find_used_names(classes, ("field",))),
        typing_imports=find_used_names(classes, ("Any", "Literal")),
        classes=classes,
    )


def _members(schema: Schema) -> Iterable[Member]:
    taken: set[str] = set()
    for name, inner in schema.get("properties", {}).items():
        attribute = _unused(_attribute(naming.name_attribute(name)), taken)
        taken.add(attribute)
        yield Member(name, Identifier(attribute), inner, name in schema.get("required", ()))


def _attribute(name: Identifier) -> Identifier:
    return Identifier(f"{name}_") if name in _SHADOWING else name


def _unused(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    if name not in known:
        return name
    number = 2
    while f"{name}_{number}" in known:
        number += 1
    return f"{name}_{number}"


def _assignment(member: Member, default: str) -> SafeText:
    arguments = []
    # A dataclass refuses mutable defaults, and a default instance would be shared by all objects.
    mutable = default.startswith("{") or (default.endswith(")") and not default.startswith("("))
    if default == "{}":
        arguments.append("default_factory=dict")
    elif mutable:
        arguments.append(f"default_factory=lambda: {default}")
    elif default:
        arguments.append(f"default={default}")
    if member.name != member.attribute:
        arguments.append(f"metadata={{'json': {member.name!r}}}")
    elif default and not mutable:
        return SafeText(f" = {default}")
    return SafeText(f" = field({', '.join(arguments)})" if arguments else "")


def _literal(value: Any) -> str:
    """Return the ``repr`` of plain data.

    Raises TypeError for any other value.
    """
    if isinstance(value, str):
        return quote_python(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, list):
        items = ", ".join(_literal(item) for item in value)
        return f"[{items}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"no Python literal for {type(value).__name__}")


def find_used_names(classes: Sequence[PythonClass], names: Iterable[str]) -> tuple[SafeText, ...]:
    """Return which of ``names`` occur in the field types of ``classes``, in the given order."""
    fields = [field for cls in classes for field in cls.fields]
    words = {word for f in fields for word in _WORD.findall(QUOTED.sub("", f.annotation))}
    if any(f.assignment.startswith(" = field(") for f in fields):
        words.add("field")
    return tuple(SafeText(name) for name in names if name in words)


def _docstring(text: str) -> SafeText:
    """Return ``text`` as the content of a docstring: wrapped, and unable to end the docstring."""
    plain = " ".join(replace_unprintable(text, " ").split())
    if not plain:
        return SafeText("")
    # Backslashes are escaped, and no quote can end the docstring.
    plain = plain.replace("\\", "\\\\").replace('"', "'")
    plain = plain if plain.endswith((".", "!", "?")) else plain + "."
    lines = textwrap.wrap(plain, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return SafeText("\n    ".join(lines if len(lines) == 1 else [*lines, ""]))


HUB: Final = "_hub"
"""Name under which modules import the hub's types. No field can have this name."""
_QUALIFIED_NAME: Final = re.compile(rf"{QUOTED.pattern}|\b[A-Za-z_]\w*")


class ConvertedPart(NamedTuple):
    """The conversion of a kind's spec or status between an API version and the hub."""

    part: Identifier
    """``spec`` or ``status``."""
    pascal: Identifier
    """``Spec`` or ``Status``."""
    hub_type: Identifier
    """Name of the hub class for this part, such as ``AcmeMachineSpec``."""
    has_spoke: bool
    """Whether the author declares fields for this part in the version."""
    has_hub: bool
    to_hub: bool
    """Whether the author's code computes hub fields. This requires fields on both sides."""
    from_hub: bool
    """Whether the author's code computes fields of this version."""
    spoke_keys: frozenset[str]
    """The version's fields that the hub lacks or defines with another type."""
    hub_keys: frozenset[str]
    spoke_required: tuple[str, ...]
    """The fields in ``spoke_keys`` that the version's schema requires."""
    hub_required: tuple[str, ...]


class ConvertedVersion(NamedTuple):
    """An API version with fields that the author's code converts to and from the hub."""

    resource: Resource
    template: Resource | None
    version: VersionChanges
    module: Identifier
    """Name of the module, such as ``acme_machine_v1alpha1``."""
    parts: tuple[ConvertedPart, ...]

    @property
    def is_typed(self) -> bool:
        """Return whether this version has its own type for any part that differs from the hub."""
        return any(part.has_spoke for part in self.parts)

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the conversion functions that the author must write."""
        return tuple(
            f"{part.part}_{direction}"
            for part in self.parts
            for direction, needed in (("to_hub", part.to_hub), ("from_hub", part.from_hub))
            if needed
        )

    @property
    def spec(self) -> ConvertedPart | None:
        """Return the conversion for specs, which templates share, or None if there is none."""
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
    """Return whether the author's code converts fields of at least one kind."""
    return any(
        converted.functions
        for component in provider.components
        for converted in list_converted_versions(component)
    )


def find_converted_versions(
    resource: Resource, component: Component
) -> tuple[ConvertedVersion, ...]:
    """Return the versions of one kind that the author's code converts.

    A template has the same converted versions as its kind.
    """
    return tuple(
        each
        for each in list_converted_versions(component)
        if resource in (each.resource, each.template)
        and (each.spec is not None or resource == each.resource)
    )


def list_hub_types(component: Component) -> dict[Identifier, tuple[Identifier, ...]]:
    """Return the names of the hub classes that conversions use, keyed by module."""
    found: dict[Identifier, set[Identifier]] = {}
    for converted in list_converted_versions(component):
        names = {part.hub_type for part in converted.parts if part.has_hub}
        if names:
            found.setdefault(converted.resource.module, set()).update(names)
    return {module: tuple(sorted(names)) for module, names in sorted(found.items())}


def generate_version_module(converted: ConvertedVersion) -> PythonModule:
    """Return a module with a version's classes and the author functions' return types."""
    classes: list[PythonClass] = []
    # One builder for spec and status, so that nested classes have unique names in the module even
    # if both parts contain an object of the same name.
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
    """Return whether any class in the module uses a hub type."""
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
        each.name: python for each, python in zip(every, builder.classes[owner].fields, strict=True)
    }
    for change in changes:
        python = typed[change.name]
        annotation = _qualified(python.annotation, imported)
        renamed = change.name != python.attribute
        metadata = f"metadata={{'json': {change.name!r}}}"
        assignment = f" = field({metadata})" if renamed else ""
        if not _is_needed(part, change):
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

    return SafeText(_QUALIFIED_NAME.sub(qualified, annotation))


def _pascal(part: str) -> Identifier:
    return Identifier(part.capitalize())
