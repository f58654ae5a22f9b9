"""Tests that show whether a provider fulfils the Cluster API contract."""

from __future__ import annotations

import importlib
import importlib.util

from capsmith_runtime.testing.adjustments import check_skipped
from capsmith_runtime.testing.conformance.authored import TestSamples, TestTemplates
from capsmith_runtime.testing.conformance.base import Case, Conformance, scenario
from capsmith_runtime.testing.provider import ProviderUnderTest

__all__ = ["Case", "Conformance", "conformance_tests", "scenario"]


def conformance_tests(provider: ProviderUnderTest) -> dict[str, type[Conformance]]:
    """Return the test classes for a provider's features, keyed by name.

    A test module adds them to its own names::

        PROVIDER = ProviderUnderTest(...)
        globals().update(conformance_tests(PROVIDER))

    Raises ValueError if ``tests/conftest.py`` skips a scenario that the provider does not have.
    """
    found: dict[str, type[Conformance]] = {
        each.__name__: each for each in (TestSamples, TestTemplates) if each.cases(provider)
    }
    for name in sorted(_slices(provider)):
        # Some parts of the library have no scenarios: no author can break what they do.
        if importlib.util.find_spec(f"{__name__}.{name}") is None:
            continue
        module = importlib.import_module(f"{__name__}.{name}")
        for test in module.__all__:
            tests: type[Conformance] = getattr(module, test)
            if tests.cases(provider):
                found[test] = tests
    check_skipped(found)
    return found


def _slices(provider: ProviderUnderTest) -> set[str]:
    """Return the slices with tests.

    Conversion tests need an additional library, and author functions to test.
    """
    found = provider.slices()
    return found if provider.has_version_fields else found - {"conversion"}
