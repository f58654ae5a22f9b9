"""Adjustments of conformance tests to a provider; authors make them in ``tests/conftest.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_skipped: dict[str, str] = {}
_other_values: dict[str, dict[str, Any]] = {}


def skip_scenario(name: str, *, reason: str) -> None:
    """Skip a conformance test that does not apply; call this in ``tests/conftest.py``.

    ``name`` is a class and one of its tests, such as ``TestInfraMachine::test_it_has_addresses``,
    or a class alone; a name that the provider's tests do not have is an error of the run.  Raises
    ValueError without a ``reason``, which the report of the tests shows.
    """
    if not reason.strip():
        raise ValueError("a scenario cannot be skipped without a reason")
    _skipped[name] = reason


def set_other_values(kind: str, values: Mapping[str, Any]) -> None:
    """Set the values to which the tests change fields of ``kind``; see ``tests/conftest.py``.

    ``values`` maps names of fields of ``spec`` to values that differ from those of the sample.
    Without this, tests append a digit to strings, and add 1 to numbers.
    """
    _other_values[kind] = dict(values)


def find_other_values(kind: str) -> Mapping[str, Any]:
    """Return the values set for ``kind`` with :func:`set_other_values`, by field; empty if none."""
    return _other_values.get(kind, {})


def find_skip_reason(tests: str, test: str) -> str | None:
    """Return the reason for which the test ``test`` of the class ``tests`` is skipped, or None."""
    return _skipped.get(f"{tests}::{test}", _skipped.get(tests))


def check_skipped(tests: Mapping[str, type]) -> None:
    """Raise ValueError for the skipped names that are not in ``tests``, classes by name."""
    for name in _skipped:
        class_name, _, test = name.partition("::")
        found = tests.get(class_name)
        if found is None or not hasattr(found, test or "cases"):
            raise ValueError(f"skip_scenario({name!r}): the provider has no such conformance test")
