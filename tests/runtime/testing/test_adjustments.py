"""Authors leave out single scenarios, and say to which values the tests change fields."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capsmith_runtime.testing import adjustments
from capsmith_runtime.testing.conformance import conformance_tests
from tests.runtime.infrastructure import scripted_provider

pytest_plugins = ["pytester"]

CONFTEST = """
from capsmith_runtime.testing.adjustments import skip_scenario

skip_scenario("TestOne::test_fails", reason="this cloud has one zone")
skip_scenario("TestAll", reason="nothing of it applies")
"""

TESTS = """
from capsmith_runtime.testing.conformance.base import Case, Conformance
from tests.runtime.infrastructure.scripted_provider import PROVIDER


class TestOne(Conformance):
    @classmethod
    def cases(cls, provider):
        return [Case(provider=provider, core_version="v1beta2")]

    def test_fails(self, case):
        assert False

    def test_passes(self, case):
        pass


class TestAll(TestOne):
    pass
"""


@pytest.fixture(autouse=True)
def adjusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjustments, "_skipped", {})
    monkeypatch.setattr(adjustments, "_other_values", {})


def test_a_scenario_is_skipped_with_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("-rs", "-p", "no:xdist", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(
        ["SKIPPED*this cloud has one zone", "SKIPPED*nothing of it applies"]
    )


@pytest.mark.parametrize("name", ["TestInfraMachine::test_typo", "TestTypo", "TestTypo::test_x"])
def test_a_scenario_that_does_not_exist_is_an_error(name: str) -> None:
    """Otherwise a scenario that is renamed would be run, or a typo skip nothing, in silence."""
    adjustments.skip_scenario(name, reason="a typo")
    with pytest.raises(ValueError, match=name):
        conformance_tests(scripted_provider.PROVIDER)


def test_a_scenario_is_not_skipped_without_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        adjustments.skip_scenario("TestInfraMachine", reason=" ")


def test_existing_scenarios_may_be_skipped() -> None:
    name = next(iter(conformance_tests(scripted_provider.PROVIDER)))
    adjustments.skip_scenario(name, reason="not now")
    assert name in conformance_tests(replace(scripted_provider.PROVIDER))


def test_the_other_values_are_those_of_the_kind() -> None:
    adjustments.set_other_values("AcmeMachinePool", {"template": "DC0_VM1"})
    assert adjustments.find_other_values("AcmeMachinePool") == {"template": "DC0_VM1"}
    assert adjustments.find_other_values("AcmeCluster") == {}
