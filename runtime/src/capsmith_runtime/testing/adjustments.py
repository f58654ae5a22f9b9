"""Adjustments that adapt conformance tests to a provider, made in ``tests/conftest.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capsmith_runtime.testing.provider import MembersDouble

_skipped: dict[str, str] = {}
_other_values: dict[str, dict[str, Any]] = {}
_members_double: type[MembersDouble] | None = None


def skip_scenario(name: str, *, reason: str) -> None:
    """Skip a conformance test that does not apply; call this in ``tests/conftest.py``.

    ``name`` is a class and one of its tests, such as ``TestInfraMachine::test_it_has_addresses``,
    or a class alone. The run fails if the provider has no test with that name. Raises ValueError if
    ``reason``, which the test report shows, is empty.
    """
    if not reason.strip():
        raise ValueError("a scenario cannot be skipped without a reason")
    _skipped[name] = reason


def set_other_values(kind: str, values: Mapping[str, Any]) -> None:
    """Set the values that tests write to fields of ``kind``; call this in ``tests/conftest.py``.

    ``values`` maps names of ``spec`` fields to values that differ from the sample's. For fields
    that are not listed, tests append a digit to strings and add 1 to numbers.
    """
    _other_values[kind] = dict(values)


def use_members_double(double: type[MembersDouble]) -> None:
    """Test with what runs on the machines of a control plane; call this in ``tests/conftest.py``.

    An instance of ``double`` acts on the Nodes of each test, and knows which of them are members.
    """
    global _members_double
    _members_double = double


def find_members_double() -> type[MembersDouble] | None:
    """Return the class that :func:`use_members_double` has set, if any."""
    return _members_double


def find_other_values(kind: str) -> Mapping[str, Any]:
    """Return the values, keyed by field, that :func:`set_other_values` has set for ``kind``."""
    return _other_values.get(kind, {})


def find_skip_reason(tests: str, test: str) -> str | None:
    """Return why the test ``test`` of the class ``tests`` is skipped, or None if it is not."""
    return _skipped.get(f"{tests}::{test}", _skipped.get(tests))


def check_skipped(tests: Mapping[str, type]) -> None:
    """Raise ValueError if a skipped name is not in ``tests``, which maps names to test classes."""
    for name in _skipped:
        class_name, _, test = name.partition("::")
        found = tests.get(class_name)
        if found is None or not hasattr(found, test or "cases"):
            raise ValueError(f"skip_scenario({name!r}): the provider has no such conformance test")
