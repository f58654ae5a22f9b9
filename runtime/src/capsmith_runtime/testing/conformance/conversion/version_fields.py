"""The author's functions between API versions lose nothing (CRD-15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from capsmith_runtime.api.serialization import decode, encode
from capsmith_runtime.conversion.objects import is_equal
from capsmith_runtime.conversion.values import MISSING
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import Conformance
from capsmith_runtime.testing.conformance.conversion.base import (
    ConversionCase,
    Part,
    conversion_cases,
    without_annotation,
)
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.schema_check import complaints
from capsmith_runtime.testing.value_check import value_complaints

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
        """Return each kind with such fields, in both directions."""
        return list(conversion_cases(provider))

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
        """The fields of a converted object fit the schema of the target version.

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
        """A change that a user makes in the target version survives a conversion and back.

        A field that one function fills and the other does not read would keep an old value.

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

    def test_fields_that_are_read_come_back_without_the_annotation(
        self, case: ConversionCase
    ) -> None:
        """Without the annotation, every field that comes back has its original value.

        A function may leave a field out, but a value that it returns must be right.

        Proves: CRD-15.
        """

        @_checked
        @given(case.objects())
        def check(obj: JSON) -> None:
            there = without_annotation(case.there(obj))
            back = without_annotation(case.back(there))
            for part in case.parts:
                before, after = _typed(part, part.of(obj)), part.of(back)
                for key in sorted(part.source_keys & part.of(obj).keys() & after.keys()):
                    _same(part, key, after, before)

        check()


def _complaints(part: Part, found: JSON) -> list[str]:
    schema = part.target_schema
    properties = schema.get("properties", {})
    own: dict[str, Any] = {
        "type": "object",
        "properties": {name: properties[name] for name in part.target_keys},
        "required": [name for name in schema.get("required", ()) if name in part.target_keys],
    }
    values = {key: value for key, value in found.items() if key in part.target_keys}
    return [*complaints(own, values, part.path), *value_complaints(own, values, part.path)]


def _typed(part: Part, content: JSON) -> JSON:
    """Return the fields with the defaults of nested ones, as the author's functions see them."""
    if part.source_type is None:
        return content
    typed: JSON = encode(decode(part.source_type, content, part.path))
    return typed


def _same(part: Part, key: str, found: JSON, expected: JSON) -> None:
    values = found.get(key, MISSING), expected.get(key, MISSING)
    assert is_equal(*values), f"{part.path}.{key} is {values[0]!r} after {values[1]!r}"
