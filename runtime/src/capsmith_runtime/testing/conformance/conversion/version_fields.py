"""Conversions by the author's functions between API versions lose no values (CRD-15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from capsmith_runtime.api.serialization import decode, encode, json_name
from capsmith_runtime.conversion.controllers import ConversionWebhook
from capsmith_runtime.conversion.fields import PartFields
from capsmith_runtime.conversion.objects import ANNOTATION, ConvertedKind, Converter, is_equal
from capsmith_runtime.conversion.values import MISSING, get_value, set_value
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.conversion import values
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.schema_check import complaints
from capsmith_runtime.testing.value_check import value_complaints


@dataclass(frozen=True, kw_only=True)
class Part:
    """Spec or status of an object during its conversion from one version to the other."""

    fields: PartFields
    to_hub: bool
    source_schema: JSON
    target_schema: JSON

    @property
    def path(self) -> str:
        """Return the path of the part for messages, such as ``spec.template.spec``."""
        return ".".join(self.fields.path)

    @property
    def source_keys(self) -> frozenset[str]:
        """Return the names of the source's author fields without a corresponding target field."""
        return self.fields.spoke_keys if self.to_hub else self.fields.hub_keys

    @property
    def target_keys(self) -> frozenset[str]:
        """Return the names of the target's author fields without a corresponding source field."""
        return self.fields.hub_keys if self.to_hub else self.fields.spoke_keys

    @property
    def source_type(self) -> type[Any] | None:
        """Return the dataclass of the source version's author fields, or None if it has none."""
        return self.fields.spoke if self.to_hub else self.fields.hub

    @property
    def target_type(self) -> type[Any] | None:
        """Return the dataclass of the target version's author fields, or None if it has none."""
        return self.fields.hub if self.to_hub else self.fields.spoke

    def of(self, obj: JSON) -> JSON:
        """Return this part of an object, or an empty object if the object lacks the part."""
        found = get_value(obj, self.fields.path)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, kw_only=True)
class ConversionCase(Case):
    """A test case for one kind, converted from one API version to another."""

    kind: ConvertedKind
    converter: Converter
    source: str
    target: str
    parts: tuple[Part, ...]

    @property
    def id(self) -> str:
        """Return the kind and both versions."""
        return f"{self.kind.kind}-{self.source}-to-{self.target}"

    def objects(self, *, of_target: bool = False) -> st.SearchStrategy[JSON]:
        """Return a strategy for objects that the source's schema, or the target's, allows."""
        version = self.target if of_target else self.source
        found: JSON = {
            "apiVersion": f"{self.kind.group}/{version}",
            "kind": self.kind.kind,
            "metadata": {"name": "one", "namespace": "default"},
        }
        drawn = [
            values.fields(
                part.target_schema if of_target else part.source_schema,
                _keys(part.target_type if of_target else part.source_type),
            )
            for part in self.parts
        ]

        def assembled(contents: Sequence[JSON]) -> JSON:
            obj = {**found, "metadata": dict(found["metadata"])}
            for part, content in zip(self.parts, contents, strict=True):
                set_value(obj, part.fields.path, content)
            return obj

        return st.tuples(*drawn).map(assembled)

    def there(self, obj: JSON) -> JSON:
        """Convert an object from the source version to the target version."""
        return self.converter.convert(obj, f"{self.kind.group}/{self.target}")

    def back(self, obj: JSON) -> JSON:
        """Convert an object from the target version to the source version."""
        return self.converter.convert(obj, f"{self.kind.group}/{self.source}")


def list_conversion_cases(provider: ProviderUnderTest) -> Iterator[ConversionCase]:
    """Yield a case for both directions of each version that has its own fields."""
    for _, webhook in provider.groups_of(ConversionWebhook):
        converter = Converter(webhook.kinds, _Versions(webhook))
        for kind in webhook.kinds:
            for version in kind.fields:
                for source, target in ((version, kind.hub), (kind.hub, version)):
                    yield ConversionCase(
                        provider=provider,
                        core_version=provider.manifests.contract,
                        kind=kind,
                        converter=converter,
                        source=source,
                        target=target,
                        parts=tuple(_parts(provider, kind, source, target)),
                    )


def remove_annotation(obj: JSON) -> JSON:
    """Return an object without the annotation in which the conversion stores lost fields."""
    metadata = dict(obj["metadata"])
    annotations = {
        key: value for key, value in metadata.pop("annotations", {}).items() if key != ANNOTATION
    }
    return {**obj, "metadata": metadata | ({"annotations": annotations} if annotations else {})}


def _parts(
    provider: ProviderUnderTest, kind: ConvertedKind, source: str, target: str
) -> Iterator[Part]:
    schemas = [provider.manifests.schema(kind.kind, version) for version in (source, target)]
    for part in kind.fields[source if target == kind.hub else target].parts:
        keys = [key for name in part.path for key in ("properties", name)]
        before, after = (get_value(schema, tuple(keys)) for schema in schemas)
        yield Part(
            fields=part,
            to_hub=target == kind.hub,
            source_schema=before if isinstance(before, dict) else {},
            target_schema=after if isinstance(after, dict) else {},
        )


def _keys(typed: type[Any] | None) -> frozenset[str]:
    return frozenset(map(json_name, fields(typed))) if typed is not None else frozenset()


@dataclass(frozen=True)
class _Versions:
    """Versions of referenced kinds; other providers' versions need not be known here."""

    webhook: ConversionWebhook

    def __call__(self, group: str, kind: str) -> str:
        return self.webhook.versions.get((group, kind), "")


_LIMITS: Final = frozenset(
    (
        *("minLength", "maxLength", "pattern", "format", "minimum", "maximum", "multipleOf"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
        *("minProperties", "maxProperties"),
    )
)
"""Keywords that limit a value without changing its type."""

_checked: Final = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)


class TestVersionFields(Conformance):
    """Fields that differ between API versions, for objects that the schemas allow (CRD-15)."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[ConversionCase]:
        """Return a case for each kind with such fields, in each direction."""
        return list(list_conversion_cases(provider))

    def test_nothing_is_lost_on_the_way_there_and_back(self, case: ConversionCase) -> None:
        """An object that is converted to the other version and back is equal to the original.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects())
        def check(obj: JSON) -> None:
            there = case.there(obj)
            back = case.back(there)
            assert is_equal(back, obj)
            assert is_equal(case.there(back), there)

        check()

    def test_converted_objects_have_valid_fields(self, case: ConversionCase) -> None:
        """A converted object's fields match the target version's schema.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects())
        def check(obj: JSON) -> None:
            there = case.there(obj)
            for part in case.parts:
                assert not _complaints(part, part.of(there)), case.id

        check()

    def test_changes_in_the_other_version_are_kept(self, case: ConversionCase) -> None:
        """A change that a user makes in the target version survives the conversion there and back.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects(), case.objects(of_target=True))
        def check(obj: JSON, change: JSON) -> None:
            there = case.there(obj)
            changed = {**change, "metadata": there["metadata"]}
            again = case.there(case.back(changed))
            for part in case.parts:
                for key in sorted(part.target_keys):
                    _same(part, key, part.of(again), part.of(changed))

        check()

    def test_fields_that_are_filled_are_read(self, case: ConversionCase) -> None:
        """Without the annotation, too, a field that a function fills keeps its value.

        If the other function did not read it, a change of the field would have no effect in the
        other version.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects())
        def check(obj: JSON) -> None:
            there = remove_annotation(case.there(obj))
            again = case.there(remove_annotation(case.back(there)))
            for part in case.parts:
                for key in sorted(part.target_keys & part.of(there).keys()):
                    _same(part, key, part.of(again), part.of(there))

        check()

    def test_fields_that_are_read_come_back_without_the_annotation(
        self, case: ConversionCase
    ) -> None:
        """Even without the annotation, every field that comes back has its original value.

        A function may leave a field out, even inside an object, but a value that it returns must be
        right.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects())
        def check(obj: JSON) -> None:
            there = remove_annotation(case.there(obj))
            back = remove_annotation(case.back(there))
            for part in case.parts:
                before, after = _typed(part, part.of(obj)), part.of(back)
                for key in sorted(part.source_keys & part.of(obj).keys() & after.keys()):
                    kept = _keep_common(before.get(key, MISSING), after[key])
                    _same(part, key, after, {key: kept})

        check()


def _complaints(part: Part, found: JSON) -> list[str]:
    schema = part.target_schema
    properties, known = schema.get("properties", {}), part.source_schema.get("properties", {})
    own: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: _drop_inner_limits(properties[name], known.get(name, {}))
            for name in part.target_keys
            if name in properties
        },
        "required": [name for name in schema.get("required", ()) if name in part.target_keys],
    }
    values = {key: value for key, value in found.items() if key in part.target_keys}
    return [*complaints(own, values, part.path), *value_complaints(own, values, part.path)]


def _typed(part: Part, content: JSON) -> JSON:
    """Return the fields with defaults for nested ones, as the author's functions see them."""
    if part.source_type is None:
        return content
    typed: JSON = encode(decode(part.source_type, content, part.path))
    return typed


def _drop_inner_limits(target: JSON, source: JSON) -> JSON:
    """Return the schema of a field without limits of values inside it that the source lacks.

    Values of the source may break them, as they may break limits of fields that are copied whole.
    """
    own = {key: value for key, value in target.items() if key in _LIMITS}
    return _drop_other_limits(target, source) | own


def _drop_other_limits(target: JSON, source: JSON) -> JSON:
    if target.get("type") != source.get("type"):
        return target
    found = {
        key: value
        for key, value in target.items()
        if key not in _LIMITS or source.get(key) == value
    }
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict) and isinstance(source.get(key), dict):
            found[key] = _drop_other_limits(found[key], source[key])
    if "properties" in found:
        known = source.get("properties", {})
        found["properties"] = {
            name: _drop_other_limits(schema, known.get(name, {}))
            for name, schema in found["properties"].items()
        }
    return found


def _keep_common(before: Any, after: Any) -> Any:
    """Return ``before`` without the fields inside it that ``after`` lacks."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {
            key: _keep_common(value, after[key]) for key, value in before.items() if key in after
        }
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return list(map(_keep_common, before, after))
    return before


def _same(part: Part, key: str, found: JSON, expected: JSON) -> None:
    values = found.get(key, MISSING), expected.get(key, MISSING)
    assert is_equal(*values), f"{part.path}.{key} is {values[0]!r} after {values[1]!r}"
