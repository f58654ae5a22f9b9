"""Compare values with the schemas of CRDs.

Schemas are untrusted input: a limit with a wrong type is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from capsmith.judge.checks.apiextensions.defaults import list_broken
from capsmith.judge.checks.value_schema import ValueSchema, read_schema
from capsmith.manifests.parse import Manifest, has_variable, mapping_of, text_of
from capsmith.provider_yaml.values import find_value_errors
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_ZERO_VALUES: Mapping[str, Any] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "number": 0,
    "object": {},
    "quantity": 0,
    "string": "",
}

_OF_METADATA: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("name", "generateName", "namespace"), (str,), "string"),
    (("labels", "annotations"), (dict,), "object"),
    (("finalizers", "ownerReferences"), (list,), "array"),
)
"""Fields of metadata, with the types of their values and the name of these."""


class Mismatch(NamedTuple):
    """A place where an object does not match its CRD's schema."""

    path: Path
    message: str
    varies_with: Path | None = None
    """Path at which a variable's value could resolve the mismatch; None if no value could."""
    is_deep: bool = False
    """Whether a variable at any depth below ``varies_with`` could resolve the mismatch."""
    only: str = ""
    """Contract version, if only releases of core that choose it refuse the value; else empty."""
    when: str = ""
    """Condition under which something breaks; empty if the object is refused."""


def find_metadata_mismatches(manifest: Manifest) -> Iterator[Mismatch]:
    """Yield what the API server cannot decode in an object's metadata, whatever the kind."""
    metadata = manifest.mapping("metadata")
    for names, types, expected in _OF_METADATA:
        for field in names:
            value = metadata.get(field)
            if value is not None and not isinstance(value, types):
                yield Mismatch(("metadata", field), f"is {_name(value)}; expected {expected}")
    for name in ("labels", "annotations"):
        for key, value in manifest.mapping("metadata", name).items():
            # null becomes an empty string.
            if isinstance(key, str) and not isinstance(value, str | None):
                path: Path = ("metadata", name, key)
                yield Mismatch(path, f"is {_name(value)}; expected string")


def find_mismatches(schema: Any, document: Any, complete: bool) -> Iterator[Mismatch]:
    """Yield each mismatch between an object and its schema.

    If ``complete`` is true, missing required fields count as mismatches.
    """
    properties = read_schema(schema).properties
    for name, value in mapping_of(document).items():
        if name in _OF_EVERY_OBJECT or name == "status":
            continue
        part = properties.get(name)
        if part is None:
            yield Mismatch((name,), "is not a field")
        else:
            yield from _Comparison(complete).compare(part, value, (name,))


def find_value_mismatches(
    schema: Any, value: Any, path: Path, complete: bool
) -> Iterable[Mismatch]:
    """Return each mismatch between a value, which is at ``path`` of an object, and its schema.

    The schema must not be changed afterwards.
    """
    return _Comparison(complete).compare(read_schema(schema), value, path)


class _Comparison:
    """Collects the mismatches of a value: a generator for each nested value takes twice as long."""

    def __init__(self, complete: bool) -> None:
        self._complete = complete
        self._found: list[Mismatch] = []

    def compare(self, part: ValueSchema, value: Any, path: Path) -> list[Mismatch]:
        """Return each mismatch between the value at ``path`` and its schema."""
        self._visit(part, value, path)
        return self._found

    def _visit(self, part: ValueSchema, value: Any, path: Path) -> None:
        # The API server drops null.
        if value is None:
            return
        if value.__class__ is str:
            self._visit_text(part, value, path)
        else:
            self._visit_any(part, value, path)

    def _visit_text(self, part: ValueSchema, value: str, path: Path) -> None:
        # The same few texts, such as API groups and verbs, are in most objects of a release.
        key = (value, self._complete)
        if key in part.accepted_texts:
            return
        count = len(self._found)
        # An unknown value matches any schema.
        if not has_variable(value):
            self._visit_any(part, value, path)
        if len(self._found) == count:
            part.accepted_texts.add(key)

    def _visit_any(self, part: ValueSchema, value: Any, path: Path) -> None:
        if problem := _explain_type(part, value):
            self._found.append(Mismatch(path, problem))
            return
        limits, complete = part.limits, self._complete
        if part.choices and value not in part.choices and not part.is_int_or_string:
            message = f"is {value!r}; expected one of {', '.join(map(str, part.choices))}"
            self._found.append(Mismatch(path, message, path))
        # A webhook that sets missing fields may also replace an empty value.
        elif limits.has_any and (complete or value or part.is_int_or_string):
            self._found += _broken_limits(part, value, path, complete)
        if part.is_int_or_string:
            return
        if complete and limits.rules and not has_unknown(value):
            self._found += _broken_rules(part, value, path)
        if isinstance(value, list):
            items = part.items
            # A part that preserves unknown fields declares no items, and preserves unknown items
            # as well.
            if items is not None:
                for number, item in enumerate(value):
                    if item is None and complete and items.kind and not items.is_nullable:
                        message = f"is null; expected {items.kind}"
                        self._found.append(Mismatch((*path, number), message))
                    self._visit(items, item, (*path, number))
        elif isinstance(value, dict):
            self._visit_fields(part, value, path)

    def _visit_fields(self, part: ValueSchema, value: Mapping[Any, Any], path: Path) -> None:
        for name, item in value.items():
            below = part.properties.get(name)
            if below is None:
                if not isinstance(name, str) or has_variable(name):
                    continue
                below = part.additional
            if below is not None:
                self._visit(below, item, (*path, name))
            elif not part.is_open:
                self._found.append(Mismatch((*path, name), "is not a field"))
        for name in part.required if self._complete else ():
            below = part.properties.get(name)
            is_dropped = below is not None and value.get(name) is None and not below.is_nullable
            if name not in value or is_dropped:
                self._found.append(Mismatch((*path, name), "is required", path))


def _explain_type(part: ValueSchema, value: Any) -> str:
    """Return why a value does not have the type of its schema; empty if it has."""
    if part.is_int_or_string:
        is_either = isinstance(value, int | str) and not isinstance(value, bool)
        return "" if is_either else "is neither an integer nor a string"
    kind, types = part.kind, part.types
    if not types or (
        isinstance(value, types) and (kind == "boolean" or value.__class__ is not bool)
    ):
        return ""
    # JSON has only one number type: for the API server, 1.0 is an integer.
    if isinstance(value, float) and value.is_integer() and kind == "integer":
        return ""
    return f"is {_name(value)}; expected {kind}"


def _broken_rules(part: ValueSchema, value: Any, path: Path) -> Iterator[Mismatch]:
    """Yield the CEL rules that a value of an object violates when the object is created."""
    for rule in list_broken(part.limits.rules, fill_defaults(part, value), part.compiler):
        why = text_of(rule, "message") or quote(text_of(rule, "rule"))
        yield Mismatch(path, f"violates a rule: {why}", path, True)


def _broken_limits(part: ValueSchema, value: Any, path: Path, complete: bool) -> Iterator[Mismatch]:
    """Yield each limit that a value of the right type violates.

    If ``complete``, missing required fields count too.
    """
    for below, why, is_deep in _find_broken(part, value, complete):
        pattern = part.schema.get("pattern")
        is_own = why.endswith("the pattern") and not below and isinstance(pattern, str)
        detail = f" {quote(str(pattern))}" if is_own else ""
        found = why.removeprefix("it ") if why.startswith("it ") else f"is invalid: {why}"
        inner = _at(value, below)
        if not isinstance(inner, list | dict):
            found = f"is {quote(str(inner))}: {why}"
        yield Mismatch((*path, *below), f"{found}{detail}", path, is_deep)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) else None
        else:
            value = mapping_of(value).get(step)
    return value


def _name(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", list: "a list", dict: "a mapping"}
    return names.get(type(value), "a number")


def _find_broken(part: ValueSchema, value: Any, complete: bool) -> Iterator[tuple[Path, str, bool]]:
    """Yield each limit that a value violates, as a tuple (path, reason, is_deep).

    A violation is deep if a variable at any depth could resolve it.  If ``complete`` is true, the
    value is final, so missing fields count.  ``value`` must have the schema's type.  Violations
    inside nested values are not included.
    """
    limits = part.limits
    value = fill_defaults(part, value)
    if limits.own:
        for path, why in find_value_errors(value, limits.own):
            yield path, why, False
    if limits.list_type:
        for path, why in find_value_errors(value, limits.list_type):
            yield path, why, True
    # Whether alternatives match may depend on every part of the value.
    if limits.alternatives and complete and not has_unknown(value):
        for path, why in find_value_errors(value, limits.alternatives):
            yield path, why, True


def fill_defaults(part: ValueSchema, value: Any) -> Any:
    """Return a value with the schema's defaults filled in, as the API server does."""
    if not part.has_defaults:
        return value
    if isinstance(value, list):
        return value if part.items is None else [fill_defaults(part.items, item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _fill_field(part, name, each) for name, each in value.items()}
    for name, below in part.properties.items():
        if name not in found and "default" in below.schema:
            found[name] = fill_defaults(below, below.schema["default"])
    return found


def drop_nulls(value: Any, part: ValueSchema | None = None) -> Any:
    """Return a value as the API server decodes it, in which a null is no value.

    Fields and entries with null are absent.  The decoder of Kubernetes' own kinds, whose schema is
    ``part``, writes the zero value of their type into lists and maps instead.
    """
    if isinstance(value, list):
        items = None if part is None else part.items
        return [drop_nulls(_replace_null(items, each), items) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        below = None if part is None else part.find_field(name)
        if part is not None and name not in part.properties:
            each = _replace_null(part.additional, each)
        if each is not None:
            found[name] = drop_nulls(each, below)
    return found


def _replace_null(part: ValueSchema | None, value: Any) -> Any:
    """Return the zero value in place of a null."""
    if value is not None or part is None:
        return value
    return 0 if part.is_int_or_string else _ZERO_VALUES.get(part.kind)


def _fill_field(part: ValueSchema, name: Any, value: Any) -> Any:
    below = part.find_field(name)
    return value if below is None else fill_defaults(below, value)


def has_unknown(value: Any) -> bool:
    """Return whether any part of a value depends on a variable with an unknown value."""
    if isinstance(value, dict):
        return any(has_unknown(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return value is None or (isinstance(value, str) and has_variable(value))
