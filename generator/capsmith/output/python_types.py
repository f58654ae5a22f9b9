"""Generate the source of Python dataclasses from the fields of a kind.

All source is built from checked identifiers and the ``repr`` of plain data, so user input cannot
become code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from capsmith.provider import naming
from capsmith.provider.model import Field, Resource, Schema
from capsmith.safetext import Identifier, SafeText

_SCALARS: Mapping[str, str] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
}
_SHADOWING = frozenset({"str", "int", "float", "bool", "tuple", "dict", "field", "dataclass"})
"""Names that annotations and defaults in a class body refer to, so that no field may have them."""
_WIDTH = 90
QUOTED = re.compile(r"""'(\\.|[^'\\])*'|"(\\.|[^"\\])*\"""")
_WORD = re.compile(r"\w+")


class PythonField(NamedTuple):
    """The source of a dataclass field."""

    attribute: Identifier
    annotation: SafeText
    assignment: SafeText
    """Default value as ``" = …"``; empty if there is none."""
    docstring: SafeText
    """Content of the docstring; empty if there is no description."""


class PythonClass(NamedTuple):
    """The source of a dataclass."""

    name: Identifier
    docstring: SafeText
    fields: tuple[PythonField, ...]


class PythonModule(NamedTuple):
    """All dataclasses of one kind; each class comes after the classes that it uses."""

    abc_imports: tuple[SafeText, ...]
    dataclass_imports: tuple[SafeText, ...]
    typing_imports: tuple[SafeText, ...]
    classes: tuple[PythonClass, ...]


class Member(NamedTuple):
    """A field of a dataclass, before its source is generated."""

    name: str
    attribute: Identifier
    schema: Schema
    required: bool


@dataclass(slots=True)
class ClassBuilder:
    """Builds the dataclasses for structural schemas, with unique names."""

    classes: dict[str, PythonClass] = field(default_factory=dict)
    members: dict[str, tuple[Member, ...]] = field(default_factory=dict)

    @property
    def finished(self) -> tuple[PythonClass, ...]:
        """Return the classes, sorted so that each comes after the classes that it uses."""
        # A class is finished, and so put into the dictionary, after those that its fields need.
        return tuple(self.classes.values())

    def add(self, name: Identifier, docstring: str, members: Iterable[Member]) -> Identifier:
        """Add a dataclass, and another for each nested object; return its unique name."""
        unique = Identifier(_unused(name, self.members))
        known = tuple(members)
        # Before the fields, which add nested classes: the name is taken from now on.
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
            pairs = (f"{key!r}: {self._expression(below, inner, v)}" for key, v in value.items())
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
    """Return the dataclasses ``<Kind>Spec`` and, if there are status fields, ``<Kind>Status``."""
    builder = ClassBuilder()
    parts = {"Spec": resource.spec_fields, "Status": resource.status_fields}
    for part, fields in parts.items():
        if fields or part == "Spec":
            text = f"{part} of {resource.kind}, without what the contract adds to it."
            name = Identifier(f"{resource.kind}{part}")
            builder.add(name, text, list_members(fields, is_spec=part == "Spec"))
    return build_module(builder.finished)


def list_members(fields: Iterable[Field], *, is_spec: bool) -> list[Member]:
    """Return the dataclass fields for a spec or status; all fields of a status are optional."""
    return [
        Member(f.name, _attribute(f.attribute), f.schema, f.required and is_spec) for f in fields
    ]


def build_module(classes: tuple[PythonClass, ...]) -> PythonModule:
    """Return a module with the given classes and the imports that they need."""
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
    # A dataclass refuses mutable defaults, and an instance as a default would be shared by all
    # objects.
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
        return repr(str(value))
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, list):
        items = ", ".join(_literal(item) for item in value)
        return f"[{items}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{str(k)!r}: {_literal(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"no Python literal for {type(value).__name__}")


def find_used_names(classes: Sequence[PythonClass], names: Iterable[str]) -> tuple[SafeText, ...]:
    """Return the members of ``names`` that occur in field types of ``classes``, in order."""
    fields = [field for cls in classes for field in cls.fields]
    words = {word for f in fields for word in _WORD.findall(QUOTED.sub("", f.annotation))}
    if any(f.assignment.startswith(" = field(") for f in fields):
        words.add("field")
    return tuple(SafeText(name) for name in names if name in words)


def _docstring(text: str) -> SafeText:
    """Return ``text`` as the content of a docstring: wrapped, and unable to end the docstring."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not plain:
        return SafeText("")
    # No backslash escapes anything, and no quote can end the docstring.
    plain = plain.replace("\\", "\\\\").replace('"', "'")
    plain = plain if plain.endswith((".", "!", "?")) else plain + "."
    lines = textwrap.wrap(plain, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return SafeText("\n    ".join(lines if len(lines) == 1 else [*lines, ""]))
