"""List a role's fields, based on the role's shape and on rules that name a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capsmith.contract.model import Contract, ContractField, FieldOrigin, Level, Rule
from capsmith.output.reference import type_words

Schema = Mapping[str, Any]
_ROLES = ("InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane")
_ORDER = ("apiVersion", "kind", "metadata", "spec", "status")
_BINDING = (Level.MUST, Level.SHOULD)
_KEYS = "x-kubernetes-list-map-keys"


class DocumentedField(NamedTuple):
    """A row in a table of fields, on a page of the contract reference."""

    path: str
    """Path such as ``status.addresses[].type``; ``[]`` means list items, ``{}`` means map
    values."""
    type: str
    limits: tuple[str, ...]
    """Limits in words, except for the pattern."""
    pattern: str
    required: bool
    """Whether an object that has the field's parent must also have the field."""
    rules: tuple[Rule, ...]
    """Rules that name the field or, if there are none, the rule for its parent."""
    inherited: bool
    """Whether ``rules`` holds the parent's rule, because no rule names the field itself."""
    meaning: str

    @property
    def necessity(self) -> str:
        """Describe whether CRDs must declare the field, using RFC 2119 keywords where possible."""
        if self.inherited:
            return "required in its parent" if self.required else "optional in its parent"
        words = list(dict.fromkeys(_necessity(rule, self.path) for rule in self.rules))
        return "; ".join([*words, "value required"] if self.required else words)


def list_fields(contract: Contract, role: str) -> list[DocumentedField]:
    """Return a role's fields in one contract version, ``spec`` before ``status``.

    Fields that capsmith adds are left out.  Fields come from the role's shape, and from rules that
    name a path outside the shape.
    """
    named: dict[str, list[tuple[Rule, str]]] = {}
    for rule in contract.rules.values():
        if role in rule.applies_to:
            for path, type_ in list_named_paths(rule):
                named.setdefault(path, []).append((rule, type_))
    found = {each.path: each for each in _declared(contract, role, named)}
    for path, entries in named.items():
        if path not in found:
            rules = tuple(rule for rule, _ in entries)
            found[path] = DocumentedField(path, entries[0][1], (), "", False, rules, False, "")
    return sorted(found.values(), key=lambda field: _ORDER.index(field.path.partition(".")[0]))


def list_named_paths(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield (path, type) for each path that a rule's check expects."""
    if rule.check is None:
        return
    params = rule.check.params
    for part in params.get("parts", ()):
        yield part["path"], part["type"]
    if rule.check.name in ("schema-map-list", "schema-items"):
        yield params["path"], "list"


def _declared(
    contract: Contract, role: str, named: Mapping[str, list[tuple[Rule, str]]]
) -> Iterator[DocumentedField]:
    if not _is_of_contract(role):
        return
    shape = contract.types[role]
    for part, entries in (("spec", shape.spec), ("status", shape.status)):
        for entry in entries.values():
            if entry.origin is not FieldOrigin.CONTRACT:
                continue
            owner = contract.rules[entry.rule]
            for path, schema, required in _walk(f"{part}.{entry.name}", entry):
                rules = tuple(rule for rule, _ in named.get(path, ()))
                is_top = path == f"{part}.{entry.name}"
                if not rules:
                    rules = (owner,) if is_top else _nearest(path, named) or (owner,)
                yield DocumentedField(
                    path,
                    type_words(schema, formats=True),
                    tuple(describe_limits(schema)),
                    str(schema.get("pattern", "")),
                    required,
                    rules,
                    path not in named and not is_top,
                    str(schema.get("description", "")),
                )


def _is_of_contract(role: str) -> bool:
    """Return whether the contract defines the role's fields, rather than capsmith."""
    return role.removesuffix("Template") in _ROLES


def _walk(path: str, field: ContractField) -> Iterator[tuple[str, Schema, bool]]:
    pending: list[tuple[str, Schema, bool]] = [(path, field.schema, field.required)]
    while pending:
        at, schema, required = pending.pop()
        yield at, schema, required
        inner = []
        for mark, part in _parts(schema):
            needed = part.get("required", ())
            inner += [
                (f"{at}{mark}.{name}", each, name in needed)
                for name, each in part.get("properties", {}).items()
                if at != path or name not in field.own
            ]
        pending += reversed(inner)


def _parts(schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield "", schema
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), Mapping):
            yield mark, schema[key]


def _nearest(path: str, named: Mapping[str, list[tuple[Rule, str]]]) -> tuple[Rule, ...]:
    parent = path.rpartition(".")[0]
    while parent:
        for key in (parent, parent.rstrip("[]{}")):
            if key in named:
                return tuple(rule for rule, _ in named[key])
        parent = parent.rpartition(".")[0]
    return ()


def describe_limits(schema: Schema) -> Iterator[str]:
    """Yield each limit that a schema sets, in words."""
    if "enum" in schema:
        yield "one of " + ", ".join(map(str, schema["enum"]))
    yield from _range(schema, "minLength", "maxLength", " characters")
    yield from _range(schema, "minItems", "maxItems", " items")
    yield from _range(schema, "minProperties", "maxProperties", " properties")
    yield from _range(schema, "minimum", "maximum", "")
    if schema.get("x-kubernetes-list-type") == "map":
        yield f"unique {', '.join(schema.get(_KEYS, ()))}"
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["message"]


def _range(schema: Schema, least: str, most: str, unit: str) -> Iterator[str]:
    low, high = schema.get(least), schema.get(most)
    if low is not None and high is not None:
        yield f"{low} to {high}{unit}"
    elif low is not None:
        yield f"at least {low}{unit if low != 1 else _singular(unit)}"
    elif high is not None:
        yield f"at most {high}{unit}"


def _singular(unit: str) -> str:
    return {" properties": " property"}.get(unit, unit.removesuffix("s"))


def _necessity(rule: Rule, path: str) -> str:
    name = rule.check.name if rule.check is not None else ""
    params = rule.check.params if rule.check is not None else {}
    words = rule.level.value
    if name == "schema-one-of-paths":
        others = [each for each, _ in list_named_paths(rule) if each != path]
        words += f", unless {' or '.join(others)} is declared"
    condition = f"{params['when']} is declared" if params.get("when") else rule.condition
    if condition:
        return f"{words}, if {condition}"
    is_optional = name.startswith("schema-") and not params.get("needed")
    return f"{words}, where declared" if is_optional and rule.level in _BINDING else words
